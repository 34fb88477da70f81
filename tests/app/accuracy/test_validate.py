"""`runcast validate`: nothing measured reaches a forecast; what is scored, refused and written."""

import csv
import datetime as dt
import hashlib
import json
import time
from dataclasses import fields

import numpy as np
import pytest

from app.accuracy import as_json
from app.accuracy import validate as validation
from app.accuracy.predict import Predictions
from app.accuracy.rows import where
from app.accuracy.section_scores import class_coverages, families
from app.accuracy.sections import report_blocks
from app.document.terminal import print_document
from core.errors import RunsError
from core.scenario import Scenario
from hardware import measured
from hardware.measured_model import ModelFacts
from tests.support.csv_tables import written_table

TODAY = dt.date(2026, 11, 21)
METRICS = {
    "n", "refused", "median_ape", "mean_ape", "p90_ape", "within_20", "coverage_80",
}  # fmt: skip
MEASURED_COLUMNS = (
    "value", "metric", "tokens_per_s_per_gpu", "model_tflops_per_gpu", "mfu_printed",
    "peak_mem_gib", "oom", "notes",
)  # fmt: skip
RUN = {
    "run_id": "a", "source": "table 1", "framework": "nemo", "model_key": "llama2-7b",
    "task": "pretrain", "accelerator": "H100-80GB-SXM", "num_gpus": "8", "seq_len": "4096",
    "precision": "bf16", "tokens_per_s_per_gpu": "10000", "peak_mem_gib": "60",
    "throughput_ok": "1", "memory_ok": "1", "oom": "0",
}  # fmt: skip


def digest(inputs, i, salt):
    """A number from 1 to 2 that changes when any input of the row changes."""
    text = repr([str(getattr(inputs, f.name)[i]) for f in fields(inputs)]) + salt
    return 1 + int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32


def hashing_predict(inputs, models, runs=None):
    def column(salt, scale):
        return np.array([scale * digest(inputs, i, salt) for i in range(len(inputs))])

    p50 = column("tokens", 1e4)
    return Predictions(
        tokens_per_s_per_gpu_p10=p50 * 0.8,
        tokens_per_s_per_gpu_p50=p50,
        tokens_per_s_per_gpu_p90=p50 * 1.2,
        peak_memory_gib_p10=column("memory", 25.0),
        peak_memory_gib=column("memory", 30.0),
        peak_memory_gib_p90=column("memory", 35.0),
        probability_oom=column("oom", 0.5),
        uncorrected_tokens_per_s_per_gpu=p50,
        needed_memory_gib=column("memory", 40.0),
        scenarios=np.full(len(inputs), Scenario(), dtype=object),
        ok=np.full(len(inputs), True),
        reason=np.full(len(inputs), "", dtype=object),
    )


def constant_predict(tokens=10_000.0, memory=60.0):
    def predict(inputs, models, runs=None):
        full = {name: np.full(len(inputs), x) for name, x in (("t", tokens), ("m", memory))}
        return Predictions(
            tokens_per_s_per_gpu_p10=full["t"] * 0.9,
            tokens_per_s_per_gpu_p50=full["t"],
            tokens_per_s_per_gpu_p90=full["t"] * 1.1,
            peak_memory_gib_p10=full["m"] * 0.9,
            peak_memory_gib=full["m"],
            peak_memory_gib_p90=full["m"] * 1.1,
            probability_oom=np.full(len(inputs), 0.1),
            uncorrected_tokens_per_s_per_gpu=full["t"],
            needed_memory_gib=full["m"],
            scenarios=np.full(len(inputs), Scenario(), dtype=object),
            ok=np.full(len(inputs), True),
            reason=np.full(len(inputs), "", dtype=object),
        )

    return predict


@pytest.fixture
def predicted_by(monkeypatch):
    def use(predict):
        monkeypatch.setattr(validation, "predict", predict)

    return use


@pytest.fixture
def table(tmp_path):
    def write(rows, name="runs.csv"):
        return written_table(rows, tmp_path / name)

    return write


def validate(runs=measured.RUNS_CSV, pairs=None):
    return validation.validate(runs, measured.MODELS_CSV, pairs, today=TODAY)


def written(report, tmp_path):
    path = tmp_path / "out.csv"
    as_json.write_out(report, path)
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def shipped_rows(step=1):
    with measured.RUNS_CSV.open(newline="") as file:
        return list(csv.DictReader(file))[::step]


# --- nothing measured reaches a forecast ---------------------------------------------------------


@pytest.mark.parametrize("predict", ["hashing", "real"])
def test_measured_cells_change_no_forecast(table, tmp_path, predicted_by, predict):
    if predict == "hashing":
        predicted_by(hashing_predict)
    rows = shipped_rows(step=1 if predict == "hashing" else 11)
    expected = written(validate(table(rows)), tmp_path)
    assert [row["run_id"] for row in expected] == [row["run_id"] for row in rows]
    for placeholder in ("", "x", "-1", "0", "1", "nan", "999999"):
        blind = [{**row, **dict.fromkeys(MEASURED_COLUMNS, placeholder)} for row in rows]
        assert written(validate(table(blind)), tmp_path) == expected, placeholder


def test_absent_measured_columns_change_no_forecast(table, tmp_path, predicted_by):
    predicted_by(hashing_predict)
    rows = shipped_rows(step=5)
    flags = ("throughput_ok", "memory_ok")
    blind = [{k: v for k, v in r.items() if k not in (*MEASURED_COLUMNS, *flags)} for r in rows]
    report = validate(table(blind))
    assert written(report, tmp_path) == written(validate(table(rows)), tmp_path)
    assert report.throughput.overall.n == report.memory.overall.n == report.baseline.overall.n == 0


def test_an_input_does_change_the_forecast(table, predicted_by):
    """Or the tests above could not fail."""
    predicted_by(hashing_predict)
    rows = shipped_rows(step=100)
    changed = [{**row, "num_gpus": "1024", "tp": "1", "pp": "1", "cp": "1"} for row in rows]
    one, two = validate(table(rows)), validate(table(changed))
    tokens = one.predictions.tokens_per_s_per_gpu_p50
    assert not np.array_equal(tokens, two.predictions.tokens_per_s_per_gpu_p50)


# --- scores --------------------------------------------------------------------------------------


def test_a_forecast_of_what_was_measured_has_no_error(predicted_by):
    truth = measured.read_runs(measured.RUNS_CSV)
    by_id = {str(run_id): i for i, run_id in enumerate(truth.inputs.run_id)}

    def knows(inputs, models, runs):
        rows = [by_id[str(run_id)] for run_id in inputs.run_id]
        p = constant_predict()(inputs, models)
        tokens = np.nan_to_num(truth.measured.tokens_per_s_per_gpu[rows], nan=1.0)
        p.tokens_per_s_per_gpu_p50[:] = tokens
        p.tokens_per_s_per_gpu_p10[:] = tokens * 0.9
        p.tokens_per_s_per_gpu_p90[:] = tokens * 1.1
        p.peak_memory_gib[:] = np.nan_to_num(truth.measured.peak_memory_gib[rows], nan=1.0)
        p.probability_oom[:] = truth.measured.oom[rows]
        return p

    predicted_by(knows)
    report = validate(pairs=measured.PAIRS_CSV)
    assert report.throughput.overall.n == report.baseline.overall.n == 3084
    assert report.throughput.overall.p90_ape == pytest.approx(0)
    assert report.throughput.overall.coverage_80 == 1
    assert (report.memory.overall.n, report.memory.overall.mean_ape) == (1300, pytest.approx(0))
    assert (report.oom.n_oom, report.oom.brier) == (85, 0)
    assert report.pairs.overall.n == 1480
    assert report.pairs.overall.p90_ape < 0.002  # printed ratios are rounded
    assert report.pairs.overall.direction_right == 1
    assert report.baseline.overall.median_ape > 0.05


@pytest.mark.parametrize(
    ("cells", "n", "reason"),
    [
        ({"tokens_per_s_per_gpu": "12000"}, 2, None),
        ({"tokens_per_s_per_gpu": "1"}, 1, "implausible throughput"),  # MFU below 0.5%
        ({"tokens_per_s_per_gpu": "1e6"}, 1, "implausible throughput"),  # MFU above 100%
        ({"tokens_per_s_per_gpu": "-1"}, 1, "implausible throughput"),
        ({"tokens_per_s_per_gpu": "x"}, 1, "implausible throughput"),
        ({"tokens_per_s_per_gpu": ""}, 1, "no throughput measured"),
        ({"throughput_ok": "0"}, 1, "throughput_ok is not 1"),
    ],
)
def test_what_cannot_be_a_measurement_is_counted_not_scored(table, predicted_by, cells, n, reason):
    predicted_by(constant_predict())
    report = validate(table([RUN, {**RUN, "run_id": "b", **cells}]))
    assert report.throughput.overall.n == n
    assert report.throughput.overall.refused == report.num_refused == 0
    assert report.throughput.left_out == ({reason: 1} if reason else {})


def test_eight_bit_matmuls_may_exceed_the_16_bit_peak(table, predicted_by):
    predicted_by(constant_predict())
    fast = {**RUN, "tokens_per_s_per_gpu": "30000"}  # 1.3 of the bf16 peak
    rows = [fast, {**fast, "run_id": "b", "precision": "fp8"}]
    report = validate(table(rows))
    assert list(report.throughput.by["precision"]) == ["fp8"]


@pytest.mark.parametrize("peak", ["-1", "x", "1", "5000"])
def test_memory_that_no_device_has_is_not_scored(table, predicted_by, peak):
    predicted_by(constant_predict())
    report = validate(table([RUN, {**RUN, "run_id": "b", "peak_mem_gib": peak}]))
    assert report.memory.overall.n == 1
    assert report.memory.left_out == {"implausible peak memory": 1}


def test_parts_by_hand(table, predicted_by):
    predicted_by(constant_predict(tokens=11_000.0))
    moe = {"run_id": "b", "model_key": "mixtral-8x7b", "tokens_per_s_per_gpu": "5500"}
    by = validate(table([RUN, {**RUN, **moe}])).throughput.by
    assert by["architecture"]["dense"].median_ape == pytest.approx(0.1)
    assert by["architecture"]["moe"].median_ape == pytest.approx(1.0)
    assert set(by) >= {"accelerator", "precision", "architecture", "framework", "task"}
    assert by["stack_profile"]["known"].n == 2


def test_other_spellings_of_an_accelerator_are_one_part(table, predicted_by):
    predicted_by(constant_predict())
    rows = [RUN, {**RUN, "run_id": "b", "accelerator": "h100_80gb_sxm"}]
    assert validate(table(rows)).throughput.by["accelerator"]["H100-80GB-SXM"].n == 2


def test_releases_of_one_configuration_have_one_vote(table, predicted_by):
    predicted_by(constant_predict(tokens=12_000.0))
    again = [{**RUN, "run_id": f"r{i}", "framework_version": str(i)} for i in range(3)]
    other = {**RUN, "run_id": "b", "seq_len": "8192", "tokens_per_s_per_gpu": "6000"}
    a = validate(table([*again, other])).throughput.overall
    assert (a.n, a.configurations) == (4, 2)
    assert a.mean_ape == pytest.approx((3 * 0.2 + 1.0) / 4)
    assert a.weighted_mean_ape == pytest.approx((0.2 + 1.0) / 2)


@pytest.mark.parametrize(
    "cells",
    [
        {"tp": "2"}, {"micro_batch": "2"}, {"global_batch": "16"}, {"precision": "fp8"},
        {"framework": "torchtitan"}, {"num_gpus": "16"}, {"recompute": "full"},
        {"model_key": "llama2-70b"}, {"accelerator": "A100-80GB-SXM"}, {"task": "lora"},
    ],
)  # fmt: skip
def test_another_choice_is_another_configuration(table, predicted_by, cells):
    predicted_by(constant_predict())
    slow = {**RUN, "tokens_per_s_per_gpu": "1000"}  # that each of these devices can have
    report = validate(table([slow, {**slow, "run_id": "b", **cells}]))
    assert (report.throughput.overall.n, report.throughput.overall.configurations) == (2, 2)


def test_other_spellings_of_an_accelerator_are_one_configuration(table, predicted_by):
    predicted_by(constant_predict())
    rows = [RUN, {**RUN, "run_id": "b", "accelerator": "h100_80gb_sxm", "source": "table 9"}]
    assert validate(table(rows)).throughput.overall.configurations == 1


def test_the_worst_family_is_named_first(table, predicted_by):
    predicted_by(constant_predict())
    near = [{**RUN, "run_id": i, "tokens_per_s_per_gpu": t} for i, t in (("a", 9e3), ("b", 8e3))]
    far = {**RUN, "run_id": "c", "source": "table 2", "tokens_per_s_per_gpu": "5000"}
    found = families(validate(table([*near, far])).throughput)
    assert [(f.source, f.model, f.accelerator) for f in found] == [
        ("table 2", "llama2-7b", "H100-80GB-SXM"), ("table 1", "llama2-7b", "H100-80GB-SXM"),
    ]  # fmt: skip
    assert [f.accuracy.n for f in found] == [1, 2]
    assert found[0].accuracy.median_ape == pytest.approx(1.0)
    assert found[1].accuracy.median_ape == pytest.approx((1 / 9 + 0.25) / 2)


def test_a_class_whose_measurements_are_all_outside_is_too_narrow(table, predicted_by):
    predicted_by(constant_predict())
    rows = [{**RUN, "run_id": str(i), "tokens_per_s_per_gpu": "5000"} for i in range(6)]
    inside = [{**RUN, "run_id": f"x{i}", "framework": "maxtext"} for i in range(6)]
    found = class_coverages(validate(table([*rows, *inside])).throughput)
    of = {c.label: c for c in found if c.by == "framework"}
    assert (of["nemo"].verdict, of["maxtext"].verdict) == ("too narrow", "honest")
    assert (of["nemo"].accuracy.coverage_80, of["maxtext"].accuracy.coverage_80) == (0, 1)


# --- refusals ------------------------------------------------------------------------------------


def test_a_row_that_cannot_be_forecast_says_why_and_stops_no_other(table, tmp_path, predicted_by):
    predicted_by(constant_predict())
    rows = [
        RUN,
        {**RUN, "run_id": "b", "model_key": "lama2-7b"},
        {**RUN, "run_id": "=c", "num_gpus": "1e12"},
        {**RUN, "run_id": "a"},
        {**RUN, "run_id": "e"},
    ]
    report = validate(table(rows))
    out = written(report, tmp_path)
    assert [row["run_id"] for row in out] == ["a", "b", "'=c", "a", "e"]
    assert [row["status"] for row in out] == ["ok", "refused", "refused", "refused", "ok"]
    assert "Did you mean 'llama2-7b'" in out[1]["reason"]
    assert "1e12" in out[2]["reason"]
    assert out[1]["predicted_tokens_per_s_per_gpu"] == out[1]["probability_oom"] == ""
    assert (report.throughput.overall.n, report.throughput.overall.refused) == (2, 3)
    assert report.num_refused == 3


def test_an_unknown_accelerator_is_refused_by_the_real_forecast(table):
    report = validate(table([RUN, {**RUN, "run_id": "b", "accelerator": "H100-81GB-SXM"}]))
    assert list(report.predictions.ok) == [True, False]
    assert "H100-81GB-SXM" in report.predictions.reason[1]


def test_own_runs_move_the_forecasts_of_runs_like_them(table, tmp_path):
    run = {**RUN, "run_id": "b", "num_gpus": "16", "tokens_per_s_per_gpu": ""}
    stranger = {**run, "run_id": "c", "source": "elsewhere"}
    runs = table([run, stranger])

    def forecasts(tokens):
        own = table([{**RUN, "tokens_per_s_per_gpu": tokens}], "own.csv")
        return validation.validate(runs, measured.MODELS_CSV, today=TODAY, own_path=own)

    slow, fast = forecasts("8000"), forecasts("12000")
    moved = written(slow, tmp_path)
    ratio = fast.predictions.tokens_per_s_per_gpu_p50 / slow.predictions.tokens_per_s_per_gpu_p50
    assert 1.3 < ratio[0] < 1.5
    assert 1 < ratio[1] < 1.3
    assert "your own" in moved[0]["nearby"]
    assert float(moved[0]["moved"]) < -0.1
    assert "Own runs: 1 of the 1 rows are used." in fast.file_notes


def test_a_forecast_that_is_no_number_is_a_refusal(table, predicted_by):
    def broken(inputs, models, runs=None):
        p = constant_predict()(inputs, models)
        p.peak_memory_gib[0] = np.inf
        return p

    predicted_by(broken)
    report = validate(table([RUN, {**RUN, "run_id": "b"}]))
    assert list(report.predictions.ok) == [False, True]
    assert report.predictions.reason[0] == "The forecast is not a finite number."
    assert np.isnan(report.predictions.tokens_per_s_per_gpu_p50[0])


@pytest.mark.parametrize("name", ["llama3.1-8b", "Llama-3.1-8B", "meta-llama/Llama-3.1-8B"])
def test_a_model_that_is_not_in_the_file_may_be_a_preset(table, predicted_by, name):
    predicted_by(constant_predict())
    report = validate(table([{**RUN, "model_key": name}]))
    assert report.num_refused == 0
    assert report.model_notes[name] == ("Not in the file of models: the preset llama3.1-8b.",)


def test_every_offending_row_is_named_by_its_line_and_both_are_counted(table, predicted_by, capsys):
    predicted_by(constant_predict())
    rows = [
        RUN,
        {**RUN, "run_id": "b", "tp": "3"},
        {**RUN, "run_id": "c", "tokens_per_s_per_gpu": "-1"},
        {**RUN, "run_id": "d", "tokens_per_s_per_gpu": "1e9"},
        {**RUN, "run_id": "e", "peak_mem_gib": "5000"},
        {**RUN, "run_id": "f", "seq_len": "nan"},
        {**RUN, "run_id": "g", "accelerator": "H100", "model_key": "nobody"},
        {**RUN, "run_id": "a"},
        {**RUN, "run_id": "h"},
    ]
    report = validate(table(rows))
    assert [(o.line, o.run_id, o.has_forecast) for o in report.offences] == [
        (3, "b", False), (4, "c", True), (5, "d", True), (6, "e", True), (7, "f", False),
        (8, "g", False), (9, "a", False),
    ]  # fmt: skip
    assert (len(report.runs), report.num_used, report.num_refused) == (9, 2, 4)
    found = as_json.report_json(report)["rows"]
    assert (found["used"], found["named"]) == (2, 7)
    lines = [n for r in found["refused_reasons"] + found["unscored_reasons"] for n in r["lines"]]
    assert sorted(lines) == [3, 4, 5, 6, 7, 8, 9]
    print_document(report_blocks(report))
    words = " ".join(capsys.readouterr().out.split())
    assert "9 rows, 5 predicted, 4 refused. 2 used, 7 named below." in words
    assert "line 3 (run b): tp x pp x cp = 3 does not divide the 8 GPUs of the run." in words
    assert "line 5 (run d): tokens_per_s_per_gpu=1e+09 is" in words
    assert "line 6 (run e): peak_mem_gib=5000 is no peak of a device of" in words


def test_many_rows_with_one_reason_are_one_line_that_names_them_all(table, predicted_by):
    predicted_by(constant_predict())
    rows = [{**RUN, "run_id": str(i), "model_key": "nobody"} for i in range(30)]
    rows[7] = {**rows[7], "model_key": "llama2-7b"}
    found = validate(table(rows)).reasons(has_forecast=False)
    assert len(found) == 1
    assert where(found[0][1]) == "29 rows, lines 2-8, 10-31"


def test_a_word_that_no_forecast_knows_is_noted_with_what_is_assumed(table, predicted_by):
    predicted_by(constant_predict())
    words = {"precision": "fp9", "recompute": "some", "dp_sharding": "zero9", "task": "dpo"}
    rows = [RUN, {**RUN, "run_id": "b", **words}, {**RUN, "run_id": "c", "precision": "fp9"}]
    report = validate(table(rows))
    assert report.num_refused == 0
    assert "precision='fp9' (2 rows from 3) is not a known word: bf16 is assumed." in (
        report.file_notes
    )
    assert sum("is not a known word" in note for note in report.file_notes) == 4


def test_a_detail_of_recompute_that_nothing_reads_is_named(table, predicted_by):
    predicted_by(constant_predict())
    known = {**RUN, "recompute_detail": "every second layer"}
    strange = {**RUN, "run_id": "b", "recompute_detail": "as the moon is"}
    notes = validate(table([known, strange])).file_notes
    assert [n for n in notes if "recompute_detail" in n] == [
        "recompute_detail='as the moon is' (line 3) is not understood: the mode in recompute is "
        "taken for every layer."
    ]


@pytest.mark.parametrize("precision", ["tf32", "fp32"])
def test_a_run_in_32_bits_is_not_read_as_one_in_16_without_a_word(table, predicted_by, precision):
    """No recipe of 32 bits is forecast: a TF32 run read as bf16 is forecast 2.5 times too fast
    (rasbt/LLMs-from-scratch@28c65cd: ch05/10_llm-training-speed/README.md)."""
    predicted_by(constant_predict())
    notes = validate(table([{**RUN, "precision": precision}])).file_notes
    assert any(f"precision={precision!r}" in n and "bf16 is assumed" in n for n in notes)


def test_the_shipped_words_are_all_known(predicted_by):
    predicted_by(constant_predict())
    assert validate().file_notes == ()


def test_every_model_of_a_run_reaches_the_forecast(table, predicted_by):
    seen = {}

    def spy(inputs, models, runs):
        seen.update(models)
        return constant_predict()(inputs, models)

    predicted_by(spy)
    validate(table([RUN, {**RUN, "run_id": "b", "model_key": "mixtral-8x7b"}]))
    assert set(seen) == {"llama2-7b", "mixtral-8x7b"}
    assert all(isinstance(m, ModelFacts) for m in seen.values())
    assert seen["mixtral-8x7b"].is_moe


def test_a_file_that_cannot_be_used_is_one_error(tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text("[]")
    for runs, models, pairs in (
        (bad, measured.MODELS_CSV, None),
        (measured.RUNS_CSV, bad, None),
        (measured.RUNS_CSV, measured.MODELS_CSV, bad),
    ):
        with pytest.raises(RunsError, match="has no column"):
            validation.validate(runs, models, pairs)


# --- pairs ---------------------------------------------------------------------------------------


def test_pairs_compare_ratios_and_need_both_runs(table, predicted_by):
    def twice(inputs, models, runs):
        p = constant_predict()(inputs, models)
        p.tokens_per_s_per_gpu_p50[inputs.num_gpus == 16] *= 2
        return p

    predicted_by(twice)
    runs = table([RUN, {**RUN, "run_id": "b", "num_gpus": "16"}, {**RUN, "run_id": "c", "tp": "x"}])
    pairs = [
        {"knob": "num_gpus", "run_a": "a", "run_b": "b", "ratio": "1.6", "mem_ratio": "1.25"},
        {"knob": "num_gpus", "run_a": "a", "run_b": "gone", "ratio": "1.6"},
        {"knob": "num_gpus", "run_a": "a", "run_b": "b", "ratio": "x"},
        {"knob": "tp", "run_a": "a", "run_b": "c", "ratio": "1.2"},
    ]
    found = validate(runs, table(pairs, "pairs.csv")).pairs
    assert (found.overall.n, found.overall.refused) == (1, 1)
    assert found.overall.median_ape == pytest.approx(0.25)
    assert found.memory.median_ape == pytest.approx(0.2)
    assert (found.by["knob"]["tp"].n, found.by["knob"]["tp"].refused) == (0, 1)
    assert found.left_out == {"a run of the pair is not in the file": 1, "no measured ratio": 1}


# --- the report ----------------------------------------------------------------------------------


def test_the_json_has_every_section_metric_and_part(predicted_by):
    predicted_by(hashing_predict)
    report = as_json.report_json(validate(pairs=measured.PAIRS_CSV))
    for name in ("throughput", "memory", "pairs", "baseline"):
        section = report[name]
        assert set(section) >= {*METRICS, "by", "left_out"}
        assert set(section["by"]) >= {
            "accelerator", "precision", "architecture", "framework", "task",
        }  # fmt: skip
        for parts in section["by"].values():
            assert sum(part["n"] for part in parts.values()) == section["n"]
            assert all(set(part) >= METRICS for part in parts.values())
    assert (
        report["rows"]["total"] == report["rows"]["predicted"] + report["rows"]["refused"] == 3775
    )
    assert report["baseline"]["coverage_80"] is report["pairs"]["coverage_80"] is None
    assert report["throughput"]["left_out"] == {"throughput_ok is not 1": 691}
    assert report["date"] == "2026-11-21"
    for section in (report["throughput"], report["memory"], report["baseline"]):
        assert 0 < section["configurations"] < section["n"]
        assert section["weighted_median_ape"] > 0
        assert section["families"] > 0
    classes = report["throughput"]["coverage_by_class"]
    assert [c["n"] for c in classes] == sorted((c["n"] for c in classes), reverse=True)
    assert all(c["coverage_low"] <= c["coverage_80"] <= c["coverage_high"] for c in classes)
    assert {c["verdict"] for c in classes} <= {"honest", "too wide", "too narrow"}
    oom = report["memory"]["oom"]
    assert sum(oom["classes_of_oom"].values()) == oom["n_oom"] == 85
    assert sum(oom["classes_of_fit"].values()) == oom["n_fit"] == 3690
    regret = report["regret"]
    assert [row["grouping"] for row in regret["rows"]] == ["layout", "count", "machine"]
    for row in (*regret["rows"], *regret["shipped_rows_unseen"]):
        assert 0 < row["regret_p10"]["value"] <= row["regret_median"]["value"] <= 1
        assert row["configurations"] >= 3 * row["groups"]
    assert all(0 < g["regret"] <= 1 and g["model_key"] for g in regret["worst_groups"])
    errors = [f["median_ape"] for f in report["throughput"]["worst_families"]]
    assert errors == sorted(errors, reverse=True)
    json.dumps(report, allow_nan=False)


def test_without_pairs_the_section_is_empty(table, predicted_by):
    predicted_by(constant_predict())
    pairs = as_json.report_json(validate(table([RUN])))["pairs"]
    assert (pairs["n"], pairs["median_ape"], pairs["by"]) == (0, None, {})


def test_the_printed_report_says_the_figures_and_takes_no_markup(table, predicted_by, capsys):
    predicted_by(constant_predict())
    rows = [
        {**RUN, "tokens_per_s_per_gpu": "12500", "framework": "[bold]x[/]"},
        {**RUN, "run_id": "b", "source": "table 2", "model_key": "[red]nothing"},
    ]
    print_document(report_blocks(validate(table(rows))))
    words = " ".join(capsys.readouterr().out.split())
    assert "2 rows, 1 predicted, 1 refused" in words
    assert "20%" in words
    assert "[red]nothing" in words


def test_2000_rows_are_read_scored_and_written_in_seconds(table, tmp_path, predicted_by):
    predicted_by(constant_predict())
    rows = [
        {**row, "run_id": f"{row['run_id']}-{copy}"} for copy in range(3) for row in shipped_rows()
    ][:2000]
    path = table(rows)
    start = time.perf_counter()
    report = validate(path, measured.PAIRS_CSV)
    as_json.write_out(report, tmp_path / "out.csv")
    as_json.report_json(report)
    assert time.perf_counter() - start < 5
    assert len(report.runs) == 2000
