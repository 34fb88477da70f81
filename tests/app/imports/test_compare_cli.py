"""`runcast compare` and `runcast import`: what they print, write and refuse."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from app.accuracy.own_runs import report_of_upload
from app.command.values import link_values
from app.imports.row import NEEDED
from core.scenario import Scenario
from runners.imports.result import parse_import
from tests.support.documented_keys import paths
from tests.support.logs import LOGS, trace

TITAN = ["compare", str(LOGS / "torchtitan.txt"), "--model", "llama3.1-8b", "--gpu", "h100"]
TITAN += ["--compile", "--stack", "torchtitan"]
LAYOUT = "tp=1,pp=1,sharding=fsdp2,micro_batch_size=2,recompute=selective"
MEGATRON = ["compare", str(LOGS / "megatron.txt"), "--model", "llama3.1-70b", "--gpu", "h100"]
DOCUMENT = Path(__file__).parents[3] / "docs/imports.md"


@pytest.fixture
def answered(run):
    def _answered(*arguments):
        status, out, err = run(*arguments, "--json")
        assert (status, err) == (0, "")
        assert "NaN" not in out
        return json.loads(out)

    return _answered


def documented(section: str) -> set[str]:
    """The keys in the tables of one section of the page."""
    text = DOCUMENT.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2]
    return set(re.findall(r"^\| `([^`]+)` \|", text.partition("\n## ")[0], re.MULTILINE))


def test_a_run_beside_its_forecast(run):
    status, out, err = run(*TITAN, "--layout", LAYOUT)
    assert (status, err) == (0, "")
    flat = " ".join(out.split())
    assert re.search(
        r"Measured 6,305 tokens/s per GPU, forecast [\d,.]+ \(P10 to P90 [\d,.]+ to [\d,.]+\): "
        r"measured over forecast is \d\.\d{3}, (inside|below|above) the interval\.",
        flat,
    )
    for part in (
        "8 x H100-80GB-SXM", "median of 22 logged steps", "prints tokens/s per GPU (tps)",
        "From the log: the tokens of a sequence 8,192", "--set anchor_tokens_per_s_per_gpu=6305.25",
        '--set "anchor_gpu=H100-80GB-SXM"', "As a measured run",
    ):  # fmt: skip
        assert part in flat


def test_the_figures_of_the_json_belong_together(answered):
    found = answered(*TITAN, "--layout", LAYOUT)
    forecast, measured = found["forecast_tokens_per_s_per_gpu"], found["measured"]
    rate = measured["tokens_per_s_per_gpu"]
    assert found["ratio"] == pytest.approx(rate / forecast["p50"])
    assert forecast["p10"] < forecast["p50"] < forecast["p90"]
    assert found["inside_interval"] == (forecast["p10"] <= rate <= forecast["p90"])
    assert measured["tokens_per_s"] == pytest.approx(8 * rate)
    assert found["plan"]["layout"].startswith("tp=1,pp=1,")
    assert found["plan"]["fits"]
    assert set(found["measured_run"]) > set(NEEDED)


def test_the_forecast_is_that_of_estimate(answered):
    job = [
        *TITAN[2:],
        "--num-gpus",
        "8",
        "--seq-len",
        "8k",
        "--global-batch-size",
        "16",
        "--tokens",
        "1T",
    ]
    plan = answered("estimate", *job, "--layout", LAYOUT)["plans"][0]
    forecast = answered(*TITAN, "--layout", LAYOUT)["forecast_tokens_per_s_per_gpu"]
    assert forecast["p50"] == pytest.approx(plan["tokens_per_s_per_gpu"])


def test_the_anchor_moves_every_forecast_to_the_measurement(answered):
    found = answered(*TITAN, "--layout", LAYOUT)
    rate = found["measured"]["tokens_per_s_per_gpu"]
    link = found["anchor"]["link"]
    fields, _ = link_values(link)
    assert Scenario.parse(fields).anchor_tokens_per_s_per_gpu == pytest.approx(rate, rel=1e-5)
    after = answered("estimate", "--link", link, "--layout", found["plan"]["layout"])["plans"][0]
    assert after["tokens_per_s_per_gpu"] == pytest.approx(rate, rel=0.03)
    # A scenario that has the measurement already is compared without it.
    again = answered("compare", LOGS / "torchtitan.txt", "--link", link)
    assert again["forecast_tokens_per_s_per_gpu"] == found["forecast_tokens_per_s_per_gpu"]
    assert any("has a measurement already" in s for s in again["sentences"])


def test_what_ran_is_forecast_also_where_it_should_not_fit(answered):
    layout = "tp=4,pp=2,sharding=zero1,micro_batch_size=1,recompute=selective"
    found = answered(*MEGATRON, "--layout", layout)
    assert not found["plan"]["fits"]
    assert found["plan"]["id"] is None
    assert any("does not fit the memory. It ran" in s for s in found["sentences"])
    assert 0.3 < found["ratio"] < 3


def test_a_row_is_appended_once_and_can_be_scored(answered, run, tmp_path):
    own = tmp_path / "own.csv"
    first = answered(*TITAN, "--layout", LAYOUT, "--append", own)
    assert first["appended"].startswith("Made ")
    status, _, err = run(*TITAN, "--layout", LAYOUT, "--append", own)
    assert status == 2
    assert "has the run log-" in err
    layout = "tp=4,pp=2,sharding=zero1,micro_batch_size=1,recompute=selective"
    second = answered(*MEGATRON, "--layout", layout, "--append", own)
    assert second["appended"].startswith("Added ")
    rows = list(csv.DictReader(own.read_text().splitlines()))
    assert [r["framework"] for r in rows] == ["torchtitan", "megatron-lm"]
    assert [r["source_date"] for r in rows] == ["2026-02", "2026-03"]
    assert rows[0]["peak_mem_gib"] == "47.6"
    report = report_of_upload(own.read_bytes(), None, name="own.csv")
    assert report.num_used == 2
    assert not report.offences


def test_a_file_with_other_columns_keeps_them(answered, tmp_path):
    own = tmp_path / "own.csv"
    own.write_text("run_id,note,model_key,accelerator,num_gpus,seq_len,tokens_per_s_per_gpu,tp\na")
    found = answered(*TITAN, "--layout", LAYOUT, "--append", own)
    header, _, row = own.read_text().splitlines()
    cells = dict(zip(header.split(","), row.split(","), strict=True))
    assert (cells["note"], cells["tp"], cells["seq_len"]) == ("", "1", "8192")
    assert "which it has no columns for" in found["appended"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*MEGATRON, "--layout", "tp=8,pp=2,sharding=zero1"], "The log is of tp=4"),
        ([*MEGATRON[:4]], "leaves the GPU open"),
        ([*MEGATRON, "--seq-len", "4k", "--num-gpus", "64", "--global-batch-size", "256"],
         "is 8,192, where --seq-len gives 4,096"),
        ([*TITAN, "--num-gpus", "16", "--seq-len", "8k", "--global-batch-size", "16"],
         "is 8, where --num-gpus gives 16"),
        (["compare", "nowhere.log", "--model", "llama3.1-8b"], "is not a file"),
        (["compare", LOGS / "megatron.txt"], "Missing --model or --config"),
        (["compare", LOGS / "mamf_v2.txt", *TITAN[2:]], "No line of the log says how fast"),
        ([*TITAN, "--tokens-of", "cluster"], "neither gpu nor job"),
        (["import", LOGS / "deepspeed.txt"], "needs --seq-len"),
        (["import", LOGS / "torchtitan.txt", "--format", "csv"], "'csv' is none of auto"),
        (["import", LOGS / "torchtitan.txt", "--format", "nccl-tests"], "header of nccl-tests"),
        (["import", LOGS / "all_reduce_node.txt", "--gpu", "h200"], "H100-80GB-SXM"),
        (["import", LOGS / "all_reduce_node.txt", "--gpu", "h1000"], "Unknown accelerator"),
        (["import", LOGS / "all_reduce_node.txt", "--nodes", "x"], "no whole number"),
        (["import", LOGS / "all_reduce_node.txt", "--date", "May"], "no date like"),
        (["import", LOGS / "plain.txt", "--out", "x.json"], "there is nothing to write"),
    ],
)  # fmt: skip
def test_mistakes_are_one_sentence(run, arguments, said):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_no_place_and_no_file_is_damaged_by_a_refusal(run, tmp_path):
    own = tmp_path / "own.csv"
    own.write_text("a,b\n1,2\n")
    status, _, err = run(*TITAN, "--layout", LAYOUT, "--append", own)
    assert status == 2
    assert "no column 'run_id'" in err
    assert own.read_text() == "a,b\n1,2\n"


def test_an_import_is_written_and_read_back(answered, tmp_path):
    out = tmp_path / "node.json"
    found = answered("import", LOGS / "all_reduce_node.txt", "--out", out, "--date", "2026-03-31")
    made = parse_import(out.read_bytes())
    assert (made.accelerator, made.measured_on) == ("H100-80GB-SXM", "2026-03-31")
    assert made.source_sha256 == found["source_sha256"]
    assert found["accelerator_from"] == "file"
    assert found["collectives"][0]["spikes_bytes"] == [8192.0]
    assert any("NVLS" in s for s in found["sentences"])


def test_every_key_is_documented(answered, tmp_path, monkeypatch):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path / "data"))
    profile = tmp_path / "trace.json"
    profile.write_bytes(trace())
    printed: set[str] = set()
    for name in ("all_reduce_node.txt", "mamf_v2.txt", "torchtitan.txt"):
        printed |= set(paths(answered("import", LOGS / name)))
    printed |= set(paths(answered("import", profile)))
    printed |= set(paths(answered("import", LOGS / "all_reduce_node.txt", "--keep")))
    open_ended = ("matmuls.software.", "log.known.", "profile.shares.")
    printed = {p for p in printed if not p.startswith(open_ended)}
    assert printed == documented("`runcast import --json`")
    compared = set(paths(answered(*TITAN, "--layout", LAYOUT)))
    compared = {p for p in compared if not p.startswith(("measured.known.", "measured_run."))}
    assert compared == documented("`runcast compare --json`")
