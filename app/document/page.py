"""Blocks on a page of Streamlit. Every text is shown as it is written: no name becomes markup."""

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
    """Paragraphs, lists, tables and lines to copy. A figure is drawn by app/web/figure.py, which
    keeps its files; here it is its numbers."""
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
    """Sentences, each with its dot; under their title, where there is one."""
    if title:
        st.markdown(f"**{as_text(title)}**")
    if listed := "\n".join(f"- {as_text(item)}" for item in items):
        st.markdown(listed)


def draw_table(table: Table[Any]) -> None:
    """A short table, whole. Its caption is the page's to draw: a page has headings of its own."""
    st.table(table.texts().map(as_text), hide_index=True)


def draw_turned(table: Table[Any], corner: str) -> None:
    """A table of few rows and many columns, on its side: a phone has room for few columns."""
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
    """A table that sorts, and scrolls unless it is whole. Its first column stays in sight; heads
    explain the field's terms."""
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
    """A long table, which sorts by its numbers and reads as the cells do; its caption is what is
    said of it to who cannot see it."""
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
    """The configuration of a table's columns; a head that has no help of its own and holds terms
    of the field gets their sentences."""
    given = config or {}
    made: dict[str, Any] = {name: dict(column) for name, column in given.items()}
    for name in map(str, heads):
        about = made.get(name, {}).get("help") or explained(name)
        if about:
            made[name] = {**made.get(name, {}), "help": about}
    return made
