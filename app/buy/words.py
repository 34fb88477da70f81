"""Sentences about ways to buy a plan's machines. Plain text."""

from __future__ import annotations

from math import inf, isfinite

from app.buy.kept import Purchase
from app.buy.labels import MARKETS, POLICIES, chance, label, machine, rate
from app.buy.purchases import Purchases
from app.buy.simulate import STARTS
from app.document import format as fmt
from app.document import vocabulary
from core.numeric import as_float
from core.scenario import Scenario

RARELY = 0.1  # a chance of being late that most users would accept


def sentences(scenario: Scenario, found: Purchases) -> tuple[str, ...]:
    """The answer, the break-even, and the main uncertainties."""
    first = (
        headline(scenario, found), doubted_sentence(found),
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
    ways = _cheapest_first(found)
    if not ways:
        why = next((w.why_not for w in found.ways if w.plan and w.plan.usd and w.why_not), "")
        return f"{job}: {why or 'no way to buy it has a price here.'}"
    best = ways[0]
    sentence = (
        f"The cheapest way to buy {job} is {label(best)} ({machine(best)}): {_figures(best)}."
    )
    if best.misses_deadline is None or scenario.deadline_days is None:
        return sentence
    sentence += (
        f" It misses the deadline of {fmt.days(scenario.deadline_days * 24)} with a chance of "
        f"{chance(best.misses_deadline)}."
    )
    if best.misses_deadline <= RARELY:
        return sentence
    safe = [w for w in ways if w.misses_deadline is not None and w.misses_deadline <= RARELY]
    if not safe:
        return f"{sentence} No way keeps that chance to {fmt.percent(RARELY)}."
    way = f"{label(safe[0])} ({machine(safe[0])}): {_figures(safe[0])}"
    return f"{sentence} The cheapest that misses it with at most {fmt.percent(RARELY)} is {way}."


def cheapest(found: Purchases) -> Purchase | None:
    """The way for which the least has to be paid on average; None if no way has a price."""
    return next(iter(_cheapest_first(found)), None)


def _cheapest_first(found: Purchases) -> list[Purchase]:
    """Ways with a price, the cheapest first; those on a price in doubt after them, and those that
    commit to more than the run uses last. A block counts only if the run mostly ends inside its
    window."""
    ways = [w for w in found.ways if w.paid and (w.outside_window or 0.0) <= RARELY]
    return sorted(ways, key=lambda w: (_commits(w), bool(w.plan and w.plan.against), paid_usd(w)))


def _commits(way: Purchase) -> bool:
    return way.cost is not None and way.cost.commits


def doubted_sentence(found: Purchases) -> str:
    """The ways that are cheaper than the cheapest one, on prices that count for no
    recommendation."""
    ways = _cheapest_first(found)
    named = [
        f"{label(w)} ({vocabulary.not_recommended(w.plan.against)})"
        for w in ways[1:]
        if w.plan and paid_usd(w) < paid_usd(ways[0])
    ]
    return f"Cheaper, but not recommended: {', '.join(named)}." if named else ""


def budget_sentence(scenario: Scenario, found: Purchases) -> str:
    """The ways that exceed the budget with what has to be paid."""
    priced = [w for w in found.ways if w.paid]
    if scenario.budget_usd is None or not priced:
        return ""
    over = [w for w in priced if paid_usd(w) > scenario.budget_usd]
    budget = fmt.usd(scenario.budget_usd)
    if len(over) == len(priced):
        least = min(map(paid_usd, priced))
        return (
            f"Every way is over the budget of {budget}: the least is {_usd(least)} on average, "
            f"{_usd(least - scenario.budget_usd)} more."
        )
    if not over:
        return f"Every way that has a price costs at most the budget of {budget} on average."
    return f"Over the budget of {budget} on average: {', '.join(map(label, over))}."


def break_even_sentence(found: Purchases) -> str:
    """The interruptions a day above which spot no longer pays."""
    even = found.break_even
    if even is None:
        return ""
    prices = f"{_usd(even.spot_usd)} against {_usd(even.on_demand_usd)} without interruptions"
    if not even.job_per_day:
        return f"Spot never costs less than on demand here: {prices}."
    if not isfinite(even.job_per_day):
        return f"Spot always costs less than on demand here: {prices}."
    instance = "" if found.trace else f" ({rate(even.instance_per_day)} of one machine)"
    basis = "Your trace has" if found.trace else "We assume"
    return (
        f"{basis} {rate(found.used.market.job_per_day)} interruptions of the run a day. Above "
        f"{rate(even.job_per_day)}{instance}, spot costs more than on demand ({prices}). This "
        "counts money only: delays hurt much sooner."
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
        cost = f"costs {_usd(first.usd.mean)} to {_usd(last.usd.mean)} and "
    return (
        "How often spot is interrupted is hardly known. From "
        f"{rate(low.job_per_day)} ({low.source}) to "
        f"{rate(high.job_per_day)} interruptions of the run a day ({high.source}), "
        f"spot only {cost}takes {fmt.days(first.hours.mean)} to "
        f"{fmt.days(last.hours.mean)}. Your own number narrows this."
    )


def burst_sentence(found: Purchases) -> str:
    """How bursts of preemptions change the P90 of spot alone, and why."""
    if found.exponential is None:
        return ""
    mine, smooth = (found.bursty or found.used.ways[0]).hours, found.exponential.ways[0].hours
    if mine is None or smooth is None:
        return ""
    cv = found.used.market.cv
    p90s = f"{fmt.days(mine.p90)}, not {fmt.days(smooth.p90)}"
    if found.trace is None:
        return (
            "Spot only is computed with random interruptions. If uptimes vary "
            f"{cv:.3g} times as much, its P90 is {p90s}."
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
    if found.trace_hours < mine.mean:
        longer = (
            f" It is {fmt.days(found.trace_hours)} long and repeats until the run has ended. It "
            "shows no rarer interruptions."
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
        f"{_usd(way.usd.mean)}. The run does not end inside it with a chance of "
        f"{chance(way.outside_window)}."
    )


def _reservation(found: Purchases, kind: str, even: float) -> str:
    way, name = found.named(kind), vocabulary.purchase(kind)
    other = "" if way.same_machine else f", on another machine ({machine(way)})"
    if even >= 1:
        return f"{name.capitalize()} never pays{other}: it costs {even:.3g} times on demand."
    alone = _commitment(found.named(f"{kind}_alone"), way)
    return f"{name.capitalize()} pays from {fmt.percent(even)} use of its term on{other}.{alone}"


def _commitment(alone: Purchase, shared: Purchase) -> str:
    """What is signed for, and how much of it the run uses."""
    if alone.cost is None or alone.paid is None or shared.usd is None:
        return ""
    terms = as_float(alone.cost.num_terms)
    times = "" if terms == 1 else f"{fmt.count(terms)} times "
    return (
        f" You commit to {_usd(alone.paid.mean)} for {times}{vocabulary.COMMITMENTS[alone.kind]}; "
        f"this run uses {_usd(shared.usd.mean)} of it."
    )


def lacking(found: Purchases) -> list[tuple[str, str]]:
    """Ways with a missing figure, grouped by reason."""
    reasons = found.grouped(lambda w: w.why_not)
    return [(", ".join(map(label, ways)), why) for why, ways in reasons.items()]


def cheapest_first_words(found: Purchases) -> str:
    """Mean cost and time of every way with a price, the cheapest first."""
    listed = [
        f"{label(w)} {_usd(paid_usd(w))}, {fmt.days(w.hours.mean)}"
        for w in sorted(found.ways, key=paid_usd)
        if w.paid and w.hours
    ]
    return f"On average: {'; '.join(listed)}." if listed else ""


def policies_words(found: Purchases) -> str:
    """The cheapest policy on each market."""
    listed = []
    for repeated in found.markets:
        if priced := [w for w in repeated.ways if w.paid]:
            best = min(priced, key=paid_usd)
            listed.append(
                f"{rate(repeated.market.job_per_day)} interruptions of the run a day "
                f"({MARKETS[repeated.market.name]}): {POLICIES[best.name]}, {_usd(paid_usd(best))}"
            )
    return f"Cheapest at {'; '.join(listed)}." if listed else ""


def _figures(way: Purchase) -> str:
    if way.paid is None or way.usd is None or way.hours is None:
        return way.why_not
    time = f"{fmt.days(way.hours.mean)} (P90 {fmt.days(way.hours.p90)})"
    cost = f"{_usd(way.paid.mean)} on average (P90 {_usd(way.paid.p90)})"
    if way.cost is not None and _commits(way):
        used = f"this run uses {_usd(as_float(way.cost.total.mean))} of it"
        return f"you commit to {cost}; {used} and takes {time}"
    return f"{cost} and {time}"


def paid_usd(way: Purchase) -> float:
    """Mean dollars that are signed for; infinite without a price."""
    return way.paid.mean if way.paid else inf


def _usd(x: float) -> str:
    return fmt.usd(x, digits=3)
