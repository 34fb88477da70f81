"""Rates of one layer: what software, power, precision and the kernel's generation change."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.layout.precision import PRECISIONS
from core.model.adapter_passes import KINDS, AdapterPasses, moved_bytes_per_token
from core.model.transformer import layer_params, num_moe_layers
from core.time import kernels
from core.time.layer import layer_seconds
from core.time.rates import rates
from core.time.software import MEASURED_YEARS, decimal_year, software_factor
from hardware.facts import accelerator
from tests.made_up.jobs import (
    CLUSTER,
    DEEPSEEK_V3,
    IDEAL,
    LLAMA_8B,
    LLAMA_70B,
    MIXTRAL_8X7B,
    SHIPPED,
    layout,
    workload,
)

GENERIC = SHIPPED["generic"]
BLACKWELL = replace(CLUSTER, fp4_ratio=4.0)  # has 8 and 4 bits
PARTS = tuple(layer_seconds(workload(), layout(), CLUSTER, IDEAL).__slots__)


def layer(model=LLAMA_8B, lay=None, cluster=CLUSTER, eff=IDEAL, **work):
    one = layer_seconds(workload(model, **work), lay or layout(), cluster, eff)
    return {name: float(getattr(one, name)) for name in PARTS}


class TestLowPrecision:
    """arXiv:2209.05433: linear layers only; attention, head, norms stay in 16 bits."""

    @pytest.mark.parametrize("model", [LLAMA_8B, LLAMA_70B, MIXTRAL_8X7B, DEEPSEEK_V3])
    @pytest.mark.parametrize("name", ["fp8", "fp8_rowwise", "fp8_blockwise", "mxfp8", "nvfp4"])
    def test_only_linear_layers_change_and_pay_for_casts(self, name, model):
        recipe = PRECISIONS[name]
        sixteen = layer(model, cluster=BLACKWELL)
        low = layer(
            model, cluster=BLACKWELL, matmul_bits=float(recipe.matmul_bits),
            quantised_bytes=recipe.quantised_bytes,
        )  # fmt: skip
        ratio = {8: BLACKWELL.fp8_ratio, 4: BLACKWELL.fp4_ratio}[recipe.matmul_bits]
        for part in ("matmul_forward", "matmul_backward", "experts_forward", "experts_backward"):
            assert low[part] == pytest.approx(sixteen[part] / ratio), part
        for part in ("attention_forward", "attention_backward", "head"):
            assert low[part] == sixteen[part], part
        elements = float(kernels.quantised_elements_per_token(model)) * 4096
        cast_s = elements * recipe.quantised_bytes / BLACKWELL.memory_bytes_per_s
        for part in ("memory_bound_forward", "memory_bound_backward"):
            assert low[part] - sixteen[part] == pytest.approx(cast_s), part

    def test_casts_without_a_faster_matmul_only_cost(self):
        """A TPU v5p has no higher peak in 8 bits."""
        chip = replace(CLUSTER, fp8_ratio=1.0)
        sixteen = layer(cluster=chip, eff=GENERIC)
        eight = layer(cluster=chip, eff=GENERIC, matmul_bits=8.0, quantised_bytes=4.0)
        assert eight["memory_bound_forward"] > sixteen["memory_bound_forward"]
        assert eight["attention_forward"] == sixteen["attention_forward"]

    def test_inputs_of_fewer_bits_move_fewer_bytes(self):
        """What a matmul does not hide of its traffic shrinks with its inputs, not its output."""
        eff = replace(IDEAL, matmul_unhidden=1.0, fp8_of_peak_ratio=0.5)  # the rate stays
        sixteen, eight = (layer(eff=eff, matmul_bits=b)["matmul_forward"] for b in (16.0, 8.0))
        compute = layer()["matmul_forward"]
        assert compute < eight < sixteen
        assert (eight - compute) > 0.5 * (sixteen - compute)


@given(year=st.floats(1990, 2060), per_year=st.floats(0, 0.06))
def test_software_gets_no_faster_than_what_was_measured(year, per_year):
    factor = float(software_factor(year, per_year))
    first, last = (float(software_factor(y, per_year)) for y in MEASURED_YEARS)
    assert first - 1e-12 <= factor <= last + 1e-12
    assert float(software_factor(2024.0, per_year)) == 1.0
    if MEASURED_YEARS[0] <= year <= MEASURED_YEARS[1] - 1:
        assert float(software_factor(year + 1, per_year)) == pytest.approx(
            factor * np.exp(per_year)
        )


@pytest.mark.parametrize(
    ("date", "year"),
    [("2024-01", 2024 + 0.5 / 12), ("2024-12", 2024 + 11.5 / 12), ("2023", 2023.5),
     ("2023-04/2023-09", 2023 + 3.5 / 12), ("2021-2022", 2021.5), ("", MEASURED_YEARS[1]),
     ("undated", MEASURED_YEARS[1])],
)  # fmt: skip
def test_dates_as_sources_print_them(date, year):
    assert decimal_year(date) == pytest.approx(year)


def test_newer_software_is_faster_in_every_part():
    yearly = replace(GENERIC, software_per_year=0.02)
    old, new = (layer(eff=yearly, software_year=y) for y in (2022.0, 2025.0))
    assert all(new[p] < old[p] for p in PARTS if old[p] > 0)


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_a_power_cap_slows_matmuls_and_attention_but_no_memory(share):
    full = rates(workload(), CLUSTER, GENERIC)
    capped = rates(workload(), replace(CLUSTER, power_share=share), GENERIC)
    for name in ("linear_flops_per_s", "head_flops_per_s", "attention_flops_per_s"):
        assert float(getattr(capped, name)) == pytest.approx(
            float(getattr(full, name)) * share**GENERIC.power_exponent
        )
    assert float(capped.bytes_per_s) == float(full.bytes_per_s)


def test_faster_exponentials_speed_up_attention_only():
    eff = replace(IDEAL, fast_exponentials=0.6)
    plain, fast = (layer(cluster=replace(CLUSTER, fast_exponentials=x), eff=eff) for x in (0, 1))
    assert fast["attention_forward"] == pytest.approx(plain["attention_forward"] / 1.6)
    assert fast["matmul_forward"] == plain["matmul_forward"]


@pytest.mark.parametrize("generations", [0, 1, 2])
def test_flash_attention_2_falls_behind_with_every_generation(generations):
    cluster = replace(CLUSTER, newer_than_flash2=float(generations))
    best, old = (layer(cluster=cluster, eff=GENERIC, flash2=x) for x in (False, True))
    assert old["attention_forward"] == pytest.approx(
        best["attention_forward"] / GENERIC.flash2**generations
    )
    assert old["matmul_forward"] == best["matmul_forward"]


@pytest.mark.parametrize("seq_len", [512.0, 4096.0, 131072.0])
def test_attention_reaches_half_of_its_rate_at_its_half_length(seq_len):
    eff = replace(IDEAL, attention_half_tokens=seq_len)
    assert layer(eff=eff, seq_len=seq_len)["attention_forward"] == pytest.approx(
        2 * layer(seq_len=seq_len)["attention_forward"]
    )


class TestRouting:
    """Tokens are copied to k experts and back: read and written, 16 bits, twice."""

    @pytest.mark.parametrize("model", [MIXTRAL_8X7B, DEEPSEEK_V3])
    def test_the_bytes_of_routing_are_counted_by_hand(self, model):
        one_layer = 2 * 2 * 2 * model.experts_per_token * model.hidden_size
        mean = one_layer * float(num_moe_layers(model)) / model.num_layers
        assert float(kernels.permuted_bytes_per_token(model)) == pytest.approx(mean)

    def test_a_dense_model_routes_nothing(self):
        assert float(kernels.permuted_bytes_per_token(LLAMA_70B)) == 0
        none, some = (layer(eff=replace(IDEAL, permutation=p)) for p in (0.0, 3.0))
        assert none == some

    @pytest.mark.parametrize("tp", [1, 4])
    def test_tensor_parallel_ranks_route_their_share(self, tp):
        lay = layout(tp=tp, ep=2, sequence_parallel=float(tp > 1))
        none, once = (
            layer(MIXTRAL_8X7B, lay, eff=replace(IDEAL, permutation=p)) for p in (0.0, 1.0)
        )
        moved = 4096 * float(kernels.permuted_bytes_per_token(MIXTRAL_8X7B)) / tp
        for part, passes in (("memory_bound_forward", 1), ("memory_bound_backward", 2)):
            assert once[part] - none[part] == pytest.approx(
                passes * moved / CLUSTER.memory_bytes_per_s
            )


def test_ranks_that_route_the_tokens_of_their_group_do_so_for_each_of_them():
    lay = layout(tp=4, sequence_parallel=1)
    shared, whole = (layer(MIXTRAL_8X7B, lay, routes_group=r) for r in (0.0, 2.0))
    assert whole["experts_forward"] == pytest.approx(4 * shared["experts_forward"])
    moved = 4096 * float(kernels.permuted_bytes_per_token(MIXTRAL_8X7B))
    more = whole["memory_bound_forward"] - shared["memory_bound_forward"]
    assert more == pytest.approx(0.75 * moved / CLUSTER.memory_bytes_per_s)
    divided = layout(tp=4, etp=4, sequence_parallel=1)
    one, all_ = (layer(MIXTRAL_8X7B, divided, routes_group=r) for r in (0.0, 1.0))
    assert all_["experts_forward"] == one["experts_forward"]
    assert all_["memory_bound_forward"] > one["memory_bound_forward"]


@pytest.mark.parametrize("unfused", [1.0, 3.0])
def test_kernels_that_permute_tokens_move_each_copy_eight_times(unfused):
    """Four times forward and four backward, read and written in 16 bits: what indexing operators
    move has no part in it."""
    eff = replace(IDEAL, permutation=unfused)
    none = layer(MIXTRAL_8X7B, eff=replace(IDEAL, permutation=0.0), deduplicates=False)
    some = layer(MIXTRAL_8X7B, eff=eff, permutes_by_kernel=True, deduplicates=False)
    parts = ("memory_bound_forward", "memory_bound_backward")
    more = sum(some[part] - none[part] for part in parts)
    moved = 4096 * 8 * 2 * 2 * MIXTRAL_8X7B.experts_per_token * MIXTRAL_8X7B.hidden_size
    assert more == pytest.approx(moved / CLUSTER.memory_bytes_per_s)


@pytest.mark.parametrize(("biased", "bytes_per_element"), [(True, 28 + 36), (False, 0)])
def test_biases_of_experts_that_are_added_one_by_one_move_each_row(biased, bytes_per_element):
    model = replace(MIXTRAL_8X7B, linear_bias=biased)
    together, split = (
        layer(model, eff=replace(IDEAL, elementwise=1.0), splits_expert_biases=s)
        for s in (False, True)
    )
    parts = ("memory_bound_forward", "memory_bound_backward")
    more = sum(split[part] - together[part] for part in parts)
    moved = 4096 * bytes_per_element * model.experts_per_token * model.hidden_size
    assert more == pytest.approx(moved / CLUSTER.memory_bytes_per_s)


@pytest.mark.parametrize(("capacity", "seq_len"), [(1.0, 4096), (1.25, 4096), (1.0, 8192)])
def test_masks_route_tokens_by_matmuls_that_grow_with_the_length(capacity, seq_len):
    """MaxText's dense_matmul: [s, h] by [s, experts x capacity] there, and back again; in backward
    the gradient of both, and of the mask of the way back. DeepSeek-V3 at 4,096 tokens: 1.2 GFLOP a
    token and layer at a factor of 1.25, more than its experts' 0.9."""
    work = {"capacity_factor": capacity, "seq_len": seq_len}
    none, some = (layer(MIXTRAL_8X7B, routes_by_masks=r, **work) for r in (False, True))
    flops = 4 * seq_len * (2 * seq_len * capacity) * 4096  # tokens, rows of 2 experts, width
    forward, backward = (some[p] - none[p] for p in ("experts_forward", "experts_backward"))
    assert forward == pytest.approx(flops / (CLUSTER.peak_flops_per_s * CLUSTER.ceiling))
    assert backward == pytest.approx(1.5 * forward)


@pytest.mark.parametrize(("deduplicates", "permutations"), [(False, 3.5), (True, 4.0)])
def test_buffers_of_fixed_size_are_passed_over_whole(deduplicates, permutations):
    """8 ranks, rows for all of them: the activation passes over 8 times what comes, and so does one
    of the two permutations; the other is of what is sent, or part of sending it."""
    lay, work = layout(ep=8, dp_shard=8), {"deduplicates": deduplicates}
    model = replace(MIXTRAL_8X7B, num_experts=64)  # 32 over 2 of them: the ranks decide
    eff = replace(IDEAL, elementwise=1.0, permutation=1.0, fused_permutation=0.0)
    exact, whole = (layer(model, lay=lay, eff=eff, worst_buffers=w, **work) for w in (False, True))
    activated = 7 * kernels.activated_bytes_per_token(model)
    permuted = permutations * kernels.permuted_bytes_per_token(model)
    more = whole["memory_bound_forward"] - exact["memory_bound_forward"]
    moved = 4096 * float(np.asarray(activated + permuted))
    assert more == pytest.approx(moved / CLUSTER.memory_bytes_per_s)
    assert whole["experts_forward"] == pytest.approx(exact["experts_forward"])


def test_learned_positions_turn_no_queries_and_keys():
    """Llama 3 8B turns 4,096 queries and 1,024 keys a token: read and written in 16 bits."""
    eff = replace(IDEAL, elementwise=1.0)
    turned, learned = (
        layer(replace(LLAMA_8B, num_positions=n), eff=eff)["memory_bound_forward"]
        for n in (0, 8192)
    )
    moved = 4096 * 2 * 2 * (4096 + 1024)
    assert turned - learned == pytest.approx(moved / CLUSTER.memory_bytes_per_s)


class TestAttentionByBlocks:
    """Plain JAX: scores of the blocks up to the diagonal go to memory and back (levanter's
    flash_attention.py)."""

    @pytest.mark.parametrize(("seq_len", "share"), [(1024, 1.0), (8192, 9 / 16)])
    def test_the_blocks_up_to_the_diagonal_are_moved(self, seq_len, share):
        tpu = replace(CLUSTER, multiprocessors=np.nan)  # its kernel takes multiples of the heads
        fused, blocks = (
            layer(cluster=tpu, fused_heads_of=n, seq_len=float(seq_len)) for n in (1.0, 96.0)
        )
        more = blocks["memory_bound_forward"] - fused["memory_bound_forward"]
        moved = share * 8 * 32 * seq_len * seq_len  # heads, tokens, scores of each
        assert more == pytest.approx(moved / CLUSTER.memory_bytes_per_s)
        assert blocks["attention_forward"] == fused["attention_forward"]

    @pytest.mark.parametrize("head_dim", [64, 128, 256])
    @pytest.mark.parametrize("tpu", [False, True])
    def test_a_tpu_runs_heads_that_its_kernel_refuses_by_blocks(self, head_dim, tpu):
        """JAX before 0.7.1: multiples of 128 lanes."""
        model = replace(LLAMA_8B, head_dim=head_dim)
        chip = replace(CLUSTER, multiprocessors=np.nan if tpu else 132.0)
        takes, refuses = (layer(model, cluster=chip, fused_heads_of=n) for n in (1.0, 128.0))
        slower = refuses["memory_bound_forward"] > takes["memory_bound_forward"]
        assert slower == (tpu and head_dim == 64)


@pytest.mark.parametrize("tp", [1, 8])
def test_every_matmul_fills_and_drains_the_device(tp):
    """Llama: queries, keys and values in one; output; up and gate in one; down. And the head."""
    lay = layout(tp=tp, sequence_parallel=float(tp > 1))
    none, some = (layer(lay=lay, eff=replace(IDEAL, kernel_s=k)) for k in (0.0, 1e-3))
    assert some["matmul_forward"] - none["matmul_forward"] == pytest.approx(4e-3)
    assert some["matmul_backward"] - none["matmul_backward"] == pytest.approx(8e-3)
    assert some["head"] - none["head"] == pytest.approx(3e-3)


def test_the_reference_of_elementwise_work_is_the_a100_of_the_facts():
    a100 = accelerator("A100-80GB-SXM")
    each = a100.memory_bytes_per_s / a100.multiprocessor_count
    assert each == pytest.approx(kernels.A100_BYTES_PER_S)


class TestPassesOverMemory:
    """Of adapters, and of norms and rotation that no kernel fuses."""

    PARTS = ("memory_bound_forward", "memory_bound_backward")

    @pytest.mark.parametrize("model", [LLAMA_8B, MIXTRAL_8X7B])
    @pytest.mark.parametrize("kind", KINDS)
    def test_adapters_move_their_bytes_at_the_rate_of_the_memory(self, model, kind):
        given = {"adapters": True, "trained_fraction": 0.01}
        kind = float(KINDS.index(kind))
        none = layer(model, eff=GENERIC, **given)
        some = layer(model, eff=GENERIC, adapter_kind=kind, adapter_dropout=True, **given)
        moved = moved_bytes_per_token(model, AdapterPasses(kind=kind, dropout=1.0), tp=1.0)
        rate = CLUSTER.memory_bytes_per_s * GENERIC.memory
        rate *= float(software_factor(workload().software_year, GENERIC.software_per_year))
        for part, each in zip(self.PARTS, moved, strict=True):
            assert some[part] - none[part] == pytest.approx(4096 * float(each) / rate)
        assert {p: some[p] for p in PARTS if p not in self.PARTS} == {
            p: none[p] for p in PARTS if p not in self.PARTS
        }

    def test_a_compiler_leaves_some_of_the_adapters_passes_and_none_of_the_eager_ones(self):
        given = {"adapters": True, "adapter_kind": float(KINDS.index("own"))}
        for eager in (False, True):
            plain, compiled = (
                layer(eff=replace(IDEAL, compiled=0.5), eager_norms=eager, compiled=c, **given)
                for c in (False, True)
            )
            fused = layer(eff=replace(IDEAL, compiled=0.5), compiled=True, **given)
            for part in self.PARTS:
                assert compiled[part] == fused[part]
                assert compiled[part] < plain[part]

    def test_eager_norms_and_rotation_launch_more_kernels(self):
        """43 of a layer of Llama's where 20 are, none more of a model with LayerNorm."""
        gpt = replace(LLAMA_8B, gated_mlp=False)
        found = [float(kernels.launches(m, eager=e)) for m in (LLAMA_8B, gpt) for e in (1, 0)]
        assert found == [43 / 20, 1, 1, 1]

    def test_eager_norms_and_rotation_move_what_their_operators_do(self):
        """Llama 3.1 8B: two norms of 4096, queries of 4096 and keys of 1024."""
        fused, eager = (layer(eager_norms=e) for e in (False, True))
        moved = [32 * 8192 + 16 * 5120, 60 * 8192 + 22 * 5120]
        for part, each in zip(self.PARTS, moved, strict=True):
            more = 4096 * each / CLUSTER.memory_bytes_per_s
            assert eager[part] - fused[part] == pytest.approx(more)

    def test_a_layer_norm_is_one_kernel_already(self):
        gpt = replace(LLAMA_8B, gated_mlp=False)
        assert layer(gpt, eager_norms=True) == layer(gpt)

    def test_fused_norms_and_rotation_save_what_a_published_pair_says(self):
        """foundation-model-stack/fms-acceleration@876e2ed, scripts/benchmarks/refs: Mistral 7B on
        one A100, 4 x 4096 tokens, all recomputed: 5,350 ms, and 4,753 ms with fused kernels."""
        mistral = replace(LLAMA_8B, vocab_size=32000)
        a100 = replace(
            CLUSTER,
            memory_bytes_per_s=accelerator("A100-80GB-SXM").memory_bytes_per_s,
            multiprocessors=float(accelerator("A100-80GB-SXM").multiprocessor_count),
        )
        lay = layout(micro_batch_size=4.0)
        eager, fused = (layer(mistral, lay, a100, GENERIC, eager_norms=e) for e in (True, False))
        forward, backward = (eager[p] - fused[p] for p in self.PARTS)
        saved = 32 * ((1 + GENERIC.full_recompute) * forward + backward)
        assert saved == pytest.approx(5.350 - 4.753, rel=0.25)


def test_later_micro_batches_add_their_gradients_to_a_sum():
    """Llama 3.1 8B has 6.98 billion parameters in 32 layers; an fp32 sum is read and written: 8
    bytes in place of the 2 that a matmul writes."""
    eff = replace(IDEAL, elementwise=1.0)
    first, later = (
        layer_seconds(workload(), layout(strategy="zero1", num_microbatches=m), CLUSTER, eff)
        for m in (1, 4)
    )
    more = float(later.memory_bound_backward - first.memory_bound_backward)
    assert more == pytest.approx(3 / 4 * 6 * 6.98e9 / 32 / CLUSTER.memory_bytes_per_s, rel=0.01)
    assert later.matmul_backward == first.matmul_backward


class TestWhatSoftwareMovesBesides:
    """Bytes that software moves beyond the count of fused 16-bit operators."""

    @staticmethod
    def bytes_moved(part, **work):
        found = layer(**work)[part] - layer()[part]
        return found * CLUSTER.memory_bytes_per_s

    def test_a_norm_of_an_fp32_copy_moves_the_copy(self):
        """InternEvo: cast 2+4 and 2 more to read; gradient 2+2 more and a cast 4+2."""
        norms = 2 * LLAMA_8B.hidden_size * 4096
        assert self.bytes_moved("memory_bound_forward", fp32_norms=True) == pytest.approx(8 * norms)

    @pytest.mark.parametrize(("recompute", "each"), [("none", 10 + 15), ("full", 10)])
    def test_it_runs_again_where_nothing_else_does(self, recompute, each):
        lay, norms = layout(recompute=recompute), 2 * LLAMA_8B.hidden_size * 4096
        more, less = (layer(lay=lay, fp32_norms=f)["memory_bound_backward"] for f in (True, False))
        assert (more - less) * CLUSTER.memory_bytes_per_s == pytest.approx(each * norms)

    def test_a_compiler_fuses_such_norms(self):
        for part in ("memory_bound_forward", "memory_bound_backward"):
            fused, plain = (layer(compiled=True, fp32_norms=f)[part] for f in (True, False))
            assert fused == plain

    @pytest.mark.parametrize(
        ("strategy", "m", "more"),
        [("zero1", 4, 3), ("ddp", 2, 1), ("zero1", 1, 0), ("zero2", 4, 0)],
    )
    def test_a_sum_after_its_matmul_writes_and_reads_the_gradient(self, strategy, m, more):
        """2 bytes written and 2 read, in each micro-batch but the first; sharded ones go first."""
        lay = layout(strategy=strategy, num_microbatches=m)
        after, fused = (
            layer(lay=lay, fuses_gradient_sums=f)["memory_bound_backward"] for f in (False, True)
        )
        weights = layer_params(LLAMA_8B) / LLAMA_8B.num_layers
        moved = (after - fused) * m * CLUSTER.memory_bytes_per_s
        assert moved == pytest.approx(4 * more * weights, rel=1e-6)

    def test_a_loss_of_many_kernels_moves_what_they_move(self):
        logits = 4096 * LLAMA_8B.vocab_size
        more = (52 - 3 * IDEAL.logits_bytes) * logits
        assert self.bytes_moved("head", loss_bytes=52.0) == pytest.approx(more)
        for kind in ({"compiled_loss": True}, {"chunked_loss": True}):
            assert layer(loss_bytes=52.0, **kind)["head"] == layer(**kind)["head"]
