"""`runcast prices book`: own and negotiated prices, added from a file, listed, shown, removed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from app.command.options import AsJson, print_json
from app.document.echo import echo

book = typer.Typer(
    name="book",
    help="Own and negotiated prices, kept on this machine under a name.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="a-z, 0-9, _ and -.")]


@book.command()
def add(
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV or YAML, docs/price-book.md.")],
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Of the book.")],
) -> None:
    """Check a file and keep it under a name, or replace that."""
    from app.forecast.price_book import today
    from app.prices.book_file import read_book_file
    from pricing.book.files import save_book

    found = read_book_file(Path(file), name=name, today=today())
    save_book(found)
    _print_lines(_described(found))


@book.command(name="list")
def list_books(as_json: AsJson = False) -> None:
    """The price books of this machine."""
    from app.prices.book_document import book_json
    from pricing.book.files import book_names, load_book

    books = [load_book(name) for name in book_names()]
    if as_json:
        print_json({"price_books": [book_json(b) for b in books]})
        return
    if not books:
        echo("There is no price book: `runcast prices book add FILE --name NAME` keeps one.")
    for b in books:
        echo(f"{b.name}: {len(b.rows)} rows, added {b.added_on}")


@book.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """What a book says, and what of it counts today."""
    from app.prices.book_document import book_json
    from pricing.book.files import load_book

    found = load_book(name)
    if as_json:
        print_json(book_json(found))
    else:
        _print_lines(_described(found))


@book.command()
def remove(name: Name) -> None:
    """Delete a book."""
    from pricing.book.files import remove_book

    remove_book(name)
    echo(f"Removed the price book {name!r}.")


def _described(found: Any) -> list[str]:
    from app.forecast.price_book import listed, today
    from app.prices.book_document import described

    return described(found, listed("", found, today()), today())


def _print_lines(lines: list[str]) -> None:
    from app.document.terminal import console, print_wrapped

    for line in lines:
        print_wrapped(console(), line)
