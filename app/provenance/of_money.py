"""Where hours and dollars of a plan and their intervals come from."""

from __future__ import annotations

from dataclasses import replace

from app.forecast.case import Case
from app.forecast.machines import GIVEN
from app.provenance.of_facts import TYPED, of_scenario, price_of
from app.provenance.of_speed import ends, num_gpus, sigma_record, skew_record
from app.provenance.record import Record, record, undated
from core.machine.accelerator import Source
from core.machine.rented import NO_TERMS

BILLED = "max(startup_hours + {run}, least_billed_hours)"


def money_records(case: Case, whole: Record) -> tuple[Record, ...]:
    """Dollars, hours, GPU-hours, price and number of steps; `whole` is the record of a step."""
    hours, sigma, skew = wall_clock(case, whole), sigma_record(case), skew_record(case)
    median, speed = case.plan.wall_clock_hours, case.plan.tokens_per_s
    least, most = median * speed.p50 / speed.p90, median * speed.p50 / speed.p10
    instances, of_instance = instances_of(case)
    billed = record(
        "billed_hours", "Hours that are paid", case.plan.billed_hours, "h",
        formula=BILLED.format(run=hours.key), inputs=(hours, *billing_of(case)), topic="Dollars",
    )  # fmt: skip
    gpu_hours = record(
        "gpu_hours", "GPU-hours, idle ones of an instance included", case.plan.gpu_hours,
        "GPU-hours", formula="billed_hours * num_instances * gpus_per_instance",
        inputs=(billed, instances, of_instance), topic="Dollars",
    )  # fmt: skip
    return (
        *_cost(case, hours, billed, (sigma, skew)), hours,
        *ends(hours, least, most, sigma, skew, "Wall clock", rises_with_speed=False),
        gpu_hours, _per_gpu_hour(case, of_instance), hours.inputs[0],
    )  # fmt: skip


def billing_of(case: Case) -> tuple[Record, Record]:
    """The start-up of the machines, and the least that is billed of them."""
    supply = case.machine.supply
    found = (
        ("startup_hours", "Start-up, until training begins", supply.startup_hours, supply.startup),
        ("least_billed_hours", "Billed at least", supply.least_billed_hours, supply.billing),
    )
    startup, least = (
        record(
            key, label, value, "h",
            "given" if source == GIVEN else "assumed" if source.assumed else "published",
            source=source, note=source.printed,
        )
        for key, label, value, source in found
    )  # fmt: skip
    return startup, least


def wall_clock(case: Case, whole: Record) -> Record:
    """Median hours of training, without failures."""
    scenario = case.scenario
    length, batch = (of_scenario(scenario, f) for f in ("seq_len", "global_batch_size"))
    steps = record(
        "num_steps", "Optimizer steps", case.plan.num_steps, "steps", topic="Dollars",
        formula="ceil(run_tokens / (seq_len * global_batch_size))",
        inputs=(_tokens(case), length, batch),
    )  # fmt: skip
    return record(
        "wall_clock_hours", "Wall clock, median (P50), without failures",
        case.plan.wall_clock_hours, "h", formula="num_steps * step_s / 3600",
        inputs=(steps, whole), topic="Dollars",
    )  # fmt: skip


def _tokens(case: Case) -> Record:
    """Tokens of the run: given, or computed from examples, epochs and packing."""
    scenario = case.scenario
    if scenario.num_examples is None and scenario.epochs == 1 and scenario.packing_efficiency == 1:
        field = of_scenario(scenario, "num_tokens")
        return replace(field, key="run_tokens", value=case.tokens)
    return record(
        "run_tokens", "Tokens of the run, padding included", case.tokens, "tokens",
        note="core/scenario/task_size.py: examples, tokens of each, epochs, packing",
        source=undated(TYPED),
    )  # fmt: skip


# --- dollars -------------------------------------------------------------------------------------


def instances_of(case: Case) -> tuple[Record, Record]:
    """The number of instances, and the GPUs of one."""
    offer = case.plan.offer
    per = record(
        "gpus_per_instance", "GPUs of one instance", offer.gpu_count, "GPUs",
        "published" if offer.provider != "custom" else "given",
        source=Source(ref=offer.source, date=offer.observed_at, printed=""),
    )  # fmt: skip
    whole = record(
        "num_instances", "Instances, rented whole", case.plan.num_nodes, "", topic="Dollars",
        formula="ceil(num_gpus / gpus_per_instance)", inputs=(num_gpus(case), per),
    )  # fmt: skip
    return whole, per


def _unpriced(key: str, label: str, unit: str, price: Record) -> Record:
    return record(key, label, None, unit, inputs=(price,), text="no price known",
                  note="no price of this machine is known")  # fmt: skip


def _per_gpu_hour(case: Case, of_instance: Record) -> Record:
    key, label, price = "usd_per_gpu_hour", "Price per GPU-hour", price_of(case.plan.offer)
    if price.value is None:
        return _unpriced(key, label, "USD/h", price)
    return record(
        key, label, case.plan.usd_per_gpu_hour, "USD/h", inputs=(price, of_instance),
        formula="usd_per_instance_hour / gpus_per_instance", topic="Dollars",
    )  # fmt: skip


def _terms(case: Case) -> tuple[Record, ...]:
    """What the price book adds to the cost of the instances: storage, traffic and credits."""
    terms = case.machine.terms
    if terms == NO_TERMS:
        return ()
    source = undated(f"price book {case.scenario.price_book}")
    return tuple(
        record(key, label, value, unit, "given", source=source)
        for key, label, value, unit in (
            ("storage_usd_per_hour", "Storage", terms.storage_usd_per_hour, "USD/h"),
            ("egress_usd", "Traffic out of the cloud, once", terms.egress_usd, "USD"),
            ("credit_usd", "Credits", terms.credit_usd, "USD"),
        )
    )


def _cost(
    case: Case, hours: Record, billed: Record, width: tuple[Record, Record]
) -> tuple[Record, ...]:
    """The median, P10 and P90 of the cost, which rises as the speed falls, whose `width` is given:
    sigma and skew."""
    label, usd, price = "Cost of the run", case.plan.usd, price_of(case.plan.offer)
    if usd is None:
        return (_unpriced("run_usd", label, "USD", price),)
    terms, (start, least) = _terms(case), billing_of(case)

    def formula(paid: str, run: str) -> str:
        instances = f"{paid} * num_instances * usd_per_instance_hour"
        if not terms:
            return instances
        stored = f"storage_usd_per_hour * ({start.key} + {run})"
        return f"max({instances} + {stored} + egress_usd - credit_usd, 0)"

    rented = (instances_of(case)[0], price, *terms)
    cost = record(
        "run_usd", f"{label}, median (P50)", usd.p50, "USD", formula=formula(billed.key, hours.key),
        inputs=(billed, *rented, *((hours, start) if terms else ())), topic="Dollars",
        note="whole instances; failures are not in it",
    )  # fmt: skip
    if not cost.value:
        return (cost,)
    low, high = ends(cost, usd.p10, usd.p90, *width, label, rises_with_speed=False)
    stretched = (  # only training is stretched: not the start-up, nor what the price book adds
        (end, f"{hours.key}{end.formula.removeprefix(cost.key)}") for end in (low, high)
    )
    low, high = (
        replace(
            end, inputs=(hours, start, least, *rented, *width),
            formula=formula(BILLED.format(run=run), run),
        )
        for end, run in stretched
    )  # fmt: skip
    return cost, low, high
