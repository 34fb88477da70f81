"""An answer as rows and columns for charts, tables and CSV files.

Values are numbers in the unit that the column name gives; app/document/format.py turns them into
text.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence

import numpy as np

from app.document import format as fmt
from app.document import vocabulary
from app.document.on_use import pd
from app.document.table import Column, Table, column, text_column
from app.forecast.standing import price_in_doubt
from app.plan import words
from core.scenario import Scenario
from core.search.plan import Answer, Exclusion, Plan
from core.units import DAY_S, GIB, HOUR_S

DRAWN_DOMINATED = 300  # dominated points in the chart: more would add nothing
DAYS_PER_HOUR = HOUR_S / DAY_S
WORTH_TELLING = 1e-3  # share of a step from which its percentage is shown
DOUBTED = "price_in_doubt"  # column of the chart's points
NO_PRICE = "no price known"

EXPECTED_COST, EXPECTED_TIME = "Expected cost (USD)", "Expected time (days)"
EXPECTED_LOW, EXPECTED_HIGH = "Expected cost P10 (USD)", "Expected cost P90 (USD)"
TIME_LOW, TIME_HIGH = "Expected time P10 (days)", "Expected time P90 (days)"
PAID = "To pay (USD)"  # with whole terms of reservations
ON_TIME, IN_BUDGET = "Chance on time", "Chance within budget"
COST, COST_LOW, COST_HIGH = "Cost (USD)", "Cost P10 (USD)", "Cost P90 (USD)"
TIME, PRICE, MEMORY = "Time (days)", "Price (USD per GPU-hour)", "Peak memory (GiB)"
SPEED, MFU, GPU_HOURS = "Tokens/s", "MFU", "GPU-hours"
FAILING_TIME, FAILING_COST = "With failures (days)", "With failures (USD)"
GOODPUT, STACK = "Goodput", "Stack"
LIMITS, AGAINST = "Within limits", "Not recommended for"
# Columns of the ranked table that only the CSV has.
IN_FILE = (COST, TIME, FAILING_TIME, COST_LOW, COST_HIGH, PRICE, GPU_HOURS, FAILING_COST, GOODPUT,
           "Region", "Price of", "Fastest or cheapest", EXPECTED_LOW, EXPECTED_HIGH, TIME_LOW,
           TIME_HIGH)  # fmt: skip
# Number formats that the browser applies: a pandas Styler would take 14 ms of every rerun.
FORMATS = {
    PAID: "$%,d", EXPECTED_COST: "$%,d", EXPECTED_TIME: "%.3g", ON_TIME: "percent",
    IN_BUDGET: "percent", "GPUs": "%,d",
    COST: "$%,d", TIME: "%.3g", FAILING_TIME: "%.3g", MFU: "percent", SPEED: "compact",
    MEMORY: "%.3g", PRICE: "$%.3g",
}  # fmt: skip


def machine_of(plan: Plan) -> str:
    """How many GPUs of which kind."""
    return f"{fmt.count(plan.num_gpus)} x {plan.offer.accelerator}"


def _region(name: str) -> str:
    return vocabulary.stated_region(name) or "region not stated"


def _usd(head: str, name: str) -> Column[Plan]:
    return column(head, lambda p: getattr(p.usd, name, math.nan))


def _total_usd(head: str, name: str) -> Column[Plan]:
    return column(head, lambda p: getattr(p.cost.total, name))


def _total_days(head: str, name: str) -> Column[Plan]:
    return column(head, lambda p: getattr(p.cost.hours, name) * DAYS_PER_HOUR)


RANKED: tuple[Column[Plan], ...] = (
    column("#", lambda p: p.rank),
    column(PAID, lambda p: p.cost.paid.mean),
    _total_usd(EXPECTED_COST, "mean"),
    _total_days(EXPECTED_TIME, "mean"),
    column(ON_TIME, lambda p: p.chance_on_time),
    column(IN_BUDGET, lambda p: p.chance_in_budget),
    _usd(COST, "p50"),
    column(TIME, lambda p: p.hours.p50 * DAYS_PER_HOUR),
    column(FAILING_TIME, lambda p: p.cost.hours.mean * DAYS_PER_HOUR),
    column("GPU", lambda p: p.offer.accelerator),
    column("GPUs", lambda p: p.num_gpus),
    column("Cloud", lambda p: p.offer.provider),
    column("Instance", lambda p: p.offer.instance_type),
    column("Purchase", lambda p: vocabulary.purchase(p.offer.purchase)),
    column("Layout", lambda p: fmt.layout_short(p.layout)),
    column(STACK, lambda p: p.stack),
    column(MFU, lambda p: p.mfu),
    column(SPEED, lambda p: p.tokens_per_s.p50),
    column(MEMORY, lambda p: peak_bytes(p) / GIB),
    _usd(COST_LOW, "p10"),
    _usd(COST_HIGH, "p90"),
    column(PRICE, lambda p: p.usd_per_gpu_hour),
    column(GPU_HOURS, lambda p: p.gpu_hours),
    column(FAILING_COST, lambda p: p.cost.total.mean),
    column(GOODPUT, lambda p: p.cost.goodput),
    column("Region", lambda p: _region(p.offer.region)),
    column("Price of", lambda p: p.offer.observed_at),
    column("Fastest or cheapest", lambda p: "yes" if p.frontier else "no"),
    _total_usd(EXPECTED_LOW, "p10"),
    _total_usd(EXPECTED_HIGH, "p90"),
    _total_days(TIME_LOW, "p10"),
    _total_days(TIME_HIGH, "p90"),
    column(LIMITS, lambda p: "yes" if p.meets_deadline and p.meets_budget else "no"),
    column(AGAINST, lambda p: vocabulary.not_recommended(p.against)),
)
EXCLUDED: tuple[Column[Exclusion], ...] = (
    text_column("Left out", lambda e: fmt.count(e.count), width=1),
    text_column("Why", lambda e: e.sentence.removeprefix(f"{fmt.count(e.count)} "), width=5),
)


def cost_range(plan: Plan) -> str:
    """P10 to P90 of what is paid."""
    if (usd := plan.paid) is None:
        return NO_PRICE
    return f"P10-P90: {fmt.span(usd.p10, usd.p90, fmt.usd_short)}"


def time_range(plan: Plan) -> str:
    """P10 to P90 of the time."""
    time = plan.cost.hours
    return f"P10-P90: {fmt.span(time.p10, time.p90, fmt.days)}"


def label(plan: Plan) -> str:
    """One plan in one line, for a selection list."""
    usd = plan.paid_usd
    cost = "no price" if usd is None else fmt.usd_short(usd)
    kind = vocabulary.purchase(plan.offer.purchase)
    return (
        f"#{plan.rank}: {cost}, {fmt.days(plan.expected_hours)}, {machine_of(plan)}, "
        f"{plan.offer.provider} {plan.offer.instance_type}, {kind}"
    )


def peak_bytes(plan: Plan) -> float:
    """The sum of all parts of a plan's memory, in bytes."""
    return float(sum(plan.memory_bytes.values()))


def capacity_gib(plan: Plan) -> float:
    """The capacity of one device in GiB, the unit of the chart."""
    return plan.memory_capacity_bytes / GIB


def headroom_sentence(plan: Plan) -> str:
    """How far the memory peak is from the capacity, and the largest part."""
    peak, capacity = peak_bytes(plan), plan.memory_capacity_bytes
    largest = max(plan.memory_bytes, key=lambda part: plan.memory_bytes[part])
    share = f"The largest part is {vocabulary.memory_part(largest)}."
    if peak > capacity:
        return f"{fmt.gib(peak - capacity)} over the capacity of {fmt.gib(capacity)}. {share}"
    left = f"{fmt.gib(capacity - peak)} of {fmt.gib(capacity)} left per GPU"
    return f"{left}, {fmt.chance(plan.probability_oom)} chance of out of memory. {share}"


def step_sentence(plan: Plan) -> str:
    """How long a step takes, and its largest part."""
    total = float(sum(plan.step_s.values()))
    largest = max(plan.step_s, key=lambda part: plan.step_s[part])
    share = fmt.percent(plan.step_s[largest] / total)
    part = vocabulary.step_part(largest)
    return f"{fmt.seconds(total)} a step; the largest part is {part}, {share}."


def ranked(scenario: Scenario, plans: Sequence[Plan]) -> Table[Plan]:
    """The ranked table, one row per plan; limits only if there are any, and what is paid only where
    it differs from the cost of the run."""
    table = Table(caption="Ranked plans", columns=RANKED, rows=tuple(plans))
    if not any(p.cost.commits for p in plans):
        table = table.without(PAID)
    if scenario.deadline_days is None:
        table = table.without(ON_TIME)
    if scenario.budget_usd is None:
        table = table.without(IN_BUDGET)
    has_limits = scenario.deadline_days is not None or scenario.budget_usd is not None
    return table if has_limits else table.without(LIMITS)


def points(answer: Answer) -> pd.DataFrame:
    """Every plan of the chart, its dollars and hours as expected: the frontier, the quotes, an even
    sample of the others. Free plans have no place on a logarithmic axis: `free_sentence` counts
    them."""
    columns = ("usd", "hours", "num_gpus", "accelerator", "provider", "purchase",
               "frontier", "id", "is_quote")  # fmt: skip
    if "paid_usd" not in answer.points:
        return pd.DataFrame(columns=[*columns, DOUBTED, "days"])
    usd = np.asarray(answer.points["paid_usd"], dtype=float)
    frontier = np.asarray(answer.points["frontier"], dtype=bool)
    always = frontier | np.asarray(answer.points["is_quote"], dtype=bool)
    drawn = np.isfinite(usd) & (usd > 0)
    # In an order independent of rank: equal plans give an equal chart, which a browser keeps.
    by_cost = np.lexsort((answer.points["id"], usd))
    others = by_cost[(drawn & ~always)[by_cost]]
    if len(others) > DRAWN_DOMINATED:
        others = others[np.linspace(0, len(others) - 1, DRAWN_DOMINATED).astype(int)]
    kept = np.concatenate([by_cost[(drawn & always)[by_cost]], others])
    drawn_as = {"usd": "paid_usd", "hours": "expected_hours"}
    frame = pd.DataFrame({n: np.asarray(answer.points[drawn_as.get(n, n)])[kept] for n in columns})
    frame[DOUBTED] = price_in_doubt(answer.points)[kept]
    frame["days"] = frame["hours"] * DAYS_PER_HOUR
    frame["purchase"] = [vocabulary.purchase(p) for p in frame["purchase"]]
    return frame


def frontier_sentence(points: pd.DataFrame) -> str:
    """What the chart of cost against time shows, independent of the ranking."""
    best = points[points["frontier"].astype(bool)].sort_values(["usd", "days"])
    ends = [
        f"{fmt.usd_short(p['usd'])} in {fmt.days(p['hours'])} on "
        f"{fmt.count(p['num_gpus'])} x {p['accelerator']}"
        for p in best.iloc[[0, -1]].to_dict("records")
    ]
    if len(best) == 1:
        return f"Cost against wall clock: the cheapest plan is the fastest, {ends[0]}."
    span = f"{fmt.count(len(best))} plans are the cheapest of their time"
    return f"Cost against wall clock: {span}, from {ends[0]} to {ends[1]}."


def free_sentence(answer: Answer) -> str:
    """How many plans cost nothing and are not in the chart; '' if there are none."""
    free = int((np.asarray(answer.points.get("paid_usd", ()), dtype=float) == 0).sum())
    if not free:
        return ""
    plans = "plan costs" if free == 1 else "plans cost"
    return (
        f"{fmt.count(free)} {plans} nothing, credits taken off: not in the chart, whose axis of "
        "dollars has no zero."
    )


def memory(plan: Plan) -> pd.DataFrame:
    """Parts of one GPU's memory, in stacking order."""
    parts = [(name, size) for name, size in plan.memory_bytes.items() if size > 0]
    return pd.DataFrame(
        {
            "part": [f"{vocabulary.memory_part(n)}: {fmt.gib(size)}" for n, size in parts],
            "gib": [size / GIB for _, size in parts],
            "order": range(len(parts)),
        }
    )


def _share(part_s: float, total_s: float) -> str:
    """Seconds, with the percentage of the step unless it is negligible."""
    share = part_s / total_s
    percent = f" ({fmt.percent(share)})" if share >= WORTH_TELLING else ""
    return fmt.seconds(part_s) + percent


def step(plan: Plan) -> pd.DataFrame:
    """Parts of one step as a waterfall: each starts where the previous one ends."""
    parts = [(name, s) for name, s in plan.step_s.items() if s > 0]
    ends = np.cumsum([s for _, s in parts])
    total = float(ends[-1]) if len(ends) else 0.0
    rows = [
        {"part": vocabulary.step_part(name), "start_s": end - s, "end_s": end, "total": False,
         "text": _share(s, total)}
        for (name, s), end in zip(parts, ends, strict=True)
    ]  # fmt: skip
    rows.append(
        {"part": "Whole step", "start_s": 0.0, "end_s": total, "total": True,
         "text": fmt.seconds(total)}
    )  # fmt: skip
    return pd.DataFrame(rows)


def utilisation(plan: Plan) -> str:
    """MFU 47.9%, HFU 49.9%, 474 TFLOP/s a GPU: the last as training logs print it."""
    rate = fmt.in_unit(plan.model_flops_per_s_per_gpu, "TFLOP/s")
    return f"MFU {fmt.percent(plan.mfu)}, HFU {fmt.percent(plan.hfu)}, {rate} TFLOP/s a GPU"


def facts(scenario: Scenario, plan: Plan, today: dt.date) -> list[tuple[str, str]]:
    """The selected plan as labels and texts, first about cost, then machines, then the run."""
    offer = plan.offer
    price = NO_PRICE
    if plan.usd_per_gpu_hour is not None:
        price = f"{fmt.usd_per_hour(plan.usd_per_gpu_hour)} per GPU"
        if offer.gpu_count > 1:
            price += f", {fmt.usd_per_hour(offer.usd_per_hour)} per instance"
    seen = f"{offer.observed_at} ({fmt.age(offer.observed_at, today)}), quality {offer.quality}"
    cost = cost_range(plan)
    if plan.paid_usd is not None:
        cost = f"{fmt.usd(plan.paid_usd)} ({cost})"
    chosen = words.chosen_sentence(plan)
    commitment = words.commitment_sentence(plan)
    return [
        ("Expected cost", cost),
        *([("Commitment", commitment)] if commitment else []),
        ("Expected time", f"{fmt.days(plan.expected_hours)} ({time_range(plan)})"),
        ("Without failures", words.unfailing_sentence(plan)),
        *([("Chosen by forecast", chosen)] if chosen else []),
        ("Price", price),
        ("Price seen", seen),
        ("Price source", offer.source),
        ("GPUs", f"{machine_of(plan)} in {fmt.count(plan.num_nodes)} "
                 + ("instance" if plan.num_nodes == 1 else "instances")),
        ("Instance", offer.instance_type),
        ("Cloud", f"{offer.provider}, {_region(offer.region)}"),
        ("Purchase", _purchase(plan)),
        ("Network", _network(plan)),
        ("Speed", f"{fmt.tokens_per_s(plan.tokens_per_s.p50)}, "
                  f"{fmt.tokens_per_s(plan.tokens_per_s_per_gpu)} per GPU"),
        ("Utilisation", utilisation(plan)),
        ("Layout", fmt.layout(plan.layout)),
        ("Stack", f"{plan.stack}{', no launch file' if plan.no_launch else ''}"),
        ("Work", f"{fmt.count(plan.num_steps)} steps, {fmt.tokens(plan.gpu_hours)} GPU-hours"),
    ]  # fmt: skip


def _purchase(plan: Plan) -> str:
    asked = words.reservation_sentence(plan)
    return f"{vocabulary.purchase(plan.offer.purchase)}{f'. {asked}' if asked else ''}"


def _network(plan: Plan) -> str:
    found = " ".join((words.network_sentence(plan), words.half_network_sentence(plan)))
    return found.removeprefix("Network: ").strip() or "one machine: none is used"


def excluded(answer: Answer) -> Table[Exclusion]:
    """Excluded options by reason, the largest count first."""
    rows = tuple(sorted(answer.excluded, key=lambda e: -e.count))
    return Table(caption="What was left out, and why", columns=EXCLUDED, rows=rows)
