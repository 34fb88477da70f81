"""The table of cross-validated errors: its format is a promise to whoever fits."""

import pytest

from hardware.cross_validation import (
    CLASS_COVERAGE,
    CROSS_VALIDATION_CSV,
    SPLITS,
    Measured,
    cross_validation,
    load_cross_validation,
    write_cross_validation,
)
from tests.support.csv_tables import refusal

HEAD = "split,measure,value,rows,date\n"
GOOD = "grouped,median,0.1,807,2026-11-21\n"


def test_the_shipped_table_has_the_headline_of_every_split():
    found = cross_validation()
    for split in SPLITS:
        for measure in ("median", "mean", "p90", "within_20"):
            assert 0 < found[split, measure].value < 2
            assert found[split, measure].rows > 100


def test_the_shipped_table_has_the_coverage_of_large_classes_on_unseen_rows():
    found = cross_validation()
    for split in ("grouped", "new_source"):
        classes = {
            m: f for (s, m), f in found.items() if s == split and m.startswith(CLASS_COVERAGE)
        }
        assert len(classes) > 15
        assert all(f.rows >= 40 and 0.3 < f.value <= 1 for f in classes.values())
        parts = [classes[f"{CLASS_COVERAGE}architecture={a}"] for a in ("dense", "moe")]
        whole = sum(p.value * p.rows for p in parts) / sum(p.rows for p in parts)
        assert whole == pytest.approx(found[split, "coverage"].value, abs=0.03)


def test_the_shipped_folds_are_worse_than_the_fit():
    found = cross_validation()
    for split in ("grouped", "new_source"):
        assert found[split, "mean"].value > found["fitted", "mean"].value


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("blind,median,0.1,807,2026\n", "'blind' 'median' is not a split of fitted, grouped"),
        ("grouped,mode,0.1,807,2026\n", "'grouped' 'mode' is not a split"),
        ("grouped,coverage by luck,0.1,807,2026\n", "'coverage by luck' is not a split"),
        ("grouped,mean,ten,807,2026\n", "could not convert"),
        ("grouped,mean,nan,807,2026\n", "grouped mean is not a fraction of some rows"),
        ("grouped,mean,-0.1,807,2026\n", "grouped mean is not a fraction"),
        ("grouped,mean,0.1,0,2026\n", "grouped mean is not a fraction"),
        ("grouped,mean,0.1,807,yesterday\n", "'yesterday' is not a date"),
        (GOOD, "grouped median is given twice"),
        ("grouped,mean,0.1\n", "does not have 5 cells"),
    ],
)
def test_a_figure_that_cannot_be_is_named_by_its_line(tmp_path, line, says):
    said = refusal(load_cross_validation, tmp_path / "cross_validation.csv", HEAD + GOOD + line)
    assert "cross_validation.csv:3" in said
    assert says in said


def test_other_columns_are_refused(tmp_path):
    said = refusal(load_cross_validation, tmp_path / "other.csv", "split,measure,value\n")
    assert "the columns are not split,measure,value,rows,date" in said


def test_what_is_written_reads_back(tmp_path):
    path = tmp_path / "new.csv"
    figure = Measured(value=0.0713, rows=616, date="2026-12-01")
    write_cross_validation([("grouped", "median", figure), ("fitted", "p90", figure)], path)
    assert path.read_text().splitlines()[:2] == [
        HEAD.strip(), "grouped,median,0.0713,616,2026-12-01",
    ]  # fmt: skip
    assert load_cross_validation(path) == {
        ("grouped", "median"): figure, ("fitted", "p90"): figure,
    }  # fmt: skip
    shipped = load_cross_validation(CROSS_VALIDATION_CSV)
    write_cross_validation([(*key, m) for key, m in shipped.items()], path)
    assert load_cross_validation(path) == shipped
