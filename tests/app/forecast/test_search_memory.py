"""What searches remember changes no answer: fresh and remembered ones agree to the last bit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

from app.forecast import answer as forecast_answer
from app.forecast import resolve, search_memory
from app.forecast import search as forecast_search
from app.forecast.nearby import moved
from app.forecast.search_memory import SearchMemory
from core.scenario import Scenario
from core.search import search as core_search

FEW = {"cloud": "lambda,azure", "num_gpus": "16,32"}
# Edits of one session, one after another; each keeps what was before it.
EDITS = [
    {},
    {"purchase": "spot"},
    {"purchase": "on_demand,spot,reserved_1y"},
    {"deadline_days": "3"},
    {"budget_usd": "40k", "rank_by": "time"},
    {"cloud": "azure"},
    {"cloud": "lambda", "gpu": "H100-80GB-SXM"},
    {"num_gpus": "8,16"},
    {"num_gpus": "", "deadline_days": "30", "gpu": "A100-80GB-SXM"},
    {"num_tokens": "2T"},  # the run is longer, its steps are not
    {"tp": "4"},
    {"network_gbit_per_gpu": "100"},
    {"model": "mixtral-8x7b", "num_gpus": "8"},
    {"precision": "fp8"},
    {"offload_optimizer": "search", "num_gpus": "1,8"},
    {"model": "llama3.1-405b", "num_gpus": "1"},  # nothing fits
    {"tp": "3"},  # nothing is legal
]


def differences(a: object, b: object, path: str = "") -> list[str]:
    """Where two answers differ, NaN being equal to NaN."""
    if is_dataclass(a):
        return [
            d for f in fields(a)
            for d in differences(getattr(a, f.name), getattr(b, f.name), f"{path}.{f.name}")
        ]  # fmt: skip
    if isinstance(a, dict):
        assert isinstance(b, dict)
        wrong = [] if a.keys() == b.keys() else [f"{path}: keys"]
        common = a.keys() & b.keys()
        return wrong + [d for k in common for d in differences(a[k], b[k], f"{path}.{k}")]
    if isinstance(a, np.ndarray):
        assert isinstance(b, np.ndarray)
        exact = a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        return [] if exact else [path]
    if isinstance(a, tuple):
        assert isinstance(b, tuple)
        wrong = [] if len(a) == len(b) else [f"{path}: length"]
        pairs = enumerate(zip(a, b, strict=False))
        return wrong + [d for n, (x, y) in pairs for d in differences(x, y, f"{path}[{n}]")]
    return [] if a == b or (a != a and b != b) else [f"{path}: {a!r} is not {b!r}"]


def asked(given: dict[str, str]) -> Scenario:
    query = {"prices": resolve.current_prices(), **FEW, **given}
    return resolve.resolve_strict(Scenario.parse({k: v for k, v in query.items() if v}))


@pytest.fixture
def searched(monkeypatch):
    """How many jobs each search was given."""
    seen = []
    one, several = core_search.best_layouts, core_search.best_of_each

    def of_one(work, jobs, *args, **kwargs):
        seen.append(len(jobs))
        return one(work, jobs, *args, **kwargs)

    def of_several(asked, jobs, **kwargs):
        seen.append(len(jobs))
        return several(asked, jobs, **kwargs)

    monkeypatch.setattr(forecast_search, "best_layouts", of_one)
    monkeypatch.setattr(forecast_search, "best_of_each", of_several)
    return seen


def test_a_remembered_answer_is_the_fresh_one():
    memory = SearchMemory()
    for edit in EDITS:
        scenario = asked(edit)
        fresh = forecast_answer.answer(scenario, with_frontier=True)
        for _ in range(2):
            kept = forecast_answer.answer(scenario, with_frontier=True, memory=memory)
            assert differences(kept, fresh) == [], edit


def test_random_edits_of_what_is_bought_and_where_agree_too():
    rng = np.random.default_rng(20)
    memory = SearchMemory()
    for _ in range(6):

        def some(*names: str, rng=rng) -> str:
            return ",".join(rng.choice(names, rng.integers(1, len(names) + 1), replace=False))

        scenario = asked({
            "cloud": some("aws", "lambda", "azure", "gcp"),
            "purchase": some("on_demand", "spot", "reserved_1y", "reserved_3y"),
            "gpu": some("H100-80GB-SXM", "A100-80GB-SXM", "B200-180GB", "L40S"),
            "num_gpus": some("8", "16", "24", "32"),
            "deadline_days": some("5", "14", "100").split(",")[0],
            "rank_by": some("usd", "time").split(",")[0],
        })  # fmt: skip
        fresh = forecast_answer.answer(scenario, with_frontier=True)
        assert (
            differences(forecast_answer.answer(scenario, with_frontier=True, memory=memory), fresh)
            == []
        )


def test_prices_limits_and_choices_of_what_is_known_search_nothing(searched):
    memory = SearchMemory()
    forecast_answer.answer(asked({}), memory=memory)
    first = list(searched)
    known = moved.what_runs_say.cache_info().misses
    forecast_answer.answer(asked({"deadline_days": "20", "num_tokens": "300B"}), memory=memory)
    assert (
        moved.what_runs_say.cache_info().misses == known
    )  # the measured runs near the same layouts
    for edit in ({"deadline_days": "20"}, {"budget_usd": "1M"}, {"rank_by": "time"},
                 {"cloud": "azure"}, {"gpu": "H100-80GB-SXM"}, {"num_gpus": "16"},
                 {"num_tokens": "300B"}):  # fmt: skip
        forecast_answer.answer(asked(edit), memory=memory)
    assert searched == first
    forecast_answer.answer(asked({"purchase": "on_demand,spot"}), memory=memory)
    assert sum(searched) - sum(first) < first[0]


def test_another_model_stack_or_layout_is_another_question(searched):
    memory = SearchMemory()
    of_one = {"stack": "generic"}
    for edit in ({}, {"model": "mistral-7b"}, {"stack": "megatron-lm"}, {"tp": "2"}):
        forecast_answer.answer(asked({**of_one, **edit}), memory=memory)
    assert len(searched) == 4


def test_a_search_that_was_cut_short_is_not_remembered(monkeypatch, searched):
    monkeypatch.setattr(forecast_answer, "MOST_LEGAL", 1)
    monkeypatch.setattr("core.search.space.ROWS_AT_ONCE", 1)
    memory = SearchMemory()
    of_one = asked({"stack": "generic"})
    cut = forecast_answer.answer(of_one, memory=memory)
    assert cut.not_searched
    monkeypatch.setattr(forecast_answer, "MOST_LEGAL", 30_000_000)
    assert not forecast_answer.answer(of_one, memory=memory).not_searched
    assert len(searched) == 2


def test_it_forgets_the_oldest_and_starts_afresh_after_many_parts(monkeypatch):
    monkeypatch.setattr(search_memory, "MOST_QUESTIONS", 2)
    monkeypatch.setattr(search_memory, "MOST_PARTS", 3)
    memory = SearchMemory()
    for n in range(5):
        scenario = asked({"num_gpus": str(8 * (n + 1))})
        assert (
            differences(
                forecast_answer.answer(scenario, memory=memory), forecast_answer.answer(scenario)
            )
            == []
        )
    (known,) = memory._known.values()
    assert 1 <= len(known.parts) <= 3
    for tp in "1248":
        forecast_answer.answer(asked({"tp": tp}), memory=memory)
    assert len(memory._known) == 2


def test_threads_may_ask_at_once(monkeypatch):
    monkeypatch.setattr(search_memory, "MOST_PARTS", 2)
    memory, edits = SearchMemory(), [{"num_gpus": str(n)} for n in (8, 16, 24, 32)] * 3
    fresh = [forecast_answer.answer(asked(e)) for e in edits]
    with ThreadPoolExecutor(4) as pool:
        kept = list(pool.map(lambda e: forecast_answer.answer(asked(e), memory=memory), edits))
    assert all(differences(a, b) == [] for a, b in zip(kept, fresh, strict=True))
