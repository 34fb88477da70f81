"""The row of tabs on every page: five pages, and the others under More."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.navigation.page import StreamlitPage

KEY = "tabs"  # of the row's container


def row() -> DeltaGenerator:
    """The place of the row, to be filled when the scenario of the run is known."""
    return st.container(horizontal=True, gap="xxsmall", key=KEY, vertical_alignment="center")


def draw(
    place: DeltaGenerator,
    tabs: Sequence[StreamlitPage],
    more: Sequence[StreamlitPage],
    current: StreamlitPage,
    query: Mapping[str, str],
) -> None:
    """Draw the links to all pages, each with the scenario. More says which of its pages is open."""
    for page in tabs:
        place.page_link(page, query_params=query)
    is_here = any(page is current for page in more)
    # A key for each page: the list closes when one of its links is followed.
    rest = place.popover(
        f"More: {current.title}" if is_here else "More",
        key=f"{KEY}_more_{current.url_path or 'plan'}",
    )
    for page in more:
        rest.page_link(page, query_params=query)
