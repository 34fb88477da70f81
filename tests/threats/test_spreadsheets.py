"""Every file that a spreadsheet opens: no foreign text in it starts a formula, and a number stays
one, also a negative one."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from dataclasses import replace
from functools import partial

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accuracy import document as accuracy_document
from app.accuracy import own_runs
from app.accuracy.as_json import write_out
from app.document.csv import csv_bytes
from app.document.escape import safe_cell
from app.imports.row import line_of
from app.plan import document as plan_document
from app.sweep import results as sweep_results
from core.scenario import Scenario
from tests.conftest import ROOT
from tests.made_up import plans as made_up

BARE = "\ufeff\u00a0 "  # what a spreadsheet skips before it looks
STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
FORMULAS = (
    '=HYPERLINK("http://evil.example","x")', "=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1+1",
    "\r=1+1", "\n=1+1", "x\r=1+1", "x\r\n=1+1", "x\n=1+1", " =1+1",
    "\u00a0=1+1", "\ufeff=1+1", "=cmd|' /C calc'!A0", "-2+3+cmd|x",
)  # fmt: skip


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def formulas(content: bytes) -> list[str]:
    """The cells that a spreadsheet would run."""
    rows = csv.reader(io.StringIO(content.decode("utf-8"), newline=""))
    cells = [c for row in rows for c in row]
    return [c for c in cells if c.lstrip(BARE).startswith(STARTS) and not is_number(c)]


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {"Name": FORMULAS, "Difference (USD)": [-1.5 - n for n in range(len(FORMULAS))]}
    )


WRITERS = {
    "pages": partial(csv_bytes, link="?v=1&model=x"),
    "a link that is a formula": partial(csv_bytes, link="=1+1"),
    "accuracy": csv_bytes,
}


@pytest.mark.parametrize("writer", WRITERS)
def test_no_cell_starts_a_formula_and_numbers_stay_numbers(writer):
    content = WRITERS[writer](frame())
    assert formulas(content) == []
    rows = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    assert [float(r["Difference (USD)"]) for r in rows] == frame()["Difference (USD)"].tolist()
    read = [r["Name"].removeprefix("'") for r in rows]
    assert read == [f.replace("\r\n", "\n").replace("\r", "\n") for f in FORMULAS]


@pytest.mark.parametrize("writer", ["pages", "accuracy"])
def test_a_number_in_a_column_with_texts_stays_a_number(writer):
    content = WRITERS[writer](pd.DataFrame({"Mixed": [-1.5, "", "=1+1", 3]}))
    assert [r["Mixed"] for r in csv.DictReader(io.StringIO(content.decode()))] == [
        "-1.5", "", "'=1+1", "3",
    ]  # fmt: skip


@given(st.text(st.sampled_from("=+-@\t\r\n\ufeff\u00a0 ab1,'\""), max_size=12))
def test_whatever_a_text_begins_with_it_is_no_formula(text):
    assert not safe_cell(text).lstrip(BARE).startswith(STARTS)
    assert "\r" not in safe_cell(text)
    fed = text.replace("\r\n", "\n").replace("\r", "\n")
    assert safe_cell(text) in (fed, f"'{fed}")


def test_plans_of_a_hostile_offer_are_text_in_the_csv_of_the_page():
    offer = made_up.offer(instance_type="=1+1", region="@x", source="+1", note="-1+1")
    plans = (replace(made_up.plan(), offer=offer),)
    ranked = plan_document.ranked(Scenario(), plans)
    content = csv_bytes(ranked.frame(), "?v=1")
    assert formulas(content) == []
    assert b"'=1+1" in content


def test_a_sweep_writes_no_formula():
    assert [sweep_results._csv(v) for v in ("=1+1", "p5", -1.5, True, None)] == [
        "'=1+1", "p5", -1.5, "true", None,
    ]  # fmt: skip


def test_forecasts_of_hostile_runs_are_text(tmp_path):
    head = "run_id,model_key,accelerator,num_gpus,seq_len,tokens_per_s_per_gpu\n"
    bare = [f.replace('"', "") for f in FORMULAS]
    rows = "".join(f'"{f}{n}",=1+1,@x,8,8192,1\n' for n, f in enumerate(bare))
    report = own_runs.report_of_upload((head + rows).encode(), None, name="=x.csv")
    assert formulas(csv_bytes(accuracy_document.named_rows(report).frame())) == []
    write_out(report, tmp_path / "out.csv")
    content = (tmp_path / "out.csv").read_bytes()
    assert content.count(b"\n") >= 5
    assert formulas(content) == []


def test_a_line_of_measured_runs_starts_no_formula():
    assert formulas("".join(map(line_of, ([f] for f in FORMULAS))).encode()) == []


# Every module that writes CSV, and why no cell of it starts a formula.
CSV_WRITERS = {
    "safe_cell or safe_value of each text, tested above": """app/document/csv.py
        app/accuracy/as_json.py app/sweep/results.py app/imports/row.py""",
    "data of a chart, which no spreadsheet opens": """app/audit/page.py
        app/prices/over_time_section.py app/calibration/page.py""",
    "names that boundary.offer has let through, and figures": "pricing/history_fill.py",
    "tables that are shipped": """pricing/bundle.py hardware/efficiency.py
        hardware/cross_validation.py hardware/residuals/table.py""",
}


def test_no_other_module_writes_csv(project_files):
    found = {
        path.relative_to(ROOT).as_posix()
        for path in project_files
        if path.suffix == ".py"
        and path.relative_to(ROOT).parts[0] in ("app", "core", "hardware", "pricing", "runners")
        and re.search(r"csv\.writer\(|DictWriter\(|\.to_csv\(", path.read_text())
    }
    assert found == {name for names in CSV_WRITERS.values() for name in names.split()}


def test_a_formula_would_be_found():
    assert formulas(b"a,=1+1\n-5,+x\n") == ["=1+1", "+x"]


def test_a_spreadsheet_opens_the_file_without_a_formula(tmp_path):
    """LibreOffice reads it and writes what it saw: `=1+1` is 2 there."""
    (tmp_path / "bare.csv").write_text("a,b\n=1+1,7\n")
    assert as_opened(tmp_path / "bare.csv") == [["a", "b"], ["2", "7"]]
    (tmp_path / "table.csv").write_bytes(csv_bytes(frame(), "?v=1"))
    seen = [cell for row in as_opened(tmp_path / "table.csv") for cell in row]
    assert any(cell.startswith("'=1+1") for cell in seen)
    assert not {"2", "#NAME?", "Err:508"} & set(seen)


def as_opened(path):
    """The cells that LibreOffice shows of a CSV file."""
    office = shutil.which("soffice") or shutil.which("libreoffice")
    if office is None:
        pytest.skip("LibreOffice is not installed here: apt-get install libreoffice-calc")
    out, sheet = path.parent / "out", "Text - txt - csv (StarCalc):44,34,76"
    subprocess.run(
        [office, "--headless", f"--infilter={sheet}", "--convert-to", f"csv:{sheet}",
         "--outdir", str(out), str(path)],
        check=True, timeout=100, capture_output=True,
        env={"HOME": str(path.parent), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    return list(csv.reader((out / path.name).read_text(encoding="utf-8").splitlines()))
