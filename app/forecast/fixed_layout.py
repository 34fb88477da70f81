"""One named layout: which scenario fields it fixes, and whether the answer keeps all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from app.forecast.training import searches_offload
from app.scenario.layout import KEYS
from core.errors import ScenarioError
from core.layout.layouts import Choices
from core.scenario import Scenario
from core.search.plan import Answer, Layout

FOLLOWS = ("dp_replicate", "dp_shard", "num_microbatches")  # from the GPUs and the batch
# Layout keys that a scenario can fix.
FIXED = tuple(key for key in KEYS if key not in ("dp", *FOLLOWS))
SEARCHED = ("tp", "pp", "virtual_stages", "cp", "ep", "etp", "micro_batch_size")
CUTS = ("tp", "pp", "cp")  # what divides the GPUs besides data parallelism


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result for one named layout."""

    word: str  # fits, does_not_fit, illegal or no_offer: stable, as the JSON keys are
    sentence: str  # empty if it fits: the plan says the rest


def fixed_fields(layout: Mapping[str, Any]) -> dict[str, str]:
    """The scenario fields that the layout fixes, as text."""
    found = {key: str(layout[key]) for key in FIXED if key in layout}
    if layout.get("sharding") == "hsdp" and "dp_shard" in layout:  # implied for others
        found["dp_shard"] = str(layout["dp_shard"])
    return found


def fixed_choices(layout: Mapping[str, Any], choices: Choices) -> dict[str, Any]:
    """The choices of a search that the layout fixes, with the degrees that it leaves open."""
    lists = {"sharding": "shardings", "recompute": "recomputes"}
    return {
        **{key: layout.get(key) for key in SEARCHED},
        **{name: (layout[key],) for key, name in lists.items() if key in layout},
        "schedule": layout.get("schedule", choices.schedule),
        "context_method": layout.get("context_parallel", choices.context_method),
        "reshard": bool(int(layout.get("reshard_after_forward", choices.reshard))),
        "apart": (),  # a named layout is judged by itself, whatever a launch file takes
    }


def as_named(scenario: Scenario) -> Scenario:
    """The scenario of a named layout. A layout that does not mention the host keeps everything on
    the device and is judged that way."""
    if not searches_offload(scenario):
        return scenario
    return scenario.model_copy(update={"offload_optimizer": "none", "offload_params": "none"})


def check_degrees(layout: Mapping[str, Any], scenario: Scenario) -> None:
    """Raise an error if degrees contradict one another, the number of GPUs or the batch."""
    (num_gpus,) = scenario.num_gpus
    degrees = {k: v for k, v in layout.items() if isinstance(v, int)}
    halves = [degrees[k] for k in ("dp_replicate", "dp_shard") if k in degrees]
    if "dp" in degrees and (
        prod(halves) != degrees["dp"] if len(halves) == 2 else degrees["dp"] % prod(halves)
    ):
        raise ScenarioError(
            f"dp={degrees['dp']} in the layout is dp_replicate x dp_shard, which the layout gives "
            f"as {' x '.join(map(str, halves))}."
        )
    ranks = degrees.get("dp", prod(halves))
    cuts = {k: degrees[k] for k in CUTS if k in degrees}
    product = prod(cuts.values()) * ranks
    written = " x ".join(f"{k}={v}" for k, v in {**cuts, "data parallel": ranks}.items() if v > 1)
    whole = len(cuts) == len(CUTS) and ("dp" in degrees or len(halves) == 2)
    if num_gpus % product or (whole and product != num_gpus):
        rest, left = divmod(num_gpus, prod(cuts.values()))
        fits = f"; data parallel would be {rest}" if not left else ""
        raise ScenarioError(
            f"The layout cuts a job over {product:,} GPUs ({written}), and --num-gpus is "
            f"{num_gpus:,}{fits}."
        )
    if whole and "micro_batch_size" in degrees and "num_microbatches" in degrees:
        batch = ranks * degrees["micro_batch_size"] * degrees["num_microbatches"]
        if batch != scenario.global_batch_size:
            raise ScenarioError(
                f"The layout makes a global batch of {batch:,} sequences (data parallel x "
                f"micro-batch x number of micro-batches), and --global-batch-size is "
                f"{scenario.global_batch_size:,}."
            )


def judged(answer: Answer, layout: Mapping[str, Any]) -> tuple[Answer, Verdict]:
    """The answer without plans whose degrees differ from the layout's, and the verdict."""
    kept = tuple(p for p in answer.plans if not _differences(p.layout, layout))
    if kept:
        whole = len(kept) == len(answer.plans)
        num_plans = answer.num_plans if whole else len(kept)
        return replace(answer, plans=kept, num_plans=num_plans), Verdict(word="fits", sentence="")
    if answer.plans:
        first = answer.plans[0].layout
        word = "illegal"
        why = (
            "No plan: with this number of GPUs, batch and machine, "
            f"{first.sharding} has "
            + ", ".join(f"{k}={getattr(first, k)}" for k in _differences(first, layout))
            + "."
        )
    else:
        why = answer.nothing_fits or "No offer matches what was asked."
        reasons = {e.reason for e in answer.excluded}
        if reasons & {"memory", "candidate_memory"}:
            word = "does_not_fit"
        elif "layout" in reasons or any(r.startswith("candidate_") for r in reasons):
            word = "illegal"
        else:
            word = "no_offer"
    none = replace(answer, plans=(), num_plans=0, nothing_fits=why)
    return none, Verdict(word=word, sentence=why)


def _differences(found: Layout, asked: Mapping[str, Any]) -> list[str]:
    """Keys that follow from the job and differ from what the layout asks for."""
    wrong = [k for k in FOLLOWS if k in asked and getattr(found, k) != asked[k]]
    if "dp" in asked and found.dp_replicate * found.dp_shard != asked["dp"]:
        wrong += [k for k in ("dp_replicate", "dp_shard") if k not in wrong]
    return wrong
