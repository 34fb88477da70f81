"""Parameters of a pipeline stage: experts where dense layers lead the model, and where not."""

from dataclasses import replace

import numpy as np
import pytest

from core.memory.memory import peak_bytes
from core.memory.stage_params import stage_params
from core.memory.states import state_bytes
from core.model.transformer import routed_expert_params
from tests.made_up.jobs import CLUSTER, DEEPSEEK_V3, IDEAL, MIXTRAL_8X7B, layout, workload

FOUR_LAYERS = replace(DEEPSEEK_V3, num_layers=4, num_dense_layers=1)


def experts(model, *, pp, first):
    """Routed experts of a stage in layers of them."""
    held = stage_params(workload(model), layout(pp=pp), first=first).experts
    moe_layers = model.num_layers - model.num_dense_layers
    return float(np.asarray(held)) / (float(routed_expert_params(model)) / moe_layers)


@pytest.mark.parametrize(
    ("model", "pp", "first", "layers"),
    [
        (FOUR_LAYERS, 1, True, 3),
        (FOUR_LAYERS, 2, True, 1),
        (FOUR_LAYERS, 2, False, 2),
        (DEEPSEEK_V3, 2, True, 28),
        (DEEPSEEK_V3, 2, False, 31),
        (DEEPSEEK_V3, 16, True, 4),  # that of the second stage
        (DEEPSEEK_V3, 16, False, 4),
        (MIXTRAL_8X7B, 4, False, 8),
    ],
)
def test_experts_of_a_stage_with_leading_dense_layers(model, pp, first, layers):
    assert experts(model, pp=pp, first=first) == pytest.approx(layers)


def test_dense_layers_that_alternate_are_on_every_stage():
    alternating = replace(DEEPSEEK_V3, num_layers=48, num_dense_layers=24)
    assert experts(alternating, pp=2, first=True) == pytest.approx(12)
    assert experts(alternating, pp=2, first=False) == pytest.approx(12)


def test_a_stage_never_holds_more_than_the_model():
    all_but_one = replace(DEEPSEEK_V3, num_layers=3, num_dense_layers=1)
    assert experts(all_but_one, pp=3, first=False) == pytest.approx(1)
    assert experts(all_but_one, pp=2, first=False) == pytest.approx(2)


def test_the_fuller_stage_decides_the_peak():
    """MooreThreads/SimuMax's four layers of DeepSeek-V3 on two stages: 114 GiB measured where both
    stages with half of the experts would hold 92."""
    job, two = workload(FOUR_LAYERS), layout(pp=2)
    last = stage_params(job, two, first=False)
    bytes_of_states = peak_bytes(job, two, CLUSTER, IDEAL)
    held = float(np.sum(state_bytes(job, two, last, IDEAL, "parameters")))
    assert float(np.sum(bytes_of_states["parameters"])) == pytest.approx(held)


def test_a_compiler_that_gathers_matrix_by_matrix_holds_less_of_a_layer():
    """GSPMD gathers a weight for the product that needs it: of Mixtral, one of the three matrices
    of all eight experts, not the layer."""
    whole = stage_params(workload(MIXTRAL_8X7B), layout(), first=True)
    work = replace(workload(MIXTRAL_8X7B), gathers_by_matrix=True)
    held = stage_params(work, layout(), first=True)
    assert float(np.asarray(held.one_layer)) == 8 * 4096 * 14336
    assert float(np.asarray(whole.one_layer)) > 3 * float(np.asarray(held.one_layer))
