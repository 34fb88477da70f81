"""Measured runs: the shipped tables, the wall between inputs and measurements, hostile files."""

import csv
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import RunsError
from core.model.transformer import active_params, total_params
from hardware import measured
from hardware.measured import RunInputs, read_models, read_pairs, read_runs
from tests.support.csv_tables import written_table

MEASURED = {
    "value", "metric", "tokens_per_s_per_gpu", "model_tflops_per_gpu", "mfu_printed",
    "peak_mem_gib", "peak_memory_gib", "oom", "throughput_ok", "memory_ok", "notes",
}  # fmt: skip
RUN = {
    "run_id": "a",
    "model_key": "llama2-7b",
    "accelerator": "H100-80GB-SXM",
    "num_gpus": "8",
    "seq_len": "4096",
    "tokens_per_s_per_gpu": "10000",
    "throughput_ok": "1",
}
MODEL = {
    "model_key": "m", "name": "M", "layers": "32", "hidden": "4096", "ffn_hidden": "11008",
    "heads": "32", "kv_heads": "8", "head_dim": "128", "vocab": "32000", "tied_embeddings": "0",
    "gated_mlp": "1", "attention": "gqa", "architecture": "plain",
}  # fmt: skip


@pytest.fixture
def write(tmp_path):
    def table(*rows, name="table.csv"):
        return written_table(rows, tmp_path / name)

    return table


def shipped(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def dims(write, **changed):
    return read_models(write({**MODEL, **changed})).facts["m"].transformer


# --- the shipped tables --------------------------------------------------------------------------


def test_every_shipped_run_can_be_read():
    runs = read_runs(measured.RUNS_CSV)
    left_out = shipped(measured.RUNS_CSV.with_name("measured_left_out.csv"))
    assert len(runs) + sum(row["file"] == "runs" for row in left_out) == 3810
    assert all(row["reason"] for row in left_out)
    assert not [r for r in runs.reason if r]
    assert np.count_nonzero(runs.measured.throughput_ok) == 3084
    assert np.count_nonzero(runs.measured.memory_ok) == 1305
    assert np.nansum(runs.measured.oom) == 85


@pytest.mark.parametrize("name", ["runs", "models", "totals", "kernels"])
def test_every_shipped_row_has_its_source(name):
    rows = shipped(measured.RUNS_CSV.with_name(f"measured_{name}.csv"))
    assert rows
    assert all(row["source"].strip() for row in rows)


def test_every_shipped_run_names_a_shipped_model_and_every_pair_two_shipped_runs():
    runs, models = read_runs(measured.RUNS_CSV), read_models(measured.MODELS_CSV)
    pairs = read_pairs(measured.PAIRS_CSV)
    assert not models.refused
    assert set(runs.inputs.model_key) <= set(models.facts)
    assert {*pairs.run_a, *pairs.run_b} <= set(runs.inputs.run_id)
    assert np.all(pairs.ratio > 0)


def test_a_printed_ratio_is_that_of_the_two_runs():
    runs, pairs = read_runs(measured.RUNS_CSV), read_pairs(measured.PAIRS_CSV)
    tokens = dict(zip(runs.inputs.run_id, runs.measured.tokens_per_s_per_gpu, strict=True))
    ratio = [tokens[b] / tokens[a] for a, b in zip(pairs.run_a, pairs.run_b, strict=True)]
    assert np.asarray(pairs.ratio) == pytest.approx(np.array(ratio), rel=2e-3)


@pytest.mark.parametrize("row", shipped(measured.MODELS_CSV), ids=lambda r: r["model_key"])
def test_parameters_are_those_that_the_source_prints(row):
    """Printed figures are rounded, and leave biases or positions out at times: 2.5%. The
    name of the hybrid says 30B: 10%."""
    model = read_models(measured.MODELS_CSV).facts[row["model_key"]].transformer
    allowed = 0.10 if "hybrid" in row["attention"] else 0.025
    total = float(total_params(model)) / 1e9
    assert total == pytest.approx(float(row["total_params_b"]), rel=allowed)
    if row["active_params_b"]:
        active = float(active_params(model)) / 1e9
        assert active == pytest.approx(float(row["active_params_b"]), rel=allowed)


# --- the wall ------------------------------------------------------------------------------------


def test_no_measured_column_is_an_input():
    assert not {f.name for f in fields(RunInputs)} & MEASURED


@given(placeholder=st.sampled_from(["", "x", "-1", "0", "nan", "1e400", "=1+1", "999999999"]))
def test_a_measured_cell_changes_no_input_and_refuses_no_row(tmp_path_factory, placeholder):
    lines = shipped(measured.RUNS_CSV)[::97]
    path = tmp_path_factory.getbasetemp() / "masked.csv"
    for row in lines:
        row.update(dict.fromkeys(MEASURED & row.keys(), placeholder))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(lines)
    masked, runs = read_runs(path), read_runs(measured.RUNS_CSV)
    assert not [r for r in masked.reason if r]
    rows = runs.inputs.rows(np.arange(0, len(runs), 97))
    for f in fields(RunInputs):
        np.testing.assert_array_equal(getattr(masked.inputs, f.name), getattr(rows, f.name))


def test_measured_columns_may_be_absent(write):
    runs = read_runs(write({k: v for k, v in RUN.items() if k not in MEASURED}))
    assert runs.reason[0] == ""
    assert np.isnan(runs.measured.tokens_per_s_per_gpu[0])
    assert runs.measured.throughput_ok[0]
    assert runs.measured.memory_ok[0]


def test_flags_choose_what_is_scored_unless_none_is_set(write):
    rows = [{**RUN, "run_id": i, "throughput_ok": f} for i, f in ("a1", "b0", ("c", ""))]
    assert list(read_runs(write(*rows)).measured.throughput_ok) == [True, False, False]
    blank = [{**row, "throughput_ok": ""} for row in rows]
    assert list(read_runs(write(*blank)).measured.throughput_ok) == [True, True, True]


def test_an_unreadable_measurement_is_known_as_such(write):
    runs = read_runs(write({**RUN, "tokens_per_s_per_gpu": "x"}, {**RUN, "run_id": "b"}))
    assert list(runs.measured.unreadable_throughput) == [True, False]
    assert not runs.measured.unreadable_memory.any()


# --- rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"num_gpus": "1e12"}, "num_gpus='1e12' is not between 1 and"),
        ({"num_gpus": "0"}, "num_gpus='0' is not between"),
        ({"num_gpus": "2.5"}, "num_gpus='2.5' is not a whole number"),
        ({"num_gpus": ""}, "num_gpus must be given"),
        ({"seq_len": "-4096"}, "seq_len='-4096' is not between"),
        ({"seq_len": "long"}, "seq_len='long' is not a finite number"),
        ({"tp": "nan"}, "tp='nan' is not a finite number"),
        ({"pp": "inf"}, "pp='inf' is not a finite number"),
        ({"cp": "1e999"}, "cp='1e999' is not a finite number"),
        ({"tp": "4", "pp": "4"}, "tp x pp x cp = 16 GPUs, but the run has 8"),
        ({"tp": "3"}, "tp x pp x cp = 3 does not divide the 8 GPUs of the run"),
        ({"cp": "2", "pp": "3"}, "tp x pp x cp = 6 does not divide the 8 GPUs"),
        ({"ep": "3"}, "pp x ep x etp = 3 does not divide the 8 GPUs"),
        ({"global_batch": "-16"}, "global_batch='-16' is not between"),
        ({"run_id": ""}, "run_id must be given"),
        ({"model_key": "  "}, "model_key must be given"),
        ({"run_id": "fine"}, "run_id 'fine' is already the run of line 2"),
        ({"framework": "x" * 1000}, "framework has 1000 characters; 300 are allowed"),
        ({"framework": "a\x1b[31m"}, "framework 'a?[31m' is not text"),
    ],
)
def test_a_row_that_cannot_be_used_says_why_and_stops_no_other(write, changed, says):
    first, last = {**RUN, "run_id": "fine"}, {**RUN, "run_id": "last"}
    runs = read_runs(write(first, {**RUN, **changed}, last))
    assert says in runs.reason[1]
    assert list(runs.reason[[0, 2]]) == ["", ""]
    assert len(runs.inputs) == 3


def test_every_row_knows_its_line(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text('run_id,tp\na,1\n\n\nb,1\n"c\n",1\nd,1\n')
    assert list(read_runs(path).line) == [2, 5, 6, 8]  # the id of c holds a line break


def test_a_missing_column_is_named_with_what_was_meant(write):
    row = {("gpu_count" if k == "num_gpus" else k): v for k, v in RUN.items() if k != "seq_len"}
    runs = read_runs(write(row, {**row, "run_id": "b"}))
    assert len(runs) == 2
    for reason in runs.reason:
        assert reason.startswith("The file has no column num_gpus")
        assert "and no column seq_len" in reason


def test_a_misspelt_column_is_noted(write):
    row = {("peak_mem_gb" if k == "peak_mem_gib" else k): v for k, v in RUN.items()}
    runs = read_runs(write({**row, "peak_mem_gb": "60", "anything": "x"}))
    assert runs.notes == (
        "The column 'peak_mem_gb' is not read; did you mean 'peak_mem_gib'?",
        "The column 'anything' is not read; `runcast validate --columns` lists those that are.",
    )


def test_a_file_with_nothing_to_score_says_so(write):
    runs = read_runs(write({k: v for k, v in RUN.items() if k not in MEASURED}))
    assert "nothing to score" in runs.notes[0]
    assert read_runs(write(RUN)).notes == ()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"tokens_per_s_per_gpu": "-5"}, "tokens_per_s_per_gpu='-5' is not above zero"),
        ({"tokens_per_s_per_gpu": "0"}, "is not above zero"),
        ({"tokens_per_s_per_gpu": "nan"}, "tokens_per_s_per_gpu='nan' is not a finite number"),
        ({"tokens_per_s_per_gpu": "inf"}, "is not a finite number"),
        ({"tokens_per_s_per_gpu": "5k"}, "tokens_per_s_per_gpu='5k' is not a finite number"),
        ({"peak_mem_gib": "-1"}, "peak_mem_gib='-1' is not above zero"),
        ({"oom": "2"}, "oom='2' is neither 0 nor 1"),
        ({"oom": "unknown"}, ""),
        ({"peak_mem_gib": ""}, ""),
        ({"throughput_ok": "0", "tokens_per_s_per_gpu": "x"}, ""),  # nobody asks to score it
    ],
)
def test_a_measurement_that_cannot_be_scored_says_why_and_refuses_nothing(write, changed, says):
    row = {"run_id": "b", "peak_mem_gib": "60", "memory_ok": "1", **changed}
    runs = read_runs(write(RUN, {**RUN, **row}))
    assert list(runs.reason) == ["", ""]
    assert runs.unscored[0] == ""
    assert bool(runs.unscored[1]) == bool(says)
    assert says in runs.unscored[1]


@pytest.mark.parametrize(
    ("changed", "positions"),
    [
        ({}, 10_000),
        ({"packing": "padded"}, 10_000),
        ({"packing": "padded", "avg_tokens": "512"}, 80_000),
        ({"packing": "packed", "avg_tokens": "512"}, 10_000),
        ({"packing": "padded", "avg_tokens": "512", "metric": "sequences/s"}, 10_000),
        ({"packing": "padded", "avg_tokens": "512", "metric": "tokens/s", "value": "16000",
          "tokens_per_s_per_gpu": ""}, 16_000),
    ],
)  # fmt: skip
def test_a_padded_run_is_scored_by_the_positions_that_it_computes(write, changed, positions):
    runs = read_runs(write({**RUN, **changed}))
    assert runs.measured.tokens_per_s_per_gpu[0] == positions


def test_a_row_of_another_width_is_refused(write):
    path = write(RUN)
    path.write_text(path.read_text() + "b,llama2-7b\n" + "c" + ",1" * 40 + "\n")
    runs = read_runs(path)
    assert runs.reason[0] == ""
    assert "2 cells where the header has 7" in runs.reason[1]
    assert "41 cells" in runs.reason[2]


def test_blanks_are_unknown_and_words_are_lower_case(write):
    row = {**RUN, "tp": "", "vpp": "unknown", "micro_batch": "0.5", "precision": " BF16 "}
    inputs = read_runs(write(row)).inputs
    assert np.isnan(inputs.tp[0])
    assert np.isnan(inputs.vpp[0])
    assert inputs.micro_batch[0] == 0.5
    assert inputs.precision[0] == "bf16"
    assert inputs.network[0] == ""


@given(cells=st.lists(st.text(max_size=40), min_size=len(RUN), max_size=len(RUN)))
def test_any_row_is_read_or_refused(tmp_path_factory, cells):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    with path.open("w", newline="", encoding="utf-8", errors="replace") as file:
        writer = csv.writer(file)
        writer.writerows([RUN.keys(), RUN.values(), cells])
    runs = read_runs(path)
    assert runs.reason[0] == ""
    assert all(isinstance(why, str) for why in runs.reason)


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "has no column 'run_id'"),
        (b"{}", "has no column 'run_id'"),
        (b"run-id,tp\na,1\n", "has no column 'run_id'. Did you mean its column 'run-id'"),
        (b"run_id,tp\n", "has a header and no rows"),
        (b"run_id,tp,tp\na,1,2\n", "has the column 'tp' twice"),
        (b"\xff\xfe\x00\x01", "is not a text file in UTF-8"),
        (b"run_id\n" + b'"' + b"x" * 200_000, "is not a CSV file"),
        (b"run_id\n" + b"a\n" * 50_002, "has more than 50,000 rows"),
        (b"run_id\n" + b"a" * 20_000_000, "is larger than 20 MB"),
    ],
    ids=lambda x: x[:20].decode(errors="replace") if isinstance(x, bytes) else "",
)
def test_a_file_that_is_no_table_is_one_error(tmp_path, content, says):
    path = tmp_path / "runs.csv"
    path.write_bytes(content)
    with pytest.raises(RunsError) as e:
        read_runs(path)
    assert says in str(e.value)


def test_a_missing_file_and_a_directory_are_no_file(tmp_path):
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(RunsError, match="is not a file"):
            read_runs(path)


# --- models --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"layers": ""}, "layers must be given"),
        ({"layers": "1e9"}, "layers='1e9' is not a whole number from 0 to 2,048"),
        ({"hidden": "wide"}, "hidden='wide' is not a number"),
        ({"vocab": "nan"}, "vocab='nan' is not a whole number"),
        ({"kv_heads": "64"}, "64 kv_heads are more than 32 heads"),
        ({"gated_mlp": "maybe"}, "gated_mlp='maybe' is not 0 or 1"),
        ({"n_experts": "8", "top_k": "9"}, "top_k 9 is more than 8 experts"),
        ({"n_experts": "8", "moe_ffn_hidden": "512"}, "needs top_k"),
        ({"kv_lora": "512"}, "needs qk_nope and v_head"),
        ({"sliding_window": "local"}, "does not start with a number"),
        ({"architecture": "gpt4"}, "Unknown architecture 'gpt4'. Did you mean 'gpt3'?"),
    ],
)
def test_a_model_that_cannot_be_used_says_why_and_stops_no_other(write, changed, says):
    models = read_models(write({**MODEL, **changed}, {**MODEL, "model_key": "fine"}))
    assert set(models.facts) == {"fine"}
    assert says in models.refused["m"]


@pytest.mark.parametrize(
    ("architecture", "text", "window", "layers"),
    [
        ("plain", "", 0, 0),
        ("plain", "128, alternate layers", 128, 16),
        ("plain", "4096 alternate layers", 4096, 16),
        ("plain", "1024, 5:1", 1024, 27),
        ("gemma3", "1024 (local:global pattern not printed in yml)", 1024, 27),
        ("plain", "4096", 4096, 32),
    ],
)
def test_a_window_is_read_from_its_text(write, architecture, text, window, layers):
    model = dims(write, architecture=architecture, sliding_window=text)
    assert (model.sliding_window, model.num_window_layers) == (window, layers)


def test_blank_heads_are_inferred_and_noted(write):
    models = read_models(write({**MODEL, "heads": "", "kv_heads": "", "head_dim": ""}))
    model = models.facts["m"].transformer
    assert (model.num_attention_heads, model.num_kv_heads, model.head_dim) == (32, 32, 128)
    assert len(models.facts["m"].notes) == 3


def test_a_blank_architecture_is_assumed_and_noted_and_never_read_off_the_name(write):
    blank = {**MODEL, "architecture": "", "model_key": "qwen3-8b"}
    gpt = {**blank, "attention": "mha", "gated_mlp": "0", "model_key": "g"}
    found = read_models(write(blank, gpt, {**gpt, "architecture": "nemotron4", "model_key": "n"}))
    assert found.facts["g"].transformer.num_positions == 2048
    assert not found.facts["qwen3-8b"].transformer.qk_norm
    assert not found.facts["n"].transformer.linear_bias
    assert [len(found.facts[key].notes) for key in ("qwen3-8b", "g", "n")] == [1, 1, 0]


def test_printed_parameters_are_never_an_input(write):
    assert dims(write, total_params_b="7") == dims(write, total_params_b="x") == dims(write)


def test_multi_token_prediction_is_one_more_layer_and_is_said():
    facts = read_models(measured.MODELS_CSV).facts
    one, more = facts["deepseek-v3"], facts["deepseek-v3-mtp"]
    assert more.transformer.num_layers == one.transformer.num_layers + 1
    assert any("multi-token" in note for note in more.notes)
    assert not one.notes
