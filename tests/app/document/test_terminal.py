"""The console of every command: a window's width on a terminal, nothing cut in a pipe."""

import io
import sys

import pytest
from rich.table import Table

from app.document.progress import terminal_bar
from app.document.terminal import WIDTH, cut, print_wrapped
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
