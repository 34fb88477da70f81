"""Peak memory: published figures, conservation of parameters, and laws that hold everywhere."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.layout.optimizers import OPTIMIZERS
from core.layout.sharding import STRATEGIES
from core.layout.workload import (
    CPU,
    NOWHERE,
    NVME,
    layers_fewer_on_last_stage,
    layers_of_fullest_stage,
)
from core.memory.activations import layer_bytes
from core.memory.counters import counted_bytes, unreported_bytes
from core.memory.layer_memory import one_layer, tokens_per_rank
from core.memory.memory import PARTS, peak_bytes, stage_bytes
from core.memory.stage_params import stage_params
from core.memory.states import state_bytes
from core.model.adapters import nf4_bytes_per_param
from core.model.transformer import embedding_params, expert_params, total_params
from tests.made_up.jobs import (
    CLUSTER,
    DEEPSEEK_V3,
    IDEAL,
    LLAMA_2_7B,
    LLAMA_2_13B,
    LLAMA_8B,
    LLAMA_70B,
    LLAMA_405B,
    MIXTRAL_8X7B,
    SHIPPED,
    TIED_GPT,
    as_columns,
    jobs,
    layout,
    parts_at,
    workload,
)
from tests.support.simulation import run_pipeline

GENERIC = SHIPPED["generic"]


def total(parts):
    return float(sum(np.asarray(v) for v in parts.values()))


def on_stage(part, lay=None, eff=IDEAL, model=LLAMA_8B, *, first=True, **work):
    """Bytes of a part on the first or the last stage."""
    return float(stage_bytes(workload(model, **work), lay or layout(), eff, first=first)[part])


def at_peak(part, lay=None, eff=IDEAL, model=LLAMA_8B, **work):
    """Bytes of a part where a GPU holds the most."""
    return peak_bytes(workload(model, **work), lay or layout(), CLUSTER, eff)[part].item()


def states(model, lay):
    """Bytes of weights, gradients and optimizer on one GPU."""
    work = workload(model)
    params = stage_params(work, lay, first=True)
    return [
        float(state_bytes(work, lay, params, IDEAL, w))
        for w in ("parameters", "gradients", "optimizer")
    ]


class TestPublishedStates:
    """The accounting of 2026 guides: 16-bit weights and gradients, 12 bytes of AdamW."""

    @pytest.mark.parametrize(
        ("gpus", "printed_gb"),
        [(1, (140, 140, 840)), (8, (17.5, 17.5, 105))],
        ids=["one GPU", "8 GPUs"],
    )
    def test_70b(self, gpus, printed_gb):
        scale = 70e9 / float(total_params(LLAMA_70B))  # the guides round 70.6B
        got = [b * scale / 1e9 for b in states(LLAMA_70B, layout(dp_shard=gpus, strategy="zero3"))]
        assert got == pytest.approx(printed_gb)

    @pytest.mark.parametrize(("gpus", "device_gb"), [(32, 80), (16, 141)])
    def test_405b_needs_more_than_the_guides_say(self, gpus, device_gb):
        """'405B needs at least 32x H100 with ZeRO-3, or 16x H200': 6.5 TB of state do not fit."""
        held = states(LLAMA_405B, layout(dp_shard=gpus, strategy="zero3"))
        assert sum(held) * gpus == pytest.approx(16 * 405.9e9, rel=0.01)
        assert sum(held) > device_gb * 1e9

    @pytest.mark.parametrize(("model", "printed_gb"), [(LLAMA_2_7B, 13.5), (LLAMA_70B, 141)])
    def test_a_full_checkpoint_is_two_bytes_a_parameter(self, model, printed_gb):
        """Guides print 15 GB (7B) and 140 GB (70B)."""
        weights = states(model, layout(dp_shard=1, strategy="zero1"))[0]
        assert weights / 1e9 == pytest.approx(printed_gb, rel=0.01)

    @pytest.mark.parametrize(("model", "device_gb"), [(LLAMA_2_7B, 16), (LLAMA_2_13B, 24)])
    def test_qlora_fits_where_the_guides_say(self, model, device_gb):
        work = workload(
            model, seq_len=2048.0, adapters=True, trained_fraction=0.005, weight_bytes=0.55
        )
        lay = layout(dp_shard=1, recompute="full")
        device = replace(CLUSTER, memory_bytes=device_gb * 1e9)
        assert total(peak_bytes(work, lay, device, GENERIC)) < device_gb * 1e9
        whole = workload(model, seq_len=2048.0)
        assert total(peak_bytes(whole, lay, device, GENERIC)) > 2 * device_gb * 1e9


class TestConservation:
    """Every parameter is somewhere, once."""

    @pytest.mark.parametrize("tp", [1, 2, 8])
    @pytest.mark.parametrize("model", [LLAMA_8B, LLAMA_70B, TIED_GPT])
    def test_one_stage_holds_the_whole_model(self, model, tp):
        params = stage_params(workload(model), layout(tp=tp), first=True)
        assert float(params.dense * tp) == pytest.approx(float(total_params(model)))

    @pytest.mark.parametrize("model", [LLAMA_8B, LLAMA_70B])
    def test_two_stages_hold_the_whole_model(self, model):
        lay = layout(pp=2, tp=4)
        ends = [stage_params(workload(model), lay, first=f) for f in (True, False)]
        held = sum(float(e.dense) * 4 for e in ends)
        assert held == pytest.approx(float(total_params(model)))

    def test_a_tied_head_on_another_stage_is_a_second_copy(self):
        lay = layout(pp=2)
        held = sum(
            float(stage_params(workload(TIED_GPT), lay, first=f).dense) for f in (True, False)
        )
        copy = TIED_GPT.vocab_size * TIED_GPT.hidden_size
        assert held == pytest.approx(float(total_params(TIED_GPT)) + copy)

    @pytest.mark.parametrize("model", [MIXTRAL_8X7B, DEEPSEEK_V3])
    @pytest.mark.parametrize(("tp", "ep", "etp"), [(1, 1, 1), (1, 8, 1), (4, 1, 4), (4, 8, 1)])
    def test_experts_are_spread_once_over_their_ranks(self, model, tp, ep, etp):
        lay = layout(tp=tp, ep=ep, etp=etp, dp_shard=8)
        params = stage_params(workload(model), lay, first=True)
        whole = float(params.dense) * tp + float(params.experts) * ep * etp
        assert whole == pytest.approx(float(total_params(model)))
        # ep x etp x copies is every rank of the stage.
        assert float(params.expert_shards) <= 8 * tp / (ep * etp)

    @pytest.mark.parametrize(
        ("dense", "stages", "layers_with_experts"),
        [(1.0, 2.0, 2.0), (0.0, 2.0, 2.0), (1.0, 1.0, 3.0), (2.0, 2.0, 1.0)],
    )
    def test_a_later_stage_has_no_leading_dense_layer(self, dense, stages, layers_with_experts):
        # SimuMax: DeepSeek-V3 of four layers, one dense, on two stages of B200 holds 114.0 GiB.
        # Two of four are every other layer, which each stage has.
        model = replace(DEEPSEEK_V3, num_layers=4.0, num_dense_layers=dense)
        params = stage_params(workload(model), layout(pp=stages), first=False)
        per_layer = np.multiply(model.num_experts, expert_params(model))
        assert np.asarray(params.experts) / per_layer == pytest.approx(layers_with_experts)

    def test_uneven_stages_hold_the_larger_share(self):
        """126 layers on 8 stages: the fullest holds 16."""
        params = stage_params(workload(LLAMA_405B), layout(pp=8), first=True)
        layers = float(params.dense) - float(embedding_params(LLAMA_405B))
        per_layer = (float(total_params(LLAMA_405B)) - 2 * 128256 * 16384 - 16384) / 126
        assert layers == pytest.approx(16 * per_layer)


def test_context_parallelism_cuts_tokens_and_not_weights():
    work = workload(LLAMA_8B, seq_len=131072.0)
    one, four = layout(cp=1, micro_batch_size=2), layout(cp=4, micro_batch_size=2)
    assert float(tokens_per_rank(work, one)) == 2 * 131072
    assert float(tokens_per_rank(work, four)) == 2 * 131072 / 4
    for quantity in ("dense", "experts"):
        assert getattr(stage_params(work, one, first=True), quantity) == getattr(
            stage_params(work, four, first=True), quantity
        )
    # ... but its ranks share the optimizer: sharding is over dp x cp.
    assert float(stage_params(work, four, first=True).dense_shards) == 32


@pytest.mark.parametrize(
    ("pp", "largest", "last"), [(1.0, 24, 24), (2.0, 14, 10.77), (8.0, 4, 0.85)]
)
def test_stages_by_cost_count_the_head_as_layers(pp, largest, last):
    """Nanotron: 24 layers of 41.9 M, a head of 103 M; a stage ends with the layer that crosses."""
    shape = {"hidden_size": 2048.0, "ffn_hidden_size": 4096.0, "vocab_size": 50272.0}
    heads = {"num_attention_heads": 32.0, "num_kv_heads": 32.0, "head_dim": 64.0}
    work = workload(replace(LLAMA_8B, num_layers=24.0, **shape, **heads), stages_by_cost=True)
    assert layers_of_fullest_stage(work, pp=pp) == largest
    assert layers_of_fullest_stage(replace(work, stages_by_cost=False), pp=pp) == 24 / pp
    fewer = float(layers_fewer_on_last_stage(work, pp=pp))
    assert largest - fewer == pytest.approx(last, abs=0.01)


@pytest.mark.parametrize(("tp", "parts"), [(8.0, 7 / 8), (2.0, 1 / 2), (1.0, 0.0)])
def test_gathered_inputs_of_two_blocks_stay_where_software_keeps_them(tp, parts):
    """Nanotron of July 2024, 24 layers of width 2,048 on 8 tensor-parallel ranks: 8.3 kB more a
    token and layer than its operators keep, which are two tensors of 4.1 kB."""
    lay = layout(tp=tp, sequence_parallel=float(tp > 1))
    keeps, gathers, fused = (
        on_stage("activations", lay, keeps_gathered_inputs=k, async_tp=a)
        for k, a in ((True, False), (False, False), (True, True))
    )
    assert keeps - gathers == pytest.approx(32 * 4096 * 2 * 2 * 4096 * parts)
    assert fused == gathers


@pytest.mark.parametrize(("bits", "narrow"), [(16.0, 16), (8.0, 8), (4.0, 4.5)])
def test_matmuls_that_keep_their_inputs_narrow_keep_what_attention_put_out_twice(bits, narrow):
    """Outputs of two norms and activated values in `narrow` bits instead of 16; the output of
    attention, 16 bits for its own backward pass, once more in `narrow`."""
    lay, one = layout(), {"matmul_bits": bits}
    keeps = on_stage("activations", lay, keeps_narrow_inputs=True, **one)
    wide = on_stage("activations", lay, keeps_narrow_inputs=True, matmul_bits=16.0)
    less = (16 - narrow) / 8 * (2 * 4096 + 14336) - narrow / 8 * 4096 * (bits < 16)
    assert wide - keeps == pytest.approx(32 * 4096 * less)
    frozen = on_stage("activations", lay, keeps_narrow_inputs=True, adapters=True, **one)
    assert frozen == wide  # whose adapters read 16 bits
    if bits != 4:  # of which a compiler keeps little else
        assert on_stage("activations", lay, **one) == wide


@pytest.mark.parametrize(
    ("work", "less"),
    [
        ({}, 0),
        ({"adapters": True}, 0),  # of every matrix: they keep the same inputs
        ({"adapters": True, "adapters_on_mlp": False}, 2 * (4096 + 14336)),
        ({"adapters": True, "adapters_on_mlp": False, "weight_bytes": 0.55}, 0),
        ({"adapters": True, "eager_norms": True}, 2 * 2 * 4096),
        ({"eager_norms": True}, 0),
    ],
)
def test_a_frozen_layer_keeps_no_input_that_only_its_own_weights_would_ask_for(work, less):
    whole, got = (on_stage("activations", layout(), **w) for w in ({}, work))
    assert whole - got == pytest.approx(32 * 4096 * less)


def test_narrow_inputs_are_cut_as_the_tensors_they_replace():
    tp = 4.0
    for cut in (0.0, 1.0):
        lay = layout(tp=tp, sequence_parallel=cut)
        wide, keeps = (
            on_stage("activations", lay, keeps_narrow_inputs=k, matmul_bits=8.0)
            for k in (False, True)
        )
        norms = 2 * 4096 / (tp if cut else 1)
        assert wide - keeps == pytest.approx(32 * 4096 * (norms + (14336 - 4096) / tp))


def test_the_first_stage_of_1f1b_keeps_as_many_microbatches_as_there_are_stages():
    cut, alone = (layout(pp=pp, num_microbatches=64, dp_shard=1) for pp in (8, 1))
    whole = on_stage("activations", alone, model=LLAMA_70B)
    # p micro-batches of L/p layers [K23, section 4.2.3]
    assert on_stage("activations", cut, model=LLAMA_70B) == pytest.approx(whole)
    assert on_stage("activations", cut, model=LLAMA_70B, first=False) == pytest.approx(whole / 8)


def test_the_last_stage_of_interleaved_1f1b_keeps_what_its_schedule_keeps():
    p, v, m = 8, 4, 32
    run = run_pipeline(
        forward_s=[1.0] * p, backward_s=[2.0] * p, virtual_stages=v, num_microbatches=m
    )
    lay = layout(pp=p, virtual_stages=v, num_microbatches=m, dp_shard=1)
    first, last = (on_stage("activations", lay, model=LLAMA_70B, first=f) for f in (True, False))
    assert last / first == pytest.approx(run.most_in_flight[-1] / run.most_in_flight[0])


def test_logits_are_on_the_last_stage_and_cut_by_tp():
    one, cut = (
        on_stage("logits", layout(pp=4, tp=tp), first=False, seq_len=8192.0) for tp in (1, 4)
    )
    assert one == IDEAL.held_logits_bytes * 8192 * 128256
    assert cut == pytest.approx(one / 4)
    assert on_stage("logits", layout(pp=4)) == 0.0


def test_gpipe_holds_every_microbatch_and_naive_one():
    naive, gpipe, plain, zero_bubble = (
        on_stage("activations", layout(pp=4, num_microbatches=16, dp_shard=1, schedule=kind))
        for kind in ("naive", "gpipe", "1f1b", "zero_bubble")
    )
    assert gpipe == pytest.approx(4 * plain)
    assert plain == pytest.approx(4 * naive)
    assert zero_bubble == plain


def test_weights_that_stay_gathered_cost_a_whole_copy_of_them():
    fits, stays = (on_stage("buffers", layout(strategy="fsdp2", reshard=r)) for r in (1, 0))
    whole = 2 * float(total_params(LLAMA_8B))
    head = 2 * LLAMA_8B.vocab_size * LLAMA_8B.hidden_size  # the largest unit, and the next layer
    layer = (whole - 2 * head - 2 * LLAMA_8B.hidden_size) / 32
    assert stays - fits == pytest.approx(whole - head - layer)
    one = layout(strategy="zero1", reshard=0)
    assert total(stage_bytes(workload(), one, IDEAL, first=True)) == total(
        stage_bytes(workload(), replace(one, reshard=1.0), IDEAL, first=True)
    )


@pytest.mark.parametrize("degrees", [{"dp_shard": 64}, {"tp": 8, "dp_shard": 8}], ids=str)
def test_the_second_partition_of_zeropp_is_a_copy_of_the_weights_in_each_node(degrees):
    """[W23, section 3.2]: hpZ keeps a 16-bit copy, sharded over the ranks of a node, of which
    those of tensor parallelism leave fewer to share it."""
    plain, plus = (on_stage("buffers", layout(strategy=s, **degrees)) for s in ("zero3", "zeropp"))
    assert plus - plain == pytest.approx(2 * float(total_params(LLAMA_8B)) / 8)


class TestOffload:
    """What waits on the host is not on the device."""

    @pytest.mark.parametrize("where", [CPU, NVME])
    def test_optimizer_states_leave(self, where):
        here, away = (
            peak_bytes(workload(offload_optimizer=w), layout(strategy="zero3"), CLUSTER, IDEAL)
            for w in (NOWHERE, where)
        )
        assert float(here["optimizer"]) == pytest.approx(12 * float(total_params(LLAMA_8B)) / 8)
        assert float(away["optimizer"]) == 0
        assert total(here) - total(away) == pytest.approx(float(here["optimizer"]))

    @pytest.mark.parametrize("where", [CPU, NVME])
    def test_weights_leave_where_the_strategy_fetches_them(self, where):
        here, away = (
            peak_bytes(workload(offload_params=w), layout(strategy="zero3"), CLUSTER, IDEAL)
            for w in (NOWHERE, where)
        )
        assert float(here["parameters"]) == pytest.approx(2 * float(total_params(LLAMA_8B)) / 8)
        assert float(away["parameters"]) == 0
        assert float(away["buffers"]) == float(here["buffers"]) > 0  # what is in use is here

    def test_activations_of_two_layers_stay(self):
        here, away = (at_peak("activations", offloads_activations=o) for o in (False, True))
        assert away == pytest.approx(here * 2 / LLAMA_8B.num_layers)

    def test_offloaded_recompute_keeps_the_inputs_of_two_layers_and_the_one_in_backward(self):
        full, away = (at_peak("activations", layout(recompute=r)) for r in ("full", "offload"))
        one_input = 4096 * 2 * LLAMA_8B.hidden_size
        assert full - away == pytest.approx((LLAMA_8B.num_layers - 2) * one_input)

    def test_70b_trains_on_8_gpus_once_its_optimizer_is_away(self):
        """The guides' 17.5 + 17.5 GB/GPU with the 105 GB of AdamW on the host."""
        lay = layout(strategy="zero3", recompute="full")
        work = workload(LLAMA_70B)
        away = replace(work, offload_optimizer=CPU)
        assert total(peak_bytes(work, lay, CLUSTER, GENERIC)) > CLUSTER.memory_bytes
        assert total(peak_bytes(away, lay, CLUSTER, GENERIC)) < CLUSTER.memory_bytes


@pytest.mark.parametrize("strategy", ["zero3", "fsdp2", "ddp"])
@pytest.mark.parametrize(("name", "saved"), [("adamw_8bit", 6), ("sgd", 4), ("muon", 4)])
def test_optimizers_save_what_their_states_are_smaller(strategy, name, saved):
    adamw, smaller = (
        at_peak(
            "optimizer", layout(strategy=strategy), optimizer_state_bytes=OPTIMIZERS[n].state_bytes
        )
        for n in ("adamw", name)
    )
    shards = 1 if strategy == "ddp" else 8
    want = saved * float(total_params(LLAMA_8B)) / shards
    assert adamw - smaller == pytest.approx(want, rel=1e-3)


def test_muon_keeps_momentum_of_the_layers_and_adamw_of_the_ends():
    """kellerjordan.github.io/posts/muon: embeddings and head by AdamW, 8 bytes; the rest 4."""
    muon = OPTIMIZERS["muon"]
    state = {"optimizer_state_bytes": muon.state_bytes, "ends_state_bytes": muon.ends_state_bytes}
    got = at_peak("optimizer", layout(strategy="fsdp2"), **state)
    ends = 2 * 128256 * 4096 + 4096
    layers = float(total_params(LLAMA_8B)) - ends
    assert got == pytest.approx((4 * layers + 8 * ends) / 8)


@pytest.mark.parametrize(
    ("strategy", "once"),
    [
        ("fsdp2", ("parameters", "optimizer")),
        ("zero1", ("parameters", "optimizer", "gradients")),  # flat buffers
    ],
)
@pytest.mark.parametrize("work", [{}, {"adapters": True, "trained_fraction": 0.01}])
def test_the_allocator_wastes_nothing_on_what_is_allocated_once(strategy, once, work):
    eff = replace(IDEAL, fragmentation=0.1, communicator_bytes=1e9)
    parts = peak_bytes(workload(LLAMA_8B, **work), layout(strategy=strategy), CLUSTER, eff)
    moves = {k: float(v) for k, v in parts.items() if k not in (*once, "reserve")}
    moves["buffers"] -= 1e9  # of the one communicator, which NCCL allocates
    assert float(parts["reserve"]) == pytest.approx(0.1 * sum(moves.values()))


def test_chunked_loss_keeps_a_piece_of_the_logits():
    whole, pieces = (at_peak("logits", chunked_loss=c, seq_len=8192.0) for c in (False, True))
    assert whole == IDEAL.held_logits_bytes * 8192 * 128256
    assert pieces == whole / 8


def test_a_fused_linear_loss_holds_as_many_logits_as_hidden_states():
    """linkedin/Liger-Kernel, fused_linear_cross_entropy.py: 32 pieces where 128,256 words are 31.3
    times as wide as 4,096."""
    whole = at_peak("logits", seq_len=8192.0)
    pieces = at_peak("logits", chunked_loss=True, loss_chunk_by_width=True, seq_len=8192.0)
    assert pieces == whole / 32


@pytest.mark.parametrize(("seq_len", "share"), [(8192.0, 1 / 32), (128.0, 1.0)])
def test_a_loss_in_pieces_of_so_many_tokens_holds_one_piece(seq_len, share):
    """256 tokens by TRL (huggingface/trl pull request 5575), whatever the sequence."""
    whole = at_peak("logits", seq_len=seq_len)
    pieces = at_peak("logits", chunked_loss=True, loss_chunk_tokens=256.0, seq_len=seq_len)
    assert pieces == pytest.approx(share * whole)


class TestGradientsThatAreFreed:
    """torch.optim.Optimizer.zero_grad sets them to None (pytorch/pytorch pull request 92731)."""

    ALONE = layout(num_gpus=1, dp_shard=1, strategy="ddp")

    def test_none_exists_at_a_loss_that_is_the_peak(self):
        job = {"seq_len": 131072.0, "frees_gradients": True}
        assert at_peak("gradients", self.ALONE, **job) == 0

    def test_all_exist_where_the_step_is_the_peak(self):
        """Little is kept: when the last layer's gradients are there, so are all others."""
        job = {"seq_len": 128.0, "chunked_loss": True}
        held, freed = (at_peak("gradients", self.ALONE, frees_gradients=f, **job) for f in (0, 1))
        assert freed == pytest.approx(held, rel=0.02)

    @pytest.mark.parametrize(
        "lay",
        [
            layout(num_gpus=1, dp_shard=1, strategy="ddp", num_microbatches=2),
            layout(strategy="ddp"),
            layout(num_gpus=1, dp_shard=1, strategy="zero1"),
        ],
        ids=["sums", "buckets", "flat buffer"],
    )
    def test_sums_buckets_and_flat_buffers_outlive_a_step(self, lay):
        job = {"seq_len": 131072.0}
        held, freed = (at_peak("gradients", lay, frees_gradients=f, **job) for f in (0, 1))
        assert freed == held > 0


def test_logits_take_the_bytes_that_their_software_is_known_to_hold():
    """KempnerForge: logits, log-softmax and their gradients in 16 bits."""
    assert at_peak("logits", logit_bytes=8.0, seq_len=8192.0) == 8 * 8192 * 128256


def test_the_busiest_expert_keeps_more_activations():
    even, busy = (
        at_peak("activations", layout(ep=8), model=MIXTRAL_8X7B, expert_imbalance=x)
        for x in (1.0, 2.0)
    )
    assert busy > even


class TestQuantisedBase:
    """QLoRA, [D23: Dettmers et al., arXiv:2305.14314]."""

    NF4 = nf4_bytes_per_param(double_quantisation=True)

    def weights(self, model):
        adapters = {"adapters": True, "trained_fraction": 1e-9, "weight_bytes": self.NF4}
        return on_stage("parameters", layout(dp_shard=1), model=model, **adapters)

    def test_a_70b_base_takes_about_half_a_byte_a_parameter(self):
        """The guides' rule, 0.5 GB per billion parameters, leaves out scales, embeddings, head."""
        per_param = self.weights(LLAMA_70B) / float(total_params(LLAMA_70B))
        assert 0.5 < self.NF4 < per_param < 0.6

    @pytest.mark.parametrize(("model", "ends"), [(LLAMA_2_7B, 2 * 32000), (LLAMA_8B, 2 * 128256)])
    def test_embeddings_and_head_stay_in_16_bits(self, model, ends):
        """A 4-bit Llama-2-7B counts 3,500,412,928 values in PEFT's print: half of what is in
        the linear layers and the whole of embeddings, head and norms."""
        whole = ends * model.hidden_size
        packed = float(total_params(model)) - whole
        assert self.weights(model) == pytest.approx(2 * whole + self.NF4 * packed, rel=1e-3)

    def test_adapters_come_on_top_of_the_base(self):
        adapters = {"adapters": True, "trained_fraction": 1.5, "weight_bytes": 2.0}  # rank 4,096
        base = float(total_params(LLAMA_2_7B))
        got = on_stage("parameters", layout(dp_shard=1), model=LLAMA_2_7B, **adapters)
        assert got >= base * (2 + 1.5 * 4) * (1 - 1e-9)


class TestStackHabits:
    """What stacks do differently, each against its arithmetic."""

    def parts(self, eff=IDEAL, lay=None, **work):
        return peak_bytes(workload(**work), lay or layout(strategy="ddp"), CLUSTER, eff)

    def test_training_in_16_bits_alone_takes_8_bytes_a_parameter(self):
        """Weights, gradients and both moments of AdamW in bf16, and no cast beside them."""
        alone = layout(strategy="ddp", dp_shard=1)
        wide, narrow = (self.parts(replace(IDEAL, own_weight_bytes=b), alone) for b in (4.0, 2.0))
        states = ("parameters", "gradients", "optimizer")
        params = float(total_params(LLAMA_8B))
        assert sum(wide[s].item() for s in states) == pytest.approx(16 * params)
        assert sum(narrow[s].item() for s in states) == pytest.approx(8 * params)
        assert wide["buffers"].item() - narrow["buffers"].item() == pytest.approx(2 * params)

    def test_replicas_copy_their_gradients_into_buckets_and_a_lone_rank_does_not(self):
        """Lightning-AI/litgpt, extensions/thunder/README.md: TinyLlama 1.1B in bf16 takes 32.04
        GB on 8 GPUs and 29.84 GB on one, 2 bytes of each of its 1.1 billion gradients."""
        eff = replace(IDEAL, bucket_copies=1.0, own_weight_bytes=2.0)
        one, eight = (total(self.parts(eff, layout(strategy="ddp", dp_shard=n))) for n in (1, 8))
        assert eight - one == pytest.approx(2 * float(total_params(LLAMA_8B)))
        printed = (32.04 - 29.84) * 1e9
        assert printed == pytest.approx(2 * 1.1e9, rel=0.01)

    @pytest.mark.parametrize("logit_bytes", [0.5, 10.0])
    def test_the_layer_in_backward_takes_the_memory_of_the_loss_again(self, logit_bytes):
        lay = layout(strategy="zero1", recompute="full", micro_batch_size=8)
        eff = replace(IDEAL, held_logits_bytes=logit_bytes)
        tokens = 8 * 4096
        logits = logit_bytes * tokens * LLAMA_8B.vocab_size
        whole = float(layer_bytes(LLAMA_8B, tokens=tokens, tp=1.0, sequence_parallel=0.0))
        entry = tokens * 2 * LLAMA_8B.hidden_size
        backward = 1.5 * whole - entry  # computed again but for its input, and its gradients
        assert (logits > backward) == (logit_bytes == 10.0)
        live = sum(self.parts(eff, lay)[p].item() for p in ("activations", "logits", "buffers"))
        assert live == pytest.approx(32 * entry + max(logits, backward))

    @pytest.mark.parametrize(("micro_batch", "is_peak"), [(1, True), (64, False)])
    def test_temporaries_of_the_step_count_where_the_pass_before_it_held_less(
        self, micro_batch, is_peak
    ):
        lay = layout(strategy="zero1", dp_shard=1, micro_batch_size=micro_batch)
        plain, copies = (self.parts(replace(IDEAL, step_bytes=b), lay) for b in (0.0, 16.0))
        live = sum(plain[p].item() for p in ("activations", "logits", "buffers"))
        temporaries = 16 * float(total_params(LLAMA_8B))
        assert (temporaries > live) == is_peak
        assert total(copies) - total(plain) == pytest.approx(max(temporaries - live, 0.0))

    def test_room_for_all_tokens_is_that_of_the_copy_that_experts_read(self):
        """8 ranks: 7 more of each token's gate, up, activated value and input, in 16 bits, however
        many copies the stack keeps of what really comes."""
        model = replace(MIXTRAL_8X7B, num_experts=64)
        for copies in (1.0, 6.0):
            eff = replace(IDEAL, routed_copies=copies)
            exact, whole = (
                one_layer(workload(model, worst_buffers=w), layout(ep=8, dp_shard=8), eff)
                for w in (False, True)
            )
            rows = 7 * model.experts_per_token * 4096
            each = 2 * (3 * model.moe_ffn_hidden_size + model.hidden_size)
            assert float(whole.whole - exact.whole) == pytest.approx(rows * each)

    def test_each_process_group_of_several_ranks_has_buffers(self):
        eff = replace(IDEAL, communicator_bytes=1e9)
        one, three = (
            self.parts(eff, layout(strategy="zero1", dp_shard=n, tp=n, pp=n))["buffers"].item()
            - self.parts(IDEAL, layout(strategy="zero1", dp_shard=n, tp=n, pp=n))["buffers"].item()
            for n in (1, 2)
        )
        assert (one, three) == (0.0, pytest.approx(3e9))

    def test_a_printed_peak_leaves_out_what_the_allocator_does_not_see(self):
        eff = replace(IDEAL, reserve_bytes=2e9, communicator_bytes=1e9, reserve_reported=0.0)
        lay = layout(strategy="zero1", tp=2)
        assert float(unreported_bytes(lay, CLUSTER, eff, reserve=5e9)) == pytest.approx(2e9 + 2e9)
        device = replace(eff, reserve_reported=1.0)
        assert float(unreported_bytes(lay, CLUSTER, device, reserve=5e9)) == 0.0

    def test_three_counters_read_one_peak(self):
        """Whatever of them a stack prints: 2e9 of context and of buffers, 4e9 kept in reserve."""
        lay = layout(strategy="zero1", tp=2)
        eff = replace(IDEAL, reserve_bytes=2e9, communicator_bytes=1e9)
        for printed in (0.0, 1.0):
            one = replace(eff, reserve_reported=printed, fragmentation_reported=printed)
            found = counted_bytes(lay, CLUSTER, one, peak=48e9, reserve=6e9)
            assert found == pytest.approx({"allocated": 40e9, "reserved": 44e9, "device": 48e9})

    def test_gradients_that_are_used_in_backward_are_those_of_a_layer(self):
        lay = layout(strategy="ddp", dp_shard=1)
        held, freed = (
            self.parts(IDEAL, lay, gradient_bytes=g)["gradients"].item() for g in (4.0, 4.0 / 32)
        )
        assert held / freed == pytest.approx(32)

    def test_gradients_follow_weights_to_the_host(self):
        lay = layout(strategy="fsdp2")
        assert self.parts(IDEAL, lay, offload_params=CPU)["gradients"].item() == 0.0
        whole = self.parts(IDEAL, layout(strategy="ddp"), offload_params=CPU)
        assert whole["gradients"].item() > 0  # nothing fetches its weights

    @pytest.mark.parametrize(
        ("habit", "work", "share"),
        [
            ({"compiled_kept": 0.5}, {"compiled": True}, 0.5),
            ({"compiled_kept": 0.5}, {"compiled": False}, 1.0),
            ({}, {"matmul_bits": 8.0}, 1.0),
            ({}, {"matmul_bits": 4.0}, 4.5 / 16),
            ({"frozen_kept": 0.8}, {"adapters": True}, 0.8),
            ({"frozen_kept": 0.8}, {"adapters": False}, 1.0),
            ({"quantised_kept": 1.3}, {"adapters": True, "weight_bytes": 0.55}, 1.3),
        ],
    )
    def test_what_is_kept_of_all_but_the_input(self, habit, work, share):
        entry = LLAMA_8B.num_layers * 4096 * 2 * LLAMA_8B.hidden_size
        plain = self.parts()["activations"].item() - entry
        got = self.parts(replace(IDEAL, **habit), **work)["activations"].item() - entry
        assert got == pytest.approx(share * plain)

    @pytest.mark.parametrize(
        ("strategy", "own", "given", "each"),
        [
            ("fsdp2", 4.0, float("nan"), 4.0),
            ("fsdp2", 2.0, float("nan"), 2.0),
            ("fsdp2", 2.0, 4.0, 4.0),  # 16-bit weights, reduced in fp32
            ("fsdp1", 4.0, float("nan"), 2.0),
            ("hsdp", 4.0, 2.0, 2.0),
        ],
    )
    def test_gradients_that_are_summed_whole_do_not_shrink_with_ranks(
        self, strategy, own, given, each
    ):
        """KempnerInstitute/KempnerForge (benchmarks): 8.0e9 parameters take 61.1 GiB on 4 GPUs and
        51.3 on 32, where their whole fp32 gradients are 30."""
        eff = replace(IDEAL, own_weight_bytes=own)
        for ranks in (2, 32):
            lay = layout(strategy=strategy, dp_shard=ranks, num_microbatches=4)
            got = self.parts(eff, lay, sums_whole_gradients=True, gradient_bytes=given)
            assert got["gradients"].item() == pytest.approx(each * float(total_params(LLAMA_8B)))

    @pytest.mark.parametrize(
        "lay",
        [
            layout(strategy="fsdp2", num_microbatches=1),  # no sum waits
            layout(strategy="fsdp2", pp=2, num_microbatches=4),  # counted with the stage's weights
            layout(strategy="zero3", num_microbatches=4),
            layout(strategy="zero1", num_microbatches=4),
            layout(strategy="ddp", num_microbatches=4),
            layout(strategy="fsdp2", num_microbatches=4, offload_params=CPU),
        ],
    )
    def test_where_nothing_is_summed_whole(self, lay):
        for part in ("gradients", "buffers"):
            one, other = (
                on_stage(part, lay, sums_whole_gradients=whole) for whole in (False, True)
            )
            assert one == other

    @pytest.mark.parametrize(
        ("lay", "whole", "share"),
        [
            (layout(strategy="fsdp1", dp_shard=4, num_microbatches=4), True, 1.0),
            (layout(strategy="fsdp1", dp_shard=4, num_microbatches=1), True, 0.25),
            (layout(strategy="fsdp1", dp_shard=4, num_microbatches=4), False, 0.25),
            (layout(strategy="ddp", dp_shard=4, num_microbatches=4), True, 0.0),
        ],
    )
    def test_frozen_weights_of_a_flat_parameter_have_16_bit_gradients(self, lay, whole, share):
        """Whole where sums wait, sharded where none does or they are reduced at once, and none
        without a flat parameter or without adapters."""
        job = {"trained_fraction": 1e-9, "sums_whole_gradients": whole}
        frozen, full = (
            on_stage("gradients", lay, whole_unit_gradients=True, adapters=a, **job)
            - on_stage("gradients", lay, whole_unit_gradients=False, adapters=a, **job)
            for a in (True, False)
        )
        assert frozen == pytest.approx(2.0 * share * float(total_params(LLAMA_8B)), rel=1e-6)
        assert full == 0

    def test_moments_of_16_bits_stay_so_where_the_optimizer_sets_them(self):
        eff, alone = replace(IDEAL, own_weight_bytes=2.0), layout(strategy="ddp", dp_shard=1)
        found = {
            sets: self.parts(eff, alone, optimizer_state_bytes=4.0, sets_state_type=sets)
            for sets in (False, True)
        }
        params = float(total_params(LLAMA_8B))
        assert found[True]["optimizer"].item() == pytest.approx(4 * params)
        assert found[False]["optimizer"].item() == pytest.approx(2 * params)

    def test_a_compiled_loss_keeps_less_of_the_logits(self):
        eff = replace(IDEAL, compiled_logits=0.4)
        eager, compiled = (self.parts(eff, compiled_loss=c)["logits"].item() for c in (False, True))
        assert compiled == pytest.approx(0.4 * eager)

    def test_a_loss_over_the_whole_vocabulary_is_not_divided_by_tensor_parallelism(self):
        lay = layout(tp=4)
        split, whole = (self.parts(IDEAL, lay, whole_logits=w)["logits"].item() for w in (0, 1))
        assert whole == pytest.approx(4 * split)


@given(job=jobs())
def test_parts_are_named_finite_and_not_negative(job):
    parts = peak_bytes(*job)
    assert tuple(parts) == PARTS
    for name, value in parts.items():
        assert np.isfinite(value).all(), name
        assert (value >= 0).all(), name
    work, lay, *_ = job
    gathers = STRATEGIES[int(lay.strategy)].shards_parameters
    assert (parts["parameters"] > 0) == (work.offload_params == NOWHERE or not gathers)
    away = work.offload_optimizer != NOWHERE or work.paged_optimizer
    assert (parts["optimizer"] > 0) == (not away)


@given(job=jobs())
def test_the_fuller_end_is_reported(job):
    work, lay, _, eff = job
    live = total({k: v for k, v in peak_bytes(*job).items() if k != "reserve"})
    ends = [total(stage_bytes(work, lay, eff, first=f)) for f in (True, False)]
    assert live == pytest.approx(max(ends))


@given(job=jobs(), doubled=st.sampled_from([2.0, 8.0]))
def test_more_shards_never_need_more(job, doubled):
    work, lay, cluster, eff = job
    # The first rank beside brings buckets and buffers of its own.
    assume(lay.dp_shard > 1)
    wider = replace(
        lay, dp_shard=lay.dp_shard * doubled, num_gpus=np.asarray(lay.num_gpus) * doubled
    )
    assert total(peak_bytes(work, wider, cluster, eff)) <= total(
        peak_bytes(work, lay, cluster, eff)
    ) * (1 + 1e-12)


@given(job=jobs())
def test_sequence_parallelism_never_costs_memory(job):
    work, lay, cluster, eff = job
    without, beside = (replace(lay, sequence_parallel=x) for x in (0.0, 1.0))
    assert total(peak_bytes(work, beside, cluster, eff)) <= total(
        peak_bytes(work, without, cluster, eff)
    ) * (1 + 1e-12)


@given(job=jobs(), seq_len=st.sampled_from([2.0, 4.0]))
def test_longer_sequences_and_larger_microbatches_need_more(job, seq_len):
    work, lay, cluster, eff = job
    here = total(peak_bytes(work, lay, cluster, eff))
    longer = replace(work, seq_len=work.seq_len * seq_len)
    larger = replace(lay, micro_batch_size=lay.micro_batch_size * seq_len)
    of_step = eff.step_bytes > 0 or work.lists_tensors or work.factors_by_operator
    if not of_step:  # else the optimizer's step may be the peak
        assert total(peak_bytes(longer, lay, cluster, eff)) > here
    needs = [
        total(peak_bytes(work, larger, cluster, eff)),
        total(peak_bytes(longer, lay, cluster, eff)),
    ]
    if work.unfused_attention:  # its score matrix grows with the square of the sequence
        assert here <= needs[0] * (1 + 1e-12)
        assert needs[0] <= needs[1] * (1 + 1e-12)
    else:
        assert needs[0] == pytest.approx(needs[1])


@pytest.mark.parametrize("tp", [1, 2])
def test_gathered_keys_and_values_of_the_whole_sequence_take_memory(tp):
    """arXiv:2407.21783, section 3.3.2: K, V and their gradients of one layer, in 16 bits."""
    eff = replace(IDEAL, held_logits_bytes=0.0)  # else the loss is the peak
    ring, gathered, ulysses, alone = (
        at_peak("buffers", layout(tp=tp, **lay), eff, seq_len=131072.0)
        for lay in (
            {"cp": 8, "context_method": "ring"},
            {"cp": 8, "context_method": "all_gather"},
            {"cp": 8, "context_method": "ulysses"},
            {"cp": 1, "context_method": "all_gather"},
        )
    )
    of_all_heads = 2 * 8 * 128 * 131072 * 2  # keys and values, 8 heads of 128
    assert gathered - ring == pytest.approx(2 * of_all_heads / tp)
    assert ulysses == ring
    assert alone == pytest.approx(at_peak("buffers", layout(tp=tp), eff, seq_len=131072.0))


@pytest.mark.parametrize(("gradients", "held"), [(float("nan"), 4), (2.0, 2), (4.0, 4), (6.0, 6)])
def test_gradients_take_what_their_type_says(gradients, held):
    got = at_peak("gradients", layout(strategy="zero1"), gradient_bytes=gradients)
    assert got == pytest.approx(held * float(total_params(LLAMA_8B)))


@given(job=jobs())
def test_offload_and_adapters_never_cost_device_memory(job):
    work, lay, cluster, eff = job
    assume(not work.adapters)  # fewer adapters than those below are cheaper still
    # What stacks keep of activations on a 4-bit base is a habit, not physics.
    eff = replace(eff, quantised_kept=1.0)
    here = total(peak_bytes(work, lay, cluster, eff))
    for cheaper in (
        replace(work, offload_optimizer=CPU),
        replace(work, offloads_activations=True),
        replace(work, adapters=True, trained_fraction=0.01, weight_bytes=2.0),
        replace(work, adapters=True, trained_fraction=0.01, weight_bytes=0.55),
    ):
        # Adapters of 1% come on top of weights that stay as wide as they were.
        added = 1.01 if cheaper.weight_bytes == 2.0 and cheaper.adapters else 1.0
        assert total(peak_bytes(cheaper, lay, cluster, eff)) <= here * added * (1 + 1e-12)


@given(rows=st.lists(jobs(), min_size=2, max_size=6))
def test_a_column_gives_what_its_rows_give(rows):
    columns = peak_bytes(*as_columns(rows))
    for i, row in enumerate(rows):
        assert parts_at(columns, i) == pytest.approx(parts_at(peak_bytes(*row), 0), rel=1e-9)
