"""The console of every command: a window's width on a terminal, nothing cut in a pipe."""

import io
import sys

import pytest
from rich.table import Table

from app.document.blocks import Paragraph, Section
from app.document.progress import terminal_bar
from app.document.table import Column
from app.document.table import Table as Described
from app.document.terminal import WIDTH, cut, print_document, print_wrapped
from app.document.terminal import console as make_console

CELLS = [f"a cell of {'some ' * 4}words {n}" for n in range(8)]


@pytest.fixture
def table():
    found = Table("first", *(f"head {n}" for n in range(7)), title="Errors")
    found.add_row(*CELLS)
    return found


@pytest.mark.parametrize("no_wrap", [True, False])
def test_no_cell_of_a_table_is_cut_or_folded_in_a_pipe(monkeypatch, capsys, table, no_wrap):
    monkeypatch.delenv("COLUMNS", raising=False)
    for column in table.columns:
        column.no_wrap = no_wrap
    out = make_console()
    out.print(table)
    said = capsys.readouterr().out
    [row] = [line for line in said.splitlines() if "words" in line]
    assert [cell.strip() for cell in row.strip("│").split("│")] == CELLS
    assert "…" not in said
    # Sentences after it are as wide as before.
    print_wrapped(out, "a word " * 60)
    assert WIDTH - 10 < max(map(len, capsys.readouterr().out.splitlines())) <= WIDTH


def test_a_width_that_is_said_is_kept(monkeypatch, capsys, table):
    monkeypatch.setenv("COLUMNS", "60")
    make_console().print(table)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


def test_a_word_longer_than_a_line_can_be_copied_whole(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    layout = ",".join(f"degree_{n}={n}" for n in range(12))
    print_wrapped(make_console(), f"The layout {layout} does not fit the memory.")
    assert layout in capsys.readouterr().out.splitlines()


def test_a_text_is_cut_with_an_ellipsis():
    assert (cut("abcdef", 6), cut("abcdef", 4)) == ("abcdef", "abc…")


def described(*rows):
    """Two columns, of which the first keeps six characters."""
    columns = (
        Column(name="a", head="Seller", value=lambda r: r[0], is_text=True, least=6),
        Column(name="b", head="Cost", value=lambda r: r[1]),
    )
    return Described(caption="", columns=columns, rows=rows)


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        ("40", "a name of 23 characters  $1,234"),
        ("24", "a name of 23 cha… $1,234"),
        ("12", "a nam… $1,2…"),
    ],
)
def test_what_may_be_cut_is_cut_where_the_window_is_narrow(monkeypatch, capsys, columns, row):
    monkeypatch.setenv("COLUMNS", columns)
    print_document([described(("a name of 23 characters", "$1,234"))])
    assert capsys.readouterr().out.splitlines()[1].rstrip() == row


def test_a_blank_line_is_above_each_table_and_section_but_the_first(capsys):
    table = described(("a", "1"))
    print_document(
        [table, Section("Head", (table, Paragraph("below", level=1))), Section("End", ())]
    )
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    drawn = ["Seller  Cost", "a          1"]
    assert lines == [*drawn, "", "Head", *drawn, "  below", "", "End"]


class Screen(io.StringIO):
    """What is written to a terminal, or to a pipe."""

    def __init__(self, *, is_terminal):
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self):
        return self._is_terminal


@pytest.mark.parametrize(
    ("is_terminal", "quiet", "draws"),
    [(True, False, True), (True, True, False), (False, False, False)],
)
def test_a_bar_is_on_a_terminals_error_output_alone(monkeypatch, capsys, is_terminal, quiet, draws):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen := Screen(is_terminal=is_terminal))
    with terminal_bar(quiet=quiet) as bar:
        bar.add_task("[red]a seller", total=12, completed=3)
    written = screen.getvalue()
    assert ("3/12" in written) == draws
    assert ("[red]a seller" in written) == draws  # a name is no markup
    assert capsys.readouterr().out == ""
