"""Computes the plans of a file again and compares them with the file's numbers.

Only the file is read: no price snapshot and no store; the installed tables are read only for notes
on what differs. `docs/reproducibility.md` lists what is computed and what is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from app.forecast.training import efficiency_of, tokens_of, workload_of
from app.recompute.file import PlanFile, WrittenPlan
from app.scenario.model import CUSTOM, NamedModel, model_of
from app.scenario.version import made_with, version
from core.errors import RuncastError, ScenarioError
from core.evidence import uncertainty
from core.evidence.uncertainty import Circumstances
from core.explain.explain import columns_of
from core.layout.layouts import Layouts
from core.layout.workload import Workload
from core.machine.calibration import applied
from core.machine.cluster import Cluster, cluster_of
from core.machine.efficiency import Efficiency
from core.memory.memory import peak_bytes
from core.memory.offload import work_on
from core.model.transformer import Transformer
from core.money import cost as money_cost
from core.money import other_costs
from core.numeric import Numeric, as_float
from core.time.step import PARTS, Step, step
from core.units import HOUR_S

SAME = 1e-9  # relative tolerance between two computations of a number
GIVEN = ("gpus_per_node", "scale_up_domain", "scale_out_bytes_per_s", "scale_up_hop_s",
         "scale_out_hop_s", "scale_out_all_to_all")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Differs:
    """One number of the file that differs when computed again."""

    term: str  # its key in the file
    written: float  # NaN for null
    found: float

    @property
    def relative(self) -> float:
        """The difference relative to the larger value; 0 if both are NaN, infinite if one is."""
        a, b = self.written, self.found
        if not (math.isfinite(a) and math.isfinite(b)):
            return 0.0 if math.isfinite(a) == math.isfinite(b) else math.inf
        return 0.0 if a == b else abs(a - b) / max(abs(a), abs(b))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputed:
    """One plan, computed again."""

    id: str
    rank: int
    num_numbers: int
    largest: float  # relative difference
    differs: tuple[Differs, ...]  # in the order in which they are computed


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputation:
    """The result of computing a file again."""

    version: str  # of Runcast that wrote the file
    shared: tuple[Differs, ...]  # inputs of all plans that differ from the scenario's
    plans: tuple[Recomputed, ...]
    notes: tuple[str, ...]  # installed here, but different when the file was made

    @property
    def is_same(self) -> bool:
        """Whether every number was reproduced."""
        return not self.shared and not any(p.differs for p in self.plans)


def recomputed(file: PlanFile) -> Recomputation:
    """Compute every plan of a file from the inputs in it. Raises ScenarioError if a plan names an
    accelerator that the file does not describe."""
    with np.errstate(all="ignore"):  # hostile numbers give NaN, and so differ
        shared = tuple(_different(_shared(file)))
        plans = tuple(_plan(file, plan) for plan in file.plans)
        notes = tuple(_notes(file))
    return Recomputation(version=file.version, shared=shared, plans=plans, notes=notes)


def _shared(file: PlanFile) -> Iterator[Differs]:
    """The differences between the scenario's inputs and those that the file was computed with."""
    yield Differs(term="inputs.tokens", written=file.tokens, found=tokens_of(file.scenario))
    if file.scenario.model == CUSTOM:
        dims = model_of(file.scenario).transformer
        yield from _fields("inputs.model.dims", file.model, dims)
    named = NamedModel(id="", label="", transformer=file.model, source="", max_seq_len=None)
    for of in dict.fromkeys((file.shared, *(p.of_stack for p in file.plans))):
        asked = file.scenario
        if of.precision:
            asked = asked.model_copy(update={"precision": of.precision})
        work = workload_of(asked, named, of.stack)
        yield from _fields("inputs.workload", of.work, work)


def _plan(file: PlanFile, plan: WrittenPlan) -> Recomputed:
    checked = list(_machine(file, plan))
    numbers = _numbers(file, plan)
    checked += [
        Differs(term=name, written=plan.numbers.get(name, math.nan), found=value)
        for name, value in numbers.items()
    ]
    return Recomputed(
        id=plan.id,
        rank=plan.rank,
        num_numbers=len(numbers),
        largest=max(c.relative for c in checked),
        differs=tuple(_different(checked)),
    )


def _machine(file: PlanFile, plan: WrittenPlan) -> Iterator[Differs]:
    """The machine's rates, from the facts and measurements of its accelerator."""
    if plan.accelerator not in file.accelerators:
        raise ScenarioError(f"The plan file does not describe {plan.accelerator!r}, which it uses.")
    chip, rates = file.accelerators[plan.accelerator], plan.cluster
    made: Cluster = cluster_of(chip, **{n: getattr(rates, n) for n in GIVEN})
    if plan.accelerator in file.factors:
        made = applied(made, file.factors[plan.accelerator])
    watts = file.scenario.power_cap_watts
    if watts is not None and chip.tdp_watts is not None:
        made = replace(made, power_share=min(watts / chip.tdp_watts, 1.0))
    if file.scenario.network_reduction:
        made = replace(made, network_reduces=1.0)
    # The node and its network come from the offer: they cannot be computed.
    yield from _fields(
        "inputs.cluster", rates, replace(made, **{n: getattr(rates, n) for n in GIVEN})
    )


def _known(
    work: Workload, lay: Layouts, plan: WrittenPlan, eff: Efficiency, timed: Step
) -> Circumstances:
    """What widens the interval: as the file says, and by the parts of the step."""
    half = 0.0
    if plan.known.network_guessed:
        rate = np.asarray(plan.cluster.scale_out_bytes_per_s) / 2
        slower = step(work, lay, replace(plan.cluster, scale_out_bytes_per_s=rate), eff)
        half = math.log(slower.step_s[0] / timed.step_s[0])
    parts_s = {name: v[0] for name, v in timed.parts.items()}
    return uncertainty.of_step(plan.known, parts_s=parts_s, at_half_network=half)


def _numbers(file: PlanFile, plan: WrittenPlan) -> dict[str, float]:
    """The plan's numbers, in the order in which they are computed."""
    lay = columns_of([plan.layout], [plan.num_gpus])
    work, eff = work_on(plan.of_stack.work, lay), plan.of_stack.eff
    timed = step(work, lay, plan.cluster, eff)
    memory = {k: float(v[0]) for k, v in peak_bytes(work, lay, plan.cluster, eff).items()}
    faster = math.exp(min(plan.moved_log, 700.0))
    step_s = float(timed.step_s[0]) / faster
    tokens_per_s = float(timed.tokens_per_s[0]) * faster
    steps = as_float(
        money_cost.num_steps(
            num_tokens=file.tokens, seq_len=work.seq_len, global_batch_size=work.global_batch_size
        )
    )
    hours = steps * step_s / HOUR_S
    billed = as_float(_billed_hours(plan, hours))
    nodes = as_float(
        money_cost.num_instances(num_gpus=plan.num_gpus, gpus_per_instance=plan.gpus_per_instance)
    )
    gpu_hours = as_float(
        money_cost.gpu_hours(
            wall_clock_hours=billed, num_instances=nodes, gpus_per_instance=plan.gpus_per_instance
        )
    )
    width = uncertainty.narrowed(eff, plan.variance_left)
    sigma = uncertainty.throughput_sigma(width, _known(work, lay, plan, eff, timed))
    low = as_float(uncertainty.p10(tokens_per_s, sigma, eff.throughput_skew))
    high = as_float(uncertainty.p90(tokens_per_s, sigma, eff.throughput_skew))
    instances_usd = as_float(
        money_cost.run_usd(
            wall_clock_hours=billed, num_instances=nodes, usd_per_instance_hour=plan.usd_per_hour
        )
    )

    def usd_at(rate: float) -> float:  # dollars fall as tokens/s rise
        run = hours * np.divide(tokens_per_s, rate)
        return as_float(
            other_costs.run_total_usd(
                instances_usd=instances_usd * np.divide(_billed_hours(plan, run), billed),
                storage_usd_per_hour=plan.terms.usd_per_hour,
                hours=plan.startup_hours + run,
                egress_usd=plan.terms.usd,
                credit_usd=plan.terms.credit_usd,
            )
        )

    needed = sum(memory.values())
    above = uncertainty.probability_above(
        plan.cluster.memory_bytes, p50=np.maximum(needed, 1.0), sigma=eff.memory_sigma
    )
    return {
        "num_nodes": nodes,
        **{f"step_s.{n}": float(timed.parts[n][0]) / faster for n in PARTS},
        "step_s.total": step_s,
        "tokens_per_s": tokens_per_s,
        "tokens_per_s_p10": low,
        "tokens_per_s_p90": high,
        "tokens_per_s_per_gpu": float(timed.tokens_per_s_per_gpu[0]) * faster,
        "mfu": float(timed.mfu[0]) * faster,
        "hfu": float(timed.hfu[0]) * faster,
        **{f"memory_bytes.{n}": value for n, value in memory.items()},
        "memory_bytes.total": needed,
        "memory_bytes.capacity": as_float(plan.cluster.memory_bytes),
        "probability_oom": as_float(above),
        "num_steps": steps,
        "wall_clock_hours": hours,
        **_if_written(plan, startup_hours=plan.startup_hours, billed_hours=billed),
        "gpu_hours": gpu_hours,
        "usd": usd_at(tokens_per_s),
        "usd_p10": usd_at(high),
        "usd_p90": usd_at(low),
        "usd_per_gpu_hour": as_float(np.divide(instances_usd, gpu_hours)),
    }


def _if_written(plan: WrittenPlan, **numbers: float) -> dict[str, float]:
    """Numbers that a file of an older version lacks are not compared."""
    return {name: value for name, value in numbers.items() if name in plan.numbers}


def _billed_hours(plan: WrittenPlan, run_hours: Numeric) -> Numeric:
    return money_cost.billed_hours(
        run_hours=run_hours,
        startup_hours=plan.startup_hours,
        least_hours=plan.least_billed_hours,
    )


def _notes(file: PlanFile) -> Iterator[str]:
    """What is installed here but differed when the file was made. The file's own numbers are used
    in any case."""
    here = {"version": version(), **made_with()}
    if file.version != here["version"]:
        yield f"Made with version {file.version or 'unknown'}; this is {here['version']}."
    elif file.code != here["code"]:
        yield f"Made with other code of version {file.version}."
    if file.tables == here["tables"]:
        return
    yield "Made with other tables of facts. A new plan would not have these numbers:"
    try:
        yield from _since("the model's", file.model, model_of(file.scenario).transformer)
        asked = file.scenario.model_copy(update={"stack": file.shared.stack.name})
        yield from _since("", file.shared.eff, efficiency_of(asked, file.shared.work))
    except RuncastError as e:
        yield str(e)


def _since(whose: str, then: Transformer | Any, now: Transformer | Any) -> Iterator[str]:
    for d in _different(_fields("", then, now)):
        yield f"{whose} {d.term} was {d.written:.6g} and is {d.found:.6g} here".strip() + "."


def _fields(at: str, written: Any, found: Any) -> Iterator[Differs]:
    """The numbers of two records of one type, by field; a table is compared as one text."""
    for f in fields(written):
        one, other = getattr(written, f.name), getattr(found, f.name)
        name = f"{at}.{f.name}" if at else f.name
        if isinstance(one, tuple):
            flat, again = np.ravel(one), np.ravel(other)
            same = flat.shape == again.shape and np.allclose(flat, again, rtol=SAME, atol=0)
            yield Differs(
                term=name, written=float(len(one)), found=float(len(one)) if same else math.nan
            )
        elif not isinstance(one, Transformer):
            yield Differs(term=name, written=as_float(one), found=as_float(other))


def _different(checked: Any) -> Iterator[Differs]:
    return (d for d in checked if not d.relative <= SAME)


def recomputed_json(found: Recomputation) -> Mapping[str, Any]:
    """The JSON document; its keys are documented in docs/reproducibility.md."""

    def numbers(differs: tuple[Differs, ...]) -> list[dict[str, Any]]:
        return [{**asdict(d), "relative": d.relative} for d in differs]

    return {
        "schema_version": 1,
        "same": found.is_same,
        "version": found.version,
        "shared": numbers(found.shared),
        "plans": [
            {
                "id": p.id, "rank": p.rank, "same": not p.differs, "num_numbers": p.num_numbers,
                "largest": p.largest, "differs": numbers(p.differs),
            }
            for p in found.plans
        ],
        "notes": list(found.notes),
    }  # fmt: skip
