"""A table described once: what a person reads, what a file holds, and each block on a terminal."""

import math

import pytest

from app.document.blocks import Bullets, Copied, Paragraph, Section
from app.document.table import Column, Table
from app.document.terminal import print_document

TABLE = Table(
    caption="Machines",
    columns=(
        Column(name="name", head="Machine", value=lambda r: r[0], is_text=True),
        Column(name="usd", head="Cost, expected", short="Cost", value=lambda r: r[1],
               write=lambda x: f"${x:g}"),
        Column(name="late", head="Late", value=lambda r: r[2], cell=lambda r: f"{r[0]}?"),
    ),
    rows=(("a", 1.5, None), ("bb", math.inf, 0.5)),
)  # fmt: skip


def test_a_cell_is_of_the_row_else_the_value_as_it_is_written():
    assert TABLE.cells() == [("a", "$1.5", "a?"), ("bb", "$inf", "bb?")]
    assert TABLE.head == ("Machine", "Cost, expected", "Late")
    assert TABLE.numeric == {1, 2}


def test_a_file_holds_values_under_names_and_nothing_that_is_not_finite():
    frame = TABLE.only("usd", "name").frame()
    assert list(frame) == ["usd", "name"]
    assert frame["usd"].isna().tolist() == [False, True]
    with pytest.raises(KeyError):
        TABLE.only("nothing")


def test_a_terminal_prints_every_block(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    print_document([
        Paragraph("A sentence that is longer than the window."),
        Bullets(("one",), "Because"),
        Section("More", (TABLE.only("name", "usd"),)),
        Copied(label="Link", text="?v=1"),
    ])  # fmt: skip
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "A sentence that is longer than the", "window.", "", "Because:", " - one", "", "More",
        "Machine  Cost", "a        $1.5", "bb       $inf", "", "Link: ?v=1",
    ]  # fmt: skip
