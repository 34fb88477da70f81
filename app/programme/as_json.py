"""A programme as JSON: the keys that docs/programme.md documents. Add, never rename."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from app.document.as_json import Json, number
from app.programme.contract import Contract, StagePlan
from app.programme.programme import Programme
from app.programme.words import sentences
from app.scenario.link_query import link_query
from core.cost.uncertain import Uncertain
from core.scenario import Scenario
from pricing.offers import snapshot

SCHEMA_VERSION = 1


def programme_json(scenario: Scenario, found: Programme) -> dict[str, Json]:
    """The document of `runcast programme --json`; null: not known, or never ends."""
    return {
        "schema_version": SCHEMA_VERSION,
        "link": link_query(scenario, snapshot(scenario.prices).id),
        "sentences": list(sentences(scenario, found)),
        "stages_may_move": found.may_move,
        "num_contracts": found.num_contracts,
        "failed": list(found.failed),
        "nothing_fits": found.nothing_fits or None,
        "contracts": [contract_json(c) for c in found.contracts],
    }


def contract_json(contract: Contract) -> dict[str, Any]:
    """One contract with its stages."""
    return {
        "id": contract.id,
        "hours": _outcome(contract.cost.hours),
        "usd": _outcome(contract.cost.total if contract.cost.has_price else None),
        "chance_on_time": number(contract.cost.chance_on_time),
        "paid_usd": _outcome(contract.paid),
        "startup_hours": contract.startup_hours,
        "gpu_hours": number(contract.gpu_hours),
        "against": list(contract.against),
        "most_main_tokens": contract.most_main_tokens,
        "stages": [_stage(s) for s in contract.stages],
    }


def _stage(stage: StagePlan) -> dict[str, Any]:
    run, offer = stage.run, stage.offer
    return {
        "name": run.name,
        "task": run.scenario.task,
        "count": run.stage.count,
        "scale": run.stage.scale,
        "tokens": run.tokens,
        "seq_len": run.scenario.seq_len,
        "global_batch_sizes": [s.global_batch_size for s in run.steps],
        "accelerator": offer.accelerator,
        "provider": offer.provider,
        "instance_type": offer.instance_type,
        "region": offer.region,
        "purchase": offer.purchase,
        "num_gpus": stage.num_gpus,
        "stack": stage.stack,
        "precision": stage.precision,
        "layout": asdict(stage.layout),
        "keeps_layout": stage.keeps_layout,
        "tokens_per_s": stage.tokens_per_s,
        "mfu": stage.mfu,
        "probability_oom": stage.probability_oom,
        "steady_hours": number(stage.steady_hours),
        "before_hours": number(stage.before_hours),
        "hours": number(stage.expected_hours),
        "end_hours": _outcome(stage.end),
        "gpu_hours": number(stage.gpu_hours),
        "usd": number(stage.usd),
        "without": _change(stage.without),
        "halved": _change(stage.halved),
    }


def _change(change: tuple[float, float]) -> dict[str, Any]:
    return {"usd": number(change[0]), "hours": number(change[1])}


def _outcome(number_of: Uncertain | None) -> dict[str, Any] | None:
    if number_of is None:
        return None
    names = {"expected": "mean", "p10": "p10", "p50": "p50", "p90": "p90"}
    return {key: number(getattr(number_of, name)) for key, name in names.items()}
