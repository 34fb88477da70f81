"""Which bytes a layout moves: volumes of [R20, section 7], [K23, section 4.2], of context
parallelism and of ZeRO++ [W23, arXiv:2306.10209].

Seconds on a link of 1 byte/s and no latency are bytes.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from core.memory.stage_params import stage_params
from core.model.transformer import total_params
from core.time import state_traffic, traffic
from core.time.collectives import ring_hop_s, share_sent_once
from core.time.step import step
from tests.made_up.jobs import (
    CLUSTER,
    DEEPSEEK_V3,
    IDEAL,
    LLAMA_2_7B,
    LLAMA_8B,
    LLAMA_70B,
    MIXTRAL_8X7B,
    SHIPPED,
    jobs,
    layout,
    workload,
)
from tests.support import simulation

# So slow that latency (microseconds) is nothing beside the bytes.
SLOW = replace(CLUSTER, scale_up_bytes_per_s=1.0, scale_out_bytes_per_s=1.0, scale_up_domain=4096,
               gpus_per_node=4096)  # fmt: skip


def params_of(model, lay):
    return stage_params(workload(model), lay, first=True)


def step_bytes(model, lay):
    """Bytes of all data-parallel collectives of one step with `num_microbatches` of them."""
    p = params_of(model, lay)
    per_microbatch = state_traffic.gather_s(lay, SLOW, IDEAL, p, 1.0, 32.0)
    once = state_traffic.replica_s(lay, SLOW, IDEAL, p, 1.0)
    return float(per_microbatch * lay.num_microbatches + once) + reduced_s(lay, model=model)


def gathers_s(lay, cluster=SLOW):
    return float(state_traffic.gather_s(lay, cluster, IDEAL, params_of(LLAMA_8B, lay), 1.0, 32.0))


def reduced_s(lay, cluster=SLOW, model=LLAMA_8B, gradients=float("nan")):
    """Seconds in which gradients are reduced and updated weights come back."""
    p = params_of(model, lay)
    of = (lay, cluster, IDEAL, p, 1.0, gradients)
    latency_s = state_traffic.buckets_latency_s(*of)
    back = state_traffic.updated_weights_s(
        workload(model), lay, cluster, IDEAL, p, latency_s=latency_s
    )
    return float(state_traffic.gradient_s(*of, latency_s=latency_s)) + float(back)


def gradients_s(lay, cluster=SLOW):
    return reduced_s(lay, cluster)


def replicas_s(lay, cluster=SLOW):
    return float(state_traffic.replica_s(lay, cluster, IDEAL, params_of(LLAMA_8B, lay), 1.0))


def tensor_s(lay, cluster=SLOW, model=LLAMA_8B):
    return float(traffic.tensor_parallel_s(workload(model), lay, cluster, IDEAL))


def context_s(lay, cluster=SLOW, model=LLAMA_8B, seq_len=131072.0):
    work = workload(model, seq_len=seq_len)
    return float(traffic.context_parallel_s(work, lay, cluster, IDEAL))


def experts_s(lay, cluster=SLOW, eff=IDEAL, model=DEEPSEEK_V3, **work):
    return float(traffic.expert_parallel_exposed_s(workload(model, **work), lay, cluster, eff))


def pipeline_s(lay, cluster=SLOW, model=LLAMA_8B):
    return float(traffic.pipeline_s(workload(model), lay, cluster, IDEAL))


class TestDataParallelVolumes:
    """[R20, section 7]: plain data parallelism moves 2 of its size, stages 1 and 2 the same,
    stage 3 one and a half times that."""

    @pytest.mark.parametrize("shards", [8, 64])
    def test_bytes_of_each_strategy(self, shards):
        size = float(total_params(LLAMA_8B)) * (shards - 1) / shards
        for strategy, bytes_per_param in (
            ("ddp", 4 + 4),  # fp32 gradients, reduced and gathered
            ("zero1", 4 + 2),  # fp32 gradients scattered, 16-bit weights gathered
            ("zero2", 2 + 2),
            ("zero3", 2 + 2 + 2),  # weights gathered twice, gradients scattered
            ("fsdp2", 2 + 2 + 4),
        ):
            lay = layout(strategy=strategy, dp_shard=shards)
            assert step_bytes(LLAMA_8B, lay) == pytest.approx(size * bytes_per_param), strategy

    def test_sharded_weights_are_gathered_for_every_microbatch_and_whole_ones_are_not(self):
        for strategy, times in (("fsdp2", 8), ("zero3", 8), ("ddp", 1), ("zero1", 1)):
            one, eight = (
                step_bytes(LLAMA_8B, layout(strategy=strategy, num_microbatches=m)) for m in (1, 8)
            )
            assert eight == pytest.approx(times * one), strategy

    def test_sharded_gradients_are_scattered_in_every_microbatch(self):
        work = workload(LLAMA_8B)
        one, eight = (
            float(
                step(work, layout(strategy="zero2", num_microbatches=m), SLOW, IDEAL).parts[
                    "dp_exposed"
                ][()]
            )
            for m in (1, 8)
        )
        size = float(total_params(LLAMA_8B)) * 7 / 8
        assert eight - one == pytest.approx(7 * 2 * size, rel=1e-3)

    def test_a_stage_that_stays_gathered_is_gathered_once(self):
        lay = layout(strategy="fsdp2", pp=2, num_microbatches=8)
        moved = float(step(workload(), lay, SLOW, IDEAL).parts["dp_exposed"][()])
        held = float(params_of(LLAMA_8B, lay).dense)
        assert moved == pytest.approx((2 + 4) * held * 7 / 8, rel=1e-3)

    def test_hybrid_sharding_reduces_its_shards_over_the_replicas(self):
        lay = layout(strategy="hsdp", dp_shard=8, dp_replicate=4)
        shard = float(total_params(LLAMA_8B)) / 8
        assert replicas_s(lay) == pytest.approx(2 * 3 / 4 * 4 * shard)
        assert gathers_s(lay) == step_bytes(LLAMA_8B, layout(strategy="fsdp2"))

    @pytest.mark.parametrize("strategy", ["fsdp2", "zero3"])
    def test_gradients_that_are_summed_whole_are_scattered_once(self, strategy):
        lay = layout(strategy=strategy, num_microbatches=4)
        p, params = params_of(LLAMA_8B, lay), float(total_params(LLAMA_8B))
        work = workload(LLAMA_8B, sums_whole_gradients=True)
        before, last = state_traffic.gathers_of_step_s(work, lay, SLOW, IDEAL, p, 32.0)
        scattered = float(last) - float(before)
        of = {"fsdp2": 4, "zero3": 0}[strategy]  # ZeRO-3 scatters each time
        assert scattered == pytest.approx(params * 7 / 8 * of, rel=1e-6, abs=1)
        usual = state_traffic.gathers_of_step_s(workload(LLAMA_8B), lay, SLOW, IDEAL, p, 32.0)
        assert usual == (last, last)

    def test_frozen_weights_send_no_gradients(self):
        lay = layout(strategy="ddp")
        p = params_of(LLAMA_8B, lay)
        assert float(
            state_traffic.gradient_s(lay, SLOW, IDEAL, p, 0.0, latency_s=0.0)
        ) == pytest.approx(0, abs=1)
        sharded = layout(strategy="fsdp2")
        gathers = float(state_traffic.gather_s(sharded, SLOW, IDEAL, p, 0.0, 32.0))
        assert gathers == pytest.approx(float(total_params(LLAMA_8B)) * 7 / 8 * 4)

    @pytest.mark.parametrize("strategy", ["ddp", "zero1", "zero2", "zero3", "fsdp2"])
    def test_one_rank_sends_nothing(self, strategy):
        assert step_bytes(LLAMA_8B, layout(dp_shard=1, strategy=strategy)) == 0

    def test_tensor_and_pipeline_ranks_reduce_only_what_they_hold(self):
        whole = step_bytes(LLAMA_70B, layout(strategy="ddp"))
        cut = step_bytes(LLAMA_70B, layout(strategy="ddp", tp=8))
        assert cut == pytest.approx(whole / 8)

    @pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
    @pytest.mark.parametrize("ep", [8, 4])
    def test_experts_are_reduced_over_their_copies_only(self, strategy, ep):
        lay = layout(strategy=strategy, dp_shard=8, ep=ep)
        p = params_of(MIXTRAL_8X7B, lay)
        bytes_per_param = 8  # fp32 all-reduce, or 2 + 2 + 4
        copies = 8 / ep
        want = bytes_per_param * (float(p.dense) * 7 / 8 + float(p.experts) * (copies - 1) / copies)
        assert step_bytes(MIXTRAL_8X7B, lay) == pytest.approx(want)

    def test_every_layer_pays_the_latency_of_its_own_collectives(self):
        fast = replace(CLUSTER, scale_up_bytes_per_s=1e30, scale_out_bytes_per_s=1e30)
        hops = 63 * self.ring_hop_s(64)
        got = gathers_s(layout(strategy="fsdp2", dp_shard=64), fast)
        assert got == pytest.approx(3 * hops * LLAMA_8B.num_layers, rel=1e-6)

    @staticmethod
    def ring_hop_s(ranks):
        """Seconds of a hop, counted: seven inside each machine of eight, one to the next."""
        return float(
            ring_hop_s(
                ranks=ranks, local_ranks=8.0, scale_up_hop_s=CLUSTER.scale_up_hop_s,
                scale_out_hop_s=CLUSTER.scale_out_hop_s,
            )
        )  # fmt: skip

    @pytest.mark.parametrize("model", [LLAMA_8B, LLAMA_70B])
    def test_every_bucket_of_gradients_pays_the_latency_of_a_ring(self, model):
        """fp32 gradients in buckets of at most 500 MB, scattered and gathered one by one."""
        fast = replace(CLUSTER, scale_up_bytes_per_s=1e30, scale_out_bytes_per_s=1e30)
        lay = layout(strategy="zero1", dp_shard=64)
        got = reduced_s(lay, fast, model)
        buckets = -(-4 * int(total_params(model)) // 500_000_000)
        assert got == pytest.approx(2 * buckets * 63 * self.ring_hop_s(64), rel=1e-6)

    def test_optimizer_shards_inside_a_group_are_reduced_over_its_replicas(self):
        """ZeRO-1 in groups of 8: scatter and gather inside, an eighth all-reduced over four."""
        lay = layout(strategy="zero1", dp_shard=8, dp_replicate=4)
        size = float(total_params(LLAMA_8B))
        assert gradients_s(lay) == pytest.approx((4 + 2) * 7 / 8 * size)
        assert replicas_s(lay) == pytest.approx(2 * 3 / 4 * 4 * size / 8)


class TestModelParallelVolumes:
    @pytest.mark.parametrize("tp", [2, 4, 8])
    def test_tensor_parallelism_is_four_all_reduces_a_layer(self, tp):
        """[K23, section 4.2]: two forward, two backward, of s b h 16-bit values."""
        got = tensor_s(layout(tp=tp, micro_batch_size=2), model=LLAMA_70B)
        one = 2 * (tp - 1) / tp * 2 * 4096 * 2 * 8192
        assert got == pytest.approx(4 * one, rel=1e-6)

    def test_experts_that_are_not_cut_need_no_all_reduce(self):
        """Only attention is cut: two all-reduces a layer, one forward and one backward."""
        cut, spread = (
            tensor_s(lay, model=MIXTRAL_8X7B)
            for lay in (layout(tp=4, etp=4), layout(tp=4, ep=8, sequence_parallel=1))
        )
        assert spread == pytest.approx(cut / 2)

    def test_sequence_parallelism_moves_the_same(self):
        """[K23, section 4.2.2]: an all-reduce is an all-gather and a reduce-scatter."""
        beside, without = (tensor_s(layout(tp=8, sequence_parallel=x)) for x in (1, 0))
        assert beside == without

    @pytest.mark.parametrize("cp", [2, 8])
    def test_a_ring_passes_keys_and_values_once_forward_and_twice_back(self, cp):
        kv = 2 * 131072 * (2 * 8 * 128) / 2  # bytes of the sequence's keys and values per tp rank
        assert context_s(layout(cp=cp, tp=2)) == pytest.approx(3 * (cp - 1) / cp * kv, rel=1e-6)

    def test_grouped_query_attention_passes_less(self):
        many, few = (context_s(layout(cp=4), model=m) for m in (LLAMA_2_7B, LLAMA_8B))
        assert many == pytest.approx(4 * few)

    @pytest.mark.parametrize("ep", [2, 8])
    @pytest.mark.parametrize(("model", "share"), [(MIXTRAL_8X7B, 1.0), (DEEPSEEK_V3, 58 / 61)])
    def test_experts_receive_each_token_k_times_and_return_it(self, model, share, ep):
        """Dispatch and combine, forward and backward; (ep - 1)/ep of the rows travel."""
        rows = 4096 * model.experts_per_token
        want = 4 * (ep - 1) / ep * rows * 2 * model.hidden_size * share
        assert experts_s(layout(ep=ep), model=model) == pytest.approx(want, rel=1e-6)

    @pytest.mark.parametrize("ep", [16, 64])
    def test_a_token_crosses_to_each_machine_of_its_experts_once(self, ep):
        """arXiv:2412.19437, section 3.2.2; without it, once for each of its experts."""
        network = replace(CLUSTER, scale_up_bytes_per_s=1e30, scale_out_bytes_per_s=1.0)
        lay = layout(ep=ep, dp_shard=64)
        each, once = (experts_s(lay, network, deduplicates=d) for d in (False, True))
        rows = 4096 * 8 * (ep - 8) / ep  # copies of tokens that leave the machine
        assert each == pytest.approx(4 * rows * 2 * 7168 * 58 / 61, rel=1e-6)
        share = float(share_sent_once(copies=8.0, domains=ep / 8))
        assert once == pytest.approx(share * each, rel=1e-6)
        assert once < each

    def test_inside_one_machine_there_is_nothing_to_send_once(self):
        each, once = (experts_s(layout(ep=8), CLUSTER, deduplicates=d) for d in (False, True))
        assert each == once

    def test_how_much_hides_depends_on_the_tier(self):
        eff = replace(IDEAL, ep_exposed=0.5, ep_network_exposed=0.25)
        for ep, share in ((8, 0.5), (16, 0.25)):
            lay = layout(ep=ep, dp_shard=64)
            whole, exposed = (experts_s(lay, CLUSTER, e) for e in (IDEAL, eff))
            assert exposed == pytest.approx(share * whole)

    def test_tensor_parallel_ranks_share_the_rows_of_the_all_to_all(self):
        one, four = (experts_s(layout(tp=tp, ep=8)) for tp in (1, 4))
        assert four == pytest.approx(one / 4)

    @pytest.mark.parametrize(("tp", "sp"), [(1, 0), (8, 0), (8, 1)])
    def test_a_stage_passes_activations_on_and_gradients_back(self, tp, sp):
        got = pipeline_s(layout(pp=4, tp=tp, sequence_parallel=sp), model=LLAMA_70B)
        want = 2 * 4096 * 2 * 8192 / tp
        assert got == pytest.approx(want, rel=1e-6)

    def test_every_virtual_stage_passes_its_own(self):
        one, three = (pipeline_s(layout(pp=4, virtual_stages=v)) for v in (1, 3))
        assert three == pytest.approx(3 * one)

    def test_degrees_of_one_send_nothing(self):
        for of in (
            traffic.tensor_parallel_s,
            traffic.context_parallel_s,
            traffic.expert_parallel_exposed_s,
            traffic.pipeline_s,
        ):
            assert float(of(workload(MIXTRAL_8X7B), layout(), SLOW, IDEAL)) == 0


def test_weights_that_are_cast_before_they_are_gathered_move_half_but_for_both_ends():
    """torchtitan's float8 all-gather: of 8.03B parameters 1.05B are embeddings and the LM head."""
    lay = layout(strategy="fsdp2")
    held = params_of(LLAMA_8B, lay)

    def step_s(in_8_bits):
        work = workload(LLAMA_8B, gathers_in_8_bits=in_8_bits)
        return float(state_traffic.gathers_of_step_s(work, lay, SLOW, IDEAL, held, 32.0)[1])

    linear = float(held.dense - held.ends)
    ranks = float(held.dense_shards)
    assert step_s(False) - step_s(True) == pytest.approx(2 * linear * (1 - 1 / ranks), rel=1e-3)
    frozen = workload(LLAMA_8B, gathers_in_8_bits=True, weight_bytes=0.5)
    quantised = workload(LLAMA_8B, weight_bytes=0.5)
    both = (
        float(state_traffic.gathers_of_step_s(w, lay, SLOW, IDEAL, held, 32.0)[1])
        for w in (frozen, quantised)
    )
    assert next(both) == next(both)


def test_inputs_that_are_cast_before_they_are_gathered_save_an_eighth_of_tensor_parallelism():
    lay = layout(tp=8, sequence_parallel=1.0)
    in_16, in_8 = (
        float(
            traffic.tensor_parallel_s(
                workload(LLAMA_8B, gathers_in_8_bits=e), lay, SLOW, replace(IDEAL, fill_bytes=0.0)
            )
        )
        for e in (False, True)
    )
    assert in_8 == pytest.approx(7 / 8 * in_16)


def test_owners_that_broadcast_their_tensors_fill_the_ring_of_machines_once_each():
    """InternLM/InternLM@01e7fd610: broadcast_params sends what each rank owns, one by one."""
    eff = replace(IDEAL, fill_bytes=8e6)
    network = replace(CLUSTER, scale_out_bytes_per_s=1e9)

    def filled_s(ranks):
        lay = layout(strategy="zero1", dp_shard=ranks)
        one_by_one = workload(LLAMA_8B, broadcasts_weights=True)
        rest = (lay, network, eff, params_of(LLAMA_8B, lay))
        each = state_traffic.updated_weights_s(workload(LLAMA_8B), *rest, latency_s=0.0)
        owners = state_traffic.updated_weights_s(one_by_one, *rest, latency_s=0.0)
        return float(owners - each)

    assert filled_s(8) == 0
    assert filled_s(64) == pytest.approx(64 * 7 * 1e-3)
    assert filled_s(512) == pytest.approx(7 * 32 * 63 * 1e-3)  # fewer tensors than ranks


@pytest.mark.parametrize(
    ("strategy", "gradients", "bytes_per_param"),
    [("ddp", 2.0, 4 + 4), ("ddp", 6.0, 4 + 4), ("zero1", 2.0, 2 + 2), ("zero1", 4.0, 4 + 2),
     ("zero1", float("nan"), 4 + 2), ("zero1", 6.0, 4 + 2), ("zero2", 4.0, 4 + 2)],
)  # fmt: skip
def test_the_type_of_gradients_is_that_of_their_reduction(strategy, gradients, bytes_per_param):
    """[R20, section 7]: a scatter of gradients, a gather of them (DDP) or of 16-bit weights."""
    lay = layout(strategy=strategy)
    held = params_of(LLAMA_8B, lay)
    got = reduced_s(lay, gradients=gradients)
    assert got == pytest.approx(7 / 8 * bytes_per_param * float(held.dense), rel=1e-3)


class TestLongSequences:
    """Bytes that one rank sends, against counting who has what and who needs it."""

    TOKENS, HEADS = 64, 16

    @pytest.mark.parametrize("cp", [2, 4, 8])
    def test_a_ring_sends_what_its_simulation_does(self, cp):
        got = context_s(layout(cp=cp), model=LLAMA_2_7B, seq_len=float(self.TOKENS))
        (sent,) = set(simulation.ring_sent(ranks=cp, tokens=self.TOKENS))
        keys_and_values = 2 * 4096 * 2  # 32 heads of 128, 16 bits
        assert got == pytest.approx(3 * sent * keys_and_values, rel=1e-3)

    @pytest.mark.parametrize("cp", [2, 4, 8])
    def test_ulysses_sends_what_its_simulation_does(self, cp):
        model = replace(LLAMA_2_7B, num_attention_heads=self.HEADS, num_kv_heads=self.HEADS)
        lay = layout(cp=cp, context_method="ulysses")
        got = context_s(lay, model=model, seq_len=float(self.TOKENS))
        (sent,) = set(simulation.ulysses_sent(ranks=cp, tokens=self.TOKENS, heads=self.HEADS))
        # Queries, keys, values and the output, each of 128 values a head; forward and backward.
        assert got == pytest.approx(2 * 4 * sent * 128 * 2, rel=1e-3)

    def test_all_gather_moves_what_a_ring_does_and_ulysses_less(self):
        ring, gathered, ulysses = (
            context_s(layout(cp=8, context_method=m), model=LLAMA_2_7B)
            for m in ("ring", "all_gather", "ulysses")
        )
        assert ring == gathered
        # 3 x 2 h of the whole sequence against 2 x 4 h of an eighth of it.
        assert ulysses / ring == pytest.approx((2 * 4 / 8) / (3 * 2))

    def test_ulysses_sends_the_same_for_ranks_and_tokens_that_grow_together(self):
        """[J23: arXiv:2309.14509, section 3.2]: O(N/P); a ring's volume grows with N."""

        def bytes_of(method, cp):
            lay = layout(cp=cp, context_method=method)
            return context_s(lay, model=LLAMA_2_7B, seq_len=4096.0 * cp) * cp / (cp - 1)

        assert bytes_of("ulysses", 16) == pytest.approx(bytes_of("ulysses", 4), rel=1e-3)
        assert bytes_of("ring", 16) == pytest.approx(4 * bytes_of("ring", 4), rel=1e-3)

    @pytest.mark.parametrize(("tp", "cp", "held"), [(1, 8, 8), (1, 16, 16), (2, 8, 16), (4, 8, 32)])
    def test_ulysses_repeats_kv_heads_until_every_rank_has_one(self, tp, cp, held):
        """arXiv:2506.13996: 8 KV heads are exchanged as if there were tp x cp of them."""

        def moved(kv_heads):
            lay = layout(tp=tp, cp=cp, context_method="ulysses")
            return context_s(lay, model=replace(LLAMA_8B, num_kv_heads=kv_heads))

        assert moved(8) == pytest.approx(moved(held))
        assert moved(2 * held) > moved(8)

    def test_only_a_ring_hides_behind_attention(self):
        work = workload(LLAMA_8B, seq_len=131072.0)
        exposed = {
            m: float(step(work, layout(cp=8, context_method=m), CLUSTER, IDEAL).parts["cp_exposed"])
            for m in ("ring", "all_gather", "ulysses")
        }
        assert exposed["ring"] == 0
        assert min(exposed["all_gather"], exposed["ulysses"]) > 0


class TestVariantsOfSharding:
    def test_zeropp_crosses_the_network_with_a_quarter(self):
        """[W23, table 1]: 3 M of 16-bit values become 0.5 M + 0 + 0.25 M."""
        nodes = replace(CLUSTER, scale_up_bytes_per_s=1e30, scale_out_bytes_per_s=1.0)
        plain, plus = (
            gathers_s(layout(strategy=s, dp_shard=64), nodes) for s in ("zero3", "zeropp")
        )
        assert plain / plus == pytest.approx(4, rel=1e-6)

    def test_zeropp_gathers_for_backward_inside_the_node(self):
        wide = replace(CLUSTER, scale_up_bytes_per_s=1.0, scale_out_bytes_per_s=1e30)
        inside = gathers_s(layout(strategy="zeropp", dp_shard=64), wide)
        size = float(total_params(LLAMA_8B))
        # 8-bit gather, 8-bit second gather in the node, 4-bit scatter.
        assert inside == pytest.approx((1 + 1 + 0.5) * size, rel=0.15)

    @pytest.mark.parametrize("strategy", ["zero3", "fsdp1", "fsdp2", "hsdp"])
    def test_weights_that_stay_are_gathered_once(self, strategy):
        again, once = (gathers_s(layout(strategy=strategy, reshard=r)) for r in (1, 0))
        size = float(total_params(LLAMA_8B)) * 7 / 8
        assert again - once == pytest.approx(2 * size)

    def test_weights_that_are_never_sharded_do_not_care(self):
        both = [
            step_bytes(LLAMA_8B, layout(strategy=s, reshard=r))
            for s in ("ddp", "zero1", "zero2")
            for r in (0, 1)
        ]
        assert both[0::2] == both[1::2]


def test_ranks_that_divide_experts_sum_the_gradients_of_each_copy_of_a_token():
    """torchtitan's ExpertTensorParallel: an all-reduce for each expert that takes a token, beside
    the four of a layer."""
    lay = layout(tp=4, etp=4, sequence_parallel=1)
    jobs = [workload(MIXTRAL_8X7B, routes_group=r) for r in (0.0, 1.0)]
    once, more = (float(traffic.tensor_parallel_s(w, lay, SLOW, IDEAL)) for w in jobs)
    assert more == pytest.approx(once * (4 + MIXTRAL_8X7B.experts_per_token) / 4)


@pytest.mark.parametrize("load", [1.25, 2.0])
def test_padding_and_imbalance_lengthen_the_all_to_all(load):
    even, busy = (
        experts_s(layout(ep=8), model=MIXTRAL_8X7B, expert_imbalance=x) for x in (1.0, load)
    )
    assert busy == pytest.approx(load * even, rel=1e-6)


class TestTiers:
    """Which link a group runs on: tp next to one another, then cp, data parallel, pipeline."""

    UP, OUT = 450e9, 1e6  # a network so slow that crossing it shows

    @pytest.fixture
    def cluster(self):
        return replace(CLUSTER, scale_up_bytes_per_s=self.UP, scale_out_bytes_per_s=self.OUT)

    def test_tp_of_a_node_stays_inside_and_larger_leaves(self, cluster):
        inside, outside = (tensor_s(layout(tp=t), cluster) for t in (8, 16))
        assert outside > 100 * inside

    def test_cp_beside_tp_leaves_the_node_when_both_exceed_it(self, cluster):
        inside, outside = (context_s(layout(tp=t, cp=4), cluster) for t in (2, 4))
        assert outside > 100 * inside

    def test_data_parallel_ranks_of_tp_8_meet_over_the_network(self, cluster):
        inside, outside = (gradients_s(layout(tp=t, dp_shard=2), cluster) for t in (4, 8))
        assert outside > 100 * inside

    def test_hybrid_sharding_gathers_inside_the_node(self, cluster):
        hybrid = gathers_s(layout(strategy="hsdp", dp_shard=8, dp_replicate=8), cluster)
        assert gathers_s(layout(strategy="fsdp2", dp_shard=64), cluster) > 100 * hybrid

    def test_replicas_of_whole_nodes_meet_over_the_network(self, cluster):
        inside, outside = (
            replicas_s(layout(strategy="hsdp", dp_replicate=2, dp_shard=n), cluster) for n in (4, 8)
        )
        assert outside > 100 * inside / 2

    def test_a_rack_of_72_joins_what_nodes_of_4_do_not(self, cluster):
        rack = replace(cluster, scale_up_domain=72, gpus_per_node=4)
        nodes = replace(cluster, scale_up_domain=4, gpus_per_node=4)
        in_rack, across = (tensor_s(layout(tp=16), c) for c in (rack, nodes))
        assert across > 100 * in_rack

    def test_a_pipeline_over_nodes_is_paced_by_its_slowest_hop(self, cluster):
        narrow, wide = (
            pipeline_s(layout(tp=tp, pp=pp, dp_shard=1), cluster) for tp, pp in ((4, 8), (8, 4))
        )
        assert narrow == pytest.approx(2 * wide, rel=1e-3)  # each rank sends its part

    def test_replicas_of_context_parallel_shards_reduce_smaller_shards(self):
        cut, whole = (
            replicas_s(layout(strategy="hsdp", cp=cp, dp_shard=shard, dp_replicate=2))
            for cp, shard in ((4, 2), (1, 8))
        )
        assert cut == pytest.approx(whole)


@given(job=jobs())
def test_faster_links_never_take_longer(job):
    work, lay, cluster, eff = job
    params = stage_params(work, lay, first=True)
    faster = [
        replace(cluster, scale_up_bytes_per_s=2 * cluster.scale_up_bytes_per_s),
        replace(cluster, scale_out_bytes_per_s=2 * cluster.scale_out_bytes_per_s),
    ]

    def reduced_of(lay, c, eff, params):
        latency_s = state_traffic.buckets_latency_s(lay, c, eff, params, 1.0)
        return state_traffic.gradient_s(lay, c, eff, params, 1.0, latency_s=latency_s)

    for machine in faster:
        for seconds in (
            lambda c: traffic.tensor_parallel_s(work, lay, c, eff),
            lambda c: traffic.context_parallel_s(work, lay, c, eff),
            lambda c: traffic.expert_parallel_exposed_s(work, lay, c, eff),
            lambda c: reduced_of(lay, c, eff, params),
            lambda c: state_traffic.gather_s(lay, c, eff, params, 1.0, 32.0),
            lambda c: state_traffic.replica_s(lay, c, eff, params, 1.0),
        ):
            assert np.all(seconds(machine) <= seconds(cluster) * (1 + 1e-12))
            assert np.all(seconds(cluster) >= 0)


@pytest.mark.parametrize(
    ("megabytes", "measured_us"), [(1.049, 50.7), (4.194, 102.7), (16.78, 268.9), (67.11, 704.8)]
)
def test_the_fill_of_a_ring_explains_published_all_reduces_of_middle_size(megabytes, measured_us):
    """Eight A100, Azure AI benchmarking guide: seconds are the size times 14/8 over the printed
    bus bandwidths (36.22, 71.43, 109.22 and 166.63 GB/s), with the link at its printed best."""
    eff = replace(IDEAL, fill_bytes=SHIPPED["generic"].fill_bytes, scale_up=231.58 / 300)
    machine = replace(SLOW, scale_up_bytes_per_s=300e9, scale_up_hop_s=3.1e-6)
    model = replace(LLAMA_8B, hidden_size=1024)
    tokens = megabytes * 1e6 / 2 / 1024
    lay = layout(tp=8, dp_shard=1, micro_batch_size=tokens / 4096)
    one = float(traffic.tensor_parallel_s(workload(model), lay, machine, eff)) / 4
    assert one * 1e6 == pytest.approx(measured_us, rel=0.25)


def test_data_parallelism_of_16_bit_gradients_sends_half_of_what_fp32_ones_do():
    lay = layout(strategy="ddp", dp_shard=64)
    of = (lay, SLOW, IDEAL, params_of(LLAMA_8B, lay), 1.0)

    def sent_s(gradients, as_held):
        return float(state_traffic.gradient_s(*of, gradients, as_held, latency_s=0.0))

    assert sent_s(2.0, True) == pytest.approx(sent_s(4.0, True) / 2)
    assert sent_s(2.0, False) == sent_s(4.0, True)  # of fp32 weights
