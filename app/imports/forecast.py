"""The forecast to compare a log with: that of the plan a scenario names.

A run that left a log did fit its memory. If the forecast finds that it does not fit, its speed is
forecast anyway, as for an anchor, and the report states that the memory forecast was wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.forecast import machines
from app.forecast.answer import answer
from app.forecast.fixed_layout import judged
from app.forecast.search import anchor_of
from app.forecast.stack_limits import software
from app.scenario.layout import layout_text
from core.cost.distribution import uncertain_speed
from core.cost.uncertain import Uncertain
from core.errors import ScenarioError
from core.evidence import uncertainty
from core.explain.explain import record_of
from core.scenario import Scenario
from core.search.plan import Layout, Plan
from hardware.efficiency import efficiency

TOP = 1000  # plans searched for the named one
MOST_ANCHOR_LAYOUT = 400  # characters, the limit of the scenario's field
TOO_LARGE = (
    "The forecast says that this does not fit the memory. It ran, so that the forecast of its "
    "memory is wrong; its speed is forecast all the same."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One layout of the run, with its forecast in tokens/s per GPU."""

    accelerator: str
    num_gpus: int
    gpus_per_node: int
    layout: Layout
    forecast: Uncertain
    plan: Plan | None = None  # None: it is forecast not to fit the memory


def check_is_one(scenario: Scenario, named: Mapping[str, object]) -> None:
    """Raise ScenarioError if the scenario does not determine a single run."""
    if named or scenario.plan:
        return
    for name, what in (("gpu", "GPU"), ("num_gpus", "number of GPUs")):
        if len(getattr(scenario, name)) != 1:
            raise ScenarioError(
                f"Which run is the log of? The scenario leaves the {what} open: name it with "
                f"--{name.replace('_', '-')}, or give the link of one plan (plan=...)."
            )


def forecast_of(scenario: Scenario, named: Mapping[str, object]) -> Run | None:
    """The plan that the scenario names: by its layout, by its `plan`, or else the best one. None
    if the named layout is legal but does not fit the memory; ScenarioError if it is illegal."""
    found = answer(scenario, top=TOP)
    if named:
        found, verdict = judged(found, named)
        if verdict.word == "does_not_fit":
            return None
        if not found.plans:
            raise ScenarioError(f"There is no forecast of that layout: {verdict.sentence}")
    plans = [p for p in found.plans if not scenario.plan or p.id == scenario.plan]
    if not plans:
        why = found.nothing_fits or "the scenario has no such plan."
        raise ScenarioError(f"There is no forecast to compare with: {why}")
    return run_of(plans[0])


def run_of(plan: Plan) -> Run:
    """The run of a plan."""
    return Run(
        accelerator=plan.offer.accelerator,
        num_gpus=plan.num_gpus,
        gpus_per_node=plan.offer.gpu_count,
        layout=plan.layout,
        forecast=plan.tokens_per_s.times(1 / plan.num_gpus),
        plan=plan,
    )


def too_large(scenario: Scenario, layout: str, measured: float) -> Run:
    """The forecast of a layout judged too large for memory, on the usual machine of its GPU."""
    (gpu,), (num_gpus,) = scenario.gpu, scenario.num_gpus
    asked = anchored(scenario, measured, gpu=gpu, num_gpus=num_gpus, layout=layout)
    found = anchor_of(asked)
    if found is None:
        raise ScenarioError("There is no forecast of that layout.")
    machine = machines.unpriced_machine(gpu, asked)
    across = num_gpus > machine.offer.gpu_count and not machine.network_known
    eff = efficiency(software(asked))
    network, skew = eff.half_network_sigma * found.at_half_network, eff.throughput_skew
    sigma = uncertainty.quadrature(found.throughput_sigma, network if across else 0.0)
    return Run(
        accelerator=gpu,
        num_gpus=num_gpus,
        gpus_per_node=machine.offer.gpu_count,
        layout=record_of(found.layouts, 0),
        forecast=uncertain_speed(found.predicted, sigma=sigma, skew=skew).row(0),
    )


def anchored(
    scenario: Scenario, measured: float, *, gpu: str, num_gpus: int, layout: Layout | str
) -> Scenario:
    """The scenario with a measurement of tokens/s per GPU as its anchor."""
    text = layout if isinstance(layout, str) else layout_text(layout)
    values = {
        "anchor_tokens_per_s_per_gpu": float(f"{measured:.6g}"),
        "anchor_gpu": gpu,
        "anchor_num_gpus": num_gpus,
        "anchor_layout": text if len(text) <= MOST_ANCHOR_LAYOUT else "",
    }
    return Scenario.model_validate({**scenario.model_dump(), **values})
