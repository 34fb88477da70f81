"""Claims held against our forecast: their direction and order, never a figure to the percent."""

import math

import pytest

from app.document import format as fmt
from app.guides import against_ddp as against
from app.guides import claims as guides_claims
from app.guides import fixes
from app.guides import times as guides_times
from app.guides.cases import (
    DATA_PARALLEL,
    H100,
    longest_differences,
    range_of,
    slowdown,
    text_of,
    timed,
    timed_if_it_fitted,
)
from core.search.best import MAX_PROBABILITY_OOM
from core.search.recommended import MOST_PROBABILITY_OOM
from hardware import facts
from hardware.claims import claims as published

ON_8 = {**DATA_PARALLEL, "model": "llama3.1-70b", "num_gpus": 8, "seq_len": 4096}
BATCHES = (8, 64, 512)
LENGTHS = range(256, 16_384, 256)
# Data-parallel ranks that a guide's name of a layout implies, in addition to its tp, pp and cp.
RANKS = {
    "layout_70b_64": 2, "layout_70b_128": 4, "layout_70b_512": 4, "layout_405b_256": 2,
    "layout_405b_1024": 16, "layout_moe_256": 4,
}  # fmt: skip


def ours(name):
    return guides_claims.checked(next(c for c in published() if c.id == name)).ours


def offloaded(batch, where, **more):
    case = {**ON_8, "global_batch_size": batch, "sharding": "zero3", "offload_optimizer": where}
    return timed({**case, **more})


# --- cases ---------------------------------------------------------------------------------------


def test_what_does_not_fit_is_timed_only_if_it_fitted():
    ddp = {**ON_8, "global_batch_size": 64, "sharding": "ddp"}
    assert timed(ddp) is None
    imagined = timed_if_it_fitted(ddp)
    assert imagined.need_bytes > 16 * 70e9
    assert sum(imagined.parts_s.values()) == pytest.approx(imagined.step_s)


def test_a_case_that_runs_fits_its_gpu():
    found = offloaded(64, "cpu")
    assert 0.3 * 85e9 < found.need_bytes < facts.accelerator(H100).memory_bytes


def test_a_risk_of_memory_is_taken_at_even_odds_only_and_said():
    """The batch grows until the layout fits at even odds and no plan would be offered."""
    case = {**ON_8, "sharding": "zero3", "offload_optimizer": "cpu", "recompute": "none"}
    sizes = ({**case, "seq_len": n, "global_batch_size": 8, "micro_batch_size": 1} for n in LENGTHS)
    risky = next(s for s in sizes if timed(s) is None)
    found = timed(risky, even_odds=True)
    assert MAX_PROBABILITY_OOM < found.probability_oom <= 0.5
    assert "chance to run out of memory" in text_of(found)
    assert timed({**risky, "seq_len": 65_536}, even_odds=True) is None


def test_what_never_runs_is_infinitely_slow_and_refuted_without_a_crash():
    nothing = range_of([math.inf], "nothing fits")
    assert nothing.low == nothing.high == math.inf
    assert slowdown(None, timed_if_it_fitted({**ON_8, "global_batch_size": 8})) == math.inf


def test_the_differences_are_those_of_the_parts():
    small, large = (offloaded(b, "cpu") for b in (8, 64))
    assert longest_differences(small, small) == []
    part, more = longest_differences(large, small)[0]
    assert part == "Matrix multiplications"
    assert more.startswith("+")


# --- recompute -----------------------------------------------------------------------------------


def test_full_recompute_costs_more_than_selective_and_less_than_a_second_forward():
    selective, full = ours("selective_time"), ours("full_time")
    assert 1 < selective.low <= selective.high < full.low <= full.high < 1.5


# --- offload -------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["cpu", "nvme"])
def test_offload_is_paid_once_a_step_so_larger_batches_pay_less_a_token(where):
    per_sequence = [offloaded(b, where).step_s / b for b in BATCHES]
    assert per_sequence == sorted(per_sequence, reverse=True)
    assert per_sequence[0] > 1.5 * per_sequence[-1]


def test_nvme_costs_more_than_the_host_s_memory():
    for batch in BATCHES:
        assert offloaded(batch, "nvme").step_s > offloaded(batch, "cpu").step_s


def test_the_loss_is_the_slowdown_said_otherwise():
    times, lost = ours("offload_cpu_times"), ours("offload_cpu_loss")
    assert (lost.low, lost.high) == pytest.approx((1 - 1 / times.low, 1 - 1 / times.high))


def test_a_slower_network_costs_more_and_nearly_in_proportion():
    case = {**ON_8, "num_gpus": 32, "global_batch_size": 256, "sharding": "zero3"}
    slow, fast = (
        timed({**case, "offload_optimizer": "cpu", "network_gbit_per_gpu": gbit / 8}).step_s
        for gbit in (10, 100)
    )
    assert 5 < slow / fast <= 10


# --- against DDP ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", against.CASES)
def test_the_search_is_never_slower_than_a_way_it_contains(name):
    """It may be slower only than a way that it passes over because of its memory."""
    case = against.CASES[name]
    for job in case.jobs.values():
        best = timed(job)
        for way in case.ways.values():
            found = timed({**job, **way})
            if found is not None and found.step_s < best.step_s * (1 - 1e-9):
                assert found.probability_oom > MOST_PROBABILITY_OOM >= best.probability_oom


@pytest.mark.parametrize("name", against.CASES)
def test_the_arithmetic_names_every_job_and_way(name):
    text = ours(name).arithmetic
    for part in (*against.CASES[name].jobs, *against.CASES[name].ways):
        assert part in text


def test_only_lora_leaves_room_for_a_replica():
    """Why DDP has to be imagined for every other row."""
    memory = facts.accelerator(H100).memory_bytes
    for name, case in against.CASES.items():
        for job in case.jobs.values():
            ddp = {**job, **DATA_PARALLEL, "sharding": "ddp"}
            assert (timed(ddp) is not None) == (name == "ddp_lora")
            assert timed_if_it_fitted(ddp).need_bytes > memory


# --- named layouts -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", guides_times.NAMED)
def test_a_named_layout_is_cut_as_it_says_and_no_faster_than_the_best(name):
    asked, (named, best) = guides_times.NAMED[name], guides_times.compared(name)
    cut = named.layout
    assert {k: getattr(cut, k) for k in asked.layout} == asked.layout
    assert cut.dp_replicate * cut.dp_shard == RANKS[name]
    assert cut.tp * cut.pp * cut.cp * RANKS[name] == asked.job["num_gpus"]
    assert slowdown(named, best) >= 1
    assert fmt.layout(best.layout) in ours(name).arithmetic


# --- fixes ---------------------------------------------------------------------------------------


def test_the_fixes_are_ranked_by_dollars_and_what_does_not_fit_is_last():
    found = fixes.fixes()
    usd = [f.usd for f in found]
    assert usd == sorted(usd)
    fits = [f.plan is not None for f in found]
    assert fits == sorted(fits, reverse=True)
    assert fits.count(True) >= 5
    for f in found:
        if f.plan:
            assert f.plan.probability_oom <= MAX_PROBABILITY_OOM
            assert f.plan.offer.observed_at in f.text
        else:
            assert f.text == "does not fit either"


def test_offload_fixes_what_does_not_fit_and_more_gpus_are_faster():
    plans = {f.change: f.plan for f in fixes.fixes()}
    offload, many = plans[fixes.OFFLOAD], plans["64 H100"]
    assert (offload.num_gpus, many.num_gpus) == (8, 64)
    assert many.wall_clock_hours < offload.wall_clock_hours / 3
    assert plans["8-bit AdamW"] is None


def test_the_claim_shows_the_whole_ranking():
    text = ours("70b_cheapest_fix").arithmetic
    for f in fixes.fixes():
        assert f.change in text
