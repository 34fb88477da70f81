"""An answer in words: one sentence, the coverage line, labels and badges. Plain text, no markup.

The page and the command line both take their words from this module. Numbers become text in
app/document/format.py.
"""

from __future__ import annotations

import datetime as dt
import math

import numpy as np

from app.document import format as fmt
from app.document import vocabulary
from app.document.vocabulary import COMMITMENTS, NO_OFFER, NO_PLAN, machine, purchase
from app.forecast.alternatives import LIKELY, picks_of, smaller_count
from app.forecast.standing import OF_THE_PRICE, price_in_doubt
from app.forecast.training import tokens_of
from app.scenario.model import model_of
from core.numeric import as_float
from core.scenario import Scenario
from core.scenario.task_size import BatchAdvice, effective_batch_advice
from core.search.plan import Answer, Plan
from pricing.book.offers import is_booked
from pricing.offers import UNVERIFIED_INTERCONNECT

OLD_DAYS = 7  # days from which the age of a price is shown
LIKELY_OOM = 0.1  # probability from which a plan is marked as likely to run out of memory


def tokens(scenario: Scenario) -> str:
    """Tokens in words: 100B tokens, 125B tokens with padding."""
    padding = " with padding" if scenario.packing_efficiency < 1 else ""
    return f"{fmt.tokens(tokens_of(scenario))} tokens{padding}"


def batch_advice(scenario: Scenario) -> BatchAdvice:
    """Tokens per step, number of steps, and whether the batch suits pre-training."""
    return effective_batch_advice(
        seq_len=scenario.seq_len,
        global_batch_size=scenario.global_batch_size,
        num_tokens=tokens_of(scenario),
        pretraining=scenario.task == "pretrain",
    )


def also_sentences(scenario: Scenario, answer: Answer) -> tuple[str, ...]:
    """What else people ask: the fewest GPUs, the fastest, the cheapest."""
    found = tuple(p.sentence for p in picks_of(scenario, answer))
    fewer = smaller_count(scenario, answer)
    if fewer is None:
        return found
    return (*found, f"On the machine with the fewest, {fmt.count(fewer)} GPUs would fit, too.")


def answer_sentence(
    scenario: Scenario, answer: Answer, today: dt.date | None = None, plan: Plan | None = None
) -> str:
    """The answer in one sentence, or why there is none: the recommended plan, or the one given.
    Without a day, the price has its date instead of its age."""
    job = f"{model_of(scenario).label}, {tokens(scenario)}"
    if not answer.plans:
        return f"{job}: {answer.nothing_fits or 'no offer matches what was asked.'}"
    plan = plan or answer.plans[0]
    usd, hours = plan.paid, plan.cost.hours
    policy = ", policy: spot only" if plan.offer.purchase == "spot" else ""
    time = f"{fmt.days(hours.mean)} (P90 {fmt.days(hours.p90)}) on {machine(plan)}{policy}"
    if usd is None:
        claim = f"{time} at a price that is not known"
    else:
        spread = f"P10-P90 {fmt.span(usd.p10, usd.p90, fmt.usd_short)}"
        is_for = "committed" if plan.cost.commits else "expected"
        claim = f"{fmt.usd(usd.mean, digits=3)} {is_for} ({spread}), {time}"
    late = "".join(f", {text}" for text in late_text(plan))
    misses = "".join(f"; {m}" for m in (*missed(scenario, plan), *against(plan)))
    priced = "".join(f"; {text}" for text in (*_price(scenario, plan, today), *_term(plan)))
    known = f"calibrated ({plan.calibration})" if plan.calibration else "uncalibrated"
    file = ", no launch file" if plan.no_launch else ""
    return f"{job}: {claim}{late}{misses}{priced}; stack {plan.stack}{file}, {known}."


def late_text(plan: Plan) -> tuple[str, ...]:
    """The chance to be late, where there is a deadline."""
    chance = plan.chance_on_time
    return () if chance is None else (f"{fmt.chance(1 - chance)} chance to be late",)


def _price(scenario: Scenario, plan: Plan, today: dt.date | None) -> tuple[str, ...]:
    """When the price of a plan was seen, and why it counts if it should not; nothing of a price of
    the user's own."""
    offer = plan.offer
    if plan.usd is None or offer.purchase == "owned" or is_booked(offer):
        return ()
    age = f"of {offer.observed_at}" if today is None else fmt.age(offer.observed_at, today)
    seen = f"price {age}"
    if not (faults := vocabulary.price_faults(plan.against)):
        return (seen,)
    limited = scenario.deadline_days is not None or scenario.budget_usd is not None
    where = " within the limits" if limited and plan.meets_deadline and plan.meets_budget else ""
    return (f"{seen}, {faults}: no plan{where} stands on a better one",)


def commitment_sentence(plan: Plan) -> str:
    """What is signed for beyond the run, and how much of it the run uses; '' if nothing is."""
    cost = plan.cost
    if not cost.has_price or not (cost.num_terms or cost.window_hours):
        return ""
    if cost.window_hours:
        days = fmt.days(as_float(cost.window_hours))
        return f"the block of {days} is paid whole"
    term, used = COMMITMENTS[plan.offer.purchase], fmt.usd_short(plan.expected_usd)
    if not cost.commits:
        return f"its share of a reservation for {term} that others use, too"
    count = as_float(cost.num_terms)
    times = "" if count == 1 else f"{fmt.count(count)} times "
    return f"paid whole for {times}{term}; this run uses {used} of it"


def _term(plan: Plan) -> tuple[str, ...]:
    sentence = commitment_sentence(plan)
    return (sentence,) if sentence else ()


def missed(scenario: Scenario, plan: Plan) -> tuple[str, ...]:
    """The user's limits that the plan does not meet."""
    out = []
    if scenario.deadline_days is not None and not plan.meets_deadline:
        days, chance = fmt.days(scenario.deadline_days * 24), plan.chance_on_time
        out.append(
            f"less sure of the deadline of {days} than asked "
            f"({fmt.percent(scenario.deadline_confidence)})"
            if chance is not None and chance >= LIKELY
            else f"misses the deadline of {days}"
        )
    if scenario.budget_usd is not None and not plan.meets_budget:
        budget = fmt.usd(scenario.budget_usd)
        out.append(f"over the budget of {budget}" if plan.usd is not None
                   else f"nothing to hold against the budget of {budget}")  # fmt: skip
    return tuple(out)


def unfailing_sentence(plan: Plan) -> str:
    """The run without failures at the median speed, how much of a run with them is training, and
    why the mean is later than the median."""
    cost = "" if plan.usd is None else f"{fmt.usd(plan.usd.p50)} in "
    start = f"{fmt.days(plan.startup_hours)} of start-up, " if plan.startup_hours else ""
    return (
        f"{cost}{fmt.days(plan.hours.p50)}: {start}{fmt.days(plan.wall_clock_hours)} of training; "
        f"goodput with failures {fmt.percent(plan.cost.goodput)}{_median(plan)}"
    )


def _median(plan: Plan) -> str:
    """Between the run without failures and the mean of all: the median of runs with every stop."""
    hours = plan.cost.hours
    if not hours.p50 < hours.mean < math.inf:
        return ""
    return (
        f"; with failures half of all runs end within {fmt.days(hours.p50)}. The average, "
        f"{fmt.days(hours.mean)}, is later because delays are longer than gains"
    )


def chosen_sentence(plan: Plan) -> str:
    """What is expected of a plan if part of its lead over other machines is luck; '' if it has
    none."""
    if (found := plan.chosen_correction) is None:
        return ""
    before = plan.cost
    usd = f"{fmt.usd(as_float(before.uncorrected_usd))} in " if before.has_price else ""
    return (
        f"of {fmt.count(found.num_machines)} kinds of GPU: {fmt.percent(found.shrink)} of its lead "
        f"of {fmt.percent(found.lead)} over their mean is taken off. Before that it was "
        f"{usd}{fmt.days(as_float(before.uncorrected_hours))}"
    )


def coverage_line(answer: Answer) -> str:
    """How many options are priced, what was excluded and why, and the outcome for the layouts."""
    layouts = f"From {fmt.count(answer.num_candidates)} layouts."
    found = (coverage_sentence(answer), not_compared(answer), layouts, search_line(answer))
    return " ".join(filter(None, found))


def coverage_sentence(answer: Answer) -> str:
    """How many options are priced, and why the others are not.

    >>> from core.search.plan import Exclusion
    >>> left_out = tuple(Exclusion(reason=r, count=n, sentence="")
    ...                  for r, n in (("no_price", 90), ("memory", 28), ("purchase", 7)))
    >>> coverage_sentence(Answer(plans=(), num_plans=502, points={}, num_candidates=0,
    ...                          excluded=left_out, nothing_fits=None))
    '412 of 530 options priced; 118 not: no price 90, does not fit 28.'
    """
    counts = {e.reason: e.count for e in answer.excluded}
    no_price = counts.get("no_price", 0)
    missing = [("no price", no_price), *((t, counts.get(r, 0)) for r, t in NO_PLAN.items())]
    without = sum(n for _, n in missing)
    priced = answer.num_plans - no_price
    head = f"{fmt.count(priced)} of {fmt.count(priced + without)} options priced"
    prices = f" {doubted}" if (doubted := prices_sentence(answer)) else ""
    if not without:
        return f"{head}.{prices}"
    reasons = ", ".join(f"{text} {fmt.count(n)}" for text, n in missing if n)
    return f"{head}; {fmt.count(without)} not: {reasons}.{prices}"


def prices_sentence(answer: Answer) -> str:
    """How many plans stand on prices that count for no recommendation, and the least cost if they
    did, where that is lower; '' if there are none."""
    doubted = price_in_doubt(answer.points)
    if not doubted.any():
        return ""
    p = answer.points
    only = doubted & np.array([set(t.split()) <= OF_THE_PRICE for t in p["against"]], dtype=bool)
    within = p["meets_deadline"] & p["meets_budget"] & np.isfinite(p["paid_usd"])
    least, with_them = (
        float(p["paid_usd"][within & rows].min(initial=math.inf)) for rows in (~p["in_doubt"], only)
    )
    head = (
        f"{fmt.count(int(doubted.sum()))} of {fmt.count(answer.num_plans)} plans stand on prices "
        "past their life or of low quality"
    )
    return (
        f"{head}; with them the least cost is {fmt.usd(with_them)}."
        if with_them < least < math.inf
        else f"{head}."
    )


def not_compared_sentence(answer: Answer) -> str:
    """What an option is, and which offers were not compared at any number of GPUs."""
    return f"An option is an offer at one number of GPUs. {not_compared(answer)}".rstrip()


def not_compared(answer: Answer) -> str:
    """The offers that were not compared at any number of GPUs; '' if there are none."""
    counts = {e.reason: e.count for e in answer.excluded}
    counted = ((text, counts.get(reason)) for reason, text in NO_OFFER.items())
    reasons = ", ".join(f"{text} {fmt.count(n)}" for text, n in counted if n)
    return f"Offers that are not compared: {reasons}." if reasons else ""


def search_line(answer: Answer) -> str:
    """The outcome for the layouts: the counts add up to the total."""
    c = answer.counts
    if not c.candidates:
        return answer.not_searched
    fates = (
        (c.removed, "break a rule of the real stacks"),
        (c.pruned_by_memory, "do not fit the memory"),
        (c.pruned_by_time, "are proven slower than another one"),
        (c.evaluated, "were timed"),
        (c.cut, "were not looked at"),
    )
    outcomes = ", ".join(f"{fmt.count(n)} {what}" for n, what in fates if n)
    return f"Of the layouts {outcomes}. {answer.not_searched}".rstrip()


def network_sentence(plan: Plan) -> str:
    """What joins the machines of the plan and who says so; '' for one machine."""
    if (found := plan.network) is None:
        return ""
    by = {
        "given": "given by you",
        "offer": f"stated by the offer ({found.source})",
        "product": f"documented for {found.product or 'this machine'} ({found.source})",
        "usual": f"usual for {plan.offer.accelerator} ({found.source})",
    }
    assumed = "assumed as " if found.is_assumed else ""
    return f"Network: {found.gbit_per_s:,.4g} Gbit/s a machine, {assumed}{by[found.basis]}."


def half_network_sentence(plan: Plan) -> str:
    """Speed, time and cost at half of an assumed network; '' if it is known."""
    if (half := plan.at_half_network) is None:
        return ""
    cost = "" if half.usd is None else f", {fmt.usd(half.usd)}"
    return (
        f"At half this network: {fmt.tokens_per_s(half.tokens_per_s)}, "
        f"{fmt.days(plan.startup_hours + half.wall_clock_hours)}{cost}."
    )


def against(plan: Plan) -> tuple[str, ...]:
    """What speaks against recommending the plan besides its price, in a few words each."""
    return tuple(vocabulary.not_recommended((r,)) for r in plan.against if r not in OF_THE_PRICE)


def reservation_sentence(plan: Plan) -> str:
    """How many GPUs the seller lets a customer have, where the plan needs more; '' else."""
    supply, offer = plan.supply, plan.offer
    if "reservation" not in plan.against or supply is None or supply.most_gpus is None:
        return ""
    kind, most = purchase(offer.purchase), fmt.count(supply.most_gpus)
    sells = f"sells at most {most} GPUs" if supply.most_gpus else "does not sell these GPUs"
    basis = f"assumed: {supply.source}" if supply.is_assumed else supply.source
    return f"{offer.provider} {sells} {kind} ({basis}): ask for a reservation."


def _commitment(plan: Plan) -> str:
    usd = f", {fmt.usd_short(plan.term_usd)}" if plan.term_usd else ""
    return f"{COMMITMENTS.get(plan.offer.purchase)}{usd}"


def badges(plan: Plan, today: dt.date) -> tuple[str, ...]:
    """Short notes on the uncertainties of one plan, the most serious first."""
    offer = plan.offer
    is_listed = plan.usd is not None and offer.purchase != "owned"
    age = fmt.age_days(offer.observed_at, today)
    found = {
        f"may run out of memory ({fmt.chance(plan.probability_oom)})": (
            plan.probability_oom >= LIKELY_OOM
        ),
        "misses the deadline": not plan.meets_deadline,
        "over budget": not plan.meets_budget and plan.usd is not None,
        **dict.fromkeys(against(plan), True),
        "no price": plan.usd is None,
        f"no launch file: {plan.no_launch}": bool(plan.no_launch),
        "network assumed": plan.network is not None and plan.network.is_assumed,
        "interconnect unverified": plan.num_nodes > 1 and UNVERIFIED_INTERCONNECT in offer.note,
        "spot: can be interrupted": offer.purchase == "spot",
        offer.source: is_booked(offer),
        f"not recommended: {vocabulary.not_recommended(plan.against)}": bool(plan.against),
        f"needs a commitment of {_commitment(plan)}": offer.purchase in COMMITMENTS,
        "low quality price": is_listed and offer.quality == "low",
        f"price {fmt.age(offer.observed_at, today)}": (
            is_listed and (age is None or abs(age) > OLD_DAYS)
        ),
    }
    return tuple(text for text, is_so in found.items() if is_so)
