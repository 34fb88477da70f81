"""`runcast sweep` from end to end: results, resuming after a kill, and mistakes."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from app import cli
from app.forecast import price_book
from app.prices.book_file import read_book
from app.scenario.version import made_with
from app.sweep import run as sweep_run
from app.sweep.cell import COLUMNS, cell
from pricing.book.files import save_book
from tests.pricing.book.test_price_book import RATE, csv_of
from tests.support.processes import gone

pytestmark = pytest.mark.usefixtures("plain_main")

ROOT = Path(__file__).parents[3]
# Small searches, and one cell in three without a plan.
FILE = """
model: [llama3.1-8b, llama3.1-70b, llama3.1-405b]
seq_len: [2k, 4k]
num_gpus: [[8], [16]]
compile: [false, true]
gpu: h100
cloud: aws
"""
NUM_CELLS = 24


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(FILE)
    return path


@pytest.fixture
def run(capfd):
    """Run the console entry in this process: exit status, standard output, standard error."""

    def _run(*arguments):
        with pytest.raises(SystemExit) as end:
            cli.main(["sweep", *map(str, arguments)])
        out, err = capfd.readouterr()
        return end.value.code, out, err

    return _run


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a sweep that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "small.yaml").write_text(FILE)
    with pytest.raises(SystemExit) as end:
        cli.main(["sweep", str(folder / "small.yaml"), "--out", str(folder / "out")])
    assert end.value.code == 0
    return folder / "out"


def results(folder):
    return {n: (folder / n).read_bytes() for n in ("results.parquet", "results.csv",
                                                   "manifest.json")}  # fmt: skip


def computed(folder):
    """Cells in the order in which they were written down, whole lines only."""
    lines = [
        line
        for part in sorted(folder.glob("cells-*.jsonl"))
        for line in part.read_bytes().splitlines(keepends=True)
    ]
    return [json.loads(line)["cell"] for line in lines if line.endswith(b"\n")]


def test_every_cell_is_a_row_of_both_tables_in_order(whole):
    table = pd.read_parquet(whole / "results.parquet")
    varying = ["model", "seq_len", "num_gpus", "compile"]
    assert list(table.columns) == ["cell", *varying, *COLUMNS]
    assert list(table["cell"]) == list(range(NUM_CELLS))
    assert table["seq_len"].dtype == "int64"
    assert table["compile"].dtype == "bool"
    with (whole / "results.csv").open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert list(rows[0]) == list(table.columns)
    for row, (_, line) in zip(rows, table.iterrows(), strict=True):
        for name, value in line.items():
            if pd.isna(value):
                assert row[name] == ""
            elif isinstance(value, bool):
                assert row[name] == str(value).lower()
            elif isinstance(value, str):
                assert row[name] == value
            else:
                assert float(row[name]) == value


def test_rows_are_the_cells_computed_one_by_one(whole):
    table = pd.read_parquet(whole / "results.parquet")
    for number in (0, 7, NUM_CELLS - 1):
        row = table.iloc[number]
        query = {
            "model": row["model"], "seq_len": str(row["seq_len"]), "num_gpus": row["num_gpus"],
            "compile": str(row["compile"]), "gpu": "H100-80GB-SXM", "cloud": "aws",
        }  # fmt: skip
        for name, value in cell(query)["row"].items():
            assert (value is None and pd.isna(row[name])) or row[name] == value, name


def test_a_cell_has_a_plan_or_a_sentence(whole):
    table = pd.read_parquet(whole / "results.parquet")
    assert 0 < table["no_plan"].notna().sum() < NUM_CELLS
    assert (table["no_plan"].isna() == table["best_id"].notna()).all()
    assert (table["num_pruned"] + table["num_evaluated"] == table["num_candidates"]).all()
    assert table["link"].str.startswith("v=1&").all()


def test_a_finished_sweep_computes_nothing_and_says_so(whole, run, tmp_path, monkeypatch):
    def compute(*_, **__):
        raise AssertionError("a finished cell was computed again")

    monkeypatch.setattr(sweep_run, "on_processes", compute)
    before = results(whole)
    (tmp_path / "same.yaml").write_text("# the same values\n" + FILE)
    status, out, err = run(tmp_path / "same.yaml", "--out", whole)
    assert status == 0
    assert f"{NUM_CELLS} cells, {NUM_CELLS} finished before" in out
    assert str(whole / "results.parquet") in out.splitlines()
    assert f"24 cells: 3 model x 2 seq_len x 2 num_gpus x 2 compile; {NUM_CELLS} are fin" in err
    assert results(whole) == before


def test_only_what_is_not_finished_is_computed(whole, run, file, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "manifest.json").write_bytes((whole / "manifest.json").read_bytes())
    lines = (whole / "cells-0001.jsonl").read_bytes().splitlines(keepends=True)
    (out / "cells-0001.jsonl").write_bytes(b"".join(lines[:20]) + lines[20][:100])
    kept = set(computed(out))
    status, said, err = run(file, "--out", out, "--workers", "1")
    assert status == 0
    assert "24 cells, 20 finished before" in said
    assert "1 line(s) cut short: computed again" in err
    again = [json.loads(x)["cell"] for x in (out / "cells-0002.jsonl").read_bytes().splitlines()]
    assert sorted(again) == sorted(set(range(NUM_CELLS)) - kept)
    assert results(out) == results(whole)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"row": {}, "made_with": {"tables": "x", "code": "y"}}, "its worker has other tables"),
        ({"row": None, "made_with": made_with()}, "does not have the price snapshot"),
        ({"row": {}, "made_with": made_with(), "price_book": "x"}, "price book '' is not what"),
    ],
)
def test_a_worker_with_other_facts_is_refused(run, file, tmp_path, monkeypatch, result, said):
    monkeypatch.setattr(sweep_run, "on_processes", lambda *_, **__: (b for b in [[(3, result)]]))
    status, out, err = run(file, "--out", tmp_path / "out")
    assert (status, out) == (2, "")
    assert "stopped at cell 3 (model=llama3.1-8b, seq_len=2048, num_gpus=16, compile=True)" in err
    assert said in err
    assert not computed(tmp_path / "out")


def test_a_sweep_goes_on_with_the_prices_that_it_began_with(whole, run, file, tmp_path,
                                                            monkeypatch):  # fmt: skip
    def begun(name):
        (tmp_path / name).mkdir()
        for known in ("manifest.json", "cells-0001.jsonl"):
            (tmp_path / name / known).write_bytes((whole / known).read_bytes())
        return tmp_path / name

    monkeypatch.setattr(sweep_run, "installed_id", lambda: "0123456789ab")  # refreshed since
    assert run(file, "--out", begun("a"))[0] == 0
    assert results(tmp_path / "a") == results(whole)
    monkeypatch.setattr(sweep_run, "snapshot_ids", lambda: ["0123456789ab"])  # and removed
    lines = (begun("b") / "cells-0001.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "b/cells-0001.jsonl").write_bytes(lines[0])
    status, _, err = run(file, "--out", tmp_path / "b")
    assert status == 2
    assert "which is not here any more" in err


def test_a_changed_price_book_is_never_mixed_into_a_begun_sweep(run, tmp_path, monkeypatch):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path / "data"))
    file, out = tmp_path / "booked.yaml", tmp_path / "out"
    file.write_text(
        "price_book: [null, acme]\nmodel: llama3.1-8b\nnum_gpus: [64]\ngpu: h100\ncloud: aws\n"
    )
    status, _, err = run(file, "--out", out)
    assert (status, "No price book 'acme'" in err) == (2, True)

    def keep(price):
        book = csv_of({**RATE, "usd_per_gpu_hour": price})
        save_book(read_book(book, file_name="b.csv", name="acme", today=price_book.today()))

    keep("2.40")
    assert run(file, "--out", out)[0] == 0
    listed, booked = (
        row["best_usd"] for row in csv.DictReader((out / "results.csv").read_text().splitlines())
    )
    assert float(booked) < float(listed)
    lines = (out / "cells-0001.jsonl").read_bytes().splitlines(keepends=True)
    (out / "cells-0001.jsonl").write_bytes(lines[0])
    keep("2.20")
    status, _, err = run(file, "--out", out)
    assert status == 2
    assert "was begun with other rows of its price book" in err
    assert [json.loads(x)["cell"] for x in lines[:1]] == list(computed(out))
    keep("2.40")  # as it was
    assert run(file, "--out", out)[0] == 0


def _answers_ctrl_c():
    """A background shell has its children ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(file, out, *more):
    command = [sys.executable, "-m", "app.cli", "sweep", str(file), "--out", str(out), *more]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=_answers_ctrl_c,
    )  # fmt: skip


def wait_for(out, count, process):
    end = time.monotonic() + 60
    while len(computed(out)) < count and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_ctrl_c_keeps_the_finished_cells_and_says_how_to_go_on(file, tmp_path):
    tokens = ", ".join(f"{n}B" for n in range(1, 201))  # so many that it cannot end by itself
    file.write_text(f"{FILE}num_tokens: [{tokens}]\n")
    out = tmp_path / "out"
    process = start(file, out, "--workers", "1")
    wait_for(out, 1, process)
    workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Interrupted. " in err
    assert "the same command goes on from there." in err
    assert "Traceback" not in err
    assert gone(map(int, workers), within_s=5)
    assert 0 < len(computed(out)) < 200 * NUM_CELLS
    assert not (out / "results.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--workers", "0"], "--workers '0' is not a whole number from 1 to 4,096."),
        (["--workers", "many"], "is not a whole number"),
        (["--max-cells", "23"], "makes 24 cells (3 model x 2 seq_len x 2 num_gpus x 2 compile); "
                                "the limit is 23 (--max-cells)"),
        (["--max-cells", "1e9"], "is not a whole number"),
        (["--ray", "nowhere"], "ray"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(run, file, arguments, said, tmp_path):
    status, out, err = run(file, "--out", tmp_path / "out", *arguments)
    assert (status, out) == (2, "")
    last = err.splitlines()[-1]
    assert last.startswith("runcast: ")
    assert said in last
    assert "Traceback" not in err


def test_results_go_beside_the_file_where_no_folder_is_given(run, tmp_path):
    (tmp_path / "one.yaml").write_text("model: llama3.1-8b\ngpu: h100\nnum_gpus: 8\ncloud: aws")
    status, out, _ = run(tmp_path / "one.yaml")
    assert status == 0
    assert out.startswith("1 cell, 0 finished before, 0 without a plan")
    assert len(pd.read_parquet(tmp_path / "one.sweep" / "results.parquet")) == 1


def test_a_folder_that_cannot_be_made_is_a_sentence(run, file, tmp_path):
    (tmp_path / "out").write_text("a file")
    status, _, err = run(file, "--out", tmp_path / "out")
    assert status == 2
    assert err.startswith("runcast: Cannot use ")
    assert err.count("\n") == 1


def test_the_example_of_the_document_is_a_sweep_of_as_many_cells_as_it_says(run, tmp_path):
    text = (ROOT / "docs/sweeps.md").read_text().partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "sweep.yaml").write_text(text)
    status, _, err = run(tmp_path / "sweep.yaml", "--max-cells", "1")
    assert status == 2
    assert "makes 48 cells (2 model x 2 num_tokens x 3 seq_len x 2 gpu x 2 precision)" in err
    assert "= 48 cells" in text
