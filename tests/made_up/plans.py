"""Made-up answers for tests of words, tables and JSON. The numbers mean nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from app.forecast import machines
from app.forecast.search import plan_job
from app.forecast.training import question_of
from core.cost.distribution import Cumulants, fitted
from core.cost.run_cost import TERMS, RunCost
from core.cost.uncertain import Uncertain, certain
from core.evidence.residual import WeightedRun
from core.machine.offer import Offer
from core.scenario import Scenario
from core.search.job import PlanJob
from core.search.plan import (
    Answer,
    AtHalfNetwork,
    ChosenCorrection,
    Exclusion,
    Gate,
    Layout,
    NearbyRuns,
    Plan,
    PlanNetwork,
    PlanSupply,
    Recommendation,
)

# A bundled snapshot that stays: for tests of a seller or a price that newer prices may lack.
SUMMER_2026 = "418dd4911f7e"
STEP_S = {
    "matmul": 1.2,
    "attention": 0.3,
    "experts": 0.0,
    "memory_bound": 0.2,
    "head_loss": 0.1,
    "recompute": 0.3,
    "tp_exposed": 0.05,
    "cp_exposed": 0.0,
    "ep_exposed": 0.0,
    "pp_exposed": 0.01,
    "dp_exposed": 0.05,
    "offload_exposed": 0.0,
    "bubble": 0.05,
    "optimizer": 0.03,
    "overhead": 0.02,
}
MEMORY_BYTES = {
    "parameters": 8e9,
    "gradients": 8e9,
    "optimizer": 24e9,
    "activations": 20e9,
    "logits": 2e9,
    "buffers": 1e9,
    "reserve": 1e9,
}


def offer(**changes: object) -> Offer:
    given = {
        "provider": "aws",
        "instance_type": "p5.48xlarge",
        "accelerator": "H100-80GB-SXM",
        "gpu_count": 8,
        "region": "us-east-1",
        "purchase": "on_demand",
        "usd_per_hour": 55.04,
        "scale_out_gbit_per_s": 3200.0,
        "observed_at": "2026-07-20",
        "source": "a price list",
        "quality": "high",
        **changes,
    }
    return Offer(**given)  # type: ignore[arg-type]


def layout(**changes: object) -> Layout:
    given = {
        "tp": 8,
        "pp": 1,
        "virtual_stages": 1,
        "cp": 1,
        "ep": 1,
        "dp_replicate": 1,
        "dp_shard": 8,
        "sharding": "fsdp2",
        "micro_batch_size": 1,
        "num_microbatches": 64,
        "recompute": "selective",
        **changes,
    }
    return Layout(**given)  # type: ignore[arg-type]


def network(**changes: object) -> PlanNetwork:
    given = {
        "gbit_per_s": 3200.0,
        "basis": "product",
        "is_assumed": False,
        "product": "Pods",
        "source": "a page",
        "source_date": "2026-08",
        **changes,
    }
    return PlanNetwork(**given)  # type: ignore[arg-type]


def supply(**changes: object) -> PlanSupply:
    given = {
        "most_gpus": 512.0,
        "is_assumed": False,
        "source": "a page",
        "source_date": "2026",
        **changes,
    }
    return PlanSupply(**given)  # type: ignore[arg-type]


def at_half_network() -> AtHalfNetwork:
    return AtHalfNetwork(step_factor=4.15, tokens_per_s=90e3, wall_clock_hours=240.0, usd=1000.0)


def nearby() -> NearbyRuns:
    return NearbyRuns(
        moved_log=0.05, variance_left=0.5, moved_by_runs=0.06, explained=0.4, distance=0.8,
        sentence="Moved +6% by 4 measured runs of torchtitan on B200; the nearest is 0.8 away.",
        runs=(WeightedRun(run_id="a-run", weight=0.6, log_ratio=0.1, distance=0.8),),
    )  # fmt: skip


@cache
def job() -> PlanJob:
    """The default scenario on 64 GPUs of the offer, with no particular stack."""
    scenario = Scenario(stack="generic")
    machine = machines.machine(offer(), machines.accelerator_of("H100-80GB-SXM", scenario))
    return plan_job(scenario, question_of(scenario), machine, 64)


def plan(**changes: object) -> Plan:
    given = {
        "id": "aws.p5.48xlarge.64",
        "rank": 1,
        "job": job(),
        "offer": offer(),
        "num_gpus": 64,
        "num_nodes": 8,
        "layout": layout(),
        "tokens_per_s": spread(320_000.0, 373_357.0, 426_000.0),
        "tokens_per_s_per_gpu": 5833.7,
        "mfu": 0.412,
        "hfu": 0.45,
        "model_flops_per_s_per_gpu": 407.5e12,
        "step_s": STEP_S,
        "memory_bytes": MEMORY_BYTES,
        "memory_capacity_bytes": 85e9,
        "memory_counted_bytes": {"allocated": 50e9, "reserved": 54e9, "device": 56e9},
        "probability_oom": 0.01,
        "num_steps": 23842.0,
        "gpu_hours": 4761.6,
        "wall_clock_hours": 74.4,
        "usd_per_hour": 440.32,
        "usd_per_gpu_hour": 6.88,
        "meets_deadline": True,
        "meets_budget": True,
        "frontier": True,
        "assumptions": ("Efficiency is that of published runs.",),
        **changes,
    }
    if "job" not in changes:
        machine = replace(job().machine, offer=given["offer"])
        given["job"] = replace(job(), machine=machine, num_gpus=given["num_gpus"])
    usd = given.pop("usd", spread(10_912.0, 12_412.0, 14_170.0))
    if usd is None:
        given |= {"usd_per_hour": None, "usd_per_gpu_hour": None}
    if "cost" not in given:  # as if nothing ever failed
        speed, steady = given["tokens_per_s"], given["wall_clock_hours"]
        start = given.get("startup_hours", 0.0)
        hours = spread(
            start + steady * speed.p50 / speed.p90,
            start + steady,
            start + steady * speed.p50 / speed.p10,
        )
        given["cost"] = cost(hours, usd, startup_hours=start)
    return Plan(**given)  # type: ignore[arg-type]


def spread(p10: float, p50: float, p90: float, mean: float | None = None) -> Uncertain:
    """An uncertain number whose mean is its median unless it is given."""
    return Uncertain(mean=p50 if mean is None else mean, p10=p10, p50=p50, p90=p90)


def chosen_correction() -> ChosenCorrection:
    """A lead of 10% over 12 machines, of which 30% is luck."""
    return ChosenCorrection(num_machines=12, lead=0.1, shrink=0.3)


NAN = float("nan")


def cost(
    hours: Uncertain, usd: Uncertain | None, *, startup_hours: float = 0.0, **changes: object
) -> RunCost:
    """A cost whose figures are those without failures, all of it for the machines at work."""
    known = certain(NAN) if usd is None else usd
    training = hours.mean - startup_hours
    given = {
        "hours": hours, "total": known, "paid": known, "chance_on_time": NAN,
        "chance_in_budget": NAN, "failure_free_hours": hours, "failure_free": known,
        "failures_only_hours": hours.mean, "failures_only_usd": known.mean,
        "uncorrected_hours": hours.mean, "uncorrected_usd": known.mean, "paid_hours": hours.mean,
        "committed_usd": 0.0, "num_terms": 0.0, "window_hours": 0.0, "goodput": 1.0,
        "failures": 0.0,
        "hour_terms": {
            "training": training, "slow_nodes": 0.0, "checkpoint": 0.0, "rework": 0.0,
            "restart": 0.0, "waiting": 0.0, "preemption": 0.0, "startup": startup_hours,
        },
        "finish": fitted(Cumulants(mean=training, variance=training**2 / 100, third=0.0)),
        "terms": {name: known if name == "compute" else certain(0.0) for name in TERMS},
        **changes,
    }  # fmt: skip
    return RunCost(**given)  # type: ignore[arg-type]


def points(plans: tuple[Plan, ...]) -> dict[str, object]:
    """The plans as the columns that an answer has of every ranked one."""
    nan = float("nan")
    columns = {
        "id": [p.id for p in plans],
        "rank": [p.rank for p in plans],
        "usd": [p.usd.p50 if p.usd else nan for p in plans],
        "hours": [p.hours.p50 for p in plans],
        "expected_usd": [p.cost.total.mean for p in plans],
        "paid_usd": [p.cost.paid.mean for p in plans],
        "goodput": [p.cost.goodput for p in plans],
        "expected_hours": [p.expected_hours for p in plans],
        **{
            name: [getattr(p, name) for p in plans]
            for name in ("wall_clock_hours", "startup_hours", "billed_hours", "least_billed_hours")
        },
        "num_gpus": [p.num_gpus for p in plans],
        "tokens_per_s": [p.tokens_per_s.p50 for p in plans],
        **{
            name: [getattr(p.offer, name) for p in plans]
            for name in ("accelerator", "provider", "instance_type", "region", "purchase")
        },
        **{
            name: [getattr(p, name) for p in plans]
            for name in ("frontier", "meets_deadline", "meets_budget")
        },
        "in_doubt": [bool(p.against) for p in plans],
        "against": [" ".join(p.against) for p in plans],
    }
    return {name: np.array(values) for name, values in columns.items()}


def answer(*plans: Plan, **changes: object) -> Answer:
    given = {
        "plans": plans,
        "num_plans": len(plans),
        "points": points(plans),
        "num_candidates": 5300,
        "excluded": (
            Exclusion(reason="no_price", count=9, sentence="9 plans are without dollars."),
            Exclusion(reason="purchase", count=90, sentence="90 offers are of another kind."),
            Exclusion(reason="memory", count=28, sentence="28 offers need more memory."),
            Exclusion(reason="candidate_memory", count=500, sentence="500 layouts do not fit."),
        ),
        "nothing_fits": None,
        "recommendation": Recommendation(
            base=0,
            cheapest=0,
            num_passing=len(plans),
            failed=(),
            gates=(Gate(name="memory", num_passing=len(plans), is_empty=False),),
        ),
        **changes,
    }
    return Answer(**given)  # type: ignore[arg-type]
