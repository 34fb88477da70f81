"""Everything on the bill of one plan: the terms of its cost (core/cost/run_cost.py) as lines, each
with its mean, P10 and P90, and how it is computed. Energy and carbon are in app/bill/energy.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.bill.energy import Energy, energy_of, energy_text
from app.bill.line import Line, Status, not_known
from app.document import format as fmt
from app.document import vocabulary
from app.forecast.failure_times import checkpoint_size_bytes
from app.forecast.price_book import book_of, today
from app.risk.risk import Risk, risk_of
from app.risk.words import basis_words, shown_value
from core.cost.distribution import Cumulants, fitted, training_cumulants
from core.cost.uncertain import Uncertain, certain
from core.errors import ScenarioError
from core.money import other_costs
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import HOUR_S
from hardware import power
from pricing.book.cells import ANY
from pricing.book.rows import Storage

NO_BOOK = "not priced: a {kind} row of a price book (--price-book) prices it"
NAMES = {"compute": "instances"}  # of terms, where the line has another
ADD_UP = (
    "The means of the lines add up to the total. Their P10 and P90 do not: not everything goes "
    "badly at once."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What one plan costs in all, line by line."""

    plan: Plan
    risk: Risk
    hours: Mapping[str, Uncertain]  # by what they are spent on; means add up to `total`
    lines: tuple[Line, ...]  # in USD
    total: Uncertain | None  # None: the machines have no price
    energy: Energy

    @property
    def not_priced(self) -> tuple[Line, ...]:
        """Lines of the bill whose amount is not known."""
        return tuple(line for line in self.lines if line.status == "not_priced")


def bill_of(scenario: Scenario, plan: Plan) -> Bill:
    """The bill of one plan; ScenarioError if failures keep the run from ever ending."""
    risk, terms = risk_of(scenario, plan), plan.cost.terms
    if risk.hours is None or terms is None:
        raise ScenarioError(
            "With these failures the run does not end, so that it has no bill: an attempt gets as "
            f"far as its next checkpoint with a chance of {fmt.percent(risk.attempt_probability)}."
        )
    energy = energy_of(scenario, plan)
    lines = [
        *_machines(scenario, risk, terms),
        *_storage_and_traffic(scenario, plan, terms),
        _experiments(scenario, plan, terms),
        _electricity(scenario, plan, energy, terms),
    ]
    if (credit := terms["credits"]).mean < 0:
        how = f"as the price book {scenario.price_book} says; what is left of it is not paid out"
        lines.append(Line(name="credits", figure=credit, status="priced", how=how))
    return Bill(
        plan=plan,
        risk=risk,
        hours=_hours(risk),
        lines=tuple(lines),
        total=risk.usd,
        energy=energy,
    )


def _hours(risk: Risk) -> dict[str, Uncertain]:
    """Hours by what they are spent on. Training and checkpoints are as uncertain as the speed, the
    others as the failures and preemptions at the mean speed."""
    plan, parts = risk.plan, risk.plan.cost.hour_terms
    training = plan.training_hours
    longer = as_float(training.mean) / (plan.wall_clock_hours * HOUR_S)
    failing, stopped = (
        training_cumulants(job).times(longer) for job in (risk.job, risk.stopped_job)
    )
    waiting, again = parts["waiting"], parts["rework"] + parts["restart"]

    def fit(mean: float, variance: object, third: object) -> Uncertain:
        number = Cumulants(mean=mean, variance=as_float(variance), third=as_float(third))
        return fitted(number).uncertain().at_least(certain(0.0))

    lost = fit(waiting + again, failing.variance, failing.third)
    share = waiting / (waiting + again) if waiting else 0.0
    written = parts["checkpoint"] + parts["slow_nodes"]
    return {
        "training": training,
        "checkpoints": training.times(written / training.mean),
        "failures": lost.times(1 - share),
        "waiting": lost.times(share),
        "preemption": fit(
            parts["preemption"],
            max(as_float(stopped.variance) - as_float(failing.variance), 0.0),
            max(as_float(stopped.third) - as_float(failing.third), 0.0),
        ),
        "startup": certain(parts["startup"]),
        "total": plan.cost.hours,
    }


def _machines(scenario: Scenario, risk: Risk, terms: Mapping[str, Uncertain]) -> list[Line]:
    """Whole instances while they train, write checkpoints, fail, wait and stay unused."""
    plan, cost = risk.plan, risk.plan.cost
    offer, per_hour = plan.offer, plan.usd_per_hour
    idle = plan.num_nodes * offer.gpu_count - plan.num_gpus
    inputs = {i.name: i for i in risk.inputs}
    rate, wait = inputs["failures_per_node_day"], inputs["wait_s"]
    price = "no price is known"
    if per_hour is not None:
        each = per_hour / plan.num_nodes
        price = f"{fmt.usd_per_hour(per_hour)} in all as seen, {fmt.usd_per_hour(each)} each"
    stop = shown_value(inputs["checkpoint_s"])
    how = {
        "compute": f"{fmt.count(plan.num_nodes)} whole instances of {offer.gpu_count} GPUs, "
        f"{price}, for {fmt.days(cost.hour_terms['training'])} of training on average; "
        + (f"{fmt.count(idle)} of their GPUs stay idle and are paid" if idle else "no GPU is idle"),
        "checkpoints": f"training stops {stop} for each checkpoint "
        f"({basis_words(inputs['checkpoint_s'])})"
        + (", and slow nodes hold the others up" if cost.hour_terms["slow_nodes"] else ""),
        "failures": f"{as_float(cost.failures):.3g} failures expected at {rate.value:g} per "
        f"node-day ({basis_words(rate)}): noticing, restarting, reloading, work done again",
        "waiting": f"a mean wait of {shown_value(wait)} for a machine ({basis_words(wait)}) after "
        "each failure; the machines that are left are kept and paid",
    }
    if "preemptions_per_day" in inputs:
        often = inputs["preemptions_per_day"]
        how["preemption"] = (
            f"{often.value:g} interruptions a day of each instance ({basis_words(often)}): "
            "restarting and work done again; waiting for capacity takes time and is not paid"
        )
    how["startup"] = f"{fmt.days(plan.startup_hours)} until training begins" + (
        f", and what a short run lacks of the {fmt.days(plan.least_billed_hours)} that are billed "
        "at least"
        if plan.least_billed_hours > as_float(cost.hours.p10)
        else ""
    )
    if cost.window_hours:
        window = fmt.days(as_float(cost.window_hours))
        how["commitment"] = f"the rest of the capacity block of {window}, which is paid whole"
    elif terms["commitment"].mean:
        share = fmt.percent(scenario.reserved_utilisation)
        how["commitment"] = f"its share of hours that nobody uses, at a utilisation of {share}"
    status: Status = "not_priced" if per_hour is None else "priced"
    return [
        Line(
            name=NAMES.get(name, name),
            figure=None if per_hour is None else terms[name],
            status=status,
            how=text,
        )
        for name, text in how.items()
    ]


def _storage_and_traffic(
    scenario: Scenario, plan: Plan, terms: Mapping[str, Uncertain]
) -> list[Line]:
    """Storage for as long as the run lasts, and data that leaves the cloud once."""
    size, rate = checkpoint_size_bytes(scenario), _storage_rate(scenario, plan)
    kept, data_tb = scenario.kept_checkpoints, scenario.dataset_tb
    of_book = "as much as the price book says"
    each = f"{size / other_costs.GB:,.4g} GB each"
    stored = {
        "checkpoint_storage": f"{of_book if kept is None else f'{kept} kept'}, {each}",
        "data_storage": of_book if data_tb is None else f"{data_tb:g} TB",
    }
    is_given = {"checkpoint_storage": kept is not None, "data_storage": data_tb is not None}
    lines = []
    for name, amount in stored.items():
        if rate is None:
            how = f"{amount}: " if is_given[name] else ""
            how += NO_BOOK.format(kind="storage")
            lines.append(not_known(name, how, status="not_priced"))
        else:
            how = f"{amount}, for as long as the run lasts, at up to {rate:g} USD per GB and month"
            lines.append(Line(name=name, figure=terms[name], status="priced", how=how))
    if not terms["egress"].mean:
        missing = NO_BOOK.format(kind="traffic (egress)")
        return [*lines, not_known("egress", missing, status="not_priced")]
    how = f"once a run, as the price book {scenario.price_book} says"
    return [*lines, Line(name="egress", figure=terms["egress"], status="priced", how=how)]


def _storage_rate(scenario: Scenario, plan: Plan) -> float | None:
    """The highest storage price of the price book for the plan's place; None: it has none."""
    book = book_of(scenario)
    if book is None:
        return None
    offer = plan.offer
    rates = [
        r.usd_per_gb_month
        for r in book.valid(Storage, today())
        if r.provider in (ANY, offer.provider) and r.region in (ANY, offer.region)
    ]
    return max(rates, default=None)


def _experiments(scenario: Scenario, plan: Plan, terms: Mapping[str, Uncertain]) -> Line:
    """Failed runs and ablations, at the run's own price per GPU-hour."""
    share, name = scenario.experiment_share, "experiments"
    if not plan.cost.has_price:
        return not_known(name, "the machines have no price", status="not_priced")
    if share is not None:
        how = f"{share:g} times the GPU-hours of the run, at its price"
        return Line(name=name, figure=terms[name], status="priced", how=how)
    examples = "; ".join(
        f"{f.value:g} ({f.scope}, {f.source})" for f in power.published("experiment_share")
    )
    how = (
        "none are assumed: --experiment-share gives their GPU-hours over those of the run; "
        f"published: {examples}"
    )
    return Line(name=name, figure=terms[name], status="assumed", how=how)


def _electricity(
    scenario: Scenario, plan: Plan, energy: Energy, terms: Mapping[str, Uncertain]
) -> Line:
    """Power that the owner of machines pays; every other price includes it."""
    name = "electricity"
    if plan.offer.purchase != "owned":
        return not_known(name, "inside the price of what is rented", status="in_price")
    if energy.owned_row is not None:
        how = "inside the price of the owned machines, as the price book works it out"
        return not_known(name, how, status="in_price")
    if energy.total is None:
        return not_known(name, "the energy is not known", status="not_priced")
    if scenario.usd_per_kwh is None:
        how = "not priced: --usd-per-kwh gives the price of electricity"
        return not_known(name, how, status="not_priced")
    how = f"{energy_text(as_float(energy.total.mean))} at {scenario.usd_per_kwh:g} USD"
    return Line(name=name, figure=terms[name], status="priced", how=how)


def bill_sentences(scenario: Scenario, bill: Bill) -> tuple[str, ...]:
    """The total cost of the run, its range, and what it does not include."""
    plan, total = bill.plan, bill.total
    head = f"Plan {plan.rank} on {vocabulary.machine(plan)}"
    sentences = []
    if total is None:
        sentences.append(f"{head} has no price, so that its bill has no total.")
    else:
        low, mean, high = (
            fmt.usd(as_float(x), digits=3) for x in (total.p10, total.mean, total.p90)
        )
        spread = f"8 times in 10 between {low} and {high}"
        sentences.append(
            f"{head} commits you to {fmt.usd(plan.paid_usd, digits=3)}; of it this run uses about "
            f"{mean} on average, {spread}."
            if plan.cost.commits
            else f"{head} costs about {mean} on average, {spread}."
        )
        sentences.append(ADD_UP)
        sentences += _budget(scenario, plan)
    missing = [line.label.lower() for line in bill.not_priced]
    if missing:
        sentences.append(f"Not priced, and in no total: {', '.join(missing)}. Taxes are in none.")
    return (*sentences, *bill.energy.sentences)


def _budget(scenario: Scenario, plan: Plan) -> tuple[str, ...]:
    """Whether what is paid keeps to the budget, and with which chance."""
    budget, paid, chance = scenario.budget_usd, plan.paid_usd, plan.chance_in_budget
    if budget is None or paid is None or chance is None:
        return ()
    what = "The sum committed" if plan.cost.commits else "The average"
    verdict = "over" if paid > budget else "within"
    return (
        f"{what} is {verdict} the budget of {fmt.usd(budget)}; the chance to keep to it is "
        f"{fmt.chance(chance)}.",
    )
