"""The Calibrate page without a browser: a result is used and moves the plan, or is refused."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from streamlit.testing.v1 import AppTest

from app.calibration import added, charts
from app.calibration import document as tables
from app.calibration import sources as calibration_sources
from app.document import vocabulary
from app.forecast import calibrations
from app.forecast import calibrations as files
from app.forecast.answer import answer
from app.forecast.resolve import resolve_strict
from app.web import form_words
from core.machine.calibration import Calibrated
from core.scenario import Scenario
from hardware.facts import accelerator
from runners.calibration import validity
from runners.calibration.probe_plan import probe_plan
from runners.calibration.result import parse_result
from runners.probe_file import probe_text
from tests.made_up.results import H100, document, machine, result

GOLDEN = Path(__file__).parents[2] / "golden/calib-result-1.json"
TRUE = {"matmul": 0.8, "attention": 0.9, "memory": 0.9, "elementwise": 1.3, "scale_up": 0.8}
QUICK = {
    "v": "1", "model": "llama3.1-8b", "num_tokens": "1e11", "global_batch_size": "256",
    "gpu": H100, "num_gpus": "16", "cloud": "aws", "sharding": "fsdp2", "recompute": "selective",
    "tp": "1", "pp": "1",
}  # fmt: skip
CPU = {
    "v": "1", "model": "custom", "num_layers": "4", "hidden_size": "256",
    "ffn_hidden_size": "688", "num_attention_heads": "4", "num_kv_heads": "4", "head_dim": "64",
    "vocab_size": "2048", "num_tokens": "1e7", "seq_len": "128", "global_batch_size": "8",
    "gpu": "custom", "num_gpus": "1", "tp": "1", "pp": "1", "sharding": "ddp",
    "custom_tflop_per_s": "0.2", "custom_memory_gib": "16", "custom_memory_gb_per_s": "20",
    "custom_scale_up_gb_per_s": "10", "custom_scale_out_gbit_per_s": "10",
    "custom_gpus_per_node": "1",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path / "data"))
    calibrations._of_id.cache_clear()


def script():
    import streamlit as st

    from app.calibration import page as calibration_page
    from app.forecast import answer as forecast_answer
    from app.forecast import resolve
    from app.web import link

    link.take_over(resolve.resolve, resolve.current_prices())
    link.write()
    if data := st.session_state.pop("given", None):
        calibration_page.take(data)
    calibration_page.draw(lambda scenario: forecast_answer.answer(scenario, top=5))


def opened(**query):
    page = AppTest.from_function(script, default_timeout=90)
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


def plain(text):
    return str(text).replace("\\", "").replace("\N{WORD JOINER}", "")


def said(page):
    shown = (*page.markdown, *page.caption, *page.warning, *page.info, *page.success, *page.error)
    return plain("\n".join(e.value for e in shown))


def figures(page):
    """Speed, time and cost without and with the calibration."""
    frame = next(t.value for t in page.table if "Without" in t.value)
    rows = frame.map(plain).set_index("Figure")
    return {n: tuple(rows.loc[n, ["Without", "With the calibration"]]) for n in rows.index}


def use(page, name, wanted=True):
    box = next(b for b in page.checkbox if b.key == f"calibration_use_{name}")
    return (box.check() if wanted else box.uncheck()).run()


def of(page, name):
    value = page.query_params.get(name, "")
    return value[-1] if isinstance(value, list) else value


def forecast(scenario):
    return [
        (p.id, p.tokens_per_s, p.usd, p.step_s, p.layout) for p in answer(scenario, top=20).plans
    ]


def test_an_empty_page_says_what_to_do():
    page = opened(**QUICK)
    assert not page.exception
    text = said(page)
    assert f"No calibration is in use. The plan of this link is on {H100}" in text
    assert "there is no result yet" in text
    command = page.code[0].value
    assert command.startswith("runcast calibrate --launcher ssh --hosts node1,node2")
    assert "runcast calibrations add calibration.json" in command
    assert "Sources of the figures of H100-80GB-SXM" in [plain(s.value) for s in page.subheader]


def test_a_result_that_is_used_moves_the_plan_and_removing_it_moves_it_back():
    before = forecast(resolve_strict(Scenario.from_query(QUICK)[0]))
    page = opened(**QUICK)
    page.session_state["given"] = orjson.dumps(document(machine(**TRUE)))
    page.run()
    assert not page.exception
    (name,) = files.ids()
    assert "Switch it on to use it in this plan." in said(page)
    assert "a result of it is below" in said(page)
    page = use(page, name)
    assert not page.exception
    assert of(page, "calibration") == name
    assert "With the calibration 16 H100-80GB-SXM trains" in said(page)
    moved = figures(page)
    assert all(old != new for old, new in (moved["Speed"], moved["Time"], moved["Cost"]))
    linked = Scenario.from_query({**QUICK, "calibration": name})[0]
    assert forecast(resolve_strict(linked)) != before
    next(b for b in page.button if b.key == f"calibration_gone_{name}").click().run()
    assert not page.exception
    assert files.ids() == []
    assert "calibration" not in page.query_params
    assert "No calibration is in use" in said(page)
    query = {n: of(page, n) for n in QUICK}
    assert forecast(resolve_strict(Scenario.from_query(query)[0])) == before


def test_switching_it_off_keeps_the_file():
    name = files.keep(result(machine(**TRUE)))
    page = opened(**QUICK, calibration=name)
    assert next(b for b in page.checkbox if b.key == f"calibration_use_{name}").value
    page = use(page, name, wanted=False)
    assert not page.exception
    assert "calibration" not in page.query_params
    assert files.ids() == [name]


def test_of_one_accelerator_there_is_one():
    one, other = (files.keep(result(machine(matmul=f))) for f in (0.8, 0.9))
    page = use(opened(**QUICK, calibration=one), other)
    assert not page.exception
    assert of(page, "calibration") == other
    assert [b.value for b in page.checkbox if b.key.endswith(one)] == [False]
    assert "The factor" not in said(page)
    assert "a history needs two" not in said(page)  # these are two


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d["results"][1].update(t_med_s=-1.0), "greater than 0, not '-1.0'"),
        (lambda d: d["results"][1].update(flops=9 * d["results"][1]["flops"]), "datasheet peak"),
        (lambda d: d["provenance"]["device"].update(sku_key="A100-80GB-SXM"), "is meant for A100"),
        (lambda d: d.update(probe_version=2), "is of probe version '2'"),
        (lambda d: d.update(control=[]), "The control operation was not timed"),
        (lambda d: d["provenance"].update(host="<b>:red[$x$]", python="x" * 200), "python"),
    ],
)  # fmt: skip
def test_a_bad_upload_is_a_sentence(change, says):
    found = document(machine(**TRUE))
    change(found)
    page = opened(**QUICK)
    page.session_state["given"] = orjson.dumps(found)
    page.run()
    assert not page.exception
    assert says in plain(page.error[0].value)
    assert files.ids() == []


def test_a_truncated_and_a_huge_upload_are_sentences():
    data = orjson.dumps(document(machine()))
    for given, says in ((data[:-50], "is cut off"), (b" " * 10**8, "has 100 MB; at most 20 MB")):
        page = opened(**QUICK)
        page.session_state["given"] = given
        page.run()
        assert not page.exception
        assert says in plain(page.error[0].value)


def test_hostile_names_stay_text():
    found = document(machine())
    found["provenance"]["host"] = "<b>:red[$x$]"
    files.keep(parse_result(orjson.dumps(found)))
    page = opened(**QUICK)
    assert not page.exception
    raw = next(m.value for m in page.markdown if "red" in m.value and m.value.startswith("**H100"))
    assert "\\<b\\>" in raw
    assert ":red[" not in raw


def test_a_damaged_file_is_named_and_can_be_removed():
    name = files.keep(result(machine()))
    path = files.folder() / f"{name}.json"
    path.write_bytes(b"{")
    page = opened(**QUICK)
    assert not page.exception
    assert "is damaged: add it again" in said(page)
    assert not [b for b in page.checkbox if name in b.key]
    next(b for b in page.button if b.key == f"calibration_gone_{name}").click().run()
    assert not page.exception
    assert files.ids() == []


def test_the_result_in_detail_has_its_flags_nodes_and_age():
    found = document(machine(**TRUE))
    for row in found["results"]:
        if row["probe"] == "matmul":
            row["t_med_by_node_s"] = [row["t_med_s"], row["t_med_s"] * 1.12]
    found["control"][-1]["t_med_s"] *= 1.1
    found["provenance"].update(utc_start="2025-01-01T00:00:00Z", utc_end="2025-01-01T00:10:00Z")
    name = files.keep(parse_result(orjson.dumps(found)))
    page = opened(**QUICK, calibration=name)
    assert not page.exception
    text = said(page)
    assert "node 1 ('node1') by 12%" in text
    assert validity.GATES["drift"][1] in text
    assert validity.GATES["slow_node"][1] in text
    assert "days old, more than 180" in text
    assert "Of 10 constants: 10 measured." in text
    assert "that no constant was fitted to took" in text


# --- what the page is made of --------------------------------------------------------------------


@pytest.fixture
def learned():
    name = files.keep(result(machine(**TRUE)))
    scenario = Scenario.from_query({**QUICK, "calibration": name})[0]
    return calibrations.of_id(name, scenario)


def test_every_constant_has_words():
    fields = {f for f in Calibrated.__dataclass_fields__ if not f.startswith("matmul_")}
    assert set(vocabulary.MEASURED) == fields | {"matmul_fp8"} == set(calibration_sources.PARTS)


def test_slower_is_said_of_lower_rates_and_of_longer_times(learned):
    said = {c.name: tables.moved(c) for c in learned.fitted.constants}
    assert {said[n] for n in ("matmul", "attention", "memory", "elementwise", "scale_up")} == {
        "slower"
    }
    assert said["scale_out"] == "as assumed"
    assert "Memory bandwidth x 0.90 (slower)" in tables.moved_sentence(learned)


def test_charts_show_factors_and_curves(learned):
    rows = tables.factors([learned])
    drawn = charts.factors(rows, theme="light").to_dict()
    low, high = drawn["layer"][1]["encoding"]["x"]["scale"]["domain"]
    assert low < rows["low"].min()
    assert high > max(1.0, rows["high"].max())
    group = tables.group_name(learned.fitted.links[0])
    points, lines = (f(learned, group) for f in (tables.measured_points, tables.fitted_lines))
    assert len(points) == 14
    assert points["busbw"].max() == pytest.approx(
        learned.fitted.links[0].bus_bytes_per_s / 1e9, rel=0.05
    )
    for of_ in charts.AXES:
        assert charts.collectives(points, lines, axis=of_, theme="light").to_dict()["layer"]
    assert len(charts.history(rows, theme="light").to_dict()["layer"]) == 3


def test_sources_say_measured_first_and_else_where_it_is_from(learned):
    used = Scenario.from_query({**QUICK, "calibration": learned.id})[0]
    found = calibration_sources.sources_of(used, H100)
    assert {s.kind for s in found} == {"measured"}
    assert found[0].label == "measured (node0, 2026-11-01)"
    bare = {s.name: s for s in calibration_sources.sources_of(Scenario.from_query(QUICK)[0], H100)}
    assert bare["matmul"].kind == "measured elsewhere"
    assert bare["scale_up"].kind == "fitted"
    assert bare["memory"].kind == "published"
    typed = Scenario.from_query(CPU)[0]
    custom = {s.name: s.kind for s in calibration_sources.sources_of(typed, "custom")}
    assert custom["memory"] == "given"
    assert custom["matmul"] == custom["host_link"] == "assumed"
    unmeasured = {s.name: s.kind for s in calibration_sources.sources_of(used, "A10G")}
    assert "measured" not in unmeasured.values()
    assert accelerator("A10G").matmul_flops_per_s is None
    assert unmeasured["matmul"] == "assumed"


def test_the_effect_on_another_accelerator_is_none(learned):
    other = Scenario.from_query({**QUICK, "gpu": "A100-80GB-SXM", "calibration": learned.id})[0]
    rows = tables.changes(other, lambda s: answer(resolve_strict(s), top=5))
    assert "No calibration in use is for it" in tables.changes_sentences(rows)[0]
    assert [row[-1] for row in tables.changes_table(rows).rows[:3]] == ["+0.0%"] * 3


def test_the_command_quotes_the_link():
    scenario = Scenario.from_query({**QUICK, "calibration": "0" * 16})[0]
    text = tables.commands(scenario, None)
    assert text.startswith("runcast calibrate --launcher local")
    assert "'?v=1&" in text
    assert "calibration=" not in text


def test_the_command_is_one_that_calibrate_takes(run):
    scenario = resolve_strict(Scenario.from_query(QUICK)[0])
    text = tables.commands(scenario, answer(scenario, top=1).plans[0])
    first, second = text.replace("\\\n", " ").splitlines()
    status, out, err = run(*shlex.split(first)[1:], "--dry-run")
    assert status == 0, err
    assert "the plan on 16 H100-80GB-SXM" in " ".join(err.split())
    assert "calib-plan" in out
    assert shlex.split(second) == ["runcast", "calibrations", "add", "calibration.json"]


def test_the_form_shows_an_id_as_a_label():
    name = files.keep(result(machine()))
    assert files.id_label(name) == f"{H100}, node0, 2026-11-01 ({name[:8]}...)"
    assert files.id_label("0" * 16) == "0" * 16
    assert form_words.PLACEHOLDERS["calibration"].startswith("None")


def test_a_note_of_the_index_is_listed():
    added.add(orjson.dumps(document(machine())), note="rack 7")
    (kept,), sentence = added.listed()
    assert (kept.note, sentence) == ("rack 7", "")


# --- a real processor ----------------------------------------------------------------------------


def used_and_removed(data):
    """A result of a CPU, used with typed-in figures and then removed: figures before, with it and
    after, and the held-out ratios."""
    before = forecast(resolve_strict(Scenario.from_query(CPU)[0]))
    page = opened(**CPU)
    page.session_state["given"] = data
    page.run()
    assert not page.exception
    (name,) = files.ids()
    page = use(page, name)
    assert not page.exception
    moved = figures(page)
    linked = Scenario.from_query({**CPU, "calibration": name})[0]
    step = calibrations.of_id(name, linked).fitted.held_out
    next(b for b in page.button if b.key == f"calibration_gone_{name}").click().run()
    assert not page.exception
    query = {n: of(page, n) for n in CPU}
    assert forecast(resolve_strict(Scenario.from_query(query)[0])) == before
    return moved, step


def alone(data):
    """One process: links between processes that share a core are no links of a machine."""
    found = json.loads(data)
    found["results"] = [r for r in found["results"] if r["probe"] not in ("collectives", "overlap")]
    return json.dumps(found).encode()


def test_a_stored_result_of_a_cpu_moves_the_plan_and_back():
    moved, step = used_and_removed(alone(GOLDEN.read_bytes()))
    assert moved["Speed"][0] != moved["Speed"][1]
    assert step is not None


@pytest.mark.slow
def test_a_cpu_that_is_measured_here_moves_the_plan_and_back(tmp_path):
    """A real probe of this machine: half a minute. How fast it is is printed, never asserted."""
    plan = probe_plan(
        run_id="page", launcher="local", planner_version="0", reduced=True, device="cpu"
    )
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "node.py").write_text(probe_text())
    subprocess.run(
        [sys.executable, "-P", "node.py", "--plan", "plan.json", "--out", "result.json",
         "--budget-s", "120"],
        cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, check=True,
        timeout=200,
    )  # fmt: skip
    moved, step = used_and_removed((tmp_path / "result.json").read_bytes())
    print(f"forecast {moved['Speed'][0]} -> {moved['Speed'][1]}; {step}")
    assert moved["Speed"][0] != moved["Speed"][1]
    assert step is not None
