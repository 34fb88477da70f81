"""Where hours and dollars of a plan and their intervals come from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app.forecast.case import Case
from app.provenance.of_facts import TYPED, of_scenario, price_of
from app.provenance.of_interval import ends, sigma_record
from app.provenance.of_speed import num_gpus
from app.provenance.of_step import seq_len
from app.provenance.record import Record, by_topic, record
from core.evidence.uncertainty import Z_90
from core.machine.accelerator import Source
from pricing.book.offers import NO_TERMS


def money_records(case: Case, whole: Record) -> tuple[Record, ...]:
    """Dollars, hours, GPU-hours, price and number of steps; `whole` is the record of a step."""
    hours = wall_clock(case, whole)
    sigma = sigma_record(case)
    cost = _cost(case, hours)
    found = [*_around(cost, "run_usd", "Cost of the run", sigma, case)] if cost.value else [cost]
    found += _hours_around(hours, sigma)
    return (*found, _gpu_hours(case, hours), _per_gpu_hour(case), hours.inputs[0])


def wall_clock(case: Case, whole: Record) -> Record:
    """Median hours of training, without failures."""
    return record(
        "wall_clock_hours", "Wall clock, median (P50), without failures",
        case.plan.wall_clock_hours, "h", "computed", formula="num_steps * step_s / 3600",
        inputs=(_num_steps(case), whole), topic=by_topic("Dollars"),
    )  # fmt: skip


def _num_steps(case: Case) -> Record:
    batch = of_scenario(case.scenario, "global_batch_size", "Sequences per step", "sequences")
    return record(
        "num_steps", "Optimizer steps", case.plan.num_steps, "steps", "computed",
        formula="ceil(run_tokens / (seq_len * global_batch_size))",
        inputs=(_tokens(case), seq_len(case), batch), topic=by_topic("Dollars"),
    )  # fmt: skip


def _tokens(case: Case) -> Record:
    """Tokens of the run: given, or computed from examples, epochs and packing."""
    scenario = case.scenario
    if scenario.num_examples is None and scenario.epochs == 1 and scenario.packing_efficiency == 1:
        field = of_scenario(scenario, "num_tokens", "Training tokens", "tokens")
        return replace(field, key="run_tokens", value=case.tokens)
    return record(
        "run_tokens", "Tokens of the run, padding included", case.tokens, "tokens", "computed",
        note="core/scenario/task_size.py: examples, tokens of each, epochs, packing",
        source=Source(ref=TYPED, date="", printed=""),
    )  # fmt: skip


def _hours_around(hours: Record, sigma: Record) -> tuple[Record, ...]:
    stretch = float(np.exp(Z_90 * (sigma.value or 0.0)))
    value = hours.value or 0.0
    low, high = ends(hours, value / stretch, value * stretch, sigma,
                      "Wall clock")  # fmt: skip
    return hours, low, high


# --- dollars -------------------------------------------------------------------------------------


def instances_of(case: Case) -> tuple[Record, Record]:
    per = record(
        "gpus_per_instance", "GPUs of one instance", float(case.plan.offer.gpu_count), "GPUs",
        "published" if case.plan.offer.provider != "custom" else "given",
        source=Source(ref=case.plan.offer.source, date=case.plan.offer.observed_at, printed=""),
    )  # fmt: skip
    whole = record(
        "num_instances", "Instances, rented whole", float(case.plan.num_nodes), "", "computed",
        formula="ceil(num_gpus / gpus_per_instance)", inputs=(num_gpus(case), per),
        topic=by_topic("Dollars"),
    )  # fmt: skip
    return whole, per


def _gpu_hours(case: Case, hours: Record) -> Record:
    return record(
        "gpu_hours", "GPU-hours, idle ones of an instance included", case.plan.gpu_hours,
        "GPU-hours", "computed", formula="wall_clock_hours * num_instances * gpus_per_instance",
        inputs=(hours, *instances_of(case)), topic=by_topic("Dollars"),
    )  # fmt: skip


def _per_gpu_hour(case: Case) -> Record:
    price = price_of(case.plan.offer)
    if price.value is None:
        return record("usd_per_gpu_hour", "Price per GPU-hour", None, "USD/h", "computed",
                      inputs=(price,), text="no price known",
                      note="no price of this machine is known")  # fmt: skip
    return record(
        "usd_per_gpu_hour", "Price per GPU-hour", case.plan.usd_per_gpu_hour, "USD/h", "computed",
        formula="usd_per_instance_hour / gpus_per_instance", inputs=(price, instances_of(case)[1]),
        topic=by_topic("Dollars"),
    )  # fmt: skip


def _terms(case: Case) -> tuple[str, tuple[Record, ...]]:
    """The formula of dollars around the instances' cost, with the price book's extra terms.

    The terms are storage, traffic and credits.
    """
    terms = case.machine.terms
    if terms == NO_TERMS:
        return "{instances}", ()
    source = Source(ref=f"price book {case.scenario.price_book}", date="", printed="")
    found = tuple(
        record(key, label, value, unit, "given", source=source)
        for key, label, value, unit in (
            ("storage_usd_per_hour", "Storage", terms.usd_per_hour, "USD/h"),
            ("egress_usd", "Traffic out of the cloud, once", terms.usd, "USD"),
            ("credit_usd", "Credits", terms.credit_usd, "USD"),
        )
    )
    rest = "{instances} + storage_usd_per_hour * {hours} + egress_usd - credit_usd"
    return f"max({rest}, 0)", found


def _cost(case: Case, hours: Record) -> Record:
    price = price_of(case.plan.offer)
    if case.plan.usd is None:
        return record("run_usd", "Cost of the run", None, "USD", "computed", inputs=(price,),
                      text="no price known", note="no price of this machine is known")  # fmt: skip
    formula, terms = _terms(case)
    return record(
        "run_usd", "Cost of the run, median (P50)", case.plan.usd.p50, "USD", "computed",
        formula=formula.format(
            instances="wall_clock_hours * num_instances * usd_per_instance_hour",
            hours="wall_clock_hours",
        ),
        inputs=(hours, instances_of(case)[0], price, *terms), topic=by_topic("Dollars"),
        note="whole instances; failures are not in it",
    )  # fmt: skip


def _around(
    cost: Record, key: str, label: str, sigma: Record, case: Case
) -> tuple[Record, Record, Record]:
    """The median, P10 and P90 of the cost, which rises as the speed falls."""
    usd = case.plan.usd
    if usd is None:
        return cost, cost, cost
    formula, terms = _terms(case)
    if not terms:
        low, high = ends(cost, usd.p10, usd.p90, sigma, label)
        return cost, low, high
    found = []
    for name, value, sign in (("p10", usd.p10, "-"), ("p90", usd.p90, "")):
        stretched = f"wall_clock_hours * exp({sign}{Z_90:.10g} * {sigma.key})"
        found.append(
            record(
                f"{key}_{name}", f"{label}, {name.upper()}", value, "USD", "computed",
                formula=formula.format(
                    instances=f"{stretched} * num_instances * usd_per_instance_hour",
                    hours=stretched,
                ),
                inputs=(*cost.inputs, sigma), topic=by_topic("Interval"),
            )
        )  # fmt: skip
    return cost, found[0], found[1]
