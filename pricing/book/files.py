"""Price books of this installation: one file each, under a name of the user's.

    <data>/price_books/NAME.json    its rows and the day they were added

A book is private to the server: a link holds only its name. Whoever may open the pages of this
server may use its books.
"""

from __future__ import annotations

import json
import os
import re
from datetime import date
from pathlib import Path
from typing import Any

from core.errors import FactError, ScenarioError, shown, unknown_sentence
from hardware.outside.json_text import STATE, json_value
from pricing.book.rows import PriceBook, PriceBookError, Row, read_rows
from pricing.disk import prices_folder, write_atomically

MAX_BYTES = 1_000_000
MAX_BOOKS = 200
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?")


def books_folder() -> Path:
    """The folder of price books, which may not exist."""
    return prices_folder().with_name("price_books")


def checked_name(name: str) -> str:
    """The name of a book, which is also its file name and cannot lead to another folder."""
    if not _NAME.fullmatch(name):
        raise ScenarioError(
            f"{shown(name)} is no name of a price book: 1 to 40 of a-z, 0-9, _ and -, "
            "a letter or digit first and last."
        )
    return name


def _path(name: str, folder: Path | None) -> Path:
    return (books_folder() if folder is None else folder) / f"{checked_name(name)}.json"


def book_names(*, folder: Path | None = None) -> list[str]:
    """The names of all books."""
    place = books_folder() if folder is None else folder
    return sorted(p.stem for p in place.glob("*.json") if _NAME.fullmatch(p.stem))


def has_book(name: str, *, folder: Path | None = None) -> bool:
    """Whether there is a book of this name; never an error, whatever the name."""
    # Not Path.is_file: a folder without permission counts as empty.
    return bool(_NAME.fullmatch(name)) and os.path.isfile(_path(name, folder))


def save_book(book: PriceBook, *, folder: Path | None = None) -> None:
    """Write the book, or replace the one with its name, completely or not at all."""
    path = _path(book.name, folder)
    if not path.exists() and len(book_names(folder=folder)) >= MAX_BOOKS:
        raise ScenarioError(f"There are {MAX_BOOKS} price books already: remove one first.")
    kept = {"added_on": book.added_on.isoformat(), "rows": [_kept(row) for row in book.rows]}
    write_atomically(path, json.dumps(kept, indent=1, ensure_ascii=False).encode() + b"\n")


def _kept(row: Row) -> dict[str, Any]:
    return row.model_dump(mode="json", exclude_defaults=True) | {"kind": row.model_dump()["kind"]}


def load_book(name: str, *, folder: Path | None = None) -> PriceBook:
    """A book by name; ScenarioError for an unknown or damaged one."""
    path = _path(name, folder)
    if not has_book(name, folder=folder):
        known = book_names(folder=folder)
        if not known:
            raise ScenarioError(f"No price book {shown(name)}: this server has none.")
        raise ScenarioError(unknown_sentence("price book", name, known))
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError
        raw = json_value(content, STATE)
        cells = [(int(row.pop("line")), {n: str(v) for n, v in row.items()}) for row in raw["rows"]]
        added_on = date.fromisoformat(raw["added_on"])
        return PriceBook(name=name, added_on=added_on, rows=read_rows(cells))
    except OSError as e:
        raise FactError(f"The price book {name!r} cannot be read: {e.strerror}.") from None
    except (PriceBookError, ValueError, KeyError, TypeError, AttributeError) as e:
        why = str(e) if isinstance(e, PriceBookError) else type(e).__name__
        raise FactError(f"The price book {name!r} is damaged: add it again. ({why})") from None


def remove_book(name: str, *, folder: Path | None = None) -> None:
    """Delete a book, even a damaged one; ScenarioError for an unknown one."""
    if not has_book(name, folder=folder):
        load_book(name, folder=folder)  # an error if the name is wrong
    _path(name, folder).unlink()
