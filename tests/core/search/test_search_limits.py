"""Nothing hangs and nothing is left out silently: what a search cuts is counted and said, and what
cannot be is a sentence with the nearest change that can."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

from app.forecast import answer as forecast_answer
from app.forecast import resolve
from app.plan import words as plan_words
from core.errors import ScenarioError
from core.layout.layouts import Choices
from core.scenario import Scenario
from core.search import candidates as stages
from core.search.best import Job
from core.search.plan import Counts
from core.search.search import best_layouts
from core.search.space import candidates
from hardware.instances import find_instance
from tests.made_up.jobs import CLUSTER, LLAMA_8B, SHIPPED, workload

GENERIC = SHIPPED["generic"]
EIGHT_B = {
    "model": "custom", "num_layers": 32, "hidden_size": 4096, "ffn_hidden_size": 14336,
    "num_attention_heads": 32, "num_kv_heads": 8, "head_dim": 128, "vocab_size": 128256,
}  # fmt: skip
JOB = {"gpu": "h100", "num_gpus": "64"}


def answer(**fields):
    given = Scenario.parse({**JOB, **fields})
    return forecast_answer.answer(resolve.resolve_strict(given), top=1)


def adds_up(c: Counts) -> bool:
    parts = (c.removed, c.pruned_by_memory, c.pruned_by_time, c.evaluated, c.cut)
    return c.candidates == sum(parts)


# --- budgets -------------------------------------------------------------------------------------


def search(**budget):
    """Jobs of 8 to 64 GPUs, the larger ones first, so that their order is seen not to matter."""
    wanted = [Job(cluster=CLUSTER, num_gpus=n) for n in (64, 32, 16, 8)]
    return best_layouts(
        workload(LLAMA_8B, global_batch_size=64), wanted, GENERIC, Choices(),
        memory_sigma=0.2, **budget,
    )  # fmt: skip


def test_a_search_ends_with_the_small_counts_when_its_budget_does(monkeypatch):
    monkeypatch.setattr("core.search.space.ROWS_AT_ONCE", 1)  # every GPU count on its own
    whole = search()
    assert not len(whole.jobs_cut)
    cut = search(most_rows=1)
    assert cut.jobs_cut.tolist() == [0, 1, 2]
    assert cut.job.tolist() == [3]
    assert cut.step.step_s[0] == whole.step.step_s[-1]
    assert adds_up(cut.counts)
    assert 0 < cut.counts.candidates < whole.counts.candidates
    calls = iter([False, True])
    assert search(stop=lambda: next(calls)).jobs_cut.tolist() == [0, 1]


def test_what_a_cut_leaves_out_is_said(monkeypatch):
    monkeypatch.setattr("core.search.space.ROWS_AT_ONCE", 1)
    monkeypatch.setattr(forecast_answer, "MOST_LEGAL", 1)
    found = answer(num_gpus="8,64,256", cloud="coreweave,crusoe,oci")  # sold as clusters
    assert "not looked at: 64, 256 GPUs" in found.not_searched
    assert "not looked at: 64, 256 GPUs" in plan_words.coverage_line(found)
    left_out = {e.reason: e.count for e in found.excluded}
    assert left_out["not_searched"] == 2 * found.num_plans
    assert "not searched" in plan_words.coverage_line(found)


def test_a_search_that_takes_too_long_ends(monkeypatch):
    monkeypatch.setattr("core.search.space.ROWS_AT_ONCE", 1)
    monkeypatch.setattr(forecast_answer, "SEARCH_S", -1.0)
    found = answer(num_gpus="8,64")
    assert "not looked at: 64 GPUs" in found.not_searched
    assert found.num_plans


def test_a_count_with_too_many_layouts_is_cut_and_keeps_the_usual_ones(monkeypatch):
    job = {"model": LLAMA_8B, "seq_len": 4096, "global_batch_size": 720, "num_gpus": 720,
           "gpus_per_node": 8, "scale_up_domain": 8, "choices": Choices()}  # fmt: skip
    every = {tuple(row) for row in cells(candidates(**job)[0])}
    monkeypatch.setattr(stages, "MOST_ROWS", 2_000)
    kept = {tuple(row) for row in cells(candidates(**job)[0])}
    assert 0 < len(kept) < len(every)
    assert kept <= every
    whole = {row for row in every if not any(np.log2(n) % 1 for n in (row[0] * row[1], row[2]))}
    assert whole <= kept or kept <= whole  # powers of two before all others
    best = best_layouts(
        workload(LLAMA_8B, global_batch_size=720), [Job(cluster=CLUSTER, num_gpus=720)], GENERIC,
        Choices(), memory_sigma=0.2,
    )  # fmt: skip
    assert best.counts.cut > 0
    assert adds_up(best.counts)


def cells(layouts):
    return zip(layouts.tp, layouts.pp, layouts.micro_batch_size, strict=True)


def test_the_largest_counts_end_in_seconds():
    """131,072 GPUs, and a count with 144 divisors."""
    start = time.process_time()
    for count, batch in ((131_072, 4_194_304), (110_880, 110_880)):
        found = answer(num_gpus=str(count), global_batch_size=batch, seq_len="128k")
        assert found.num_plans
        assert adds_up(found.counts)
    assert time.process_time() - start < 20


# --- counts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"model": "mixtral-8x7b", "num_gpus": "8,24,64"},
        {"model": "llama3.1-405b", "num_gpus": "8"},
        {"num_gpus": "131071"},
        {"task": "lora", "num_gpus": "1,2"},
        {"seq_len": "128k", "global_batch_size": 16},
    ],
    ids=str,
)
def test_every_candidate_is_removed_pruned_timed_or_cut(fields):
    found = answer(**fields)
    counts = found.counts
    assert adds_up(counts)
    assert counts.candidates == found.num_candidates > 0
    by_reason = {e.reason: e.count for e in found.excluded}
    rules = sum(
        n for r, n in by_reason.items()
        if r.startswith("candidate_") and r not in ("candidate_memory", "candidate_time")
    )  # fmt: skip
    assert rules == counts.removed
    assert by_reason.get("candidate_memory", 0) == counts.pruned_by_memory
    assert by_reason.get("candidate_time", 0) == counts.pruned_by_time
    line = plan_words.search_line(found)
    assert f"{counts.removed:,} break a rule" in line
    for n, what in ((counts.pruned_by_time, "proven slower"), (counts.evaluated, "were timed")):
        assert (f"{n:,} " in line and what in line) == bool(n)


def test_the_line_of_nothing_says_nothing_of_layouts():
    assert plan_words.search_line(answer(gpu="v100", precision="bf16")) == ""


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields", [{"num_layers": 31}, {"num_attention_heads": 31, "num_kv_heads": 31}], ids=str
)
def test_prime_numbers_of_layers_or_heads_are_planned_without_what_they_forbid(fields):
    found = answer(**{**EIGHT_B, **fields})
    assert found.plans
    if "num_attention_heads" in fields:
        assert found.plans[0].layout.tp == 1


@pytest.mark.parametrize(
    ("fields", "rule", "change"),
    [
        ({**EIGHT_B, "num_attention_heads": 31, "num_kv_heads": 31, "tp": 4},
         "attention heads", r"Nearest legal value: tp=1\."),
        ({**EIGHT_B, "num_layers": 31, "pp": 32}, "more pipeline stages than layers",
         r"Nearest legal value: pp=16\."),
        ({"pp": 64}, "more pipeline stages than layers", r"Nearest legal value: pp=32\."),
        ({"pp": 33, "num_gpus": "66"}, "more pipeline stages than layers",
         r"Legal on 64 GPUs, with the degrees free: tp="),
        ({"ep": 8}, "no experts to spread", r"Nearest legal value: ep=1\."),
        ({**EIGHT_B, "num_experts": 0, "ep": 2}, "no experts to spread",
         r"Nearest legal value: ep=1\."),
        ({"global_batch_size": 7, "tp": 1, "pp": 1}, "multiple of dp x micro-batch",
         r"Nearest legal value: tp=16\."),
        ({"micro_batch_size": 3}, "multiple of dp x micro-batch",
         r"Nearest legal value: micro_batch_size=4\."),
        ({"dp_shard": 5}, "not as many as asked for", r"Nearest legal value: dp_shard=4\."),
        ({"num_gpus": "131071"}, "multiple of dp x micro-batch",
         r"Nearest count with a legal layout: 131,072 GPUs\."),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_is_one_sentence_with_the_nearest_change(fields, rule, change):
    said = answer(**fields).nothing_fits
    assert rule in said
    assert re.search(change, said)
    assert "\n" not in said
    assert len(said) < 400


def test_the_nearest_count_is_legal():
    said = answer(num_gpus="131071").nothing_fits
    count = re.search(r"layout: ([\d,]+) GPUs", said)[1].replace(",", "")
    assert answer(num_gpus=count, global_batch_size=int(count)).counts.removed
    assert answer(num_gpus=count).counts.candidates > answer(num_gpus=count).counts.removed


def test_a_batch_below_the_gpus_is_planned_where_the_model_can_be_cut():
    found = answer(global_batch_size=8)
    layout = found.plans[0].layout
    assert layout.dp_replicate * layout.dp_shard <= 8


def test_an_empty_set_of_machines_is_a_sentence():
    said = answer(gpu="h100", cloud="verda", purchase="reserved_3y").nothing_fits
    assert said.startswith("No plan: no offer matches")


def test_an_unknown_place_to_offload_to_is_refused():
    with pytest.raises(ScenarioError, match="is not one of none, cpu, nvme, search"):
        answer(offload_optimizer="disk")


# --- what is searched, and what is fixed ---------------------------------------------------------


def test_offload_is_searched_unless_something_is_said_of_it():
    job = {"model": "llama3.1-70b", "gpu": "h100", "num_gpus": "8", "cloud": "aws",
           "global_batch_size": 64}  # fmt: skip
    found = answer(**job).plans[0]
    assert found.layout.offload_optimizer == "cpu"
    assert any("wait in the host's memory" in a for a in found.assumptions)
    for said in ({"offload_optimizer": "none"}, {"offload_params": "none"}):
        assert not answer(**job, **said).plans
    fixed = answer(**job, offload_optimizer="cpu", stack="generic").plans[0]
    assert (fixed.layout.offload_optimizer, fixed.layout.offload_params) == ("cpu", "none")


def test_a_machine_whose_host_is_not_known_offloads_nothing_unasked():
    found = forecast_answer.answer(
        Scenario.parse({"model": "llama3.1-70b", "gpu": "H100-80GB-SXM", "num_gpus": "8",
                        "global_batch_size": 64}),
        top=1000,
    )  # fmt: skip
    assert found.plans
    for p in found.plans:
        assert find_instance(p.offer.provider, p.offer.instance_type).host_ram_gib
    assert next(e.count for e in found.excluded if e.reason == "memory") > 0


def test_tensor_parallelism_leaves_the_node_where_it_may():
    job = {"model": "llama3.1-405b", "num_gpus": "64", "cloud": "aws", "tp": None}
    inside = answer(**job)
    across = answer(**job, tp_across_nodes=True)
    assert across.counts.candidates > inside.counts.candidates


def test_a_sharding_group_is_kept():
    found = answer(sharding="hsdp", dp_shard=16).plans[0].layout
    assert (found.dp_shard, found.dp_replicate * found.tp * found.pp) == (16, 4)
