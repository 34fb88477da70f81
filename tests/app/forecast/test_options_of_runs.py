"""Options that say what a published run says: each reaches the workload or the machine."""

import numpy as np
import pytest

from app.forecast.machines import as_known, cluster_at, unpriced_machine
from app.forecast.resolve import resolve_strict
from app.forecast.training import efficiency_of, profile_of, workload_of
from app.forecast.whole_layout import layout_forecast
from app.scenario.model import model_of
from core.errors import ScenarioError
from core.scenario import Scenario

MACHINE = {"gpus_per_node": 4, "scale_up_domain": 4, "network_gbit_per_gpu": 100,
           "network_kind": "ethernet"}  # fmt: skip
LAYOUT = {"tp": 2, "pp": 1, "cp": 1, "micro_batch_size": 1, "sharding": "zero1",
          "recompute": "none", "global_batch_size": 64, "seq_len": 4096}  # fmt: skip
RUN = {"gpu": "H100-80GB-SXM", "num_gpus": 16, "stack": "megatron-lm", **MACHINE, **LAYOUT}


def work(**given):
    scenario = Scenario.parse(given)
    return workload_of(scenario, model_of(scenario))


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"loss_kernel": "standard"}, "whole_logits", True),
        ({"loss_kernel": "standard_16"}, "logit_bytes", 8.0),
        ({"loss_kernel": "compiled"}, "compiled_loss", True),
        ({"loss_kernel": "fused_linear"}, "loss_chunk_by_width", True),
        ({"loss_kernel": "parallel", "stack": "trl", "task": "sft"}, "chunked_loss", False),
        ({"norm_kernels": "eager"}, "eager_norms", True),
        ({"norm_kernels": "fused", "stack": "trl"}, "eager_norms", False),
        ({"recompute_share": 0.25}, "recomputed_layers", 0.25),
        ({"remat_policy": "save_qkv_proj", "stack": "maxtext"}, "repeats_core", True),
        ({"optimizer": "adamw_bf16"}, "sets_state_type", True),
        ({"weight_dtype": "fp32", "task": "lora"}, "weight_bytes", 4.0),
        ({"offload_activations": True, "activation_offload_share": 0.5},
         "offloads_activations", 0.5),
        ({"moe_dispatcher": "masks"}, "routes_by_masks", True),
        ({"moe_dispatcher": "grouped", "stack": "maxtext"}, "routes_by_masks", False),
        ({"sequence_parallel": False}, "sequence_parallel", False),
        ({"software_date": "2022-05"}, "sequence_parallel", False),
        ({"precision": "int8"}, "quantised_weight_bytes", 5.0),
        ({"attention": "unfused", "stack": "maxtext"}, "unfused_attention", False),
    ],
)  # fmt: skip
def test_option_reaches_the_workload(given, field, value):
    assert getattr(work(**given), field) == value


def test_filler_data_load_experts_unevenly():
    filler, usual = (work(model="mixtral-8x7b", filler_data=f) for f in (True, False))
    assert filler.router_max_vio > 3 * usual.router_max_vio


def test_weight_dtype_is_that_of_the_profile():
    scenario = Scenario.parse({"weight_dtype": "bf16", "stack": "torchtitan"})
    assert profile_of(scenario).own_weight_bytes == 2


def test_machine_of_a_scenario_is_as_given():
    scenario = Scenario.parse(RUN)
    machine = as_known(unpriced_machine("H100-80GB-SXM", scenario), scenario)
    cluster = cluster_at(machine, 16)
    assert (cluster.gpus_per_node, cluster.scale_up_domain) == (4, 4)
    assert float(np.asarray(cluster.scale_out_bytes_per_s)) == pytest.approx(12.5e9)
    assert machine.network_known


def test_software_built_on_a_stack_is_a_stack():
    """Its habits are its own, its fractions those of the stack, as uncertain as an unknown one."""
    scenario = resolve_strict(Scenario.parse({"stack": "prime-rl"}))
    own = efficiency_of(scenario, work(stack="prime-rl"))
    titan = efficiency_of(Scenario.parse({"stack": "torchtitan"}), work(stack="torchtitan"))
    generic = efficiency_of(Scenario.parse({"stack": "generic"}), work(stack="generic"))
    assert own.matmul == titan.matmul
    assert own.throughput_sigma == generic.throughput_sigma
    with pytest.raises(ScenarioError, match="prime-rl2"):
        resolve_strict(Scenario.parse({"stack": "prime-rl2"}))


def test_layout_forecast_needs_a_whole_layout_and_machine():
    assert layout_forecast(Scenario.parse(RUN)) is not None
    for name in (*MACHINE, "tp", "micro_batch_size", "sharding", "recompute"):
        assert layout_forecast(Scenario.parse({n: v for n, v in RUN.items() if n != name})) is None


def test_layout_forecast_speaks_of_layouts_that_do_not_fit():
    big = layout_forecast(Scenario.parse({**RUN, "model": "llama3.1-405b", "tp": 1}))
    assert big is not None
    assert big.memory_gib > 80
    assert big.tokens_per_s_per_gpu > 0
