"""What checkpoint policies compute again, and what that costs."""

from __future__ import annotations

import numpy as np
import pytest

from app.accuracy.row_words import POLICY
from core.time.layer import layer_seconds
from core.time.repeated import matmul_shares, repeated_share
from hardware.habits.remat import PARTS, POLICIES, Repeated, repeated
from hardware.measured import RUNS_CSV, read_runs
from tests.made_up.jobs import CLUSTER, IDEAL, LLAMA_8B, layout, workload

NOTHING = Repeated(qkv=False, out=False, up=False, core=False)
ALL = Repeated(qkv=True, out=True, up=True, core=True)


@pytest.mark.parametrize(
    ("detail", "again"),
    [
        ("minimal_flash", NOTHING),
        ("custom offload:decoder_layer_input", ALL),
        ("custom offload:decoder_layer_input+mlpwo", ALL),
        ("custom offload:key_proj+out_proj+query_proj+value_proj",
         Repeated(qkv=False, out=False, up=True, core=True)),
        ("custom offload:key_proj+query_proj", ALL),  # values are missing
        ("save_qkv_proj", Repeated(qkv=False, out=True, up=True, core=True)),
        ("custom", None),
        ("full", None),
        ("21 of 80 layers", None),
        ("", None),
    ],
)  # fmt: skip
def test_what_is_not_kept_is_computed_again(detail, again):
    assert repeated(detail) == again


def test_every_policy_that_a_row_names_is_known_or_full_or_a_list_of_one_s_own():
    details = read_runs(RUNS_CSV).inputs.recompute_detail
    named = {str(d).removeprefix(POLICY).split()[0] for d in details if str(d).startswith(POLICY)}
    assert named <= {*POLICIES, "full", "custom"}
    assert all(parts <= PARTS for parts in POLICIES.values())


def test_the_matmuls_of_llama_8b():
    """Hidden size 4096, 8 of 32 heads for keys and values, MLP of 14,336: 4096 times 6144, 4096
    and 3 x 14336."""
    qkv, out, up = (float(np.asarray(s)) for s in matmul_shares(LLAMA_8B))
    whole = 6144 + 4096 + 3 * 14336
    assert (qkv, out, up) == pytest.approx((6144 / whole, 4096 / whole, 2 * 14336 / whole))


def test_a_policy_repeats_what_it_says():
    work, lay = workload(), layout(recompute="selective")
    one = layer_seconds(work, lay, CLUSTER, IDEAL)
    forward = one.matmul_forward + one.attention_forward + one.memory_bound_forward

    def share(**policy):
        return float(repeated_share(lay, work.model, one, IDEAL, **policy))

    light = share(matmuls=0.0, with_core=False)
    assert light * forward == pytest.approx(float(one.memory_bound_forward))
    assert share(matmuls=0.5, with_core=True) - light == pytest.approx(
        float((0.5 * one.matmul_forward + one.attention_forward) / forward)
    )
    assert share(matmuls=1.0) == pytest.approx(1)
    assert share() == IDEAL.selective_recompute
