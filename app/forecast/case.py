"""Recompute the case of one plan: its machine, its work, and its layout as one row of columns."""

from __future__ import annotations

from dataclasses import dataclass

from app.forecast import calibrations, machines
from app.forecast.price_book import with_terms
from app.forecast.training import efficiency_of, tokens_of, workload_of
from app.scenario.model import NamedModel, model_of
from core.explain.explain import columns_of
from core.layout.layouts import Layouts
from core.layout.workload import Workload
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.memory.offload import work_on
from core.scenario import Scenario
from core.search.job import Machine
from core.search.plan import Plan
from core.time.step import Step, step

SAME = 1e-9  # relative tolerance between two computations of one number


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The inputs from which one plan's numbers are computed."""

    scenario: Scenario
    plan: Plan
    model: NamedModel
    machine: Machine
    work: Workload
    lay: Layouts
    cluster: Cluster
    eff: Efficiency
    step: Step
    tokens: float  # of the run

    @property
    def step_s(self) -> float:
        """Seconds of a step, as in the plan."""
        return float(sum(self.plan.step_s.values()))

    @property
    def moved(self) -> float:
        """Factor by which measurements, the user's and of runs like the plan, change the computed
        seconds; 1 without any."""
        ratio = self.step_s / float(self.step.step_s[0])
        return 1.0 if abs(ratio - 1) < SAME else ratio


def case_of(scenario: Scenario, plan: Plan) -> Case:
    """The case of one plan; it reproduces the step time that the search found."""
    scenario = plan.job.scenario
    model = model_of(scenario)
    accelerator = machines.accelerator_of(plan.offer.accelerator, scenario)
    one = machines.machine(plan.offer, accelerator)
    (one,) = calibrations.as_measured((one,), scenario)
    (one,) = with_terms(scenario, (machines.as_known(one, scenario),))
    cluster = machines.cluster_at(one, plan.num_gpus)
    lay = columns_of([plan.layout], [plan.num_gpus])
    work = workload_of(scenario, model)
    eff = efficiency_of(scenario, work)
    work = work_on(work, lay)
    return Case(
        scenario=scenario, plan=plan, model=model, machine=one, work=work, lay=lay,
        cluster=cluster, eff=eff, step=step(work, lay, cluster, eff), tokens=tokens_of(scenario),
    )  # fmt: skip
