"""Names of accelerators: one canonical id, and its other spellings.

`accelerator_names.csv` maps the spellings of facts, price feeds, measured runs and people.
Case, spaces, '_' and '-' never matter. A spelling that could be two parts is not in the table.

A row without a canonical id is a part that is known by name but has no facts; its note says why. A
row with memory or form factor is not a spelling of its own: it distinguishes parts that a price
feed sells under one name (an A100 of 40 or of 80 GiB, on a board or as a PCIe card).
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from core.errors import FactError, shown, unknown_name
from hardware.tables import rows

NAMES_CSV = Path(__file__).with_name("accelerator_names.csv")
FORM_FACTORS = ("sxm", "pcie", "nvl")
# Feeds print 79.2, 80 or 81.6 for the same part; neighbours are further apart than this.
MEMORY_TOLERANCE = 0.1

_COLUMNS = ("spelling", "canonical", "memory_gib", "form_factor", "note")
_SEPARATORS = re.compile(r"[\s_-]+")
# A TPU slice carries its size in its name: tpu-v5p-8, v5litepod-16.
_TPU_SLICE = re.compile(r"((?:tpu[\s_-]*)?v\d[a-z]*)[\s_-]+\d+", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One part that a feed sells under a name that it shares with others."""

    canonical: str
    memory_gib: float  # as feeds print it
    form_factor: str  # one of FORM_FACTORS; '' for parts that come in one form


@dataclass(frozen=True, slots=True)
class Names:
    """The table, by the key of a spelling."""

    canonical: dict[str, str] = field(default_factory=dict)
    variants: dict[str, list[Variant]] = field(default_factory=lambda: defaultdict(list))
    without_facts: dict[str, str] = field(default_factory=dict)  # name -> why


def key(spelling: str) -> str:
    """A spelling without case and separators, which do not matter.

    >>> key("H100-80GB_SXM ") == key("h100 80gb sxm")
    True
    """
    return _SEPARATORS.sub("", spelling).lower()


def load_names(path: Path = NAMES_CSV) -> Names:
    """Read the table; one key with two meanings is an error."""
    names = Names()
    for where, row in rows(path, _COLUMNS):
        spelling, canonical = row["spelling"], row["canonical"]
        if not key(spelling):
            raise FactError(f"{where}: the row has no spelling")
        if row["memory_gib"] or row["form_factor"]:
            names.variants[key(spelling)].append(_variant(where, row))
            continue
        if not canonical and not row["note"]:
            raise FactError(f"{where}: {spelling} has neither a canonical id nor a reason why not")
        if key(spelling) in names.canonical:
            raise FactError(f"{where}: {spelling} is given twice")
        names.canonical[key(spelling)] = canonical or spelling
        if not canonical:
            names.without_facts[spelling] = row["note"]
    _check_targets(path, names)
    return names


def _variant(where: str, row: dict[str, str]) -> Variant:
    try:
        memory_gib = float(row["memory_gib"])
    except ValueError:
        memory_gib = math.nan
    if not (math.isfinite(memory_gib) and memory_gib > 0):
        raise FactError(f"{where}: memory_gib {shown(row['memory_gib'])} is not a number above 0")
    if row["form_factor"] not in ("", *FORM_FACTORS):
        raise FactError(
            f"{where}: form factor {shown(row['form_factor'])} is not one of "
            f"{', '.join(FORM_FACTORS)}"
        )
    return Variant(
        canonical=row["canonical"], memory_gib=memory_gib, form_factor=row["form_factor"]
    )


def _check_targets(path: Path, names: Names) -> None:
    """Every canonical id must be a spelling of itself, or `canonical` is not idempotent."""
    targets = set(names.canonical.values())
    targets |= {v.canonical for variants in names.variants.values() for v in variants}
    for target in sorted(targets):
        if names.canonical.get(key(target)) != target:
            raise FactError(f"{path.name}: the id {shown(target)} is not a spelling of itself")


@cache
def _names() -> Names:
    return load_names()


def canonical(spelling: str) -> str:
    """The canonical id of an accelerator; an unknown spelling is an error with a suggestion."""
    try:
        return _names().canonical[key(spelling)]
    except KeyError:
        known = set(_names().canonical.values()) - set(known_without_facts())
        raise unknown_name("accelerator", spelling, known) from None


def known_without_facts() -> dict[str, str]:
    """Accelerators that have offers or runs but no facts to estimate with: name -> why."""
    return dict(_names().without_facts)


def canonical_from_feed(
    name: str, memory_gib: float | None = None, form_factor: str | None = None
) -> str | None:
    """The canonical id of a part in a price feed, or None where it is ambiguous or unknown.

    None is for an unknown name, for a name of several parts (a bare 'A100' is 40 or 80 GiB) and for
    memory that no part of that name has (a slice of a GPU). Without a form factor, the board (SXM)
    is assumed, like most offers.

    >>> canonical_from_feed("A100", 80), canonical_from_feed("A100")
    ('A100-80GB-SXM', None)
    >>> canonical_from_feed("H100", 80, "PCIe"), canonical_from_feed("H100", 20)
    ('H100-80GB-PCIE', None)
    """
    names = _names()
    if slice_of := _TPU_SLICE.fullmatch(name.strip()):
        name = slice_of[1]
    variants = names.variants.get(key(name))
    if variants is None:
        return names.canonical.get(key(name))
    fits = [v for v in variants if memory_gib is None or _is_close(memory_gib, v.memory_gib)]
    wanted = _form_factor(form_factor) if form_factor else ""
    if wanted:
        fits = [v for v in fits if v.form_factor in ("", wanted)]
    else:
        fits = [v for v in fits if v.form_factor in ("", "sxm")] or fits
    ids = {v.canonical for v in fits}
    return ids.pop() if len(ids) == 1 else None


def _is_close(given_gib: float, part_gib: float) -> bool:
    return abs(given_gib - part_gib) <= MEMORY_TOLERANCE * part_gib


def _form_factor(text: str) -> str:
    """'SXM5' -> sxm, 'PCI-e' -> pcie; an unknown form factor is returned as it is and matches
    nothing."""
    return next((f for f in FORM_FACTORS if key(text).startswith(f)), key(text))
