"""The comparison table: each quantity of each plan, and its difference from the first plan.

The plans may belong to different scenarios: each is read with its own.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.bill.energy import Energy, energy_of, energy_text, tonnes
from app.document import format as fmt
from app.document import vocabulary
from app.document.on_use import pd
from app.forecast.training import tokens_of
from app.plan import document as plan_document
from app.plan import words as plan_words
from core.cost.uncertain import Uncertain
from core.scenario import Scenario
from core.search.plan import Plan
from pricing.book.offers import is_quote
from pricing.book.quotes import INSTANCE

LETTERS = "ABCD"
UNKNOWN, NEVER = "not known", "never ends"
SAME_WORD = "same"
SAME = 5e-4  # relative differences below this are not shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One plan with its scenario, and its letter on the page."""

    letter: str
    scenario: Scenario
    plan: Plan
    apart: str = ""  # e.g. us-east-1, where plans have the same machines

    @property
    def machine(self) -> str:
        """64 x H100-80GB-SXM, aws."""
        offer = self.plan.offer
        seller = " ".join(t for t in (offer.provider, self.apart) if t)
        own = ", your quote" if is_quote(offer) and INSTANCE not in self.apart else ""
        return f"{fmt.count(self.plan.num_gpus)} x {offer.accelerator}, {seller}{own}"

    @property
    def name(self) -> str:
        """The letter and the machines, for table heads and sentences."""
        return f"{self.letter}: {self.machine}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One quantity of every plan. `deltas` are against the first plan; '' means no difference."""

    label: str
    unit: str  # of the numbers; '' for a text
    texts: tuple[str, ...]
    numbers: tuple[float, ...]  # NaN: unknown, or a text
    deltas: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Seen:
    """The parts of one plan that the table reads."""

    scenario: Scenario
    plan: Plan
    energy: Energy
    today: dt.date


def subjects(scenario: Scenario, plans: Sequence[Plan]) -> tuple[Subject, ...]:
    """Plans of one scenario, lettered in order; each has a distinct name."""
    made = tuple(
        Subject(letter=letter, scenario=scenario, plan=plan)
        for letter, plan in zip(LETTERS, plans, strict=False)
    )
    return tuple(
        replace(s, apart=_apart(s.plan, [o.plan for o in made if o.machine == s.machine]))
        for s in made
    )


def _apart(plan: Plan, alike: Sequence[Plan]) -> str:
    """Instance, region or purchase of a plan, where plans of the same name differ in them."""
    names = {
        p.id: (
            p.offer.instance_type,
            vocabulary.stated_region(p.offer.region),
            vocabulary.purchase(p.offer.purchase),
        )
        for p in alike
    }
    differ = [len(set(each)) > 1 for each in zip(*names.values(), strict=True)]
    return " ".join(t for t, d in zip(names[plan.id], differ, strict=True) if d and t)


def rows(compared: Sequence[Subject], today: dt.date) -> tuple[Row, ...]:
    """Every quantity, in the order of the table; differences are against the first plan."""
    seen = [_seen(s, today) for s in compared]
    return tuple(
        _number_row(q, seen) if isinstance(q, _Number) else _text_row(*q, seen) for q in _QUANTITIES
    )


def differing(found: Sequence[Row]) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """The rows in which the plans differ, and those in which they are the same."""
    same = [len({*r.texts}) == 1 or {*r.deltas[1:]} == {SAME_WORD} for r in found]
    pairs = list(zip(found, same, strict=True))
    return tuple(r for r, s in pairs if not s), tuple(r for r, s in pairs if s)


def table(found: Sequence[Row], names: Sequence[str]) -> pd.DataFrame:
    """The plans as the page shows them: each value with its difference, if there is one."""

    def cell(row: Row, n: int) -> str:
        delta = row.deltas[n]
        return row.texts[n] + (f" ({delta})" if delta not in ("", SAME_WORD) else "")

    return pd.DataFrame(
        {name: [cell(r, n) for r in found] for n, name in enumerate(names)},
        index=pd.Index([r.label for r in found], name="Quantity"),
    )


def file(found: Sequence[Row], names: Sequence[str]) -> pd.DataFrame:
    """The comparison as numbers, for a file: per quantity, each plan's value and difference."""
    columns: dict[str, list[object]] = {
        "quantity": [r.label for r in found],
        "unit": [r.unit for r in found],
    }
    for n, name in enumerate(names):
        columns[name] = [r.numbers[n] if r.unit else r.texts[n] for r in found]
        if n:
            columns[f"{name.partition(':')[0]} minus A"] = [
                r.numbers[n] - r.numbers[0] if r.unit else "" for r in found
            ]
    return pd.DataFrame(columns)


def _seen(subject: Subject, today: dt.date) -> _Seen:
    scenario, plan = subject.scenario, subject.plan
    return _Seen(
        scenario=scenario,
        plan=plan,
        energy=energy_of(scenario, plan),
        today=today,
    )


# --- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Number:
    """A quantity that has a number."""

    label: str
    unit: str
    of: Callable[[_Seen], float | None]
    text: Callable[[float], str]
    after: Callable[[_Seen], str] | None = None  # what follows the text


def _number_row(quantity: _Number, seen: Sequence[_Seen]) -> Row:
    numbers = tuple(math.nan if (n := quantity.of(s)) is None else float(n) for s in seen)
    return Row(
        label=quantity.label,
        unit=quantity.unit,
        texts=tuple(_shown(quantity, n, s) for n, s in zip(numbers, seen, strict=True)),
        numbers=numbers,
        deltas=("", *(_delta(quantity, numbers[0], n) for n in numbers[1:])),
    )


def _shown(quantity: _Number, number: float, seen: _Seen) -> str:
    if not math.isfinite(number):
        return NEVER if number == math.inf else UNKNOWN
    return quantity.text(number) + (quantity.after(seen) if quantity.after else "")


def _delta(quantity: _Number, first: float, other: float) -> str:
    """The difference from the first figure, absolute and in percent; of fractions, in points."""
    if not (math.isfinite(first) and math.isfinite(other)):
        return ""
    more = other - first
    sign = "+" if more > 0 else "-"
    if abs(more) <= SAME * max(abs(first), abs(other)):
        return SAME_WORD
    if quantity.unit == "fraction":
        return f"{sign}{fmt.percent(abs(more)).removesuffix('%')} points"
    part = f", {sign}{fmt.percent(abs(more / first))}" if first else ""
    return f"{sign}{quantity.text(abs(more))}{part}"


def _text_row(label: str, of: Callable[[_Seen], str], seen: Sequence[_Seen]) -> Row:
    texts = tuple(of(s) for s in seen)
    none = ("",) * len(texts)
    return Row(label=label, unit="", texts=texts, numbers=(math.nan,) * len(texts), deltas=none)


def _mean(figures: Uncertain | None) -> float | None:
    return None if figures is None else float(figures.mean)


def _usd(s: _Seen, which: str) -> float:
    return float(getattr(s.plan.cost.paid, which))


def _price_seen(s: _Seen) -> str:
    offer = s.plan.offer
    if s.plan.usd is None:
        return UNKNOWN
    quality = offer.quality or "not stated"
    seen = offer.observed_at or "undated"
    return f"{seen} ({fmt.age(offer.observed_at, s.today)}), quality {quality}"


_QUANTITIES: tuple[_Number | tuple[str, Callable[[_Seen], str]], ...] = (
    _Number("Expected cost", "USD", lambda s: _usd(s, "mean"), fmt.usd_short),
    _Number("Cost, P10", "USD", lambda s: _usd(s, "p10"), fmt.usd_short),
    _Number("Cost, P90", "USD", lambda s: _usd(s, "p90"), fmt.usd_short),
    _Number("Cost of 1M tokens", "USD",
            lambda s: _usd(s, "mean") / (tokens_of(s.scenario) / 1e6), fmt.usd_short),
    _Number("Expected time", "hours", lambda s: s.plan.cost.hours.mean, fmt.days),
    _Number("Time, P10", "hours", lambda s: s.plan.cost.hours.p10, fmt.days),
    _Number("Time, P90", "hours", lambda s: s.plan.cost.hours.p90, fmt.days),
    _Number("Chance on time", "fraction", lambda s: s.plan.chance_on_time, fmt.chance),
    _Number("Cost without failures", "USD",
            lambda s: None if s.plan.usd is None else s.plan.usd.p50, fmt.usd_short),
    _Number("Time without failures", "hours", lambda s: s.plan.hours.p50, fmt.days),
    _Number("Chance within budget", "fraction", lambda s: s.plan.chance_in_budget, fmt.chance),
    _Number("Share of a commitment", "USD",
            lambda s: s.plan.expected_usd if s.plan.cost.commits else None, fmt.usd_short),
    _Number("Goodput", "fraction", lambda s: s.plan.cost.goodput, fmt.percent),
    _Number("Tokens/s", "tokens/s", lambda s: s.plan.tokens_per_s.p50, fmt.tokens),
    _Number("Tokens/s of a GPU", "tokens/s", lambda s: s.plan.tokens_per_s_per_gpu, fmt.tokens),
    _Number("MFU", "fraction", lambda s: s.plan.mfu, fmt.percent),
    _Number("One step", "s", lambda s: sum(s.plan.step_s.values()), fmt.seconds),
    _Number("GPUs", "GPUs", lambda s: s.plan.num_gpus, fmt.count),
    _Number("Instances", "instances", lambda s: s.plan.num_nodes, fmt.count),
    _Number("GPU-hours", "GPU-hours", lambda s: s.plan.gpu_hours, fmt.tokens),
    _Number("Memory, peak", "bytes", lambda s: plan_document.peak_bytes(s.plan), fmt.gib,
            lambda s: f" of {fmt.gib(s.plan.memory_capacity_bytes)}"),
    _Number("Memory left", "bytes",
            lambda s: s.plan.memory_capacity_bytes - plan_document.peak_bytes(s.plan), fmt.gib),
    _Number("Out of memory", "fraction", lambda s: s.plan.probability_oom,
            lambda x: f"{fmt.chance(x)} chance"),
    _Number("Price, GPU-hour", "USD/h", lambda s: s.plan.usd_per_gpu_hour, fmt.usd_per_hour),
    ("Price seen", _price_seen),
    ("Purchase", lambda s: vocabulary.purchase(s.plan.offer.purchase)),
    ("Cloud", lambda s: s.plan.offer.provider),
    ("Region", lambda s: vocabulary.region(s.plan.offer.region)),
    ("Instance", lambda s: s.plan.offer.instance_type),
    ("Layout", lambda s: fmt.layout_short(s.plan.layout)),
    ("Deadline and budget",
     lambda s: "; ".join(plan_words.missed(s.scenario, s.plan)) or "within the limits"),
    ("Rank", lambda s: f"#{s.plan.rank}"),
    _Number("Energy", "kWh", lambda s: _mean(s.energy.total), energy_text),
    _Number("CO2e", "kg", lambda s: _mean(s.energy.carbon.figure), tonnes),
)  # fmt: skip
