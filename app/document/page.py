"""Draw blocks on a Streamlit page. Every text is shown literally: no name becomes markup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import streamlit as st

from app.document.blocks import Block, Bullets, Copied, Figure, Paragraph
from app.document.escape import as_text
from app.document.format import MISSING
from app.document.glossary import explained
from app.document.table import Table


def draw_blocks(blocks: Iterable[Block]) -> None:
    """Draw paragraphs, lists, tables and lines to copy. A figure is drawn here as its numbers;
    app/web/figure.py draws the chart and keeps its files."""
    for block in blocks:
        match block:
            case Paragraph(text, strong):
                st.markdown(f"**{as_text(text)}**" if strong else as_text(text))
            case Bullets(items, title):
                draw_list(items, title)
            case Table():
                draw_table(block)
            case Figure():
                draw_table(block.numbers)
            case Copied():
                st.caption(as_text(block.label))
                st.code(block.text, language=None, wrap_lines=True)


def draw_list(items: Iterable[str], title: str = "") -> None:
    """Draw sentences as a bulleted list, under their title if there is one: one element, because
    the browser draws each of them anew on every edit."""
    head = f"**{as_text(title)}**" if title else ""
    listed = "\n".join(f"- {as_text(item)}" for item in items)
    if text := "\n\n".join(part for part in (head, listed) if part):
        st.markdown(text)


def draw_table(table: Table[Any]) -> None:
    """Draw a short table in full. The page draws its caption, because a page has its own
    headings."""
    shown = table.texts().map(as_text)
    for column in table.columns:
        if column.is_address:
            addresses = map(column.value, table.rows)
            shown[column.head] = [
                f"[{text}]({address})" if address else text
                for text, address in zip(shown[column.head], addresses, strict=True)
            ]
    st.table(shown, hide_index=True)


def draw_turned(table: Table[Any], corner: str) -> None:
    """Draw a table of few rows and many columns transposed: a phone has room for few columns."""
    first, *_ = table.head
    st.table(table.texts().map(as_text).set_index(first).T.rename_axis(corner))


def draw_rows(
    table: Table[Any],
    key: str,
    alt: str,
    config: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    is_whole: bool = False,
) -> None:
    """Draw a table that sorts, and scrolls unless it is whole. Its first column stays in sight;
    column heads explain the field's terms."""
    shown = table.texts()
    columns = {table.head[0]: {"pinned": True}, **(config or {})}
    st.dataframe(
        shown,
        hide_index=True,
        width="stretch",
        height="content" if is_whole else "auto",
        key=key,
        alt=alt,
        column_config=head_help(shown.columns, columns),
    )


def draw_sorted(
    table: Table[Any], key: str, *, height: int | Literal["auto", "content"] = "auto"
) -> None:
    """Draw a long table that sorts by its numbers and shows the cells as text; screen readers get
    its caption."""
    written: dict[Any, Any] = {c.head: c.write for c in table.columns if c.write is not None}
    shown = table.frame().set_axis(list(table.head), axis="columns")
    st.dataframe(
        shown.style.format(written),
        hide_index=True,
        height=height,
        key=key,
        alt=table.caption,
        column_config=head_help(shown.columns),
        placeholder=MISSING,
    )


def head_help(
    heads: Iterable[object], config: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """The configuration of a table's columns. A head without its own help gets the sentences of the
    terms it holds."""
    given = config or {}
    made: dict[str, Any] = {name: dict(column) for name, column in given.items()}
    for name in map(str, heads):
        about = made.get(name, {}).get("help") or explained(name)
        if about:
            made[name] = {**made.get(name, {}), "help": about}
    return made
