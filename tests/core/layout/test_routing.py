"""Tests of the load of the busiest rank of experts."""

import numpy as np
import pytest

from core.layout.routing import MAX_VIO, largest_of, max_vio_of_alike, natural_load, worst_load
from core.layout.workload import buffered_load, expert_load
from tests.made_up.jobs import MIXTRAL_8X7B, workload


def test_the_busiest_of_64_experts_is_as_busy_as_published():
    """arXiv:2408.15664, table 2: 0.72 and 0.52 over the mean, of 64 experts, 6 for a token."""
    load = natural_load(num_experts=64, experts_per_token=6, ep=64)
    assert float(load) == pytest.approx(1 + MAX_VIO)


@pytest.mark.parametrize(("experts", "taken", "ep"), [(8, 2, 8), (128, 8, 8), (256, 8, 64)])
def test_the_busiest_rank_is_that_of_routers_drawn_at_random(experts, taken, ep):
    """Experts with independent loads of the published spread, in blocks of experts / ep."""
    spread = np.sqrt((MAX_VIO / largest_of(64)) ** 2 / (64 / 6 - 1) * (experts / taken - 1))
    drawn = np.random.default_rng(0).normal(1.0, spread, size=(4000, experts))
    drawn /= drawn.mean(axis=1, keepdims=True)
    busiest = drawn.reshape(-1, ep, experts // ep).mean(axis=2).max(axis=1).mean()
    load = natural_load(num_experts=experts, experts_per_token=taken, ep=ep)
    assert float(load) == pytest.approx(busiest, rel=0.01)


@pytest.mark.parametrize(("experts", "taken", "ep"), [(32, 4, 2), (32, 4, 8), (128, 8, 8)])
@pytest.mark.parametrize("kinds", [1, 2])
def test_tokens_that_are_alike_take_the_experts_of_their_kind(experts, taken, ep, kinds):
    """The busiest rank where each kind takes experts drawn at random, each at most once."""
    rng = np.random.default_rng(0)
    drawn = np.argsort(rng.random((2000, kinds, experts)))[:, :, :taken] // (experts // ep)
    held = (drawn[..., None] == np.arange(ep)).sum(axis=(1, 2)).max(axis=1).mean()
    busiest = held * ep / (taken * kinds)
    vio = max_vio_of_alike(kinds)
    load = natural_load(num_experts=experts, experts_per_token=taken, ep=ep, max_vio=vio)
    assert float(load) == pytest.approx(busiest, rel=0.1)


def test_only_a_rank_among_others_waits_for_the_busiest():
    natural = workload(MIXTRAL_8X7B, expert_imbalance=np.nan)
    loads = expert_load(natural, ep=np.array([1.0, 2.0, 4.0, 8.0]))
    assert loads[0] == 1
    assert np.all(np.diff(loads) > 0)
    known = workload(MIXTRAL_8X7B, expert_imbalance=np.array([np.nan, 1.0, 3.0]))
    assert expert_load(known, ep=8.0) == pytest.approx([loads[-1], 1.0, 3.0])


@pytest.mark.parametrize(("ep", "printed"), [(1, 1), (4, 4), (128, 32), (256, 32)])
def test_room_for_all_that_may_ever_come_is_what_maxtext_says_of_deepseek(ep, printed):
    """AI-Hypercomputer/maxtext@e591f30c: src/maxtext/layers/moe.py, the words of
    get_ragged_buffer_size on 256 experts of which a token takes 8."""
    assert worst_load(num_experts=256, experts_per_token=8, ep=ep) == printed


def test_buffers_have_room_for_all_only_where_nothing_is_dropped_and_ranks_share_experts():
    ep = np.array([1.0, 4.0])
    dropless = workload(MIXTRAL_8X7B, worst_buffers=True)
    assert buffered_load(dropless, ep=ep) == pytest.approx([1.0, 4.0])
    padded = workload(MIXTRAL_8X7B, worst_buffers=True, capacity_factor=1.25)
    assert buffered_load(padded, ep=ep) == pytest.approx(expert_load(padded, ep=ep))
    exact = workload(MIXTRAL_8X7B, expert_imbalance=np.nan)
    assert buffered_load(exact, ep=ep) == pytest.approx(expert_load(exact, ep=ep))
