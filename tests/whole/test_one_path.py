"""A published run is forecast as a user's scenario is: the link that `validate --out` writes makes
`runcast estimate` print the forecast that the record scores."""

from __future__ import annotations

import csv
import json
import random

import pytest

from app.accuracy.as_json import write_out
from app.accuracy.validate import validate
from core.units import GIB
from hardware.measured import MODELS_CSV, RUNS_CSV

SAMPLE, SEED = 25, 42
SCORED = ("uncorrected_tokens_per_s_per_gpu", "needed_memory_gib")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    out = tmp_path_factory.mktemp("validate") / "out.csv"
    write_out(validate(RUNS_CSV, MODELS_CSV), out)
    with out.open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["status"] == "ok"]


def test_estimate_repeats_forecasts_of_published_runs(rows, run):
    for row in random.Random(SEED).sample(rows, SAMPLE):
        status, out, _ = run("estimate", "--link", row["link"], "--json")
        assert status == 0
        printed = json.loads(out)["layout_forecast"]
        assert {name: f"{printed[name]:.6g}" for name in SCORED} == {n: row[n] for n in SCORED}, (
            row["run_id"]
        )


def test_plan_of_a_published_run_has_its_forecast(rows, run):
    """Where the layout fits and no rule forbids it, the ranked plan is that forecast, corrected."""
    fits = 0
    for row in random.Random(SEED).sample(rows, SAMPLE):
        _, out, _ = run("estimate", "--link", row["link"], "--json")
        found = json.loads(out)
        for plan in found["plans"]:
            fits += 1
            moved = 1 + (plan["nearby"] or {"moved_by_runs": 0.0})["moved_by_runs"]
            speed = plan["tokens_per_s_per_gpu"] / moved
            expected = [found["layout_forecast"][name] for name in SCORED]
            assert [speed, plan["memory_bytes"]["total"] / GIB] == pytest.approx(expected, rel=1e-6)
    assert fits > SAMPLE / 4
