"""The numbers of a plan, one record each, down to published inputs."""

from __future__ import annotations

from app.bill.bill import bill_of
from app.bill.energy import energy_text, tonnes
from app.document import vocabulary
from app.explain.sensitivity import unknowns_of
from app.forecast.failure_inputs import given_numbers
from app.forecast.failure_job import job_of
from app.provenance.of_facts import (
    TYPED,
    ceiling_of,
    fractions,
    measured_constants,
    network_of,
    of_accelerator,
    of_field,
    of_model,
    of_risk,
    peak_of,
    power_facts,
    rent_of,
    run_tokens,
)
from app.provenance.record import Record, record, undated, walked
from core.cost.uncertain import Uncertain
from core.errors import ScenarioError, unknown_sentence
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan

Records = tuple[Record, ...]
# Terms of a plan: label, unit and row of hardware/formulas.csv.
TERMS: dict[str, tuple[str, str, str]] = {
    "num_steps": ("Optimizer steps", "steps", "Dollars"),
    "wall_clock_hours": ("Wall clock, median (P50), without failures", "h", "Dollars"),
    "billed_hours": ("Hours that are paid", "h", "Dollars"),
    "num_instances": ("Instances, rented whole", "", "Dollars"),
    "run_usd": ("Cost of the run, median (P50), without failures", "USD", "Dollars"),
    "gpu_hours": ("GPU-hours, idle ones of an instance included", "GPU-hours", "Dollars"),
    "usd_per_gpu_hour": ("Price per GPU-hour", "USD/h", "Dollars"),
    "expected_hours": ("Time of the run, expected", "h", "Failures and checkpoints"),
    "expected_usd": ("Cost of the run, expected", "USD", "Cost of a run"),
    "paid_usd": ("To pay, expected", "USD", "Cost of a run"),
    "goodput": ("Goodput", "share", "Failures and checkpoints"),
    "failures_only_hours": ("Time at the median speed, with failures", "h",
                            "Failures and checkpoints"),
    "failures_only_usd": ("Cost at the median speed, with failures", "USD", "Cost of a run"),
    "tokens_per_s": ("Tokens/s, median (P50)", "tokens/s", ""),
    "tokens_per_s_per_gpu": ("Tokens/s per GPU", "tokens/s", ""),
    "model_flops_per_s_per_gpu": ("Model FLOPs per second of a GPU", "FLOP/s", "Model FLOPs"),
    "mfu": ("MFU", "share", "Model FLOPs"),
    "hfu": ("HFU, with what recompute repeats", "share", "Model FLOPs"),
    "step_s": ("Time of one step", "s", "Overlap"),
    "throughput_sigma": ("Width of the speed forecast (log)", "", "Interval"),
    "throughput_skew": ("More of the width towards slower, less towards faster", "", "Interval"),
    "peak_memory_bytes": ("Peak memory per GPU", "B", "Peak memory"),
    "memory_sigma": ("Width of the memory forecast (log)", "", "Interval"),
    "probability_oom": ("Chance of out of memory", "probability", "Interval"),
    "energy_kwh": ("Energy at the meter, expected", "kWh", "Energy and carbon"),
    "carbon_kg": ("Carbon of the electricity (CO2e), expected", "kg", "Energy and carbon"),
}  # fmt: skip
# Parts of a step: the row of hardware/formulas.csv, and the fractions that the part depends on.
STEP: dict[str, tuple[str, tuple[str, ...]]] = {
    "matmul": ("Matrix products", ("matmul", "matmul_unhidden", "wave", "kernel_s",
                                   "software_per_year")),
    "attention": ("Attention", ("attention_forward", "attention_in_step", "attention_backward",
                                "attention_half_tokens", "attention_half_head_dim")),
    "experts": ("Matrix products", ("matmul", "grouped_matmul", "matmul_unhidden", "kernel_s")),
    "memory_bound": ("Elementwise operators", ("memory", "elementwise", "onchip", "compiled")),
    "head_loss": ("Matrix products", ("matmul", "logits_bytes", "memory")),
    "recompute": ("Activations", ("selective_recompute", "full_recompute")),
    "tp_exposed": ("Collectives", ("scale_up", "hop", "tp_exposed")),
    "cp_exposed": ("Overlap", ("scale_up", "scale_out", "scale_out_doubling", "hop", "cp_exposed",
                               "overlap_window")),
    "ep_exposed": ("Overlap", ("all_to_all", "all_to_all_hop", "ep_exposed",
                               "ep_network_exposed")),
    "pp_exposed": ("Collectives", ("scale_out", "hop", "pp_exposed")),
    "dp_exposed": ("Overlap", ("scale_up", "scale_out", "scale_out_doubling", "hop", "dp_exposed",
                               "fsdp_exposed", "overlap_window", "overlap_slowdown")),
    "offload_exposed": ("Overlap", ("host_link", "nvme_bytes_per_s", "overlap_slowdown")),
    "bubble": ("Pipeline", ()),
    "optimizer": ("Optimizers", ("memory", "host_bytes_per_s")),
    "overhead": ("Elementwise operators", ("host_s", "queue", "step_s", "straggler")),
}  # fmt: skip
PRICED = ("run_usd", "usd_per_gpu_hour")
OF_NETWORK = {"cp_exposed", "ep_exposed", "pp_exposed", "dp_exposed"}
OF_MEMORY = {"memory_bound", "optimizer", "head_loss"}
MEMORY: dict[str, tuple[str, tuple[str, ...]]] = {
    "parameters": ("Model states", ("own_weight_bytes",)),
    "gradients": ("Model states", ("own_weight_bytes",)),
    "optimizer": ("Optimizers", ("own_weight_bytes",)),
    "activations": ("Activations", ("activation_copies", "compiled_kept", "selective_kept",
                                    "routed_copies")),
    "logits": ("Peak memory", ("held_logits_bytes", "compiled_logits")),
    "buffers": ("Peak memory", ("communicator_bytes", "step_bytes", "bucket_copies")),
    "reserve": ("Peak memory", ("reserve_bytes", "memory_pool", "fragmentation")),
}  # fmt: skip


def provenance_of(scenario: Scenario, plan: Plan, *, with_energy: bool = False) -> Records:
    """Every number shown for a plan, each key once, in the order of the Plan page.

    Energy and carbon are optional: they need the whole bill, which takes longer than the rest.
    """
    step, width = _step(plan), _width(plan)
    rent = rent_of(plan.job.machine, scenario.price_book)
    found = (
        *_expected(plan, width, rent),
        *_money(plan, step, width, rent),
        *_speed(plan, step, width),
        *_memory(plan),
        network_of(plan.job),
        *measured_constants(plan.job),
        *(_energy(scenario, plan) if with_energy else ()),
    )
    return tuple({r.key: r for r in found}.values())


def record_named(records: Records, key: str) -> Record:
    """The record or input with this key; raises ScenarioError if there is none."""
    found = next((r for r in walked(records) if r.key == key), None)
    if found is None:
        raise ScenarioError(unknown_sentence("number", key, [r.key for r in walked(records)]))
    return found


def _term(key: str, value: object, *inputs: Record, text: str = "", note: str = "") -> Record:
    """A term that the plan carries."""
    label, unit, topic = TERMS[key]
    return record(key, label, value, unit, inputs=inputs, topic=topic, text=text, note=note)


def _interval(key: str, interval: Uncertain, width: Records, *inputs: Record) -> Records:
    """The median of a term, its P10 and P90."""
    median, (label, unit, _) = _term(key, interval.p50, *inputs), TERMS[key]
    ends = (("p10", interval.p10), ("p90", interval.p90))
    return median, *(
        record(
            f"{key}_{end}",
            label.replace("median (P50)", end.upper()),
            value,
            unit,
            topic="Interval",
            inputs=(median, *width),
        )
        for end, value in ends
    )


# --- money and time ------------------------------------------------------------------------------


def _money(plan: Plan, step: Record, width: Records, rent: Records) -> Records:
    """Dollars, hours, GPU-hours, price and number of steps, without failures."""
    job, (price, per_instance, start, least, *terms) = plan.job, rent
    sizes = (of_field(job.scenario, f) for f in ("seq_len", "global_batch_size"))
    steps = _term("num_steps", plan.num_steps, run_tokens(job), *sizes)
    hours = _interval("wall_clock_hours", plan.training_hours, width, steps, step)
    billed = _term("billed_hours", plan.billed_hours, hours[0], start, least)
    instances = _term("num_instances", plan.num_nodes, _num_gpus(plan), per_instance)
    gpu_hours = _term("gpu_hours", plan.gpu_hours, billed, instances, per_instance)
    if plan.usd is None:
        unpriced = (_term(k, None, price, text="no price known") for k in PRICED)
        return *unpriced, *hours, gpu_hours, steps
    usd = _interval("run_usd", plan.usd, width, billed, instances, price, *terms)
    per_hour = _term("usd_per_gpu_hour", plan.usd_per_gpu_hour, price, per_instance)
    return *usd, *hours, gpu_hours, per_hour, steps


def _num_gpus(plan: Plan) -> Record:
    if plan.job.scenario.num_gpus:
        return record("num_gpus", "GPUs", plan.num_gpus, "GPUs", "given", source=undated(TYPED))
    tried = "a number of GPUs that the search tried"
    return record("num_gpus", "GPUs", plan.num_gpus, "GPUs", note=tried)


def _expected(plan: Plan, width: Records, rent: Records) -> Records:
    """The mean hours and dollars of the run with what they add up from, what is paid, and the means
    at the forecast speed."""
    cost = plan.cost
    inputs = job_of(plan, given_numbers(plan.job.scenario)).inputs
    rests = tuple(of_risk(i, plan.offer.accelerator) for i in inputs.values())
    causes = (
        record(f"{cause}_hours", vocabulary.LOST[cause].capitalize(), hours, "h",
               inputs=width if cause == "training" else (*rests, *width),
               topic="Failures and checkpoints")
        for cause, hours in cost.hour_terms.items() if cause != "startup" and as_float(hours)
    )  # fmt: skip
    hours = _term("expected_hours", plan.expected_hours, rent[2], *causes)
    goodput = _term("goodput", cost.goodput, *rests)
    only_hours = _term("failures_only_hours", cost.failures_only_hours, *rests)
    if plan.expected_usd is None or cost.terms is None:
        return hours, goodput, only_hours
    note = "with a price that may have moved since it was seen: pricing/price_moves.csv"
    terms = (
        record(f"{name}_usd", vocabulary.COST_TERMS[name], term.mean, "USD", inputs=(hours, *rent),
               topic="Cost of a run", note=note)
        for name, term in cost.terms.items() if as_float(term.mean)
    )  # fmt: skip
    usd = _term("expected_usd", plan.expected_usd, *terms, note=note)
    paid = _term("paid_usd", plan.paid_usd, usd, *rent)
    only_usd = _term("failures_only_usd", cost.failures_only_usd, only_hours, *rent)
    return usd, paid, hours, goodput, only_hours, only_usd


# --- speed ---------------------------------------------------------------------------------------


def _step(plan: Plan) -> Record:
    """The whole step: the sum of its parts."""
    parts = (_part(plan, name, seconds) for name, seconds in plan.step_s.items())
    return _term("step_s", sum(plan.step_s.values()), *parts)


def _part(plan: Plan, name: str, seconds: float) -> Record:
    (topic, quantities), job, inputs = STEP[name], plan.job, [of_model(plan.job.scenario)]
    if topic == "Matrix products":
        inputs += [peak_of(job.machine.accelerator), ceiling_of(job)]
    if name in OF_MEMORY:
        inputs.append(of_accelerator(job.machine.accelerator, "memory_bytes_per_s", "B/s"))
    if name in OF_NETWORK | {"tp_exposed"}:
        inputs.append(of_accelerator(job.machine.accelerator, "scale_up_bytes_per_s", "B/s"))
    if name in OF_NETWORK and plan.num_nodes > 1:
        inputs.append(network_of(job))
    inputs += (*fractions(job.scenario.stack, *quantities), *measured_constants(job))
    if job.measured_factor != 1:
        inputs.append(_measurement(plan))
    label = vocabulary.step_part(name)
    return record(f"step_{name}_s", label, seconds, "s", topic=topic, inputs=tuple(inputs))


def _measurement(plan: Plan) -> Record:
    """The factor of measured runs on the seconds of a step."""
    given = plan.job.scenario.anchor_tokens_per_s_per_gpu
    source = undated("hardware/measured_runs.csv")
    if given is not None:
        source = undated("your measurement, typed in", f"{given:g} tokens/s a GPU")
    label, factor = "What measured runs multiply seconds by", plan.job.measured_factor
    note = "" if plan.nearby is None else plan.nearby.sentence
    return record("measurement_factor", label, factor, "", "measured", source=source, note=note)


def _width(plan: Plan) -> Records:
    """The log width of the speed forecast with its causes, and its skew."""
    stack, skew = plan.job.scenario.stack, plan.job.eff.throughput_skew
    causes = fractions(stack, *(u.name for u in unknowns_of(plan)))
    return (
        _term("throughput_sigma", plan.throughput_sigma, *causes),
        _term("throughput_skew", skew, *fractions(stack, "throughput_skew")),
    )


def _speed(plan: Plan, step: Record, width: Records) -> Records:
    """Tokens per second, utilisation, the step and its parts."""
    scenario = plan.job.scenario
    sizes = (of_field(scenario, f) for f in ("global_batch_size", "seq_len"))
    speed = _interval("tokens_per_s", plan.tokens_per_s, width, *sizes, step)
    per_gpu = _term("tokens_per_s_per_gpu", plan.tokens_per_s_per_gpu, speed[0], _num_gpus(plan))
    flops_per_s, model = plan.model_flops_per_s_per_gpu, of_model(scenario)
    flops = _term("model_flops_per_s_per_gpu", flops_per_s, per_gpu, model)
    peak = peak_of(plan.job.machine.accelerator)
    used = (_term("mfu", plan.mfu, flops, peak), _term("hfu", plan.hfu, flops, peak))
    return *speed, per_gpu, *used, step, *step.inputs


# --- memory and energy ---------------------------------------------------------------------------


def _memory(plan: Plan) -> Records:
    """The peak and its parts, the capacity, and the chance of running out."""
    job, stack = plan.job, plan.job.scenario.stack
    parts = []
    for name, size in plan.memory_bytes.items():
        topic, quantities = MEMORY[name]
        label, inputs = vocabulary.memory_part(name), fractions(stack, *quantities)
        inputs = (of_model(job.scenario), *inputs)
        parts.append(record(f"memory_{name}_bytes", label, size, "B", topic=topic, inputs=inputs))
    peak = _term("peak_memory_bytes", sum(plan.memory_bytes.values()), *parts)
    accelerator = job.machine.accelerator
    capacity = of_accelerator(accelerator, "memory_bytes", "B", key="memory_capacity_bytes")
    causes = fractions(stack, "memory_sigma", "memory_unknown_stack_sigma")
    sigma = _term("memory_sigma", job.question.memory_sigma, *causes)
    chance = _term("probability_oom", plan.probability_oom, capacity, peak, sigma)
    return peak, *parts, capacity, chance


def _energy(scenario: Scenario, plan: Plan) -> Records:
    """Expected kWh at the meter and CO2e; empty if power is unknown or the run never ends."""
    try:
        energy = bill_of(scenario, plan).energy
    except ScenarioError:  # the run never ends
        return ()
    if energy.total is None:
        return ()
    parts = [
        record(
            f"{line.name}_kwh",
            line.label,
            line.figure.mean,
            "kWh",
            topic="Energy and carbon",
            note=line.how,
            inputs=power_facts() if line.name == "machines" else (),
        )
        for line in energy.lines
        if line.figure is not None
    ]
    kwh = as_float(energy.total.mean)
    total = _term("energy_kwh", kwh, *parts, text=energy_text(kwh))
    if (carbon := energy.carbon.figure) is None:
        return (total,)
    kg = as_float(carbon.mean)
    return total, _term("carbon_kg", kg, total, text=tonnes(kg), note=energy.carbon.how)
