"""Everything on the bill of one plan: each line with a lower, an expected and an upper figure, and
how it is computed. Energy and carbon are in app/bill/energy.py."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from app.bill.energy import Energy, energy_of, energy_text
from app.bill.line import Line, Status, not_known
from app.document import format as fmt
from app.document import vocabulary
from app.forecast.failure_times import checkpoint_size_bytes
from app.forecast.price_book import book_of, today
from app.risk.risk import Risk, Spread, risk_of, usd_per_hour
from app.risk.words import basis_words, shown_value
from core.errors import ScenarioError
from core.failures import finish_time
from core.machine.rented import Terms
from core.money import bill as lines
from core.money import other_costs
from core.money.bill import Figure, Hours
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import HOUR_S
from hardware import power
from pricing.book.cells import ANY
from pricing.book.offers import terms_of
from pricing.book.rows import Storage

NO_BOOK = "not priced: a {kind} row of a price book (--price-book) prices it"
TB = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What one plan costs in all, line by line."""

    plan: Plan
    risk: Risk
    hours: Hours
    lines: tuple[Line, ...]  # in USD
    total: Figure | None  # of the lines with a price; None: the machines have no price
    energy: Energy

    @property
    def not_priced(self) -> tuple[Line, ...]:
        """Lines of the bill whose amount is not known."""
        return tuple(line for line in self.lines if line.status == "not_priced")


def bill_of(scenario: Scenario, plan: Plan) -> Bill:
    """The bill of one plan; ScenarioError if failures keep the run from ever ending."""
    risk = risk_of(scenario, plan)
    if risk.hours is None:
        raise ScenarioError(
            "With these failures the run does not end, so that it has no bill: an attempt gets as "
            f"far as its next checkpoint with a chance of {fmt.percent(risk.attempt_probability)}."
        )
    hours = _hours(plan, risk, risk.hours)
    energy = energy_of(scenario, plan, hours)
    machines = _machines(plan, risk, hours)
    found = [*machines, *_storage_and_traffic(scenario, plan, hours.total)]
    found += [_experiments(scenario, machines), _electricity(scenario, plan, energy)]
    found += _credit(scenario, plan, found)
    priced = [line.figure for line in found if line.figure is not None]
    return Bill(
        plan=plan,
        risk=risk,
        hours=hours,
        lines=tuple(found),
        total=None if plan.usd_per_gpu_hour is None else lines.total(priced),
        energy=energy,
    )


def _hours(plan: Plan, risk: Risk, spread: Spread) -> Hours:
    """Lower, expected and upper hours by what they are spent on."""
    steady, lost, start = plan.training_hours, risk.lost_hours, plan.startup_hours
    return lines.hours_of(
        training=Figure(lower=steady.p10, expected=steady.p50, upper=steady.p90),
        failure_free=plan.wall_clock_hours + lost["slow_nodes"] + lost["checkpoint"],
        run=Figure(
            lower=as_float(finish_time.quantile_s(risk.job, 0.1)) / HOUR_S,
            expected=spread.expected - start,
            upper=spread.p90 - start,
        ),
        failing=lost["rework"] + lost["restart"],
        waiting=lost["waiting"],
        startup=start,
    )


def _machines(plan: Plan, risk: Risk, hours: Hours) -> list[Line]:
    """Whole instances while they train, write checkpoints, fail and wait."""
    offer, per_hour = plan.offer, usd_per_hour(plan)
    idle = plan.num_nodes * offer.gpu_count - plan.num_gpus
    inputs = {i.name: i for i in risk.inputs}
    rate, wait = inputs["failures_per_node_day"], inputs["wait_s"]
    price = "no price is known" if per_hour is None else fmt.usd_per_hour(per_hour)
    of_each = "" if per_hour is None else f", {fmt.usd_per_hour(per_hour / plan.num_nodes)} each"
    stop = shown_value(inputs["checkpoint_s"])
    how = {
        "instances": f"{fmt.count(plan.num_nodes)} whole instances of {offer.gpu_count} GPUs, "
        f"{price} in all{of_each}, for {fmt.days(plan.wall_clock_hours)} of training; "
        + (f"{fmt.count(idle)} of their GPUs stay idle and are paid" if idle else "no GPU is idle")
        + "; lower and upper are the P10 and P90 of the forecast",
        "checkpoints": f"training stops {stop} for each checkpoint "
        f"({basis_words(inputs['checkpoint_s'])})"
        + ("" if not risk.lost_hours["slow_nodes"] else ", and slow nodes hold the others up"),
        "failures": f"{risk.failures:.3g} failures expected at {rate.value:g} per node-day "
        f"({basis_words(rate)}): noticing, restarting, reloading, work done again; lower and upper "
        "are the P10 and P90 of the time lost",
        "waiting": f"a mean wait of {shown_value(wait)} for a machine ({basis_words(wait)}) after "
        "each failure; the machines that are left are kept and paid",
    }
    how["startup"] = f"{fmt.days(plan.startup_hours)} until training begins" + (
        f", and what a short run lacks of the {fmt.days(plan.least_billed_hours)} that are billed "
        "at least"
        if plan.least_billed_hours > as_float(hours.total.lower)
        else ""
    )
    startup = lines.startup_paid(hours=hours, least_hours=plan.least_billed_hours)
    parts = (hours.training, hours.checkpoints, hours.failures, hours.waiting, startup)
    status: Status = "not_priced" if per_hour is None else "priced"
    return [
        Line(
            name=name,
            figure=None if per_hour is None else part.times(per_hour),
            status=status,
            how=how[name],
        )
        for name, part in zip(how, parts, strict=True)
    ]


def _storage_and_traffic(scenario: Scenario, plan: Plan, hours: Figure) -> list[Line]:
    """Storage for as long as the run lasts, and data that leaves the cloud once."""
    size = checkpoint_size_bytes(scenario)
    rate = _storage_rate(scenario, plan)
    whole, data_only = (_terms(scenario, plan, checkpoint_bytes=b) for b in (size, 0.0))
    kept, data_tb = scenario.kept_checkpoints, scenario.dataset_tb
    of_book = "as much as the price book says"
    stored = [
        ("checkpoint_storage", None if kept is None else kept * size,
         whole.usd_per_hour - data_only.usd_per_hour,
         f"{of_book if kept is None else f'{kept} kept'}, {size / other_costs.GB:,.4g} GB each"),
        ("data_storage", None if data_tb is None else data_tb * TB, data_only.usd_per_hour,
         of_book if data_tb is None else f"{data_tb:g} TB"),
    ]  # fmt: skip
    found = []
    for name, given_bytes, per_hour, what in stored:
        if rate is None:
            how = f"{'' if given_bytes is None else f'{what}: '}{NO_BOOK.format(kind='storage')}"
            found.append(not_known(name, how, status="not_priced"))
            continue
        if given_bytes is not None:
            per_hour = as_float(
                other_costs.storage_usd(stored_bytes=given_bytes, usd_per_gb_month=rate, hours=1.0)
            )
        how = f"{what}, for as long as the run lasts, at up to {rate:g} USD per GB and month"
        found.append(Line(name=name, figure=hours.times(per_hour), status="priced", how=how))
    return [*found, _egress(scenario, whole)]


def _egress(scenario: Scenario, terms: Terms) -> Line:
    if not terms.usd:
        return not_known("egress", NO_BOOK.format(kind="traffic (egress)"), status="not_priced")
    once = Figure(lower=terms.usd, expected=terms.usd, upper=terms.usd)
    how = f"once a run, as the price book {scenario.price_book} says"
    return Line(name="egress", figure=once, status="priced", how=how)


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


def _terms(scenario: Scenario, plan: Plan, *, checkpoint_bytes: float) -> Terms:
    book = book_of(scenario)
    if book is None:
        return Terms()
    offer = plan.offer
    return terms_of(book, offer.provider, offer.region, today(), checkpoint_bytes=checkpoint_bytes)


def _experiments(scenario: Scenario, machines: list[Line]) -> Line:
    """Failed runs and ablations, at the run's own price per GPU-hour."""
    share = scenario.experiment_share
    examples = "; ".join(
        f"{f.value:g} ({f.scope}, {f.source})" for f in power.published("experiment_share")
    )
    if any(line.figure is None for line in machines):
        return not_known("experiments", "the machines have no price", status="not_priced")
    of_run = lines.total(line.figure for line in machines if line.figure is not None)
    if share is None:
        how = (
            "none are assumed: --experiment-share gives their GPU-hours over those of the run; "
            f"published: {examples}"
        )
        return Line(name="experiments", figure=of_run.times(0.0), status="assumed", how=how)
    how = f"{share:g} times the GPU-hours of the run, at its price"
    return Line(name="experiments", figure=of_run.times(share), status="priced", how=how)


def _electricity(scenario: Scenario, plan: Plan, energy: Energy) -> Line:
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
    how = f"{energy_text(as_float(energy.total.expected))} at {scenario.usd_per_kwh:g} USD"
    usd = energy.total.times(scenario.usd_per_kwh)
    return Line(name=name, figure=usd, status="priced", how=how)


def _credit(scenario: Scenario, plan: Plan, others: list[Line]) -> list[Line]:
    credit_usd = _terms(scenario, plan, checkpoint_bytes=0.0).credit_usd
    if not credit_usd or plan.usd_per_gpu_hour is None:
        return []
    sums = lines.total(line.figure for line in others if line.figure is not None)
    figure = lines.credit(others=sums, credit_usd=credit_usd)
    how = f"as the price book {scenario.price_book} says; what is left of it is not paid out"
    return [Line(name="credits", figure=figure, status="priced", how=how)]


def bill_sentences(scenario: Scenario, found: Bill) -> tuple[str, ...]:
    """The total cost of the run, its range, and what it does not include."""
    head = f"Plan {found.plan.rank} on {vocabulary.machine(found.plan)}"
    sentences = []
    if found.total is None:
        sentences.append(f"{head} has no price, so that its bill has no total.")
    else:
        low, mean, high = (
            fmt.usd(as_float(x), digits=3)
            for x in (found.total.lower, found.total.expected, found.total.upper)
        )
        sentences.append(
            f"{head} costs {mean} in the mean, between {low} and {high}, at the speed forecast and "
            f"the price as seen; all in, {fmt.usd(found.plan.expected_usd, digits=3)} are expected."
        )
        sentences.append(
            "Lower is a forecast at its fast end (P10) with little lost to failures (P10), upper "
            f"its slow end (P90) with much lost (P90): both at once{_together(found)}."
        )
        if scenario.budget_usd is not None:
            over = as_float(found.total.expected) > scenario.budget_usd
            sentences.append(
                f"The mean is {'over' if over else 'within'} the budget of "
                f"{fmt.usd(scenario.budget_usd)}; the upper figure is "
                f"{'over' if as_float(found.total.upper) > scenario.budget_usd else 'within'} it."
            )
    missing = [line.label.lower() for line in found.not_priced]
    if missing:
        sentences.append(f"Not priced, and in no total: {', '.join(missing)}. Taxes are in none.")
    if found.plan.offer.purchase == "spot":
        sentences.append("It is a spot price: what its interruptions cost is not on this bill.")
    return (*sentences, *found.energy.sentences)


def _together(found: Bill) -> str:
    usd = found.risk.usd
    if usd is None or not isfinite(usd.p90_all):
        return ""
    return f"; the P90 of the two together is {fmt.usd(usd.p90_all, digits=3)} for the plan alone"
