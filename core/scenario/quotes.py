"""A quote as one short text: who sells it, which GPU, dollars of a GPU-hour, and what else it says.

    acme,h100,2.20
    acme,h100,2.20,gpus=8,most=512,network=3200,kind=spot,until=2027-01-31,note=storage, too

The first three are in this order, the others are named, a note comes last and may hold commas.
A mistake raises ValueError with one sentence. Names of GPUs are checked by whoever knows them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from core.errors import nearest, shown
from core.machine.offer import Purchase
from core.units import written_items, written_number

MOST_QUOTES = 5
MOST_QUOTE_CHARS = 300
MOST_NAME_CHARS, MOST_NOTE_CHARS = 40, 80
LEAST_USD, MOST_USD = 0.01, 1000.0  # of one GPU-hour
MOST_GBIT_PER_S = 1e6
SEPARATOR = ";"  # between quotes

FIRST = ("provider", "gpu", "usd")
NAMED = ("gpus", "most", "network", "kind", "until", "note")
KINDS = tuple(k for k in get_args(Purchase) if k != "owned")
USUAL = "usual"

_NAME = re.compile(r"[A-Za-z0-9][\w .:/()+-]*", re.ASCII)
_NOTE = re.compile(r"[^=+\-@|\s<>;][^\x00-\x1f\x7f-\x9f\u2028-\u202e<>;]*")
_DAY = re.compile(r"(20\d\d)-(\d\d)-(\d\d)", re.ASCII)
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DIGITS = re.compile(r"\$?\s*\d+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """What a seller offered: a price of one GPU-hour, and its terms."""

    provider: str
    gpu: str
    usd_per_gpu_hour: float
    gpus_per_machine: int | None = None  # None: as usual for the GPU
    most_gpus: int | None = None  # None: any number
    gbit_per_s: float | None = None  # of a machine, one direction; None: as usual for the GPU
    purchase: Purchase = "on_demand"
    until: str = ""  # the last day, like 2027-01-31
    note: str = ""


def quote_of(text: object) -> Quote:
    """The quote in a text.

    >>> quote_of("acme, h100, $2.20, most=512").most_gpus
    512
    """
    if not isinstance(text, str) or len(text) > MOST_QUOTE_CHARS:
        raise ValueError(f"a quote is a text of at most {MOST_QUOTE_CHARS} characters {_like()}")
    body, has_note, note = text.partition(",note=")
    parts = [p.strip() for p in body.split(",")]
    if len(parts) < len(FIRST):
        raise ValueError(f"a quote needs a seller, a GPU and dollars per GPU-hour {_like()}")
    cells = dict(zip(FIRST, parts, strict=False))
    for part in parts[len(FIRST) :]:
        name, equals, value = (t.strip() for t in part.partition("="))
        if not equals and part is parts[len(FIRST)] and _DIGITS.fullmatch(cells["usd"]):
            raise ValueError(_comma(f"{cells['usd']},{part}"))
        if not equals or name not in NAMED:
            guess = nearest(name, NAMED)
            meant = f"{guess}= is probably meant; " if guess else ""
            raise ValueError(
                f"{shown(part)} is no part like most=512: {meant}there are {', '.join(NAMED)}"
            )
        if name in cells:
            raise ValueError(f"{name} is given twice")
        cells[name] = value
    return quote_from({**cells, **({"note": note} if has_note else {})})


def quote_from(cells: Mapping[str, str]) -> Quote:
    """The quote in the cells of a form, by the names of FIRST and NAMED; blank ones are not
    given."""
    given = {name: text.strip() for name, text in cells.items() if text.strip()}
    for name, what in zip(FIRST, ("the seller", "the GPU", "the price"), strict=True):
        if name not in given:
            raise ValueError(f"{what} is not given: a quote is {_like()[1:-1]}")
    found = Quote(
        provider=_name(given["provider"], "seller"),
        gpu=_name(given["gpu"], "GPU"),
        usd_per_gpu_hour=_usd(given["usd"]),
        **{field: read(given[name]) for name, (field, read) in _READ.items() if name in given},
    )
    machine, most = found.gpus_per_machine, found.most_gpus
    if machine is not None and most is not None and most < machine:
        raise ValueError(f"most {most} is less than one machine of {machine} GPUs")
    return found


def text_of(quote: Quote) -> str:
    """The shortest text that reads back as this quote."""
    parts = [quote.provider, quote.gpu, _plain(quote.usd_per_gpu_hour)]
    for name, (field, _) in _READ.items():
        value = getattr(quote, field)
        if value != Quote.__dataclass_fields__[field].default:
            parts.append(f"{name}={_plain(value)}")
    return ",".join(parts)


def cells_of(quote: Quote) -> dict[str, str]:
    """The quote as cells that `quote_from` reads back; what is not given is blank."""
    values = {"provider": quote.provider, "gpu": quote.gpu, "usd": quote.usd_per_gpu_hour}
    values |= {name: getattr(quote, field) for name, (field, _) in _READ.items()}
    return {name: "" if value is None else _plain(value) for name, value in values.items()}


def written_quotes(value: Any) -> Any:
    """'a;b' or ['a', 'b'] -> the quotes in their shortest text, each once."""
    parts = written_items(value, SEPARATOR)
    if len(parts) > MOST_QUOTES:
        raise ValueError(
            f"{len(parts)} quotes are given and at most {MOST_QUOTES} travel in a link: keep the "
            "others in a price book"
        )
    found: dict[str, None] = {}
    for part in parts:
        try:
            found[text_of(quote_of(part))] = None
        except ValueError as e:
            raise ValueError(f"{shown(part)}: {e}") from None
    return tuple(found)


def _like() -> str:
    return "(like acme,h100,2.20)"


def _comma(text: str) -> str:
    return f"the price {shown(text)} has a comma: write {text.replace(',', '.').strip()}"


def _name(text: str, what: str) -> str:
    if len(text) > MOST_NAME_CHARS or not _NAME.fullmatch(text):
        raise ValueError(
            f"the {what} {shown(text)} is not plain text: at most {MOST_NAME_CHARS} letters, "
            "digits, blanks and . : / ( ) + - _"
        )
    return text


def _usd(text: str) -> float:
    if "," in text:
        raise ValueError(_comma(text))
    try:
        value = written_number(text.removeprefix("$"))
    except ValueError:
        raise ValueError(f"the price {shown(text)} is not a number of dollars like 2.20") from None
    if not LEAST_USD <= value <= MOST_USD:
        raise ValueError(
            f"the price {shown(text)} is not from {LEAST_USD:g} to {MOST_USD:,.0f}: dollars an "
            "hour of one GPU are meant, not those of a machine or a month"
        )
    return value


def _whole(most: int, what: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            value = written_number(text)
        except ValueError:
            value = 0.5
        if not (value.is_integer() and 1 <= value <= most):
            raise ValueError(f"{what} {shown(text)} is not a whole number from 1 to {most:,}")
        return int(value)

    return read


def _network(text: str) -> float | None:
    if text.lower() == USUAL:
        return None
    try:
        value = written_number(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= MOST_GBIT_PER_S:
        raise ValueError(
            f"the network {shown(text)} is not a number of Gbit/s a machine above 0: write "
            f"{USUAL} if nobody stated it"
        )
    return value


def _kind(text: str) -> Any:
    kind = re.sub(r"[\s-]+", "_", text.lower())
    if kind not in KINDS:
        guess = nearest(kind, KINDS)
        meant = f"; {guess} is probably meant" if guess else ""
        raise ValueError(f"the purchase kind {shown(text)} is not one of {', '.join(KINDS)}{meant}")
    return kind


def _until(text: str) -> str:
    day = _DAY.fullmatch(text)
    year, month, date = (int(n) for n in day.groups()) if day else (0, 0, 0)
    leap = year % 4 == 0  # from 2000 to 2099
    if not (1 <= month <= 12 and 1 <= date <= _DAYS[month - 1]) or (
        (month, date) == (2, 29) and not leap
    ):
        raise ValueError(f"the last day {shown(text)} is not a day like 2027-01-31")
    return text


def _note(text: str) -> str:
    if len(text) > MOST_NOTE_CHARS or not _NOTE.fullmatch(text):
        raise ValueError(
            f"the note {shown(text)} is not plain text of at most {MOST_NOTE_CHARS} characters "
            "without < > and ;"
        )
    return text


_READ: dict[str, tuple[str, Callable[[str], Any]]] = {
    "gpus": ("gpus_per_machine", _whole(1024, "the GPUs of a machine,")),
    "most": ("most_gpus", _whole(131_072, "the most GPUs,")),
    "network": ("gbit_per_s", _network),
    "kind": ("purchase", _kind),
    "until": ("until", _until),
    "note": ("note", _note),
}


def _plain(value: object) -> str:
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
