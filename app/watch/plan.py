"""The plan that a run is held against, and what in its log contradicts it.

A plan comes from the options, a link, a scenario file, or the link in a report or in the header of
a launch file.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.command.given import Given
from app.forecast.training import tokens_of
from app.imports.compare import facts_in, other_degrees, scenario_of_run
from app.imports.forecast import TOO_LARGE, Run, check_is_one, forecast_of, run_of, too_large
from app.scenario.model import model_of
from core.errors import ScenarioError, shown
from core.model.transformer import total_params
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import DAY_S
from core.watch.records import Planned
from hardware import facts, names
from runners.imports.steps import MEANING, Facts
from runners.imports.text import read_text
from runners.watch.lines import LogLines

OTHER_SIZE = 0.15  # of the parameters: more is another model; chosen
FAR_BELOW, FAR_ABOVE = 1 / 3, 2.0  # of the P10, of the P90: more is another run; chosen
_LINK = re.compile(r"\?(v=\d+&(?:amp;)?[^\s\"'<>()\[\]`]{1,16000})")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedPlan:
    """The plan of a run."""

    scenario: Scenario
    run: Run
    planned: Planned
    notes: tuple[str, ...]

    @property
    def facts(self) -> Facts:
        """The facts of the run, as planned."""
        return facts_in(self.scenario, self.run.num_gpus)

    @property
    def network_gb_per_s(self) -> float | None:
        """What the plan counts on between machines, of one machine; None: it has one machine."""
        network = None if self.run.plan is None else self.run.plan.network
        return None if network is None else network.gbit_per_s / 8


def plan_of_options(given: Given, layout: str | None, report: str | None) -> WatchedPlan:
    """The plan that the options name. ScenarioError with what is missing."""
    if report is not None:
        if not given.is_new:
            raise ScenarioError("Give --link, --scenario or --report, not two of them.")
        given = replace(given, link=link_in(Path(report)))
    if given.is_new and not {"num_tokens", "num_examples"} & {*given.options}:
        raise ScenarioError("Missing --tokens: the end of a run follows from what it trains on.")
    asked, named, notes = scenario_of_run(given, layout, command="watch")
    check_is_one(asked, named)
    run = forecast_of(asked, named)
    if run is None:
        run = too_large(asked, layout or "", 1000.0)
        notes = [*notes, TOO_LARGE]
    return WatchedPlan(scenario=asked, run=run, planned=_planned(asked, run), notes=tuple(notes))


def plan_of_answer(scenario: Scenario, plan: Plan) -> WatchedPlan:
    """A plan of an answer as the plan of a run."""
    run = run_of(plan)
    return WatchedPlan(scenario=scenario, run=run, planned=_planned(scenario, run), notes=())


def link_in(path: Path) -> str:
    """The link of the plan in a report or in the header of a launch file."""
    for line in read_text(path).lines:
        if (match := _LINK.search(line)) is not None:
            return html.unescape(match[1])
    raise ScenarioError(
        f"{shown(path.name)} names no plan: a report has its link, and a launch file of `runcast "
        "export` has it in its header."
    )


def _planned(scenario: Scenario, run: Run) -> Planned:
    """The forecast as numbers of the whole job."""
    each, plan = run.forecast, run.plan
    goodput = 0.0 if plan is None else plan.cost.goodput
    lost = 1 / goodput - 1 if goodput > 0 else 0.0
    deadline = scenario.deadline_days
    return Planned(
        p10=each.p10 * run.num_gpus,
        p50=each.p50 * run.num_gpus,
        p90=each.p90 * run.num_gpus,
        tokens=tokens_of(scenario),
        step_tokens=float(scenario.seq_len * scenario.global_batch_size),
        lost_share=lost,
        usd_per_hour=None if plan is None else plan.usd_per_hour,
        deadline_s=None if deadline is None else deadline * DAY_S,
        memory_bytes=None if plan is None else plan.memory_capacity_bytes,
    )


def mismatches(
    plan: WatchedPlan, logs: Sequence[LogLines], tokens_per_s: float | None
) -> list[str]:
    """What says that the log is of another run than the plan, each in a sentence."""
    found: dict[str, str] = {}
    for log in logs:
        for name, here in plan.facts.items():
            if (there := log.facts.get(name)) not in (None, here):
                found[name] = (
                    f"The log says {MEANING[name]} is {there:,}, and the plan {here:,}: it is the "
                    "log of another run."
                )
        found |= other_degrees(log.facts, plan.run, "plan")
        kind = names.canonical_from_feed(log.device) if log.device else None
        if kind in facts.accelerators() and kind != plan.run.accelerator:
            found["device"] = (
                f"The log names {shown(log.device)}, and the plan is of {plan.run.accelerator}."
            )
        size = as_float(total_params(model_of(plan.scenario).transformer))
        if log.parameters is not None and abs(log.parameters / size - 1) > OTHER_SIZE:
            found["parameters"] = (
                f"The log says that the model has {log.parameters:,} parameters, and that of the "
                f"plan has {size:,.0f}: it is another model."
            )
    if tokens_per_s is not None and not found:
        low, high = plan.planned.p10 * FAR_BELOW, plan.planned.p90 * FAR_ABOVE
        if not low <= tokens_per_s <= high:
            found["speed"] = (
                f"At {tokens_per_s:,.0f} tokens/s the run is far from its forecast of "
                f"{plan.planned.p10:,.0f} to {plan.planned.p90:,.0f}: the plan may be of another "
                "model, other GPUs or another number of them."
            )
    return list(found.values())
