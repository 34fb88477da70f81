"""Sentences about when and how big."""

from __future__ import annotations

from app.document import format as fmt
from app.document import vocabulary
from app.scale.optimal import Optimal
from app.scale.points import LITTLE, Point, Scale
from app.scale.waiting import break_even_sentence, trend_sentence, wait_sentence
from core.errors import ScenarioError
from core.money.compute_optimal import CHINCHILLA_TOKENS_PER_PARAMETER
from core.scenario import Scenario
from core.units import written_number

MOST_USD_PER_DAY = 1e12
TFLOPS = 1e12


def value_of_a_day(text: str | None) -> float | None:
    """The value of a day in dollars, parsed from text; ScenarioError if it is not valid."""
    if text is None:
        return None
    try:
        value = float(written_number(text))
    except ValueError as e:
        raise ScenarioError(f"--usd-per-day: {e}.") from None
    if not 0 < value <= MOST_USD_PER_DAY:
        raise ScenarioError(f"--usd-per-day {text} is not above 0 and at most 1e12.")
    return value


def scale_sentences(
    scenario: Scenario, found: Scale, usd_per_day: float | None = None
) -> tuple[str, ...]:
    """The effect of more or fewer GPUs, which counts meet the limits, and the value of waiting."""
    sentences = [
        _own(found),
        *_limits(scenario, found),
        *_doubling(found),
        *_worth(found, usd_per_day),
    ]
    if found.no_layout:
        counts = ", ".join(map(fmt.count, found.no_layout))
        sentences.append(f"No layout is legal and fits at {counts} GPUs.")
    if found.not_searched:
        counts = ", ".join(map(fmt.count, found.not_searched))
        sentences.append(f"Not looked at, because there are too many layouts: {counts} GPUs.")
    if found.plan.offer.purchase == "spot":
        sentences.append(
            "This is a spot price: the run waits for capacity whenever it is preempted."
        )
    return tuple(sentences)


def waiting_sentences(found: Scale, usd_per_day: float | None = None) -> tuple[str, ...]:
    """Whether waiting for a lower price pays."""
    sentences = [trend_sentence(found.waiting)]
    sentences += [wait_sentence(w) for w in found.waiting.waits if w.months in (3.0, 12.0)]
    if usd_per_day is not None:
        sentences.append(break_even_sentence(found.plan, usd_per_day))
    return tuple(filter(None, sentences))


def _gpus(point: Point) -> str:
    return f"{fmt.count(point.plan.num_gpus)} {'GPU' if point.plan.num_gpus == 1 else 'GPUs'}"


def _usd(x: float | None) -> str:
    return fmt.usd(x, digits=3)


def _own(found: Scale) -> str:
    own, machine = found.at(found.plan.num_gpus), vocabulary.machine(found.plan)
    if own is None:
        return f"On {machine} nothing was found at the plan's own count."
    if own.expected_hours == float("inf"):
        return f"On {machine} the run does not end, with these failures."
    cost = "" if own.expected_usd is None else f" and costs {_usd(own.expected_usd)}"
    committed = ""
    if found.plan.cost.commits:
        committed = f" You commit to {_usd(own.paid_usd)}, and this run uses its share."
    return (
        f"On {machine} the run takes about {fmt.days(own.expected_hours)}{cost} on average. Nine "
        f"times in ten it takes at most {fmt.days(own.hours_p90)}.{committed}"
    )


def _limits(scenario: Scenario, found: Scale) -> list[str]:
    sentences = []
    if (least := found.cheapest) is not None and len(found.points) > 1:
        sentences.append(
            f"Cheapest of {len(found.points)} GPU counts on this machine: {_gpus(least)}, "
            f"{_usd(least.paid_usd)} and {fmt.days(least.expected_hours)}."
        )
    if scenario.deadline_days is not None:
        sure = f"with a chance of {fmt.percent(scenario.deadline_confidence)}"
        limit = f"{fmt.days(scenario.deadline_days * 24)} {sure}"
        on_time = found.on_time
        sentences.append(
            f"None of them ends within {limit}."
            if on_time is None
            else f"The fewest that end within {limit}: {_gpus(on_time)}, "
            f"{_usd(on_time.paid_usd)} on average."
        )
    if scenario.budget_usd is not None and least is not None:
        within = found.in_budget(scenario.budget_usd)
        budget = fmt.usd(scenario.budget_usd)
        sentences.append(
            f"None of them costs at most {budget} on average."
            if within is None
            else f"The fastest that costs at most {budget} on average: {_gpus(within)}, "
            f"{fmt.days(within.expected_hours)}."
        )
    return sentences


def _doubling(found: Scale) -> list[str]:
    own, double = found.at(found.plan.num_gpus), found.at(2 * found.plan.num_gpus)
    sentences = []
    if own is not None and double is not None and own.doubling_saves is not None:
        time = f"{1 - own.doubling_saves:.2f} times the time"
        times = ""
        if own.paid_usd and double.paid_usd is not None:
            times = f" and {double.paid_usd / own.paid_usd:.2f} times the dollars"
        paid = ""
        if (each := own.doubling_usd_per_day) is not None:
            paid = f": {_usd(each)} for each day less" if each > 0 else ": faster and no dearer"
        sentences.append(f"Twice as many GPUs, {_gpus(double)}, take {time}{times}{paid}.")
    share = fmt.percent(LITTLE)
    if (knee := found.knee) is not None:
        sentences.append(
            f"From {_gpus(knee)} on, doubling saves less than {share} of the time: communication, "
            "small batches per GPU and failures eat up the rest."
        )
    elif any(p.doubling_saves is not None for p in found.points):
        sentences.append(f"Every doubling that was compared saves at least {share} of the time.")
    return sentences


def _worth(found: Scale, usd_per_day: float | None) -> list[str]:
    if usd_per_day is None or (most := found.worth(usd_per_day)) is None:
        return []
    return [
        f"Where a day is worth {_usd(usd_per_day)}, days and dollars together are least with "
        f"{_gpus(most)}: {fmt.days(most.expected_hours)} and {_usd(most.paid_usd)} on average."
    ]


def optimal_sentences(found: Scale) -> tuple[str, ...]:
    """The best model for the same dollars, by each law, and how far that holds."""
    best = found.optimal
    if best is None:
        return (found.why_no_optimal,) if found.why_no_optimal else ()
    sentences = [
        f"This run trains {fmt.tokens(best.parameters)} parameters on {fmt.tokens(best.tokens)} "
        f"tokens, {_each(best.tokens / best.parameters)}, and achieves "
        f"{fmt.tokens(best.flops_per_usd / TFLOPS)} TFLOPs a dollar, counted as 6 N D."
    ]
    losses = dict(best.losses)
    sentences += [
        f"By {point.law.name}, {_usd(point.usd)} are best spent on "
        f"{fmt.tokens(point.parameters)} parameters and {fmt.tokens(point.tokens)} tokens, "
        f"{_each(point.tokens_per_parameter)}: a loss of {point.loss:.3f} instead of "
        f"{losses[point.law]:.3f}."
        for point in best.same_usd
    ]
    sentences.append(
        f"{CHINCHILLA_TOKENS_PER_PARAMETER:.0f} tokens a parameter of this model are "
        f"{fmt.tokens(best.chinchilla_tokens)} tokens and {_usd(best.chinchilla_usd)}."
    )
    sentences.append(validity(best))
    return tuple(sentences)


def _each(tokens: float) -> str:
    return f"{tokens:.3g} a parameter"


def validity(best: Optimal) -> str:
    """The data and range that the laws rest on."""
    experts = " This model has experts, which neither law has seen." if best.has_experts else ""
    return (
        "Both laws were fitted on dense models of up to 16 billion parameters and 500 billion "
        "tokens of one data set; the rest is extrapolation, and a model that many will use is "
        "worth more tokens. Other sizes are taken to reach the same FLOPs a dollar on these "
        f"machines.{experts}"
    )
