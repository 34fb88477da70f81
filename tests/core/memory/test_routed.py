"""Tests of the rows of routed tokens that one rank has room for."""

import numpy as np
import pytest

from core.memory.layer_memory import one_layer
from core.memory.routed import held_rows
from tests.made_up.jobs import DEEPSEEK_V3, IDEAL, MIXTRAL_8X7B, layout, workload


@pytest.mark.parametrize(
    ("work", "ep", "rows"),
    [
        ({}, 8, 8.0),
        ({"capacity_factor": 1.25}, 8, 1.25),  # dropped instead
        ({}, 1, 1.0),
        ({"worst_buffers": False}, 8, 1.0),
    ],
)
def test_only_dropless_experts_over_ranks_have_room_for_all_tokens(work, ep, rows):
    job = workload(DEEPSEEK_V3, **{"worst_buffers": True, **work})
    found, _ = held_rows(job, layout(ep=ep), IDEAL)
    assert float(np.asarray(found)) == rows


def test_a_layer_of_the_worst_case_keeps_more_than_a_balanced_one():
    lay = layout(ep=8)
    even, worst = (workload(DEEPSEEK_V3, worst_buffers=h) for h in (False, True))
    kept = [float(np.asarray(one_layer(w, lay, IDEAL).whole)) for w in (even, worst)]
    assert kept[1] > 2 * kept[0]


def test_ranks_that_route_the_tokens_of_their_group_keep_a_copy_for_each():
    lay = layout(tp=4, etp=4)
    rows, copies = held_rows(workload(MIXTRAL_8X7B, routes_group=1.0), lay, IDEAL)
    assert (float(np.asarray(rows)), float(np.asarray(copies))) == (1.0, 4 * IDEAL.routed_copies)
    rows, copies = held_rows(workload(MIXTRAL_8X7B, routes_group=2.0), layout(tp=4), IDEAL)
    assert (float(np.asarray(rows)), float(np.asarray(copies))) == (4.0, IDEAL.routed_copies)
