"""Phases of a step: their largest is the peak, each holds what is alive in it and no more."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from core.memory.activations import input_bytes
from core.memory.layer_memory import one_layer, tokens_per_rank
from core.memory.memory import peak_bytes
from core.memory.memory_phases import (
    PARTS,
    PHASES,
    STATES,
    late_gradient_bytes,
    phase_bytes,
)
from core.memory.states import makes_gradients_late
from core.model.transformer import total_params
from tests.made_up.jobs import (
    CLUSTER,
    IDEAL,
    LLAMA_8B,
    LLAMA_70B,
    SHIPPED,
    as_columns,
    jobs,
    layout,
    parts_at,
    workload,
)

GENERIC = SHIPPED["generic"]


def totals_of(job):
    """All parts of each phase together."""
    return {n: float(sum(parts.values())) for n, parts in phase_bytes(*job).items()}


def phases(work, lay, cluster=CLUSTER, eff=GENERIC):
    """Bytes by phase and part, as numbers."""
    found = phase_bytes(work, lay, cluster, eff)
    return {n: {p: float(v) for p, v in parts.items()} for n, parts in found.items()}


@given(jobs())
def test_the_largest_phase_is_the_peak(job):
    totals = totals_of(job)
    assert tuple(totals) == PHASES
    whole = sum(float(v) for v in peak_bytes(*job).values())
    assert max(totals.values()) == pytest.approx(whole, rel=1e-12)
    assert all(t <= whole * (1 + 1e-12) for t in totals.values())


@given(jobs())
def test_the_peak_is_reached_in_a_pass_or_in_the_step(job):
    """Never between them: these phases only hold less."""
    totals = totals_of(job)
    assert max(totals, key=lambda n: totals[n]) in ("forward", "backward", "optimizer_step")


@given(jobs())
def test_no_part_is_negative_and_states_are_those_of_the_peak(job):
    of_peak, found = peak_bytes(*job), phase_bytes(*job)
    are_late = bool(np.all(makes_gradients_late(*job[:2])))
    unborn = ("forward",) if are_late else ()
    for name, parts in found.items():
        assert tuple(parts) == PARTS
        assert all(float(v) >= 0 for v in parts.values())
        for what in STATES:
            whole = float(found["optimizer_step"][what])
            alive = what != "gradients" or name not in ("start", "checkpoint", *unborn)
            assert float(parts[what]) == (whole if alive else 0.0)
            # Of late gradients the peak counts what is above the fullest moment without them.
            is_less = are_late and what == "gradients"
            assert float(of_peak[what]) <= whole if is_less else float(of_peak[what]) == whole


@given(jobs(), jobs())
def test_columns_are_rows(first, second):
    columns = phase_bytes(*as_columns([first, second]))
    for row, job in enumerate((first, second)):
        for name, parts in phase_bytes(*job).items():
            assert parts_at(columns[name], row) == pytest.approx(parts_at(parts, 0), rel=1e-9)


class TestWhatIsAlive:
    """One phase after the other, of jobs whose figures are known."""

    def test_zero_figure_1(self):
        """ZeRO, arXiv:1910.02054, figure 1: 16 bytes of states a parameter, of which two are
        gradients; between steps 14."""
        held = phases(workload(LLAMA_8B), layout(strategy="zero3", dp_shard=64), eff=IDEAL)
        per_param = float(total_params(LLAMA_8B)) / 64
        assert sum(held["start"].values()) == pytest.approx(14 * per_param)
        assert sum(held["optimizer_step"].values()) == pytest.approx(16 * per_param)
        assert held["start"] == held["checkpoint"]

    def test_full_recompute_keeps_the_inputs_and_makes_one_layer_again(self):
        """Korthikanti et al., arXiv:2205.05198, section 5: 2 s b h bytes a layer."""
        work, lay = workload(LLAMA_70B), layout(recompute="full", num_microbatches=4)
        held = phases(work, lay, eff=IDEAL)
        tokens = tokens_per_rank(work, lay)
        entry = float(input_bytes(LLAMA_70B, tokens=tokens, tp=1, sequence_parallel=0))
        layer = one_layer(work, lay, IDEAL)
        assert held["forward"]["activations"] == pytest.approx(80 * entry)
        again = held["backward"]["activations"] - held["forward"]["activations"]
        assert again == pytest.approx(float(layer.whole) - entry)
        assert held["backward"]["temporaries"] == pytest.approx(0.5 * float(layer.whole))

    def test_logits_are_there_at_the_loss_only(self):
        held = phases(workload(), layout())
        assert held["forward"]["logits"] > 0
        assert all(held[n]["logits"] == 0 for n in PHASES if n != "forward")

    def test_between_micro_batches_one_gpu_keeps_no_activations(self):
        held = phases(workload(), layout(num_microbatches=8))
        assert held["accumulation"]["activations"] == 0
        assert held["accumulation"]["gradients"] > 0

    @pytest.mark.parametrize(
        ("schedule", "virtual_stages", "kept_share"),
        [("1f1b", 1, 3 / 4), ("gpipe", 1, 31 / 32), ("naive", 1, 0.0),
         ("interleaved", 2, 5 / 5.5)],
    )  # fmt: skip
    def test_a_pipeline_keeps_the_micro_batches_in_flight(
        self, schedule, virtual_stages, kept_share
    ):
        """Narayanan et al., arXiv:2104.04473, section 2.2: p micro-batches with 1F1B, all with
        GPipe, p + (p - 1)/v chunks' worth if interleaved; one chunk fewer between passes."""
        lay = layout(
            pp=4, num_microbatches=32, schedule=schedule, virtual_stages=virtual_stages, tp=8
        )
        held = phases(workload(LLAMA_70B, chunked_loss=True), lay)
        share = held["accumulation"]["activations"] / held["forward"]["activations"]
        assert share == pytest.approx(kept_share)

    def test_gathered_weights_are_freed_after_the_pass(self):
        """PyTorch FSDP, arXiv:2304.11277, section 3: resharded after use."""
        work = workload()
        sharded = phases(work, layout(strategy="fsdp2"))
        assert sharded["forward"]["buffers"] > sharded["accumulation"]["buffers"]
        assert sharded["accumulation"]["buffers"] == sharded["optimizer_step"]["buffers"]
        pipeline = phases(work, layout(strategy="fsdp2", pp=2, tp=2))
        assert pipeline["accumulation"]["buffers"] == pipeline["forward"]["buffers"]

    def test_the_optimizer_step_can_be_the_peak(self):
        """Where little is kept, the fp32 copies of an unfused step are what is largest."""
        eff = replace(IDEAL, step_bytes=12.0)
        work = workload(seq_len=128.0, chunked_loss=True)
        totals = totals_of((work, layout(recompute="full"), CLUSTER, eff))
        assert max(totals, key=lambda n: totals[n]) == "optimizer_step"


class TestLateGradients:
    """What the peak counts too early with one micro-batch."""

    def test_several_micro_batches_accumulate(self):
        late = late_gradient_bytes(workload(), layout(num_microbatches=2), CLUSTER, IDEAL)
        assert float(late) == 0

    def test_one_micro_batch_whose_activations_are_little_is_no_less(self):
        """At the end of backward all gradients are there: only activations can be saved."""
        work = workload(seq_len=128.0, chunked_loss=True)
        late = float(late_gradient_bytes(work, layout(recompute="full"), CLUSTER, IDEAL))
        held = phases(work, layout(recompute="full"), eff=IDEAL)
        assert 0 <= late <= held["backward"]["activations"]

    def test_one_micro_batch_with_many_activations_saves_all_gradients(self):
        """At the loss no gradient is there yet."""
        work, lay = workload(seq_len=131072.0), layout(strategy="ddp")
        late = float(late_gradient_bytes(work, lay, CLUSTER, IDEAL))
        assert late == pytest.approx(4 * float(total_params(LLAMA_8B)))

    @given(jobs())
    def test_it_is_within_what_gradients_and_their_buckets_take(self, job):
        _, lay, _, eff = job
        late = float(late_gradient_bytes(*job))
        gradients = float(peak_bytes(*job)["gradients"])
        most = gradients * (1 + float(eff.bucket_copies)) * (1 + float(eff.fragmentation))
        assert 0 <= late <= most * (1 + 1e-9) + 1
        assert not (late and float(lay.num_microbatches) > 1)

    def test_columns(self):
        works = [workload(), workload(LLAMA_70B)]
        rows = [(w, layout(recompute=n), CLUSTER, GENERIC) for n, w in enumerate(works)]
        columns = np.asarray(late_gradient_bytes(*as_columns(rows)))
        assert columns.tolist() == pytest.approx([float(late_gradient_bytes(*r)) for r in rows])
