"""Compute-optimal models: the lowest loss for a budget on the machines of a plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.forecast.training import tokens_of
from app.scenario.model import model_of
from core.model.transformer import active_params, is_moe
from core.money import compute_optimal as laws
from core.money.compute_optimal import Law
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import HOUR_S

STEPS = 17  # budgets of the curve: four per factor of ten, two factors of ten to each side
TRILLION = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """One point of the curve: the best model for a number of dollars, by one law."""

    law: Law
    usd: float
    flops: float
    parameters: float
    tokens: float
    loss: float
    tokens_per_s: float  # of that model on the plan's machines
    gpu_hours_per_trillion: float
    usd_per_trillion: float

    @property
    def tokens_per_parameter(self) -> float:
        """Training tokens per parameter; 20 is the rule of thumb."""
        return self.tokens / self.parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimal:
    """The curve of each law, and the scenario's own run for comparison."""

    flops_per_usd: float  # 6 N D over the expected dollars of the plan, with failures
    usd: float  # expected cost of the plan
    parameters: float  # active parameters of the scenario's model
    tokens: float
    losses: tuple[tuple[Law, float], ...]  # of the scenario's own run
    curve: tuple[Best, ...]  # law by law, ascending dollars
    same_usd: tuple[Best, ...]  # by law: the best model for the plan's dollars
    chinchilla_tokens: float  # 20 per parameter of the scenario's model
    chinchilla_usd: float
    has_experts: bool


def optimal_of(
    scenario: Scenario, plan: Plan, *, usd: float | None, hours: float
) -> tuple[Optimal | None, str]:
    """The curve at the plan's throughput per dollar, with failures, or the reason why there is
    none."""
    if scenario.task != "pretrain":
        return None, "The laws are of pre-training: they say nothing about fine-tuning."
    if usd is None:
        return None, "Without a price there is no budget to spend well."
    model = model_of(scenario).transformer
    parameters, tokens = as_float(active_params(model)), tokens_of(scenario)
    per_usd = float(laws.flops_per_usd(parameters=parameters, tokens=tokens, usd=usd))
    budgets = (usd * 10.0 ** np.linspace(-2, 2, STEPS)).tolist()
    gpu_hours_per_usd = rented(plan) * hours / usd

    def best(law: Law, dollars: float) -> Best:
        flops = dollars * per_usd
        best_n = as_float(laws.best_parameters(law, flops=flops))
        best_d = as_float(laws.best_tokens(law, flops=flops))
        of_trillion = as_float(laws.training_flops(parameters=best_n, tokens=TRILLION)) / per_usd
        gpu_hours = of_trillion * gpu_hours_per_usd
        return Best(
            law=law,
            usd=dollars,
            flops=flops,
            parameters=best_n,
            tokens=best_d,
            loss=as_float(laws.loss(law, parameters=best_n, tokens=best_d)),
            tokens_per_s=TRILLION * rented(plan) / (gpu_hours * HOUR_S),
            gpu_hours_per_trillion=gpu_hours,
            usd_per_trillion=of_trillion,
        )

    return Optimal(
        flops_per_usd=per_usd,
        usd=usd,
        parameters=parameters,
        tokens=tokens,
        losses=tuple(
            (law, float(laws.loss(law, parameters=parameters, tokens=tokens))) for law in laws.LAWS
        ),
        curve=tuple(best(law, dollars) for law in laws.LAWS for dollars in budgets),
        same_usd=tuple(best(law, usd) for law in laws.LAWS),
        chinchilla_tokens=laws.CHINCHILLA_TOKENS_PER_PARAMETER * parameters,
        chinchilla_usd=float(
            laws.usd_at_tokens_per_parameter(
                parameters=parameters,
                tokens_per_parameter=laws.CHINCHILLA_TOKENS_PER_PARAMETER,
                flops_per_usd=per_usd,
            )
        ),
        has_experts=bool(np.any(np.asarray(is_moe(model)))),
    ), ""


def rented(plan: Plan) -> int:
    """The number of GPUs that are paid for."""
    return plan.num_nodes * plan.offer.gpu_count
