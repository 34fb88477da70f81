"""Matmuls and a layer's computation: work is conserved, rates are never exceeded."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.model.transformer import (
    attention_score_flops_per_token,
    head_flops_per_token,
    matrix_flops_per_token,
    num_moe_layers,
)
from core.time import gemm, kernels
from core.time.layer import layer_seconds
from core.time.rates import rates
from tests.made_up.jobs import (
    CLUSTER,
    DEEPSEEK_V3,
    DENSE,
    IDEAL,
    LLAMA_8B,
    LLAMA_70B,
    MIXTRAL_8X7B,
    MODELS,
    layout,
    workload,
)

SIZES = st.integers(16, 65536)
RATE = {"flops_per_s": 700e12, "bytes_per_s": 2.7e12}


@given(m=SIZES, n=SIZES, k=SIZES, unhidden=st.floats(0, 1))
def test_a_matmul_is_never_faster_than_its_rate_and_never_slower_than_both_limits(
    m, n, k, unhidden
):
    seconds = gemm.matmul_s(m=m, n=n, k=k, unhidden=unhidden, **RATE)
    compute_s = 2 * m * n * k / 700e12
    traffic_s = 2 * (m * k + k * n + m * n) / 2.7e12
    assert compute_s <= seconds <= compute_s + traffic_s


@given(n=SIZES, k=SIZES)
def test_a_skinny_matmul_reaches_less_of_its_rate(n, k):
    def achieved(m):
        return gemm.matmul_flops(m=m, n=n, k=k) / gemm.matmul_s(m=m, n=n, k=k, unhidden=0.5, **RATE)

    assert achieved(16) < achieved(256) < achieved(65536) < 700e12


def forward_flops(model, lay, tokens_per_sequence=4096.0):
    """FLOPs that the ideal machine's forward seconds imply, summed over the ranks of a stage."""
    work = workload(model, seq_len=tokens_per_sequence)
    one = layer_seconds(work, lay, CLUSTER, IDEAL)
    rate = rates(work, CLUSTER, IDEAL).linear_flops_per_s
    return float(one.matmul_forward + one.experts_forward) * float(rate) * model.num_layers


@pytest.mark.parametrize("model", MODELS)
def test_the_matmuls_are_the_flops_of_the_model(model):
    """Seconds x rate = 2 FLOPs a weight and token: nothing missing, nothing twice."""
    router = 2 * model.hidden_size * model.num_experts * num_moe_layers(model)
    want = (matrix_flops_per_token(model) - router) * 4096
    assert forward_flops(model, layout()) == pytest.approx(float(want))


@pytest.mark.parametrize("model", DENSE)
@pytest.mark.parametrize("tp", [2, 8])
def test_tensor_parallel_ranks_share_the_flops(model, tp):
    got = forward_flops(model, layout(tp=tp, sequence_parallel=1)) * tp
    assert got == pytest.approx(float(matrix_flops_per_token(model)) * 4096)


@pytest.mark.parametrize(("tp", "ep", "etp"), [(1, 1, 1), (1, 8, 1), (4, 8, 1), (4, 1, 4)])
@pytest.mark.parametrize("model", [MIXTRAL_8X7B, DEEPSEEK_V3])
def test_expert_parallel_ranks_share_the_rows_of_the_experts(model, tp, ep, etp):
    """However experts are spread, every token meets k of them: tp ranks see tokens x k rows."""

    def experts(lay):
        return float(layer_seconds(workload(model), lay, CLUSTER, IDEAL).experts_forward)

    spread = experts(layout(tp=tp, ep=ep, etp=etp)) * tp
    assert spread == pytest.approx(experts(layout()))


@pytest.mark.parametrize("model", MODELS)
def test_head_and_backward_repeat_what_they_should(model):
    one = layer_seconds(workload(model), layout(), CLUSTER, IDEAL)
    rate = float(rates(workload(model), CLUSTER, IDEAL).head_flops_per_s)
    head_s = 3 * float(head_flops_per_token(model)) * 4096 / rate
    assert float(one.head) >= head_s
    assert float(one.matmul_backward) == pytest.approx(2 * float(one.matmul_forward))
    assert float(one.experts_backward) == pytest.approx(2 * float(one.experts_forward))


@pytest.mark.parametrize("cp", [1, 2, 8])
def test_context_parallel_ranks_share_the_attention(cp):
    """A balanced ring: each rank does 1/cp of the causal triangle."""
    work = workload(LLAMA_8B, seq_len=131072.0)
    one = layer_seconds(work, layout(cp=cp), CLUSTER, IDEAL)
    rate = float(rates(work, CLUSTER, IDEAL).attention_flops_per_s)
    flops = float(one.attention_forward) * rate * LLAMA_8B.num_layers * cp
    want = float(attention_score_flops_per_token(LLAMA_8B, 131072.0)) * 131072
    assert flops == pytest.approx(want)


def test_frozen_weights_need_no_weight_gradients():
    whole = layer_seconds(workload(LLAMA_70B), layout(), CLUSTER, IDEAL)
    adapters = layer_seconds(
        workload(LLAMA_70B, adapters=True, trained_fraction=0.0), layout(), CLUSTER, IDEAL
    )
    assert float(adapters.matmul_backward) == pytest.approx(float(adapters.matmul_forward))
    assert float(adapters.attention_backward) == float(whole.attention_backward)


def test_a_compiler_moves_fewer_bytes():
    plain = layer_seconds(workload(), layout(), CLUSTER, IDEAL)
    fused = layer_seconds(workload(compiled=True), layout(), CLUSTER, IDEAL)
    assert float(fused.memory_bound_forward) < float(plain.memory_bound_forward)
    assert float(fused.matmul_forward) == float(plain.matmul_forward)


@pytest.mark.parametrize("model", MODELS)
def test_memory_bound_traffic_is_small_beside_the_weights_work(model):
    """Sanity of the byte counts: tens of hidden sizes per token and layer, not thousands."""
    per_token = float(
        kernels.outside_tp_bytes_per_token(model) + kernels.inside_tp_bytes_per_token(model)
    )
    assert 20 < per_token / model.hidden_size < 400


def test_a_machine_twice_as_fast_computes_in_half_the_time():
    fast = replace(CLUSTER, peak_flops_per_s=2 * CLUSTER.peak_flops_per_s)
    slow_s, fast_s = (
        float(layer_seconds(workload(), layout(), c, IDEAL).matmul_forward) for c in (CLUSTER, fast)
    )
    assert fast_s == pytest.approx(slow_s / 2)


@given(m=st.integers(1, 20_000), n=st.integers(1, 20_000), multiprocessors=st.integers(1, 300))
def test_waves_are_what_dealing_tiles_out_gives(m, n, multiprocessors):
    """Tiles are dealt one by one; a wave that is begun lasts as long as a full one."""
    idle = []
    for tile_m, tile_n in gemm.TILES:
        tiles = -(-m // tile_m) * -(-n // tile_n)
        rounds, left = 0, tiles
        while left > 0:
            left -= multiprocessors
            rounds += 1
            if rounds > 5_000:
                break
        idle.append(rounds * multiprocessors / tiles - 1)
        assume(rounds <= 5_000)
    got = float(gemm.wave_share(m=float(m), n=float(n), multiprocessors=float(multiprocessors)))
    assert got == pytest.approx(min(idle), abs=1e-9)


def test_a_device_without_tiles_has_no_waves():
    assert float(gemm.wave_share(m=100.0, n=100.0, multiprocessors=float("nan"))) == 0


def test_every_term_of_a_matmul_adds_its_own_seconds():
    """2 m n k over the rate, its traffic over the bandwidth, the kernel's own time, lost waves."""
    shape = {"m": 1000.0, "n": 2000.0, "k": 3000.0, "flops_per_s": 1e12, "bytes_per_s": 1e9}
    compute_s = 2 * 1000 * 2000 * 3000 / 1e12
    traffic_s = 2 * (1000 * 3000 + 3000 * 2000 + 1000 * 2000) / 1e9
    alone = {"unhidden": 0.0, "kernel_s": 0.0}
    assert gemm.matmul_s(**shape, **alone) == pytest.approx(compute_s)
    assert gemm.matmul_s(**shape, **alone | {"unhidden": 0.5}) == pytest.approx(
        compute_s + 0.5 * traffic_s
    )
    assert gemm.matmul_s(**shape, **alone | {"kernel_s": 7.0}) == pytest.approx(compute_s + 7)
    assert gemm.matmul_s(**shape, **alone, idle=0.25) == pytest.approx(1.25 * compute_s)
