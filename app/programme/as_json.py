"""A programme as JSON: the keys that docs/programme.md documents. Add, never rename."""

from __future__ import annotations

from typing import Any

from app.document.as_json import Json, attributes, number
from app.programme.contract import Contract, StagePlan
from app.programme.programme import Programme
from app.programme.words import sentences
from app.scenario.link_query import document_head
from core.cost.uncertain import Uncertain
from core.scenario import Scenario

SCHEMA_VERSION = 1


def programme_json(scenario: Scenario, found: Programme) -> dict[str, Json]:
    """The document of `runcast programme --json`; null: not known, or never ends."""
    return {
        **document_head(scenario, SCHEMA_VERSION),
        "sentences": list(sentences(scenario, found)),
        **attributes(found, "num_contracts", "failed", stages_may_move="may_move"),
        "nothing_fits": found.nothing_fits or None,
        "contracts": [contract_json(c) for c in found.contracts],
    }


def contract_json(contract: Contract) -> dict[str, Any]:
    """One contract with its stages."""
    return {
        **attributes(contract, "id", "startup_hours", "gpu_hours", "against", "most_main_tokens"),
        "hours": _outcome(contract.cost.hours),
        "usd": _outcome(contract.cost.total if contract.cost.has_price else None),
        "chance_on_time": number(contract.cost.chance_on_time),
        "paid_usd": _outcome(contract.paid),
        "stages": [_stage(s) for s in contract.stages],
    }


def _stage(stage: StagePlan) -> dict[str, Any]:
    run = stage.run
    names = "num_gpus stack precision layout keeps_layout tokens_per_s mfu probability_oom"
    names += " steady_hours before_hours gpu_hours usd"
    offer = ("accelerator", "provider", "instance_type", "region", "purchase")
    return {
        **attributes(run, "tokens", "name", count="stage.count", scale="stage.scale"),
        **attributes(run.scenario, "task", "seq_len"),
        "global_batch_sizes": [s.global_batch_size for s in run.steps],
        **attributes(stage.offer, *offer),
        **attributes(stage, *names.split(), hours="expected_hours"),
        "end_hours": _outcome(stage.end),
        "without": _change(stage.without),
        "halved": _change(stage.halved),
    }


def _change(change: tuple[float, float]) -> dict[str, Any]:
    return {"usd": number(change[0]), "hours": number(change[1])}


def _outcome(hours_or_usd: Uncertain | None) -> dict[str, Any] | None:
    if hours_or_usd is None:
        return None
    return attributes(hours_or_usd, "p10", "p50", "p90", expected="mean")
