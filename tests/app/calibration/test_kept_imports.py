"""What another tool measured, kept as a calibration: it moves a forecast until it is removed."""

from __future__ import annotations

import datetime as dt
import json
import re
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from app.calibration import added
from app.calibration import document as tables
from app.calibration.sources import MEASURED, sources_of
from app.forecast import calibrations
from app.forecast import calibrations as files
from app.forecast.answer import answer
from app.forecast.resolve import resolve_strict
from app.prices.over_time import store_or_sentence
from core.errors import RuncastError, ScenarioError
from core.scenario import Scenario
from pricing.store import saved
from runners.imports.result import ImportResult, parse_import
from tests.app.calibration.test_calibration_page import QUICK, figures, of, opened, plain, said, use
from tests.made_up.results import H100, document, machine
from tests.support.logs import LOGS

NODE, NODES, MATMULS = "all_reduce_node.txt", "all_reduce_two_nodes.txt", "mamf_v2.txt"
DATED = ("--date", "2026-03-31")
TODAY = dt.date(2026, 4, 30)
DOCUMENT = (Path(__file__).parents[3] / "docs/calibration.md").read_text(encoding="utf-8")
KEYS = DOCUMENT.partition("\n## Keys of `runcast calibrations --json`\n")[2].partition("\n## ")[0]
ASKED = {
    "model": "llama3.1-8b", "num_tokens": "1e11", "global_batch_size": "256",
    "gpu": "H100-80GB-SXM,A100-80GB-SXM", "num_gpus": "16",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path / "data"))
    calibrations._of_id.cache_clear()


@pytest.fixture
def answered(run):
    def _answered(*arguments):
        status, out, err = run(*map(str, arguments))
        assert (status, err) == (0, "")
        return json.loads(out) if "--json" in arguments else " ".join(out.split())

    return _answered


@pytest.fixture
def kept(answered):
    """Keep a file with `runcast import --keep`; its id."""

    def _kept(name, *more):
        found = answered("import", LOGS / name, "--gpu", "H100-80GB-SXM", "--keep", *more, "--json")
        return found["kept"]["id"]

    return _kept


def calibrated(*ids):
    return resolve_strict(Scenario.parse({**ASKED, "calibration": ",".join(ids)}))


def forecast(plan):
    """Without the cost, whose correction for choosing the cheapest plan depends on all plans."""
    return plan.tokens_per_s, plan.step_s, plan.layout


@pytest.mark.parametrize(
    ("name", "constants"),
    [
        (NODE, {"scale_up", "scale_up_hop"}),
        (NODES, {"scale_out", "scale_out_hop"}),
        (MATMULS, {"matmul"}),
    ],
)
def test_a_kept_import_moves_its_accelerator_and_removing_it_restores_it(
    kept, answered, name, constants
):
    before = answer(calibrated(), top=200)
    one = kept(name, *DATED)
    after = answer(calibrated(one), top=200)
    old = {p.id: p for p in before.plans}
    both = [(old[p.id], p) for p in after.plans if p.id in old]
    ours = [(a, b) for a, b in both if b.offer.accelerator == H100]
    others = [(a, b) for a, b in both if b.offer.accelerator != H100]
    assert any(a.tokens_per_s != b.tokens_per_s for a, b in ours)
    assert others
    assert [forecast(a) for a, _ in others] == [forecast(b) for _, b in others]
    assert {b.calibration for _, b in ours} == {one}
    fitted = calibrations.of_id(one, Scenario()).fitted
    assert {c.name for c in fitted.constants} == constants
    by_name = {s.name: s for s in sources_of(calibrated(one), H100)}
    assert {n for n, s in by_name.items() if s.kind == MEASURED} == constants
    tool = "mamf-finder" if name == MATMULS else "nccl-tests"
    assert {by_name[n].label for n in constants} == {f"imported ({tool}, 2026-03-31)"}
    answered("calibrations", "remove", one)
    assert files.ids() == []
    restored = answer(calibrated(), top=200).plans
    assert [(*forecast(p), p.usd) for p in restored] == [
        (*forecast(p), p.usd) for p in before.plans
    ]
    with pytest.raises(ScenarioError, match="this server has none"):
        calibrated(one)


def test_it_says_how_it_is_used_and_what_nobody_said(answered, run):
    told = answered("import", LOGS / NODE, "--keep")
    (one,) = files.ids()
    assert f"Kept {H100}, imported from nccl-tests, date unknown ({one[:8]}...)." in told
    assert f"--calibration {one}" in told
    assert "not in the index, as it has no date" in told
    again = answered("import", LOGS / NODE, "--keep", "--json")["kept"]
    assert (again["id"], again["is_new"]) == (one, False)
    noted = answered("import", LOGS / NODE, "--keep", "--note", "rack 7", "--json")["kept"]
    assert "Its note is not kept" in " ".join(noted["sentences"])
    for more, says in (
        (("--keep",), "of this file there is nothing to keep"),
        (("--note", "x"), "--note is of what --keep keeps"),
    ):
        status, out, err = run("import", str(LOGS / "torchtitan.txt"), "--seq-len", "8k", *more)
        assert (status, out) == (2, "")
        assert says in err
        assert err.count("\n") == 1


def test_the_document_that_was_written_is_added_under_the_same_id(answered, kept, tmp_path):
    path = tmp_path / "links.json"
    answered("import", LOGS / NODE, "--out", path, *DATED)
    first = answered("calibrations", "add", path, "--note", "rack 7", "--json")
    assert first["calibration"]["id"] == kept(NODE, *DATED, "--note", "rack 7")
    assert first["calibration"]["imported_from"] == "nccl-tests"
    assert first["status"] == "ok"
    store, _ = store_or_sentence()
    (row,) = saved.calibrations(store)
    assert (row.accelerator, row.num_gpus, row.note) == (H100, 8, "rack 7")
    assert (row.machine, row.stack) == ("imported from nccl-tests", "NCCL 2.28.9+cuda13.0")
    assert row.measured_at.date() == dt.date(2026, 3, 31)
    shuffled = dict(reversed(json.loads(path.read_text()).items()))
    again = added.add(json.dumps(shuffled, indent=3).encode())
    assert (again.calibration.id, again.is_new) == (row.id, False)


def test_list_and_show(answered, kept, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    dated, undated, shapes = kept(NODE, *DATED), kept(NODES), kept(MATMULS)
    measured = added.add(orjson.dumps(document(machine(matmul=0.8)))).calibration.id
    listed = answered("calibrations", "list", "--json")["calibrations"]
    assert [c["id"] for c in listed][-1] == undated  # nobody knows how old it is
    by_id = {c["id"]: c for c in listed}
    assert (by_id[dated]["measured_at"], by_id[undated]["measured_at"]) == ("2026-03-31", None)
    assert (by_id[dated]["num_gpus"], by_id[dated]["num_nodes"]) == (8, 1)
    assert (by_id[undated]["num_gpus"], by_id[undated]["num_nodes"]) == (16, 2)
    assert (by_id[dated]["nccl"], by_id[dated]["host"]) == ("2.28.9+cuda13.0", None)
    assert by_id[measured]["imported_from"] is None
    assert "It has no date" in " ".join(by_id[undated]["stale"])
    text = answered("calibrations", "list")
    assert "2026-03-31, imported from nccl-tests" in text
    assert "date unknown, imported from nccl-tests" in text
    assert text.count(" no date ") == 1  # mamf-finder prints one
    shown = answered("calibrations", "show", dated, "--json")
    assert {c["source"] for c in shown["constants"]} == {"imported (nccl-tests, 2026-03-31)"}
    assert (shown["provenance"], shown["held_out"], shown["slow_nodes"]) == (None, None, [])
    assert shown["imported"]["format"] == "nccl-tests"
    assert [(f["code"], f["severity"]) for f in shown["flags"]] == [
        ("imported", "note"), ("switch_adds", "note"),
    ]  # fmt: skip
    assert len(shown["links"][0]["points"]) == 16
    told = set(re.findall(r"`([a-z][a-z0-9_]*)`", KEYS))
    assert set(shown["imported"]) | set(shown["calibration"]) | set(shown) <= told
    assert "matmul" in {
        c["name"] for c in answered("calibrations", "show", shapes, "--json")["constants"]
    }
    text = answered("calibrations", "show", undated)
    for part in (
        "All imported (nccl-tests, date unknown).", "It has no date",
        "does not time nodes one by one", "all_reduce over 16 ranks of 2 nodes: bus bandwidth",
        "Measured by: nccl-tests, imported", "Not recorded: host, clocks",
        "note: Its tool recorded no clocks",
    ):  # fmt: skip
        assert part in text


def test_the_points_of_an_import_are_those_that_were_measured(kept):
    c = calibrations.of_id(kept(NODE), Scenario())
    group = tables.group_name(c.fitted.links[0])
    points = tables.measured_points(c, group).set_index("bytes")
    assert len(points) == 16
    assert points["spike"][8192.0]
    assert points["us"][8192.0] > 3 * points["us"][2048.0]
    assert len(tables.fitted_lines(c, group)) == tables.CURVE_POINTS


def made(name="a", **changes):
    """An import of a made-up node, kept in the list alone."""
    values = {
        "schema": "import-result/1", "format": "nccl-tests", "source_sha256": "0" * 64,
        "source_bytes": 1, "accelerator": H100, "device": "", "measured_on": "2026-03-31",
        "software": {"nccl": "2.27"},
        "collectives": [{"op": "all_reduce", "ranks": 8, "nodes": 1,
                         "points": [{"size_bytes": 8.0, "time_s": 1e-5, "wrong": 0}]}],
        **changes,
    }  # fmt: skip
    return replace(calibrations.calibration_from(ImportResult.model_validate(values)), id=name)


def test_when_an_import_is_old():
    one = made()
    assert tables.staleness(one, [one], TODAY) == ()
    (old,) = tables.staleness(one, [one], TODAY + dt.timedelta(days=400))
    assert "430 days old, more than 180" in old
    newer = made("b", measured_on="2026-04-20", software={"nccl": "2.28"})
    (said_,) = tables.staleness(one, [one, newer], TODAY)
    assert said_ == (
        "Measured with NCCL 2.27; the newest result of it, of 2026-04-20, has NCCL 2.28."
    )
    tool = made("c", measured_on="2026-04-20", format="mamf-finder", software={"torch": "2.9"})
    undated = made("d", measured_on=None)
    assert tables.staleness(one, [one, tool, undated], TODAY) == ()
    (said_,) = tables.staleness(undated, [one, undated], TODAY)
    assert "It has no date" in said_


def test_a_damaged_import_says_so(kept, answered, run):
    one = kept(NODE)
    path = files.folder() / f"{one}.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    (found,) = answered("calibrations", "list", "--json")["calibrations"]
    assert "is damaged: add it again" in found["problem"]
    status, _, err = run("calibrations", "show", one)
    assert status == 2
    assert "is damaged" in err
    path.write_bytes(whole.replace(b'"ranks":8', b'"ranks":4'))
    with pytest.raises(ScenarioError, match="not what was added"):
        files.load(one)
    answered("calibrations", "remove", one)
    assert files.ids() == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"accelerator": "H1000"}, "Did you mean"),
        ({"accelerator": "custom"}, "custom"),
        ({"measured_on": "2026-02-31"}, "day is out of range"),
        ({"software": {"token": 1}}, "is refused at"),
        ({"collectives": [{"op": "all_gather"}]}, "is refused at"),
    ],
)  # fmt: skip
def test_a_bad_document_is_refused_with_the_reason(answered, tmp_path, change, says):
    path = tmp_path / "links.json"
    answered("import", LOGS / NODE, "--out", path)
    found = {**json.loads(path.read_text()), **change}
    with pytest.raises(RuncastError, match=says):
        added.add(json.dumps(found).encode())
    assert files.ids() == []


def test_what_moves_no_forecast_is_not_kept(answered, tmp_path):
    path = tmp_path / "links.json"
    answered("import", LOGS / NODE, "--out", path)
    found = json.loads(path.read_text())
    found["collectives"][0]["op"] = "all_gather"
    with pytest.raises(ScenarioError, match=r"nothing in this file of nccl-tests moves a forecast"):
        added.add(json.dumps(found).encode())
    assert parse_import(json.dumps(found).encode())
    assert files.ids() == []


def test_the_page_uses_an_import_and_shows_it(answered, tmp_path):
    path = tmp_path / "links.json"
    answered("import", LOGS / NODES, "--out", path)
    page = opened(**QUICK | {"global_batch_size": "16", "seq_len": "1024"})  # gradients do not hide
    page.session_state["given"] = path.read_bytes()
    page.run()
    assert not page.exception
    (one,) = files.ids()
    assert "Switch it on to use it in this plan." in said(page)
    page = use(page, one)
    assert not page.exception
    assert of(page, "calibration") == one
    moved = figures(page)
    assert moved["Speed"][0] != moved["Speed"][1]
    text = said(page)
    for part in (
        "imported from nccl-tests, date unknown", "It has no date",
        "NCCL 2.28.9", "does not time nodes one by one", "a history needs two",
    ):  # fmt: skip
        assert part in text
    shown = plain(" ".join(str(t.value.to_dict("list")) for t in page.table))
    assert "imported (nccl-tests, date unknown)" in shown
    assert "Measured by" in text
    found = json.loads(path.read_bytes())
    for day in ("2026-03-31", "2026-04-30"):
        added.add(json.dumps({**found, "measured_on": day}).encode())
    page.run()
    assert not page.exception
    assert "a history needs two" not in said(page)
    next(b for b in page.button if b.key == f"calibration_gone_{one}").click().run()
    assert not page.exception
    assert not of(page, "calibration")
