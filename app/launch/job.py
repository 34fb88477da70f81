"""A plan as the job that its launch files describe: the planner's decisions and the header."""

from __future__ import annotations

import math
import re
from urllib.parse import urlencode

from app.document import format as fmt
from app.document.vocabulary import machine, stated_region
from app.forecast.choosing.launchable import recipe_habits
from app.forecast.failure_times import checkpoint_size_bytes
from app.forecast.resolve import current_prices
from app.risk.risk import risk_of
from app.scenario.age import stamped
from app.scenario.model import model_of
from app.scenario.version import version
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan
from hardware.instances import find_instance
from runners.recipes.job import Header, RecipeJob

NAME_CHARS = 40
FIXED_BY_PLAN = ("stack", "precision", "allow_fp8", "cuda_graphs")  # in the link of a file
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
# Machines whose network has its own NCCL plugin; cloud.google.com/compute/docs/gpus/gpudirect.
_PLUGINS = {"a3-highgpu-8g": "tcpx", "a3-megagpu-8g": "tcpxo"}


def job_of(scenario: Scenario, plan: Plan, *, name: str | None = None) -> RecipeJob:
    """The job of one plan of a resolved scenario; without a name it is named after the model."""
    asked, scenario = scenario, plan.job.scenario
    model = model_of(scenario)
    offer, chip = plan.offer, plan.job.machine.accelerator
    known = find_instance(offer.provider, offer.instance_type)
    fabric = (known.fabric if known else None) or ""
    risk = risk_of(asked, plan)
    p90 = as_float(plan.cost.hours.p90)
    limit = p90 if math.isfinite(p90) else None
    return RecipeJob(
        name=default_name(model.label, plan) if name is None else name,
        header=header_of(asked, plan),
        model_id=model.id,
        model_label=model.label,
        model=model.transformer,
        seq_len=scenario.seq_len,
        global_batch_size=scenario.global_batch_size,
        num_steps=math.ceil(plan.num_steps),
        layout=plan.layout,
        num_gpus=plan.num_gpus,
        num_nodes=plan.num_nodes,
        gpus_per_node=offer.gpu_count,
        precision=scenario.precision,
        optimizer=scenario.optimizer,
        task=scenario.task,
        lora_rank=scenario.lora_rank,
        lora_targets=scenario.lora_targets,
        compiled=bool(plan.job.work.compiled),
        accelerator=offer.accelerator,
        provider=offer.provider,
        instance_type=offer.instance_type,
        region=offer.region,
        purchase=offer.purchase,
        fabric=fabric,
        memory_bytes_per_gpu=math.fsum(plan.memory_bytes.values()),
        usable_bytes_per_gpu=plan.memory_capacity_bytes,
        nccl_fabrics=nccl_fabrics(plan, fabric),
        limit_hours=limit,
        vendor=chip.vendor,
        device_name=chip.device_name or "",
        slice_gpus=int(chip.scale_up_domain) if chip.vendor == "google" else None,
        habits=recipe_habits(
            scenario, plan.layout.sharding, as_float(chip.architecture.newer_than_flash2)
        ),
        checkpoint_steps=_checkpoint_steps(as_float(risk.job.interval_s), plan),
        vcpus=known.vcpus if known else None,
        host_ram_gib=known.host_ram_gib if known else None,
        checkpoint_bytes=checkpoint_size_bytes(scenario),
    )


def _checkpoint_steps(interval_s: float, plan: Plan) -> int:
    """Steps between checkpoints, at least 1 and at most the whole run."""
    steps = interval_s / math.fsum(plan.step_s.values())
    return max(1, round(min(steps, plan.num_steps)))


def default_name(label: str, plan: Plan) -> str:
    """A job name that every launcher accepts.

    >>> from tests.made_up.plans import plan
    >>> default_name("Llama 3.1 70B", plan(num_gpus=64))
    'llama-3-1-70b-64gpus'
    """
    tail = f"-{plan.num_gpus}gpus"
    stem = _NOT_IN_NAMES.sub("-", label.lower()).strip("-")[: NAME_CHARS - len(tail)]
    return f"{stem.strip('-') or 'job'}{tail}"


def nccl_fabrics(plan: Plan, fabric: str) -> tuple[str, ...]:
    """The fabric between nodes, as named in hardware/nccl_env.csv; empty if no source has it."""
    found = [_PLUGINS.get(plan.offer.instance_type, fabric)]
    if plan.job.scenario.network_reduction and fabric == "infiniband":
        found = ["infiniband_sharp"]
    found.append(plan.job.machine.accelerator.rack or "")
    return tuple(f for f in found if f)


def header_of(scenario: Scenario, plan: Plan) -> Header:
    """The header of every file."""
    fields = {"plan": plan.id, "prices": scenario.prices or current_prices()}
    fixed = {name: getattr(plan.job.scenario, name) for name in FIXED_BY_PLAN}
    query = stamped(scenario.model_copy(update=fixed | fields)).to_query()
    return Header(
        product=f"Runcast {version()}".strip(),
        link=f"?{urlencode(query)}",
        prices=fields["prices"],
        forecast=forecast_sentences(plan),
        assumptions=plan.assumptions,
    )


def forecast_sentences(plan: Plan) -> tuple[str, ...]:
    """The forecast as lines to compare the first minutes of a run with."""
    rate, step_s = plan.tokens_per_s, math.fsum(plan.step_s.values())
    spread = (rate.p50 / rate.p90, rate.p50 / rate.p10)  # of the step time
    hours = plan.hours
    peak = math.fsum(plan.memory_bytes.values())
    lay, region = plan.layout, stated_region(plan.offer.region)
    stages = f" x {lay.virtual_stages} virtual stages" if lay.virtual_stages > 1 else ""
    lines = [
        machine(plan) + (f" in {region}" if region else ""),
        f"tp {lay.tp}, pp {lay.pp}{stages}, cp {lay.cp}, ep {lay.ep}, "
        f"dp {lay.dp_replicate * lay.dp_shard} ({lay.sharding}), "
        f"micro-batch {lay.micro_batch_size} x {lay.num_microbatches}, "
        f"recompute {lay.recompute}, {plan.job.scenario.precision}",
        f"{fmt.tokens_per_s(rate.p50)} in all, P10 to P90 {fmt.tokens_per_s(rate.p10)} to "
        f"{fmt.tokens_per_s(rate.p90)}; {fmt.tokens_per_s(plan.tokens_per_s_per_gpu)} a GPU; "
        f"MFU {fmt.percent(plan.mfu)}",
        f"{fmt.seconds(step_s)} a step, P10 to P90 {fmt.seconds(step_s * spread[0])} to "
        f"{fmt.seconds(step_s * spread[1])}; {fmt.count(math.ceil(plan.num_steps))} steps",
        f"{fmt.gib(peak)} of {fmt.gib(plan.memory_capacity_bytes)} at the peak of the fullest GPU; "
        f"out of memory with a chance of {fmt.chance(plan.probability_oom)}",
    ]
    time, paid = plan.cost.hours, plan.paid
    if math.isfinite(plan.expected_hours):
        lines.append(
            f"{fmt.days(time.mean)} expected with failures, P10 to P90 {fmt.days(time.p10)} to "
            f"{fmt.days(time.p90)}"
        )
        if paid is not None:
            lines.append(
                f"{fmt.usd(paid.mean)} expected, P10 to P90 {fmt.usd(paid.p10)} to "
                f"{fmt.usd(paid.p90)}"
            )
    lines.append(
        f"{fmt.days(hours.p50)} without failures, P10 to P90 {fmt.days(hours.p10)} to "
        f"{fmt.days(hours.p90)}"
    )
    return tuple(lines)
