"""Tables of the Method page: published claims, formulas, and what is modelled or not.

claims.csv        a figure that a guide prints, in its printed unit, ours, and the verdict
guide_cases.csv   a case that a guide prints, and our forecast for it
formulas.csv      what each module computes, in words, with the paper it is from
modelled.csv      every name that the product supports -> a setting that changes the forecast
not_modelled.csv  names that change no forecast, with the reason
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import get_args
from urllib.parse import parse_qsl

from core.errors import FactError, shown
from core.evidence.published_claims import VERDICTS, Rule
from core.units import TO_SI
from hardware.tables import check_source, rows

CLAIMS_CSV = Path(__file__).with_name("claims.csv")
GUIDE_CASES_CSV = Path(__file__).with_name("guide_cases.csv")
FORMULAS_CSV = Path(__file__).with_name("formulas.csv")
MODELLED_CSV = Path(__file__).with_name("modelled.csv")
NOT_MODELLED_CSV = Path(__file__).with_name("not_modelled.csv")

RULES = get_args(Rule)
# Units of prose in addition to those of core/units.py; a percentage becomes a fraction.
SCALES = {
    **TO_SI, "EFLOP/s": 1e18, "kW": 1e3, "%": 0.01, "x": 1.0, "h": 1.0, "days": 1.0, "USD": 1.0,
    "GPU-h": 1.0, "GPUs": 1.0, "tokens/s": 1.0, "per week": 1.0,
}  # fmt: skip
EFFECTS = (
    "faster", "slower", "less memory", "more memory", "possible", "differs", "dollars",
    "later", "more kWh", "more carbon",
)  # fmt: skip
_CLAIM_COLUMNS = (
    "claim", "topic", "statement", "low", "high", "unit", "tolerance", "rule", "formula",
    "verdict", "why", "source", "source_date", "printed", "ours", "arithmetic", "computed_with",
    "computed",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedClaim:
    """One printed figure. `low` and `high` are in core's unit: printed value x `scale`."""

    id: str
    topic: str
    statement: str
    low: float
    high: float
    unit: str  # as printed
    scale: float
    tolerance: float  # relative precision of the printed figure, a fraction
    rule: Rule
    formula: str  # in words
    verdict: str  # ours; `python -m tests.support.guides` computes it again
    why: str
    source: str
    source_date: str
    printed: str  # the figure as the guide prints it
    ours: str  # our figure, in the unit of the guide
    arithmetic: str  # the numbers in the formula
    computed_with: str  # version of Runcast
    computed: str  # date


@dataclass(frozen=True, slots=True, kw_only=True)
class GuideCase:
    """One case that a guide prints, and our forecast for it."""

    case: str
    printed: str
    forecast: str
    computed_with: str  # version of Runcast
    computed: str  # date


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """One formula of the forecast: what it computes, where, and its source."""

    topic: str
    module: str
    formula: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Modelled:
    """One supported name and the scenario fields that it changes."""

    group: str
    name: str
    reference: str  # a link query without the name ...
    setting: str  # ... and the settings that change its forecast
    effect: str

    def reference_fields(self) -> dict[str, str]:
        """The fields of the reference."""
        return _fields(self.reference)

    def fields(self) -> dict[str, str]:
        """The fields of the reference, updated with the setting."""
        return {**_fields(self.reference), **_fields(self.setting)}


@dataclass(frozen=True, slots=True, kw_only=True)
class NotModelled:
    """One name that changes no forecast, with the reason."""

    group: str
    name: str
    why: str


def load_claims(path: Path = CLAIMS_CSV) -> tuple[PublishedClaim, ...]:
    """Read the table; a claim without figure, formula, reason or source is an error."""
    found: dict[str, PublishedClaim] = {}
    for where, row in rows(path, _CLAIM_COLUMNS):
        name = row["claim"]
        check_source(where, name, row)
        if name in found:
            raise FactError(f"{where}: {name} is given twice")
        if row["unit"] not in SCALES:
            raise FactError(f"{where}: unit {shown(row['unit'])} is not one of {sorted(SCALES)}")
        if row["rule"] not in RULES or row["verdict"] not in VERDICTS:
            raise FactError(
                f"{where}: {name} has rule {shown(row['rule'])} and verdict "
                f"{shown(row['verdict'])}, not of {', '.join(RULES)} and {', '.join(VERDICTS)}"
            )
        if missing := [
            c
            for c in ("topic", "statement", "formula", "why", "printed", "ours", "arithmetic")
            if not row[c]
        ]:
            raise FactError(f"{where}: {name} has no {', '.join(missing)}")
        try:
            low, high, tolerance = (float(row[c]) for c in ("low", "high", "tolerance"))
        except ValueError as e:
            raise FactError(f"{where}: {e}") from None
        if not (0 < low <= high and 0 <= tolerance < 1):
            raise FactError(f"{where}: {name} has no range low <= high above 0")
        scale = SCALES[row["unit"]]
        found[name] = PublishedClaim(
            id=name, low=low * scale, high=high * scale, scale=scale, tolerance=tolerance,
            topic=row["topic"], statement=row["statement"], unit=row["unit"],
            rule=next(r for r in RULES if r == row["rule"]), formula=row["formula"],
            verdict=row["verdict"], why=row["why"], source=row["source"],
            source_date=row["source_date"], **{c: row[c] for c in _CLAIM_COLUMNS[-5:]},
        )  # fmt: skip
    return tuple(found.values())


@cache
def claims() -> tuple[PublishedClaim, ...]:
    """The shipped claims, read once, in the order of the table."""
    return load_claims()


@cache
def guide_cases() -> tuple[GuideCase, ...]:
    """Cases of the guides with our forecasts."""
    return tuple(GuideCase(**r) for r in _complete(GUIDE_CASES_CSV, GuideCase.__slots__))


@cache
def formulas() -> tuple[Formula, ...]:
    """The shipped table of formulas."""
    return tuple(Formula(**r) for r in _complete(FORMULAS_CSV, Formula.__slots__))


@cache
def modelled() -> tuple[Modelled, ...]:
    """Every supported name, with its scenario fields."""
    found = tuple(Modelled(**r) for r in _complete(MODELLED_CSV, Modelled.__slots__))
    if bad := [m.name for m in found if m.effect not in EFFECTS]:
        raise FactError(f"{MODELLED_CSV.name}: {', '.join(bad)} has no effect of {EFFECTS}")
    return found


@cache
def not_modelled() -> tuple[NotModelled, ...]:
    """Every name that changes no forecast."""
    return tuple(NotModelled(**r) for r in _complete(NOT_MODELLED_CSV, NotModelled.__slots__))


def _fields(query: str) -> dict[str, str]:
    return dict(parse_qsl(query, keep_blank_values=True, strict_parsing=True))


def _complete(path: Path, columns: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """Rows of a table of text, each cell filled."""
    for where, row in rows(path, tuple(columns)):
        if missing := [c for c in columns if not row[c]]:
            raise FactError(f"{where}: the row has no {', '.join(missing)}")
        yield row
