"""What collectives of one tensor after the other cost beyond joint ones, in bytes: seconds on a
link of 1 byte/s that fills at once."""

from dataclasses import replace

import pytest

from core.memory.stage_params import stage_params
from core.time import one_by_one, traffic
from core.time.step import step
from tests.made_up.jobs import CLUSTER, IDEAL, LLAMA_8B, layout, workload

SLOW = replace(CLUSTER, scale_up_bytes_per_s=1.0, scale_out_bytes_per_s=1.0, scale_up_domain=4096,
               gpus_per_node=4096)  # fmt: skip
AT_ONCE = replace(IDEAL, fill_bytes=0.0)
SPLIT = workload(LLAMA_8B, splits_projections=True)
OWNERS = workload(LLAMA_8B, reduces_to_owners=True)
ALL_REDUCED = workload(LLAMA_8B, all_reduces_gradients=True)


def owners_s(lay, work=OWNERS, eff=AT_ONCE, cluster=SLOW):
    held = stage_params(work, lay, first=True)
    return float(one_by_one.owners_s(work, lay, cluster, eff, held))


@pytest.mark.parametrize(("gated", "more"), [(True, 3), (False, 2)])
def test_each_projection_adds_up_the_gradient_of_its_own_input(gated, more):
    """ColumnParallelLinear of Paddle: three for attention and two for a gated MLP, of which a joint
    layer each needs one; forward has two more, so that 4 all-reduces become 7."""
    model = replace(LLAMA_8B, gated_mlp=gated)
    work, lay = replace(SPLIT, model=model), layout(tp=8, dp_shard=1)
    joint = float(traffic.tensor_parallel_s(work, lay, SLOW, AT_ONCE))
    apart = float(one_by_one.split_projections_s(work, lay, SLOW, AT_ONCE))
    assert apart / joint == pytest.approx(more / 4)
    assert one_by_one.split_projections_s(workload(model), lay, SLOW, AT_ONCE) == 0


def test_recompute_repeats_no_all_reduce_of_backward():
    found = [
        float(step(SPLIT, layout(tp=8, dp_shard=1, recompute=r), CLUSTER, IDEAL)
              .parts["tp_exposed"])
        - float(step(workload(LLAMA_8B), layout(tp=8, dp_shard=1, recompute=r), CLUSTER, IDEAL)
                .parts["tp_exposed"])
        for r in ("none", "full")
    ]  # fmt: skip
    assert found[0] == pytest.approx(found[1])
    assert found[0] > 0


@pytest.mark.parametrize("m", [1, 4])
def test_a_reduction_to_an_owner_moves_all_bytes_over_each_link(m):
    """A scatter moves 7 of 8 parts; the eighth is what an owner's own ring moves besides, in every
    micro-batch, and each of the layers' seven matrices fills it anew."""
    lay = layout(strategy="zero2", num_microbatches=m)
    held = float(stage_params(OWNERS, lay, first=True).dense)
    assert owners_s(lay) == pytest.approx(m * held * 2.0 / 8, rel=1e-3)
    filled = replace(IDEAL, fill_bytes=1e6)
    assert owners_s(lay, eff=filled) - owners_s(lay) == pytest.approx(m * 7 * 32 * 7 * 1e6)


def test_owners_are_of_sharded_gradients_alone():
    assert owners_s(layout(strategy="zero1")) == 0
    assert owners_s(layout(strategy="zero2", dp_shard=1)) == 0
    assert owners_s(layout(strategy="zero2"), work=workload(LLAMA_8B)) == 0


@pytest.mark.parametrize(("strategy", "times"), [("zero1", 2), ("zero2", 1), ("ddp", 1)])
def test_an_all_reduce_is_a_scatter_and_a_gather(strategy, times):
    lay = layout(strategy=strategy)
    assert one_by_one.gradient_passes(ALL_REDUCED, lay) == times
    assert one_by_one.gradient_passes(workload(LLAMA_8B), lay) == 1


def test_gradients_that_every_rank_sums_make_a_step_longer():
    lay, waits = layout(strategy="zero1"), {"overlaps_gradients": False, "overlaps_weights": False}
    scattered, summed = (
        float(step(workload(LLAMA_8B, all_reduces_gradients=a, gradient_bytes=2.0, **waits), lay,
                   SLOW, AT_ONCE).parts["dp_exposed"])
        for a in (False, True)
    )  # fmt: skip
    # 16-bit gradients once or twice, and 16-bit weights
    assert summed / scattered == pytest.approx(3 / 2, rel=1e-3)
