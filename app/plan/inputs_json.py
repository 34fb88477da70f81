"""All inputs of an answer as JSON: what its numbers are computed from.

docs/plan-json.md documents every key; keys are stable: add, never rename. Fields of records of
core (Transformer, Workload, Efficiency, Cluster, Calibrated) keep their names and SI units;
null stands for NaN, "no source prints it".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from app.catalogue.as_json import facts_of
from app.document.as_json import attributes
from app.forecast import calibrations
from app.forecast.plans import circumstances_of
from app.forecast.stack_limits import stack_of
from app.forecast.training import question_of, tokens_of
from app.scenario.model import model_of
from app.scenario.version import made_with, version
from core.scenario import Scenario
from core.search.job import PlanJob, Question
from core.search.plan import Plan

Object = dict[str, Any]


def made_with_json() -> Object:
    """The version of Runcast and the hashes of the data behind an answer."""
    return {"version": version(), **made_with()}


def inputs_json(scenario: Scenario, plans: Sequence[Plan]) -> Object:
    """Inputs that all plans share: model, facts of accelerators; and the work, stack and
    efficiencies of the first plan, which hold for each plan that has none of its own."""
    model = model_of(scenario)
    chips = {p.offer.accelerator: p.job.machine.accelerator for p in plans}.values()
    return {
        "model": {
            "id": model.id, "source": model.source, "dims": record_json(model.transformer),
        },
        "tokens": tokens_of(scenario),
        **(_of_job(plans[0].job) if plans else _of_stack(scenario, question_of(scenario))),
        "accelerators": [
            {"name": a.name, "vendor": a.vendor, "facts": facts_of(a)} for a in chips
        ],
        "calibrations": [
            {
                "id": c.id, "accelerator": c.accelerator,
                "factors": record_json(c.factors_for(scenario.stack)),
            }
            for c in calibrations.chosen(scenario).values()
        ],
    }  # fmt: skip


def _of_job(job: PlanJob) -> Object:
    return _of_stack(job.scenario, job.question)


def _of_stack(scenario: Scenario, question: Question) -> Object:
    """The work, stack and efficiencies of a scenario."""
    stack = stack_of(scenario)
    return {
        "workload": record_json(question.work, without=("model",)),
        "stack": attributes(
            stack,
            "name",
            "gradient_dtype",
            "async_tp_since",
            "gradient_overlap_since",
            "chunked_loss",
        ),
        "efficiency": record_json(question.eff),
        "precision": scenario.precision,
    }


def plan_inputs_json(plans: Sequence[Plan]) -> list[Object]:
    """Inputs specific to each plan."""
    found = []
    for plan in plans:
        shift, left = _moved(plan)
        job = plan.job
        known = circumstances_of(job.machine, num_gpus=plan.num_gpus, crosses=plan.num_nodes > 1)
        found.append(
            {
                "gpus_per_instance": plan.offer.gpu_count,
                "cluster": record_json(job.cluster),
                "matmul_measured": not known.unmeasured,
                "accelerator_measured": not known.unseen_accelerator,
                "network_guessed": bool(known.network_guessed),
                "terms": {
                    "usd": job.machine.terms.egress_usd,
                    "usd_per_hour": job.machine.terms.storage_usd_per_hour,
                    "credit_usd": job.machine.terms.credit_usd,
                },
                "billing": attributes(plan, "startup_hours", "least_billed_hours"),
                "moved_log": shift,
                "variance_left": left,
                **({} if _choices(plan) == _choices(plans[0]) else _of_job(job)),
            }
        )
    return found


def _choices(plan: Plan) -> tuple[str, str, bool | None]:
    return plan.stack, plan.precision, plan.cuda_graphs


def _moved(plan: Plan) -> tuple[float, float]:
    """What measurements add to the log of a plan's throughput, and the share of the forecast's
    variance that remains."""
    return (0.0, 1.0) if plan.nearby is None else (plan.nearby.moved_log, plan.nearby.variance_left)


def record_json(record: Any, without: tuple[str, ...] = ()) -> Object:
    """The fields of a record of numbers; null is NaN."""
    return {
        f.name: _plain(getattr(record, f.name)) for f in fields(record) if f.name not in without
    }


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int):
        return value
    number = float(np.asarray(value))
    return number if math.isfinite(number) else None
