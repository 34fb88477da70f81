"""A cell holds what `runcast plan --json` says of its scenario, and nothing else."""

from __future__ import annotations

import orjson
import pytest

from app import cli
from app.forecast.answer import answer
from app.forecast.resolve import resolve_strict
from app.plan.as_json import plan_json
from app.scenario import version
from app.sweep.cell import COLUMNS, PLAN_KEYS, cell, row_of
from core.scenario import Scenario
from pricing.offers import installed_id
from tests.made_up import plans as made_up
from tests.support.documented_keys import documented_plan_keys

QUERY = {
    "model": "llama3.1-8b",
    "num_tokens": "1e12",
    "seq_len": "4096",
    "global_batch_size": "512",
    "gpu": "H100-80GB-SXM",
    "num_gpus": "64",
}
OPTIONS = ["--model", "llama3.1-8b", "--tokens", "1T", "--seq-len", "4k", "--global-batch-size",
           "512", "--gpu", "h100", "--num-gpus", "64"]  # fmt: skip


def at(value, key):
    for part in key.split("."):
        value = value[part]
    return value


def test_a_cell_is_what_plan_json_prints(capfd):
    with pytest.raises(SystemExit):
        cli.main(["plan", *OPTIONS, "--json"])
    printed = orjson.loads(capfd.readouterr().out)
    row = cell(QUERY)["row"]
    assert list(row) == list(COLUMNS)
    best = printed["plans"][0]
    for key in PLAN_KEYS:
        expected = " ".join(at(best, key)) if key == "assumptions" else at(best, key)
        assert row[f"best_{key.replace('.', '_')}"] == expected, key
    for key in ("num_candidates", "num_plans", "link"):
        assert row[key] == printed[key]
    assert row["no_plan"] is None
    assert row["best_tokens_per_s"] > 0


def test_every_column_is_a_documented_key_of_a_plan():
    documented = {key.removesuffix("[]") for key in documented_plan_keys()}
    assert {f"plans[].{key}" for key in PLAN_KEYS} <= documented


def test_every_column_is_of_the_type_that_plan_json_gives():
    plan = plan_json(Scenario(), made_up.answer(made_up.plan()))["plans"][0]
    for key, kind in PLAN_KEYS.items():
        value = at(plan, key)
        if key != "assumptions" and value is not None:
            assert type(value) is kind, key


def test_candidates_are_pruned_or_evaluated():
    scenario = resolve_strict(Scenario.parse(QUERY))
    found = plan_json(scenario, answer(scenario, top=1))
    row = row_of(found)
    pruned = [e["count"] for e in found["excluded"] if e["reason"].startswith("candidate_")]
    assert row["num_pruned"] == sum(pruned) > 0
    assert row["num_evaluated"] + row["num_pruned"] == row["num_candidates"]
    assert row["num_evaluated"] > 0


def test_a_cell_without_a_plan_has_the_sentence():
    row = cell({**QUERY, "model": "llama3.1-405b", "num_gpus": "1"})["row"]
    assert list(row) == list(COLUMNS)
    assert row["num_plans"] == 0
    assert row["no_plan"].endswith(".")
    assert row["best_usd"] is None


def test_values_that_contradict_one_another_are_a_row_with_the_sentence():
    row = cell({"model": "llama3.1-8b", "num_layers": "3"})["row"]
    assert "num_layers=3 would change model=llama3.1-8b" in row["no_plan"]
    assert row["num_candidates"] is None


def test_without_its_prices_a_cell_has_no_row():
    assert cell({**QUERY, "prices": "0123456789ab"})["row"] is None
    assert cell({**QUERY, "prices": installed_id()}) == cell(QUERY)


def test_a_query_that_is_no_scenario_is_a_bug_and_no_row():
    with pytest.raises(ValueError, match="is not a field"):
        cell({"modle": "a"})


def test_what_a_cell_was_made_with_changes_with_tables_and_code(tmp_path, monkeypatch):
    def hashes():
        version.made_with.cache_clear()
        return version.made_with()

    for name, text in (
        ("core/a.py", "1"),
        ("hardware/t.csv", "1"),
        ("app/plan/page.py", "1"),
        ("pricing/snapshots/a.csv", "1"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(version, "__file__", str(tmp_path / "app/scenario/version.py"))
    try:
        first = hashes()
        assert hashes() == first
        (tmp_path / "app/plan/page.py").write_text("2")
        (tmp_path / "pricing/snapshots/a.csv").write_text("2")
        assert hashes() == first
        (tmp_path / "hardware/t.csv").write_text("2")
        second = hashes()
        assert (second["code"], second["tables"] == first["tables"]) == (first["code"], False)
        (tmp_path / "core/a.py").write_text("2")
        third = hashes()
        assert (third["tables"], third["code"] == second["code"]) == (second["tables"], False)
    finally:
        version.made_with.cache_clear()
