"""What a choice among machines does to the forecast of the chosen plan."""

import math

import numpy as np
import pytest

from app.forecast.answer import answer
from app.forecast.choosing import lead
from app.forecast.resolve import resolve_strict
from app.plan.words import chosen_sentence
from core.scenario import Scenario
from hardware import facts

ASKED = {"model": "llama3.1-8b", "num_gpus": "8", "num_tokens": "10B", "max_price_age_days": "0"}
THREE = "H100-80GB-SXM,MI300X,A100-80GB-SXM"


def plans_of(**fields):
    scenario = resolve_strict(Scenario.parse({**ASKED, "gpu": THREE, **fields}))
    return answer(scenario, top=500).plans


def log_share(plan):
    peak = facts.accelerator(plan.offer.accelerator).bf16_flops_per_s
    return math.log(plan.tokens_per_s_per_gpu / peak)


SHRINK = 0.1


def test_a_lead_over_other_machines_is_taken_at_what_was_left_of_such_leads(monkeypatch):
    """A tenth is luck, as among the 1,994 runs of 2026-11-24; among today's, hardly any."""
    monkeypatch.setattr(lead, "chosen_shrink", lambda: 0.0)
    uncorrected = {p.id: p for p in plans_of(deadline_days="2")}
    monkeypatch.setattr(lead, "chosen_shrink", lambda: SHRINK)
    plans = plans_of(deadline_days="2")
    best = {}
    for plan in plans:
        name = plan.offer.accelerator
        best[name] = max(best.get(name, -math.inf), log_share(plan))
    mean = float(np.mean(list(best.values())))
    assert len(best) == 3
    leading = [p for p in plans if log_share(p) > mean]
    assert {p.id for p in leading} == {p.id for p in plans if p.chosen_correction}
    for plan in leading:
        found, led = plan.chosen_correction, log_share(plan) - mean
        assert (found.num_machines, found.shrink) == (3, SHRINK)
        assert found.lead == pytest.approx(math.expm1(led))
        start = plan.startup_hours
        slower = (plan.expected_hours - start) / (plan.cost.uncorrected_hours - start)
        assert slower == pytest.approx(math.exp(SHRINK * led), rel=1e-3)
        assert plan.cost.uncorrected_usd < plan.expected_usd
        plain = uncorrected[plan.id]
        assert plain.cost.hours.mean == pytest.approx(plan.cost.uncorrected_hours)
        assert plain.cost.total.mean == pytest.approx(plan.cost.uncorrected_usd)
        chances = plan.chance_on_time, plain.chance_on_time
        assert chances[0] < chances[1] or chances in ((0, 0), (1, 1))
        assert "of 3 kinds of GPU" in chosen_sentence(plan)


@pytest.mark.parametrize("fields", [
    {"gpu": "MI300X"},
    {"anchor_gpu": "MI300X", "anchor_num_gpus": "8", "anchor_tokens_per_s_per_gpu": "9000",
     "anchor_layout": "tp=1,pp=1,sharding=zero1,micro_batch_size=1"},
])  # fmt: skip
def test_nothing_is_taken_of_one_machine_or_of_what_was_measured(fields):
    plans = plans_of(**fields)
    assert plans
    assert not any(p.chosen_correction for p in plans)
