"""What a calibration measures: the matmuls of a link's plan, or of a usual transformer block."""

from __future__ import annotations

import re
from typing import Any

from app.calibration.job import is_reduced
from app.calibration.options import Asked
from app.forecast.machines import CUSTOM
from app.scenario.version import version
from core.errors import ScenarioError, shown, unknown_sentence
from core.model.dimensions import is_mla
from core.scenario.types import MONTH
from hardware import names
from hardware.efficiency import GENERIC, stacks
from runners.calibration.probe_plan import DEFAULT, Workload, probe_plan


def measured_of(asked: Asked, run_id: str) -> tuple[dict[str, Any], list[str]]:
    """The calib-plan/1 document for the given options, and sentences on its shapes and what they
    leave out."""
    workload, accelerator, sentences = DEFAULT, None, ["The shapes are those of Llama 3 8B."]
    software: dict[str, str] = {}
    if asked.plan is not None:
        workload, accelerator, software, sentences = _of_link(asked.plan)
    plan = probe_plan(
        run_id=run_id,
        launcher=asked.launcher,
        planner_version=version() or "not installed",
        workload=workload,
        reduced=is_reduced(asked),
        device=asked.device,
        sku_key=_sku_key(asked, accelerator),
        told={**_place(asked), **_software(asked, software)},
    )
    if is_reduced(asked):
        sentences.append("They are reduced to what a CPU core does in a minute.")
    return plan, sentences


def _sku_key(asked: Asked, accelerator: str | None) -> str | None:
    """The accelerator that will be measured; None for a CPU or one that is in no table."""
    if asked.gpu:
        gpu = asked.gpu.partition(":")[0] if asked.launcher == "sky" else asked.gpu
        accelerator = names.canonical(gpu)
    return None if asked.device == "cpu" or accelerator == CUSTOM else accelerator


def _place(asked: Asked) -> dict[str, str]:
    """Where the nodes are according to the options; stored in the result."""
    cloud, _, place = (asked.infra or "").partition("/")
    purchase = "spot" if asked.spot else "on_demand" if asked.launcher == "sky" else ""
    region = place.partition("/")[0]
    found = {"cloud": cloud, "region": region, "purchase": purchase, "image": asked.image or ""}
    return {name: value for name, value in found.items() if value}


def _software(asked: Asked, of_link: dict[str, str]) -> dict[str, str]:
    """The stack of the nodes and the month of its release: as given, else those of the link."""
    if asked.stack is not None and asked.stack not in stacks():
        raise ScenarioError(unknown_sentence("stack", asked.stack, stacks()))
    if asked.software_date is not None and not re.fullmatch(MONTH, asked.software_date):
        raise ScenarioError(
            f"--software-date {shown(asked.software_date)} should be a month like 2025-06."
        )
    other = asked.stack not in (None, of_link.get("stack"))
    found = {} if other else dict(of_link)
    given = {"stack": asked.stack or "", "software_date": asked.software_date or ""}
    found |= {name: value for name, value in given.items() if value}
    return {} if found.get("stack") == GENERIC else found


def _of_link(link: str) -> tuple[Workload, str, dict[str, str], list[str]]:
    """The work of one GPU in the link's plan, its accelerator, its stack with the month, and notes
    on simplifications."""
    from app.command.values import link_values, parsed
    from app.forecast.answer import answer
    from app.forecast.resolve import resolve_strict
    from app.plan.words import answer_sentence
    from app.scenario.model import model_of

    values, notes = link_values(link)
    scenario = resolve_strict(parsed(values, written_as={}))
    found = answer(scenario)
    if not found.plans:
        raise ScenarioError(answer_sentence(scenario, found))
    chosen = next((p for p in found.plans if p.id == scenario.plan), None)
    if scenario.plan and chosen is None:
        notes.append("The plan that the link selects is not among the best: the best is measured.")
    plan = chosen or found.plans[0]
    model, layout = model_of(scenario), plan.layout
    t = model.transformer
    notes.append(
        f"The shapes are those of {model.label} with tp={layout.tp}, cp={layout.cp}, "
        f"micro_batch_size={layout.micro_batch_size} at {scenario.seq_len:,} tokens, the plan on "
        f"{plan.num_gpus} {plan.offer.accelerator}."
    )
    if bool(is_mla(t)) or not t.num_attention_heads:
        notes.append("Its attention is of another kind: its matmuls are measured as plain ones.")
    ffn = int(t.ffn_hidden_size)
    if t.num_experts:
        ffn = int(t.moe_ffn_hidden_size * t.experts_per_token) or ffn
        notes.append("Its experts are measured as one MLP as wide as those that a token uses.")
    heads = max(1, int(t.num_attention_heads))
    workload = Workload(
        hidden_size=int(t.hidden_size),
        ffn_hidden_size=ffn or int(t.hidden_size),
        num_attention_heads=heads,
        num_kv_heads=max(1, int(t.num_kv_heads)),
        head_dim=max(1, int(t.head_dim)),
        vocab_size=int(t.vocab_size),
        tp=layout.tp if heads % layout.tp == 0 else 1,
        micro_batch_size=layout.micro_batch_size,
        seq_len=max(1, scenario.seq_len // layout.cp),
    )
    software = {"stack": scenario.stack, "software_date": scenario.software_date}
    known = {name: value for name, value in software.items() if value}
    return workload, plan.offer.accelerator, known, notes
