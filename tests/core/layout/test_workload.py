"""Tests of what follows from a workload and a layout together."""

import numpy as np
import pytest

from core.layout.workload import ALL, ALL_IF_DIVIDED, SHARE, group_routing, sums_routed_gradients
from tests.made_up.jobs import MIXTRAL_8X7B, workload


@pytest.mark.parametrize(
    ("kind", "etp", "ranks", "repeats"),
    [
        (SHARE, 1, 1, 1),
        (SHARE, 4, 1, 1),
        (ALL_IF_DIVIDED, 1, 1, 1),
        (ALL_IF_DIVIDED, 4, 4, 1),  # each rank has its part of every expert
        (ALL, 1, 4, 4),
        (ALL, 4, 4, 1),
    ],
)
def test_how_many_ranks_of_a_group_route_a_token(kind, etp, ranks, repeats):
    job = workload(MIXTRAL_8X7B, routes_group=kind)
    found = group_routing(job, tp=4, etp=etp)
    assert tuple(float(np.asarray(f)) for f in found) == (ranks, repeats)
    assert bool(sums_routed_gradients(job, etp=etp)) is (kind == ALL_IF_DIVIDED and etp > 1)
