"""Rows of a price book (prices that no public list shows), and their checks.

Six kinds of row: a negotiated `rate`, a committed-use discount (`commitment`), a cluster of one's
own (`owned`), a `credit`, and prices of `storage` and `egress`. Every value comes as text from a
file; a book is accepted completely or not at all, and every bad row is named with its line and the
reason.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from core.errors import RuncastError, ScenarioError, nearest, shown
from core.machine.offer import Purchase
from core.money.owned import owned_usd_per_gpu_hour
from hardware import facts
from pricing.book.cells import (
    ANY,
    Accelerator,
    Amount,
    Day,
    Discount,
    Fraction,
    Gbit,
    Hourly,
    Name,
    Note,
    Number,
    NumCheckpoints,
    Usd,
    Whole,
    Yearly,
)
from pricing.integrity import price_bands

MAX_ROWS = 500
MISTAKES_SHOWN = 20


class PriceBookError(RuncastError):
    """A price book cannot be used; each sentence names one mistake."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        self.mistakes = tuple(mistakes)
        more = len(mistakes) - MISTAKES_SHOWN
        rest = f" And {more} more." if more > 0 else ""
        super().__init__(" ".join(mistakes[:MISTAKES_SHOWN]) + rest)


class Row(BaseModel):
    """Columns that every row may have."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        str_max_length=400,
        str_strip_whitespace=True,
    )

    line: int
    currency: str = "USD"
    valid_from: Day | None = None
    valid_to: Day | None = None
    note: Note = ""

    @model_validator(mode="after")
    def _in_order(self) -> Row:
        if self.currency.upper() != "USD":
            raise ValueError(
                f"currency {shown(self.currency)}: a price book is in USD; convert the price and "
                "note the rate and its day"
            )
        if self.valid_from and self.valid_to and self.valid_from > self.valid_to:
            raise ValueError(f"valid_from {self.valid_from} lies after valid_to {self.valid_to}")
        return self

    def is_valid_on(self, day: date) -> bool:
        """Whether the row is valid on this day; both ends are included."""
        return (self.valid_from or day) <= day <= (self.valid_to or day)


class _OfMachines(Row):
    """A row for listed machines; '*' matches any."""

    provider: Name
    instance_type: Name = ANY
    accelerator: Accelerator = ANY
    region: Name = ANY
    discount: Discount | None = None
    usd_per_gpu_hour: Hourly | None = None


class Rate(_OfMachines):
    """A negotiated price: a share off the list, or dollars of a GPU or of an instance."""

    kind: Literal["rate"] = "rate"
    purchase: Purchase | Literal["*"] = "on_demand"
    usd_per_hour: Hourly | None = None
    gpu_count: Whole | None = None
    most_gpus: Whole | None = None
    scale_out_gbit_per_s: Gbit | None = None

    @model_validator(mode="after")
    def _one_price(self) -> Rate:
        prices = (self.discount, self.usd_per_gpu_hour, self.usd_per_hour)
        if sum(p is not None for p in prices) != 1:
            raise ValueError("a rate has one of discount, usd_per_gpu_hour and usd_per_hour")
        if self.purchase == "owned":
            raise ValueError("a rate is of something rented: what is owned is a row 'owned'")
        if self.discount is None and ANY in (self.accelerator, self.purchase):
            raise ValueError("a rate in dollars names its accelerator and purchase")
        if self.usd_per_hour is not None and self.instance_type == ANY:
            raise ValueError("usd_per_hour is of one instance: name the instance_type")
        if self.usd_per_hour is not None and self.gpu_count is None:
            raise ValueError("usd_per_hour is of an instance: say its gpu_count")
        if self.discount is None:
            usd = self.usd_per_gpu_hour or (self.usd_per_hour or 0.0) / (self.gpu_count or 1)
            _check_band(self.accelerator, self.purchase, usd)
        return self


class Commitment(_OfMachines):
    """A committed-use discount: off the on-demand list price, for a term."""

    kind: Literal["commitment"] = "commitment"
    purchase: Literal["reserved_1y", "reserved_3y", "capacity_block"]

    @model_validator(mode="after")
    def _one_price(self) -> Commitment:
        if (self.discount is None) == (self.usd_per_gpu_hour is None):
            raise ValueError("a commitment has one of discount and usd_per_gpu_hour")
        if self.usd_per_gpu_hour is not None:
            if self.accelerator == ANY:
                raise ValueError("a commitment in dollars names its accelerator")
            _check_band(self.accelerator, self.purchase, self.usd_per_gpu_hour)
        return self


class Owned(Row):
    """An owned cluster, and its costs per year."""

    kind: Literal["owned"] = "owned"
    name: Name
    accelerator: Accelerator
    num_gpus: Whole
    gpus_per_node: Annotated[Whole, Field(le=1024)]
    region: Name = ANY
    capex_usd: Usd
    residual_fraction: Annotated[Fraction, Field(ge=0, lt=1)] = 0.0
    depreciation_years: Annotated[Number, Field(ge=0.5, le=30)]
    power_kw: Annotated[Number, Field(gt=0, le=1e6)]
    pue: Annotated[Number, Field(ge=1, le=5)]
    usd_per_kwh: Annotated[Number, Field(ge=0, le=10)]
    staff_usd_per_year: Yearly = 0.0
    other_usd_per_year: Yearly = 0.0
    utilisation: Annotated[Fraction, Field(gt=0, le=1)]
    scale_out_gbit_per_s: Gbit | None = None  # of a node

    @model_validator(mode="after")
    def _whole_nodes(self) -> Owned:
        if ANY in (self.name, self.accelerator):
            raise ValueError("an owned cluster has a name and an accelerator, not '*'")
        if self.accelerator not in facts.accelerators():
            raise ValueError(f"no figures of accelerator {self.accelerator} are known here")
        if self.num_gpus % self.gpus_per_node:
            raise ValueError(f"{self.num_gpus} GPUs are no whole nodes of {self.gpus_per_node}")
        return self

    @property
    def usd_per_gpu_hour(self) -> float:
        """Dollars per used GPU-hour (core/money/owned.py)."""
        given = self.model_dump(include=_OWNED_FIGURES)
        return float(owned_usd_per_gpu_hour(**given))


_OWNED_FIGURES = {
    "num_gpus", "capex_usd", "residual_fraction", "depreciation_years", "power_kw", "pue",
    "usd_per_kwh", "staff_usd_per_year", "other_usd_per_year", "utilisation",
}  # fmt: skip


class Credit(Row):
    """A fixed sum that is taken off the total of a run."""

    kind: Literal["credit"] = "credit"
    provider: Name = ANY
    usd: Usd


class Storage(Row):
    """Price of storing the data set and checkpoints during the run."""

    kind: Literal["storage"] = "storage"
    provider: Name = ANY
    region: Name = ANY
    usd_per_gb_month: Annotated[Number, Field(ge=0, le=1e3)]
    data_gb: Amount = 0.0
    checkpoints: NumCheckpoints = 0


class Egress(Row):
    """Price of moving data and checkpoints out of a cloud, once per run."""

    kind: Literal["egress"] = "egress"
    provider: Name = ANY
    region: Name = ANY
    usd_per_gb: Annotated[Number, Field(ge=0, le=1e3)]
    data_gb: Amount = 0.0
    checkpoints: NumCheckpoints = 0


AnyRow = Rate | Commitment | Owned | Credit | Storage | Egress
KINDS: dict[str, type[Row]] = {m.model_fields["kind"].default: m for m in get_args(AnyRow)}
COLUMNS = tuple(
    dict.fromkeys(["kind", *(n for m in KINDS.values() for n in m.model_fields if n != "line")])
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBook:
    """The rows of one book; `id` is a hash of their content."""

    name: str
    added_on: date
    rows: tuple[Row, ...]

    @property
    def id(self) -> str:
        content = [self.added_on.isoformat(), *(row.model_dump(mode="json") for row in self.rows)]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]

    def valid(self, kind: type[Row], day: date) -> list[Any]:
        """The rows of one kind that are valid on this day, in file order."""
        return [r for r in self.rows if isinstance(r, kind) and r.is_valid_on(day)]


def read_rows(cells: Iterable[tuple[int, Mapping[str, str]]]) -> tuple[Row, ...]:
    """The rows of a file, each with its line; `PriceBookError` if any of them is wrong."""
    found: list[Row] = []
    mistakes: list[str] = []
    for line, row in cells:
        if len(found) + len(mistakes) >= MAX_ROWS:
            raise PriceBookError([f"A price book has at most {MAX_ROWS} rows."])
        try:
            found.append(_row(line, row))
        except ScenarioError as e:
            mistakes.append(f"Line {line}: {e}")
    if mistakes:
        raise PriceBookError(mistakes)
    if not found:
        raise PriceBookError(["The price book has no rows."])
    return tuple(found)


def _row(line: int, cells: Mapping[str, str]) -> Row:
    given = {name: text for name, text in cells.items() if text.strip()}
    kind = given.pop("kind", "").strip()
    if "line" in given:
        raise ScenarioError("'line' is no column: lines are counted.")
    if kind not in KINDS:
        guess = nearest(kind, KINDS)
        hint = f" Did you mean {guess!r}?" if guess else ""
        raise ScenarioError(f"kind {shown(kind)} is not one of {', '.join(KINDS)}.{hint}")
    try:
        return KINDS[kind].model_validate({**given, "line": line})
    except ValidationError as e:
        raise ScenarioError(_sentence(kind, e)) from None


def _sentence(kind: str, e: ValidationError) -> str:
    """Sentence on the first mistake in a row: the column, its value, and what is allowed."""
    first = e.errors(include_url=False)[0]
    column = str(first["loc"][0]) if first["loc"] else ""
    reason = str(first["msg"]).removeprefix("Value error, ").rstrip(".")
    if first["type"] == "extra_forbidden":
        guess = nearest(column, [n for n in KINDS[kind].model_fields if n != "line"])
        hint = f" Did you mean {guess!r}?" if guess else ""
        return f"a row '{kind}' has no column {shown(column)}.{hint}"
    if first["type"] == "missing":
        return f"a row '{kind}' needs {column}."
    if not column:
        return f"{reason}."
    reason = reason.removeprefix("Input ")
    return f"{column} {shown(first['input'])} {reason[0].lower() + reason[1:]}."


def _check_band(accelerator: str, purchase: str, usd_per_gpu_hour: float) -> None:
    """Refuse a price outside the band: it may be per month, per node or in cents."""
    if reason := outside_band(accelerator, purchase, usd_per_gpu_hour):
        raise ValueError(reason)


def outside_band(accelerator: str, purchase: str, usd_per_gpu_hour: float) -> str:
    """Why a price is not believable; '' if it is."""
    band = price_bands().get((accelerator, "spot" if purchase == "spot" else "committed"))
    if band is None or band[0] <= usd_per_gpu_hour <= band[1]:
        return ""
    return (
        f"{usd_per_gpu_hour:.4g} USD per hour of one {accelerator} is not believable "
        f"({band[0]:g} to {band[1]:g} are): a month, a whole node or cents?"
    )
