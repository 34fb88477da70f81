"""The comparison table: each quantity of each plan, and its difference from the first plan.

The plans may belong to different scenarios: each is read with its own.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from app.bill.energy import Energy, energy_of, energy_text, tonnes
from app.document import format as fmt
from app.document import vocabulary
from app.forecast import interval
from app.forecast.with_failures import WithFailures, of_plans
from app.plan import document as plan_document
from app.plan import words as plan_words
from core.money.bill import Figure, Hours
from core.scenario import Scenario
from core.search.plan import Interval, Plan

LETTERS = "ABCD"
UNKNOWN, NEVER = "not known", "never ends"
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
        seller = " ".join(t for t in (self.plan.offer.provider, self.apart) if t)
        return f"{fmt.count(self.plan.num_gpus)} x {self.plan.offer.accelerator}, {seller}"

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
    failing: WithFailures
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
    said = {
        p.id: (
            p.offer.instance_type,
            vocabulary.stated_region(p.offer.region),
            vocabulary.purchase(p.offer.purchase),
        )
        for p in alike
    }
    differ = [len(set(each)) > 1 for each in zip(*said.values(), strict=True)]
    return " ".join(t for t, d in zip(said[plan.id], differ, strict=True) if d and t)


def rows(compared: Sequence[Subject], today: dt.date) -> tuple[Row, ...]:
    """Every quantity, in the order of the table; differences are against the first plan."""
    seen = [_seen(s, today) for s in compared]
    return tuple(
        [_number_row(*q, seen) for q in _NUMBERS if q[0] not in _LATER]
        + [_text_row(label, of, seen) for label, of in _TEXTS]
        + [_number_row(*q, seen) for q in _NUMBERS if q[0] in _LATER]
    )


def table(found: Sequence[Row], names: Sequence[str], start: int, end: int) -> pd.DataFrame:
    """Some of the plans as the page shows them: each value with its difference below it."""
    return pd.DataFrame(
        {
            name: [f"{r.texts[n]}{f' ({r.deltas[n]})' if r.deltas[n] else ''}" for r in found]
            for n, name in list(enumerate(names))[start:end]
        },
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
    time = interval.wall_clock_hours(scenario, plan)
    none = Figure(lower=0.0, expected=0.0, upper=0.0)
    training = Hours(
        training=Figure(lower=time.p10, expected=time.p50, upper=time.p90),
        checkpoints=none,
        failures=none,
        waiting=none,
    )
    return _Seen(
        scenario=scenario,
        plan=plan,
        failing=of_plans(scenario, (plan,))[0],
        energy=energy_of(scenario, plan, training),
        today=today,
    )


# --- numbers: label, unit, number, its text, suffix of the text ----------------------------------

Number = Callable[[_Seen], float]
Text = Callable[[float], str]
Beside = Callable[[_Seen], str]


def _number_row(
    label: str, unit: str, number: Number, text: Text, beside: Beside, seen: Sequence[_Seen]
) -> Row:
    numbers = tuple(number(s) for s in seen)
    told = tuple(
        f"{text(n)}{beside(s)}" if math.isfinite(n) else NEVER if n == math.inf else UNKNOWN
        for n, s in zip(numbers, seen, strict=True)
    )
    deltas = ("", *(_delta(numbers[0], n, text, unit) for n in numbers[1:]))
    return Row(label=label, unit=unit, texts=told, numbers=numbers, deltas=deltas)


def _delta(first: float, other: float, text: Text, unit: str) -> str:
    """The difference from the first figure, absolute and in percent; of fractions, in points."""
    if not (math.isfinite(first) and math.isfinite(other)):
        return ""
    more = other - first
    sign = "+" if more > 0 else "-"
    if abs(more) <= SAME * max(abs(first), abs(other)):
        return "same"
    if unit == "fraction":
        points = fmt.percent(abs(more)).removesuffix("%")
        return f"{sign}{points} points"
    part = f", {sign}{fmt.percent(abs(more / first))}" if first else ""
    return f"{sign}{text(abs(more))}{part}"


def _nan(value: float | None) -> float:
    return math.nan if value is None else value


def _expected(figure: Figure | None) -> float:
    return math.nan if figure is None else float(figure.expected)


def _nothing(seen: _Seen) -> str:
    return ""


def _usd(seen: _Seen, which: str) -> float:
    return math.nan if seen.plan.usd is None else float(getattr(seen.plan.usd, which))


def _mtokens(seen: _Seen) -> float:
    return interval.run_tokens(seen.scenario) / 1e6


def _time(seen: _Seen) -> Interval:
    return interval.wall_clock_hours(seen.scenario, seen.plan)


def _headroom(s: _Seen) -> float:
    return s.plan.memory_capacity_bytes - plan_document.peak_bytes(s.plan)


_NUMBERS: tuple[tuple[str, str, Number, Text, Beside], ...] = (
    ("Cost, median", "USD", lambda s: _usd(s, "p50"), fmt.usd_short, _nothing),
    ("Cost, P10", "USD", lambda s: _usd(s, "p10"), fmt.usd_short, _nothing),
    ("Cost, P90", "USD", lambda s: _usd(s, "p90"), fmt.usd_short, _nothing),
    ("Cost with failures", "USD", lambda s: s.failing.usd_expected, fmt.usd_short, _nothing),
    ("Cost of 1M tokens", "USD", lambda s: _usd(s, "p50") / _mtokens(s), fmt.usd_short, _nothing),
    ("Time, median", "hours", lambda s: s.plan.wall_clock_hours, fmt.days, _nothing),
    ("Time, P10", "hours", lambda s: _time(s).p10, fmt.days, _nothing),
    ("Time, P90", "hours", lambda s: _time(s).p90, fmt.days, _nothing),
    ("Time with failures", "hours", lambda s: s.failing.hours_expected, fmt.days, _nothing),
    ("The same, P90", "hours", lambda s: s.failing.hours_p90, fmt.days, _nothing),
    ("Goodput", "fraction", lambda s: s.failing.goodput, fmt.percent, _nothing),
    ("Tokens/s", "tokens/s", lambda s: s.plan.tokens_per_s.p50, fmt.tokens, _nothing),
    ("Tokens/s of a GPU", "tokens/s", lambda s: s.plan.tokens_per_s_per_gpu, fmt.tokens, _nothing),
    ("MFU", "fraction", lambda s: s.plan.mfu, fmt.percent, _nothing),
    ("One step", "s", lambda s: sum(s.plan.step_s.values()), fmt.seconds, _nothing),
    ("GPUs", "GPUs", lambda s: float(s.plan.num_gpus), fmt.count, _nothing),
    ("Instances", "instances", lambda s: float(s.plan.num_nodes), fmt.count, _nothing),
    ("GPU-hours", "GPU-hours", lambda s: s.plan.gpu_hours, fmt.tokens, _nothing),
    ("Memory, peak", "bytes", lambda s: plan_document.peak_bytes(s.plan), fmt.gib,
     lambda s: f" of {fmt.gib(s.plan.memory_capacity_bytes)}"),
    ("Memory left", "bytes", _headroom, fmt.gib, _nothing),
    ("Out of memory", "fraction", lambda s: s.plan.probability_oom,
     lambda x: f"{fmt.percent(x)} chance", _nothing),
    ("Price, GPU-hour", "USD/h", lambda s: _nan(s.plan.usd_per_gpu_hour),
     fmt.usd_per_hour, _nothing),
    ("Energy", "kWh", lambda s: _expected(s.energy.total), energy_text, _nothing),
    ("CO2e", "kg", lambda s: _expected(s.energy.carbon.figure), tonnes, _nothing),
)  # fmt: skip
_LATER = ("Energy", "CO2e")


# --- texts ---------------------------------------------------------------------------------------


def _text_row(label: str, of: Beside, seen: Sequence[_Seen]) -> Row:
    texts = tuple(of(s) for s in seen)
    none = ("",) * len(texts)
    return Row(label=label, unit="", texts=texts, numbers=(math.nan,) * len(texts), deltas=none)


def _price_seen(s: _Seen) -> str:
    offer = s.plan.offer
    if s.plan.usd is None:
        return UNKNOWN
    quality = offer.quality or "not stated"
    seen = offer.observed_at or "undated"
    return f"{seen} ({fmt.age(offer.observed_at, s.today)}), quality {quality}"


def _region(s: _Seen) -> str:
    return vocabulary.region(s.plan.offer.region)


def _limits(s: _Seen) -> str:
    return "; ".join(plan_words.missed(s.scenario, s.plan)) or "within the limits"


_TEXTS: tuple[tuple[str, Beside], ...] = (
    ("Price seen", _price_seen),
    ("Purchase", lambda s: vocabulary.purchase(s.plan.offer.purchase)),
    ("Cloud", lambda s: s.plan.offer.provider),
    ("Region", _region),
    ("Instance", lambda s: s.plan.offer.instance_type),
    ("Layout", lambda s: fmt.layout_short(s.plan.layout)),
    ("Deadline and budget", _limits),
    ("Rank", lambda s: f"#{s.plan.rank}"),
)
