"""The values that degrees may take: divisors of what they must divide, and nothing twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.layout import degrees


@given(n=st.integers(1, 131_072))
def test_divisors_are_all_that_divide(n):
    found = degrees.divisors(n)
    assert list(found) == sorted(set(found))
    assert all(n % d == 0 for d in found)
    assert len(found) == sum(2 if d * d < n else 1 for d in range(1, int(n**0.5) + 1) if n % d == 0)


@pytest.mark.parametrize(
    ("num_gpus", "domain", "across", "found"),
    [
        (64, 8, False, [1, 2, 4, 8]),
        (24, 8, False, [1, 2, 3, 4, 6, 8]),
        (7, 8, False, [1, 7]),
        (131, 8, False, [1]),
        (16, 8, True, [1, 2, 4, 8, 16]),
        (72, 72, False, [1, 2, 3, 4, 6, 8, 9, 12, 18, 24, 36, 72]),
        (8, 0, False, [1]),
    ],
)
def test_tensor_parallelism_stays_in_the_domain_unless_it_may_leave(
    num_gpus, domain, across, found
):
    assert degrees.tensor_parallel(num_gpus=num_gpus, domain=domain, across_nodes=across) == found


def test_stages_and_their_chunks():
    assert degrees.pipeline_parallel(num_gpus=96, layers=80) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32,
                                                                 48]  # fmt: skip
    assert degrees.virtual_stages(layers=80, pp=4) == [1, 2, 4, 5, 8, 10, 20]
    assert degrees.virtual_stages(layers=61, pp=16) == [1, 2, 4, 8]  # DeepSeek-V3: 4 a stage
    assert degrees.virtual_stages(layers=31, pp=31) == [1, 2, 4, 8]  # the rules drop the chunks


def test_batches_experts_sequences_and_groups():
    assert degrees.micro_batch_sizes(global_batch_size=1024) == [1, 2, 4, 8, 16]
    assert degrees.micro_batch_sizes(global_batch_size=48) == [1, 2, 3, 4, 6, 8, 12, 16]
    assert degrees.micro_batch_sizes(global_batch_size=17) == [1]
    assert degrees.expert_parallel(num_experts=0) == [1]
    assert degrees.expert_parallel(num_experts=12) == [1, 2, 3, 4, 6, 12]
    asked = {"num_gpus": 256, "seq_len": 32_768, "global_batch_size": 512, "params": 8e9}
    long = degrees.context_parallel(**asked)
    assert long == [1, 2, 4, 8, 16, 32, 64]
    large = {**asked, "seq_len": 8192, "params": 405e9}
    assert degrees.context_parallel(**large) == [1, 2, 4]
    assert degrees.context_parallel(**{**large, "seq_len": 4096}) == [1, 2]
    assert degrees.context_parallel(**{**large, "seq_len": 512}) == [1]
    assert degrees.context_parallel(**{**large, "params": 8e9}) == [1]
    assert degrees.shard_groups(num_gpus=4, gpus_per_node=8) == [8]
    assert degrees.shard_groups(num_gpus=48, gpus_per_node=8) == [8, 16, 24, 48]
