"""Sentences about ways to buy a plan's machines. Plain text."""

from __future__ import annotations

from math import isfinite

from app.buy.kept import Purchase
from app.buy.labels import MARKETS, POLICIES, chance, label, machine, rate
from app.buy.purchases import Purchases
from app.buy.simulate import STARTS
from app.document import format as fmt
from app.document import vocabulary
from core.money.purchase import TERM_HOURS
from core.scenario import Scenario

RARELY = 0.1  # a chance of being late that most users would accept


def sentences(scenario: Scenario, found: Purchases) -> tuple[str, ...]:
    """The answer, the break-even, and the main uncertainties."""
    first = (
        headline(scenario, found), all_in_sentence(found), doubted_sentence(scenario, found),
        budget_sentence(scenario, found),
    )  # fmt: skip
    return tuple(s for s in (*first, *spot_sentences(found), *kept_sentences(found)) if s)


def spot_sentences(found: Purchases) -> tuple[str, ...]:
    """Sentences about spot."""
    every = (break_even_sentence(found), markets_sentence(found), burst_sentence(found))
    return tuple(s for s in every if s)


def kept_sentences(found: Purchases) -> tuple[str, ...]:
    """Sentences about reservations and capacity blocks."""
    every = [_reservation(found, r.kind, r.break_even_utilisation) for r in found.reservations]
    return tuple(s for s in (*every, block_sentence(found)) if s)


def headline(scenario: Scenario, found: Purchases) -> str:
    """The cheapest way, and the cheapest one that is rarely late."""
    job = f"{fmt.count(found.plan.num_gpus)} x {found.plan.offer.accelerator}"
    ways = _bought_for_this_run(scenario, found)
    if not ways:
        why = next((w.why_not for w in found.ways if w.plan and w.plan.usd and w.why_not), "")
        return f"{job}: {why or 'no way to buy it has a price here.'}"
    best = ways[0]
    sentence = f"Bought as {label(best)} ({machine(best)}), {job} is cheapest: {_figures(best)}"
    if best.misses_deadline is None or scenario.deadline_days is None:
        return f"{sentence}."
    sentence += (
        f"; it misses the deadline of {fmt.days(scenario.deadline_days * 24)} with a chance of "
        f"{chance(best.misses_deadline)}."
    )
    if best.misses_deadline <= RARELY:
        return sentence
    safe = [w for w in ways if w.misses_deadline is not None and w.misses_deadline <= RARELY]
    if not safe:
        return f"{sentence} No way keeps that chance to {fmt.percent(RARELY)}."
    one = f"{label(safe[0])} ({machine(safe[0])}): {_figures(safe[0])}"
    return f"{sentence} The cheapest that misses it with at most {fmt.percent(RARELY)} is {one}."


def all_in_sentence(found: Purchases) -> str:
    """What is expected of the plan itself, and why the means of ways to buy are other numbers."""
    plan = found.plan
    if plan.expected_usd is None or not isfinite(plan.expected_hours):
        return ""
    return (
        f"Plan {plan.rank} is expected to cost {_usd(plan.expected_usd)} in "
        f"{fmt.days(plan.expected_hours)}, all in: means here are at the forecast speed and the "
        "price as seen."
    )


def cheapest(scenario: Scenario, found: Purchases) -> Purchase | None:
    """The way with the lowest mean cost; None if no way has a price."""
    return next(iter(_bought_for_this_run(scenario, found)), None)


def _bought_for_this_run(scenario: Scenario, found: Purchases) -> list[Purchase]:
    """Ways with a price, the cheapest first, those on a price in doubt last. A reservation at full
    use is a best case, so it counts only if the scenario gives its utilisation. A block counts only
    if the run mostly ends inside its window."""
    shared = scenario.reserved_utilisation is not None
    ways = [
        w
        for w in found.ways
        if w.usd and (shared or w.name not in TERM_HOURS) and (w.outside_window or 0.0) <= RARELY
    ]
    return sorted(ways, key=lambda w: (bool(w.plan and w.plan.against), _expected_usd(w)))


def doubted_sentence(scenario: Scenario, found: Purchases) -> str:
    """The ways that are cheaper than the cheapest one, on prices that count for no
    recommendation."""
    ways = _bought_for_this_run(scenario, found)
    named = [
        f"{label(w)} ({vocabulary.not_recommended(w.plan.against)})"
        for w in ways[1:]
        if w.plan and _expected_usd(w) < _expected_usd(ways[0])
    ]
    return f"Cheaper, but not recommended: {', '.join(named)}." if named else ""


def budget_sentence(scenario: Scenario, found: Purchases) -> str:
    """The ways that exceed the budget."""
    priced = [w for w in found.ways if w.usd]
    if scenario.budget_usd is None or not priced:
        return ""
    over = [w for w in priced if _expected_usd(w) > scenario.budget_usd]
    budget = fmt.usd(scenario.budget_usd)
    if len(over) == len(priced):
        least = min(map(_expected_usd, priced))
        return (
            f"Every way is over the budget of {budget}: the least mean is "
            f"{_usd(least)}, {_usd(least - scenario.budget_usd)} more."
        )
    if not over:
        return f"Every way that has a price costs at most the budget of {budget} in the mean."
    return f"Over the budget of {budget} in the mean: {', '.join(map(label, over))}."


def break_even_sentence(found: Purchases) -> str:
    """The preemptions per day above which spot no longer pays."""
    even = found.break_even
    if even is None:
        return ""
    prices = f"{_usd(even.spot_usd)} against {_usd(even.on_demand_usd)} without interruptions"
    if not even.job_per_day:
        return f"Spot never pays here: {prices}."
    if not isfinite(even.job_per_day):
        return f"Spot always pays here: {prices}."
    one = f" ({rate(even.instance_per_day)} of one instance)"
    return (
        f"Spot stops paying above {rate(even.job_per_day)} preemptions of the job a day"
        f"{'' if found.trace else one}: there a useful hour on it costs as much as on demand "
        f"({prices}). In use are {rate(found.used.market.job_per_day)}. Dollars only: waiting for "
        "spot costs days long before."
    )


def markets_sentence(found: Purchases) -> str:
    """How much the unknown preemption rate changes spot alone."""
    ends = [(m.market, m.ways[0]) for m in found.markets if m.ways[0].hours]
    if len(ends) < 2:
        return ""
    (low, first), (high, last) = ends[0], ends[-1]
    if first.hours is None or last.hours is None:
        return ""
    cost = ""
    if first.usd and last.usd:
        cost = f"costs {_usd(first.usd.expected)} to {_usd(last.usd.expected)} and "
    return (
        "How often spot is taken away is hardly known: from "
        f"{rate(low.job_per_day)} ({low.source}) to "
        f"{rate(high.job_per_day)} preemptions of the job a day ({high.source}) "
        f"spot only {cost}takes {fmt.days(first.hours.expected)} to "
        f"{fmt.days(last.hours.expected)}. Your own number narrows this."
    )


def burst_sentence(found: Purchases) -> str:
    """How bursts of preemptions change the P90 of spot alone, and why."""
    if found.exponential is None:
        return ""
    mine, smooth = found.used.ways[0].hours, found.exponential.ways[0].hours
    if mine is None or smooth is None:
        return ""
    cv = found.used.market.cv
    p90s = f"{fmt.days(mine.p90)} against {fmt.days(smooth.p90)}"
    if found.trace is None:
        return (
            f"Uptimes are taken to vary {cv:.3g} times as much as exponential ones: the P90 of "
            f"spot only is {p90s} with exponential uptimes of the same mean, machine failures and "
            "preemptions alone."
        )
    replayed = f"Replayed from {STARTS} starts, your trace gives spot only a P90 of"
    if mine.p90 > smooth.p90:
        vary = (
            f"its uptimes vary {cv:.3g} times more than exponential ones (deviation over mean "
            f"{cv:.3g}, exponential: 1), so that preemptions come in bursts"
            if cv > 1
            else "its outages come together, not its preemptions: the deviation over mean of its "
            f"uptimes is {cv:.3g} (exponential: 1)"
        )
        return (
            f"{replayed} {fmt.days(mine.p90)}, above the {fmt.days(smooth.p90)} of exponential "
            f"uptimes and outages with the same means: {vary}."
        )
    longer = ""
    if found.trace_hours < mine.expected:
        longer = (
            f" It is {fmt.days(found.trace_hours)} long and repeats until the run has ended: what "
            "rarer spells would do is not in it."
        )
    return (
        f"{replayed} {fmt.days(mine.p90)}, not above the {fmt.days(smooth.p90)} of exponential "
        f"uptimes and outages with the same means; its uptimes vary {cv:.3g} times as much."
        f"{longer}"
    )


def block_sentence(found: Purchases) -> str:
    """The risk of a capacity block."""
    way = found.named("capacity_block")
    if way.usd is None or way.outside_window is None or way.window_days is None:
        return ""
    return (
        f"A capacity block of {fmt.days(way.window_days * 24)} is paid whole, "
        f"{_usd(way.usd.expected)}; the run does not end inside with a chance of "
        f"{chance(way.outside_window)}."
    )


def _reservation(found: Purchases, kind: str, even: float) -> str:
    way, name = found.named(kind), vocabulary.purchase(kind)
    other = "" if way.same_machine else f", on another machine ({machine(way)})"
    if even >= 1:
        return f"{name.capitalize()} never pays{other}: it costs {even:.3g} times on demand."
    alone = found.named(f"{kind}_alone").usd
    whole = f"; for this run alone its term costs {_usd(alone.expected)}" if alone else ""
    return f"{name.capitalize()} pays from {fmt.percent(even)} use of its term on{other}{whole}."


def lacking(found: Purchases) -> list[tuple[str, str]]:
    """Ways with a missing figure, grouped by reason."""
    reasons = found.grouped(lambda w: w.why_not)
    return [(", ".join(map(label, ways)), why) for why, ways in reasons.items()]


def cheapest_first_words(found: Purchases) -> str:
    """Mean cost and time of every way with a price, the cheapest first."""
    listed = [
        f"{label(w)} {_usd(w.usd.expected)}, {fmt.days(w.hours.expected)}"
        for w in sorted(found.ways, key=_expected_usd)
        if w.usd and w.hours
    ]
    return f"In the mean: {'; '.join(listed)}." if listed else ""


def policies_words(found: Purchases) -> str:
    """The cheapest policy on each market."""
    listed = []
    for one in found.markets:
        if priced := [w for w in one.ways if w.usd]:
            best = min(priced, key=_expected_usd)
            listed.append(
                f"{rate(one.market.job_per_day)} preemptions of the job a day "
                f"({MARKETS[one.market.name]}): {POLICIES[best.name]}, {_usd(_expected_usd(best))}"
            )
    return f"Cheapest at {'; '.join(listed)}." if listed else ""


def _figures(way: Purchase) -> str:
    if way.usd is None or way.hours is None:
        return way.why_not
    return (
        f"{_usd(way.usd.expected)} in the mean (P90 {_usd(way.usd.p90_all)}) and "
        f"{fmt.days(way.hours.expected)} (P90 {fmt.days(way.hours.p90_all)})"
    )


def _expected_usd(way: Purchase) -> float:
    return way.usd.expected if way.usd else float("inf")


def _usd(x: float) -> str:
    return fmt.usd(x, digits=3)
