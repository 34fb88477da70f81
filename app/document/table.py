"""Describe a table once: its columns, as numbers for files and as text for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from app.document.on_use import pd

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Generic[T]):
    """One column of a table whose rows are of type `T`."""

    name: str  # name in files, with its unit; stable
    head: str  # head on a page and on paper
    value: Callable[[T], Any]  # value for files
    cell: Callable[[T], str] | None = None  # text for people
    write: Callable[[Any], str] | None = None  # formats the value if there is no `cell`
    short: str = ""  # head on a terminal, if `head` is too long
    is_text: bool = False  # left-aligned
    is_address: bool = False  # the value is a web address, which a page links from the text
    wraps: bool = False  # may take several lines on a terminal
    least: int = 0  # characters kept on a narrow terminal; 0: all
    width: int = 0  # share of the width on paper; 0: width of its cells

    def text(self, row: T) -> str:
        """The text of this column's cell in one row."""
        if self.cell is not None:
            return self.cell(row)
        value = self.value(row)
        if self.write is not None:
            return self.write(value)
        return "" if value is None else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Generic[T]):
    """Rows, and the columns computed from them. The first column names the row."""

    caption: str
    columns: tuple[Column[T], ...]
    rows: tuple[T, ...]

    def only(self, *names: str, caption: str | None = None) -> Table[T]:
        """The table with only these columns, in this order. Raises KeyError for an unknown name."""
        by_name = {c.name: c for c in self.columns}
        kept = tuple(by_name[name] for name in names)
        return replace(self, columns=kept, caption=self.caption if caption is None else caption)

    def without(self, *names: str) -> Table[T]:
        """The table without these columns."""
        return self.only(*(c.name for c in self.columns if c.name not in names))

    @property
    def head(self) -> tuple[str, ...]:
        """Heads of the columns, on a page and on paper."""
        return tuple(c.head for c in self.columns)

    @property
    def numeric(self) -> frozenset[int]:
        """Positions of the right-aligned columns."""
        return frozenset(n for n, c in enumerate(self.columns) if not c.is_text)

    @property
    def widths(self) -> tuple[int, ...]:
        """Each column's share of the width on paper; () if none is given."""
        shares = tuple(c.width for c in self.columns)
        return shares if any(shares) else ()

    def cells(self) -> list[tuple[str, ...]]:
        """Each row as text, for page, terminal and paper."""
        return [tuple(c.text(row) for c in self.columns) for row in self.rows]

    def texts(self) -> pd.DataFrame:
        """The cells as a data frame of text under the heads."""
        return pd.DataFrame(self.cells(), columns=list(self.head), dtype=object)

    def frame(self) -> pd.DataFrame:
        """The values as a data frame under the names, for charts and files; missing if not
        finite."""
        found = {c.name: [_finite(c.value(row)) for row in self.rows] for c in self.columns}
        names = [c.name for c in self.columns]
        return pd.DataFrame(found, columns=names, dtype=None if self.rows else object)


def column(head: str, value: Callable[[Any], Any], **more: Any) -> Column[Any]:
    """A column that has the same name in files as on a page."""
    return Column(name=head, head=head, value=value, **more)


def text_column(head: str, value: Callable[[Any], Any], **more: Any) -> Column[Any]:
    """A left-aligned column that has the same name in files as on a page."""
    return column(head, value, is_text=True, **more)


def plain(
    caption: str,
    head: Iterable[str],
    rows: Iterable[tuple[str, ...]],
    *,
    numeric: Iterable[int] = (),
    widths: Iterable[int] = (),
) -> Table[tuple[str, ...]]:
    """A table of ready-made texts; `numeric` gives the positions of right-aligned columns."""
    heads, right, shares = tuple(head), frozenset(numeric), tuple(widths)
    columns = tuple(
        Column(
            name=name,
            head=name,
            value=_Item(n),
            is_text=n not in right,
            width=shares[n] if shares else 0,
        )
        for n, name in enumerate(heads)
    )
    return Table(caption=caption, columns=columns, rows=tuple(rows))


@dataclass(frozen=True, slots=True)
class _Item:
    """Picks the n-th text of a row. Comparable, so that ready-made tables can be compared."""

    n: int

    def __call__(self, row: tuple[str, ...]) -> str:
        return row[self.n]


def _finite(value: Any) -> Any:
    return math.nan if isinstance(value, float) and not math.isfinite(value) else value
