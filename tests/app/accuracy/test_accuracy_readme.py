"""The accuracy block of the README: written from a report, and nothing outside of it touched."""

import csv
from pathlib import Path

import pytest

from app import cli
from app.accuracy import errors, regret, words
from app.accuracy.readme import BEGIN, END, block, rewrite
from app.accuracy.validate import validate
from core.errors import RunsError
from hardware.cross_validation import Measured, choice_figures, cross_validation
from hardware.measured import MODELS_CSV, PAIRS_CSV, RUNS_CSV

README = Path(__file__).parents[3] / "README.md"


@pytest.fixture(scope="module")
def report():
    return validate(RUNS_CSV, MODELS_CSV, PAIRS_CSV)


def test_the_block_has_the_figures_of_the_report_and_of_the_folds(report):
    folds, choices = cross_validation(), choice_figures()
    text = block(report, folds, choices)
    led = errors.by_closeness(folds)
    assert [cells[0].split(" (")[0] for cells in led.cells()] == list(words.CLOSENESS.values())
    for cells in (*led.cells(), *errors.headlines(report, folds).cells()):
        assert f"| {' | '.join(cells)} |" in text
    assert text.index(led.head[0]) < text.index("shipped rows")
    for sentence in (words.oom_text(report), words.weak_knobs(report), regret.sentence(choices)):
        assert sentence in text
    assert text == block(report, folds, choices)  # the same report, the same text


def test_only_the_block_is_rewritten(report, tmp_path):
    path = tmp_path / "README.md"
    path.write_text(f"# Before\n\n{BEGIN}\nold | figures\n{END}\n\nAfter.\n")
    rewrite(path, report, {}, {})
    once = path.read_text()
    assert once.startswith(f"# Before\n\n{BEGIN}\n")
    assert once.endswith(f"{END}\n\nAfter.\n")
    assert "old | figures" not in once
    rewrite(path, report, {}, {})
    assert path.read_text() == once


def test_the_command_rewrites_the_file_it_is_given(tmp_path, capfd):
    path = tmp_path / "README.md"
    path.write_text(f"{BEGIN}\n{END}\n")
    files = ["--runs", str(RUNS_CSV), "--models", str(MODELS_CSV), "--pairs", str(PAIRS_CSV)]
    with pytest.raises(SystemExit) as end:
        cli.main(["validate", *files, "--readme", str(path)])
    assert end.value.code == 0
    assert "| Forecast, fitted on these rows |" in path.read_text()
    with pytest.raises(SystemExit) as end:
        cli.main(["validate", *files, "--readme", str(tmp_path / "none.md")])
    assert end.value.code == 2
    assert "no such file" in capfd.readouterr().err


@pytest.mark.parametrize(
    "text", ["", BEGIN, END, f"{END}\n{BEGIN}", f"{BEGIN}{END}{BEGIN}{END}", f"{BEGIN}{BEGIN}{END}"]
)
def test_a_file_without_the_markers_is_left_alone(report, tmp_path, text):
    path = tmp_path / "other.md"
    path.write_text(text)
    with pytest.raises(RunsError, match="needs the line <!-- accuracy:begin --> once"):
        rewrite(path, report, {}, {})
    assert path.read_text() == text


def test_folds_of_another_model_are_said_to_be_so(report):
    median = report.throughput.overall.median_ape
    now = {("fitted", "median"): Measured(value=median + 0.001, rows=1, date="2026")}
    then = {("fitted", "median"): Measured(value=median + 0.2, rows=1, date="2026")}
    assert words.fold_note(report, now) == words.fold_note(report, {}) == ""
    assert "of an earlier state of the model" in words.fold_note(report, then)
    assert words.fold_note(report, then) in block(report, then, {})


def test_a_name_from_a_file_cannot_end_a_row(report, tmp_path):
    with RUNS_CSV.open(newline="") as file:
        rows = list(csv.DictReader(file))[:12]
    for row in rows:
        row.update(framework="a|b<script>", throughput_ok="1")
    path = tmp_path / "runs.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    text = block(validate(path, MODELS_CSV), {}, {})
    assert "a/b&lt;script>" in text
    assert "<script" not in text


def test_the_shipped_readme_has_the_block():
    text = README.read_text()
    inside = text[text.index(BEGIN) : text.index(END)]
    assert "| Forecast, fitted on these rows |" in inside
    assert all(label in inside for s, label in words.SPLITS.items() if s != errors.FITTED)
    assert all(label in inside for label in words.CLOSENESS.values())
    assert text.count(BEGIN) == text.count(END) == 1
