"""The table of cross-validated errors: its format is a promise to whoever fits."""

import pytest

from hardware.cross_validation import (
    CHOICE_COLUMNS,
    CROSS_VALIDATION_CSV,
    Measured,
    choice_figures,
    cross_validation,
    load_choices,
    load_cross_validation,
    write_choices,
    write_cross_validation,
)
from tests.support.csv_tables import refusal

HEAD = "split,measure,value,rows,date\n"
GOOD = "grouped,median,0.1,807,2026-11-21\n"


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


# --- choices by forecast -------------------------------------------------------------------------

CHOICE = "new_source,layout,bias,0.03,-0.01,0.05,21,97,5,2026-11-23\n"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("fitted,layout,bias,0.03,0,1,21,97,5,2026\n", "'fitted' is none of new_source"),
        ("new_source,cloud,bias,0.03,0,1,21,97,5,2026\n", "'cloud' is none of layout"),
        ("new_source,layout,luck,0.03,0,1,21,97,5,2026\n", "'luck' is none of regret_median"),
        ("new_source,count,bias,nan,0,1,21,97,5,2026\n", "is not a figure with its interval"),
        ("new_source,count,bias,0.03,1,0,21,97,5,2026\n", "is not a figure with its interval"),
        ("new_source,count,bias,0.03,0,1,0,97,5,2026\n", "is not a figure with its interval"),
        ("new_source,count,bias,0.03,0,1,21,97,5,soon\n", "'soon' is not a date"),
        (CHOICE, "new_source layout bias is given twice"),
    ],
)
def test_a_figure_of_a_choice_that_cannot_be_is_named_by_its_line(tmp_path, line, says):
    head = ",".join(CHOICE_COLUMNS) + "\n"
    said = refusal(load_choices, tmp_path / "choices.csv", head + CHOICE + line)
    assert "choices.csv:3" in said
    assert says in said


def test_choices_that_are_written_read_back(tmp_path):
    path = tmp_path / "choices.csv"
    write_choices([(*key, figure) for key, figure in choice_figures().items()], path)
    assert load_choices(path) == choice_figures()
