"""`runcast calibrations`: what is kept, shown and removed, its JSON, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import orjson
import pytest

from app.calibration import added
from app.forecast import calibrations
from app.forecast import calibrations as files
from app.prices.over_time import store_or_sentence
from core.scenario import Scenario
from pricing.store import saved
from runners.calibration.result import MAX_BYTES
from tests.made_up.results import H100, document, machine

ROOT = Path(__file__).parents[3]
DOCUMENT = (ROOT / "docs/calibration.md").read_text(encoding="utf-8")
KEYS, RESULT_KEYS = DOCUMENT.partition("\n## Keys of `runcast calibrations --json`\n")[2].split(
    "\n## Keys of `calib-result/1`\n"
)
GOLDEN = ROOT / "tests/golden/calib-result-1.json"
TRUE = {"matmul": 0.8, "attention": 0.9, "memory": 0.9, "elementwise": 1.3, "scale_up": 0.8}
CUSTOM = (
    "gpu=custom&custom_tflop_per_s=1&custom_memory_gib=8&custom_memory_gb_per_s=20"
    "&custom_scale_up_gb_per_s=10&custom_scale_out_gbit_per_s=10"
)


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path / "data"))
    calibrations._of_id.cache_clear()


@pytest.fixture
def written(tmp_path):
    """Write a made-up result, changed; its path."""

    def _written(change=None, **factors):
        found = document(machine(**(factors or TRUE)))
        if change:
            change(found)
        path = tmp_path / f"result-{len(list(tmp_path.iterdir()))}.json"
        path.write_bytes(orjson.dumps(found))
        return path

    return _written


@pytest.fixture
def cpu(tmp_path):
    """A real result of one CPU core that names no accelerator; its links are of processes that
    share the core, which no figures of links can be near."""
    found = json.loads(GOLDEN.read_text())
    found["results"] = [r for r in found["results"] if r["probe"] not in ("collectives", "overlap")]
    path = tmp_path / "cpu.json"
    path.write_text(json.dumps(found))
    return path


@pytest.fixture
def answered(run):
    def _answered(*arguments):
        status, out, err = run("calibrations", *arguments)
        assert (status, err) == (0, "")
        return json.loads(out) if "--json" in arguments else out

    return _answered


def at(day, **provenance):
    """A change that moves a result to another day, with other software."""

    def change(found):
        times = {"utc_start": f"{day}T10:00:00Z", "utc_end": f"{day}T10:07:00Z"}
        found["provenance"].update(**times, **provenance)

    return change


def test_a_result_is_kept_indexed_listed_shown_and_removed(answered, written):
    said = answered("add", str(written()), "--note", "rack 7")
    (name,) = files.ids()
    assert f"--calibration {name}" in said
    store, _ = store_or_sentence()
    (row,) = saved.calibrations(store)
    assert (row.id, row.accelerator, row.num_gpus, row.machine) == (name, H100, 16, "node0")
    assert row.stack == "torch 2.13.0, CUDA 13.0, driver 580.10"
    assert Path(row.path).is_file()
    (listed,) = answered("list", "--json")["calibrations"]
    assert (listed["id"], listed["note"], listed["problem"]) == (name, "rack 7", None)
    assert listed["num_nodes"] == 2
    assert "rack 7" in answered("list")
    assert answered("remove", name) == f"Removed the calibration {name}.\n"
    assert files.ids() == []
    assert saved.calibrations(store) == []
    assert answered("list", "--json")["calibrations"] == []
    assert "`runcast calibrations add FILE`" in " ".join(answered("list").split())


def test_the_same_result_twice_is_one(answered, written):
    path = written()
    assert answered("add", str(path), "--json")["is_new"]
    again = answered("add", str(path), "--json")
    assert not again["is_new"]
    assert files.ids() == [again["calibration"]["id"]]


def test_show_has_what_was_planted(answered, written, monkeypatch):
    answered("add", str(written()))
    (name,) = files.ids()
    found = answered("show", name, "--json")
    constants = {c["name"]: c for c in found["constants"]}
    for planted in ("attention", "memory", "elementwise", "scale_up"):
        c = constants[planted]
        assert c["factor"] == pytest.approx(TRUE[planted], rel=0.05)
        assert c["p10"] < c["factor"] < c["p90"]
        assert c["source"] == "measured (node0, 2026-11-01)"
    assert abs(found["held_out"]["before_ratio"] - 1) > 0.05
    assert abs(found["held_out"]["after_ratio"] - 1) < 0.02
    link = next(x for x in found["links"] if x["nodes"] == 1)
    assert link["bus_bytes_per_s_p5"] <= link["bus_bytes_per_s"] <= link["bus_bytes_per_s_p95"]
    assert len(link["points"]) == 14
    monkeypatch.setenv("COLUMNS", "160")
    text = " ".join(answered("show", name).split())
    ratios = found["held_out"]["before_ratio"], found["held_out"]["after_ratio"]
    assert f"{ratios[0]:.3f} without the calibration, {ratios[1]:.3f} with it" in text
    assert "all_reduce over 16 ranks of 2 nodes: bus bandwidth" in text
    for words in ("Matmuls in 16 bits", "Network of a GPU", "driver 580.10"):
        assert words in text


def test_a_sick_node_is_named(answered, written):
    def second_is_slow(found):
        for row in found["results"]:
            if row["probe"] == "matmul":
                row["t_med_by_node_s"] = [row["t_med_s"], row["t_med_s"] * 1.12]

    answered("add", str(written(second_is_slow)))
    (name,) = files.ids()
    (slow,) = answered("show", name, "--json")["slow_nodes"]
    assert (slow["index"], slow["node"]) == (1, "node1")
    assert slow["time_ratio"] == pytest.approx(1.12)
    text = " ".join(answered("show", name).split())
    assert "Slower than the median node: node 1 ('node1') by 12%." in text
    assert "In a synchronous job every node waits" in text  # what the flag means


def test_what_is_old_says_why(answered, written):
    answered("add", str(written(at("2026-01-01", driver="570.1", torch="2.11.0"))))
    answered("add", str(written()))
    new, old = answered("list", "--json")["calibrations"]
    assert new["measured_at"] > old["measured_at"]
    reasons = " ".join(old["stale"])
    assert "days old, more than 180" in reasons
    assert "driver 570.1; the newest result of it, of 2026-11-01, has driver 580.10." in reasons
    assert "torch 2.11.0" in reasons
    assert "CUDA" not in reasons  # which is the same
    assert not any("driver" in s for s in new["stale"])
    assert "570.1; the newest" in " ".join(answered("list").split())


def test_a_damaged_file_is_listed_as_one_and_can_be_removed(answered, written, run):
    answered("add", str(written()))
    (name,) = files.ids()
    path = files.folder() / f"{name}.json"
    path.write_bytes(path.read_bytes()[:-20])
    (found,) = answered("list", "--json")["calibrations"]
    assert found["problem"].endswith(".)")
    assert "is damaged: add it again" in found["problem"]
    assert found["accelerator"] is None
    assert "damaged" in answered("list")
    status, out, err = run("calibrations", "show", name)
    assert (status, out) == (2, "")
    assert "is damaged" in err
    answered("remove", name)
    assert files.ids() == []


def test_a_store_that_cannot_be_used_does_not_stop_it(answered, written, monkeypatch):
    monkeypatch.setenv("RUNCAST_DATABASE_URL", "mysql://somewhere/else")
    found = answered("add", str(written()), "--json")
    assert found["sentences"][0].startswith("It is not in the index: ")
    listed = answered("list", "--json")
    assert [c["id"] for c in listed["calibrations"]] == files.ids()
    assert listed["index_problem"]


def test_a_result_without_an_accelerator_is_for_a_custom_one(answered, run, cpu):
    found = answered("add", str(cpu), "--json")
    assert found["calibration"]["accelerator"] == "custom"
    assert any("gpu=custom" in s for s in found["sentences"])
    name = found["calibration"]["id"]
    status, out, err = run("calibrations", "show", name)
    assert (status, out) == (2, "")
    assert "--link gives the figures" in err
    assert "custom_tflop_per_s" in err
    shown = answered("show", name, "--link", CUSTOM, "--json")
    assert {c["name"] for c in shown["constants"]} >= {"memory", "matmul"}


# --- refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d["results"][1].update(t_med_s=-1.0), "greater than 0, not '-1.0'"),
        (lambda d: d["results"][1].update(flops=9 * d["results"][1]["flops"]), "datasheet peak"),
        (lambda d: d["provenance"]["device"].update(sku_key="A100-80GB-SXM"), "is meant for A100"),
        (lambda d: d["provenance"]["device"].update(sku_key="H1000"), "Did you mean"),
        (lambda d: d.update(probe_version=2), "is of probe version '2'"),
        (lambda d: d.update(control=[]), "The control operation was not timed"),
        (lambda d: d.update(control=d["control"][:-1]), "is missing after collectives"),
        (lambda d: d.update(token="x"), "unknown key 'token'"),
        (lambda d: d["results"][0].update(bytes=1e7), "another machine, or its figures are wrong"),
    ],
)  # fmt: skip
def test_a_bad_result_is_refused_with_the_reason(run, written, change, says):
    status, out, err = run("calibrations", "add", str(written(change)))
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
    assert files.ids() == []


def test_a_truncated_a_huge_and_a_missing_file_are_refused(run, written, tmp_path):
    cut, huge = written(), tmp_path / "huge.json"
    cut.write_bytes(cut.read_bytes()[:-100])
    with huge.open("wb") as file:
        file.truncate(5 * MAX_BYTES)
    for path, says in (
        (cut, "is not JSON"), (huge, "has 100 MB; at most 20 MB are read"),
        (tmp_path / "none.json", "does not exist"), (tmp_path, "is a folder"),
    ):  # fmt: skip
        status, out, err = run("calibrations", "add", str(path))
        assert (status, out) == (2, ""), path
        assert says in err
        assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["show", "remove"])
def test_an_unknown_id_is_a_sentence(run, command):
    status, out, err = run("calibrations", command, "0123456789abcdef")
    assert (status, out) == (2, "")
    assert "this server has none" in err
    status, _, err = run("calibrations", command, "../../etc/passwd")
    assert status == 2
    assert err.count("\n") == 1


def test_a_note_is_one_short_line(run, written):
    status, _, err = run("calibrations", "add", str(written()), "--note", "x" * 201)
    assert status == 2
    assert "at most 200" in err
    assert files.ids() == []


def test_impossible_rates_of_a_custom_accelerator_are_of_another_machine(cpu):
    """Nothing bounds typed-in figures but that no machine is fifty times as fast."""
    typed = Scenario.from_query({"gpu": "custom", **dict(p.split("=") for p in CUSTOM.split("&"))})[
        0
    ]
    slow = typed.model_copy(update={"custom_memory_gb_per_s": 0.01})
    with pytest.raises(ValueError, match="another machine"):
        added.add(cpu.read_bytes(), typed=slow)
    assert added.add(cpu.read_bytes(), typed=typed).is_new


# --- documented ----------------------------------------------------------------------------------


def keys(value):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            if name != "provenance":
                yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


def test_every_key_is_documented(answered, written, cpu):
    added_ = answered("add", str(written()), "--json")
    name = added_["calibration"]["id"]
    shown = answered("show", name, "--json")
    golden = answered("add", str(cpu), "--json")["calibration"]["id"]
    flagged = answered("show", golden, "--link", CUSTOM, "--json")
    assert flagged["flags"]
    assert flagged["skipped"] or shown["links"]
    found = {*keys(added_), *keys(shown), *keys(flagged), *keys(answered("list", "--json"))}
    told = set(re.findall(r"`([a-z][a-z0-9_]*)`", KEYS))
    assert found - told == set()
    assert set(shown["provenance"]) <= set(re.findall(r"`([a-z][a-z0-9_]*)`", RESULT_KEYS))
