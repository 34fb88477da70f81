"""The row of tabs on every page: five pages, and the others under More."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.navigation.page import StreamlitPage

KEY = "tabs"  # of the row's container


@dataclass(slots=True)
class Row:
    """The row of tabs: a place, to be filled once the scenario of the run is known."""

    tabs: Sequence[StreamlitPage] = ()
    more: Sequence[StreamlitPage] = ()
    current: StreamlitPage | None = None
    place: DeltaGenerator | None = None
    is_drawn: bool = False

    def begin(
        self, tabs: Sequence[StreamlitPage], more: Sequence[StreamlitPage], current: StreamlitPage
    ) -> None:
        """Put the row where the page is now."""
        self.tabs, self.more, self.current = tabs, more, current
        self.place = st.container(
            horizontal=True, gap="xxsmall", key=KEY, vertical_alignment="center"
        )

    def draw(self, query: Mapping[str, str]) -> None:
        """Draw the links to all pages, each with the scenario. More says which of its pages is
        open."""
        if self.place is None or self.current is None:
            return
        self.is_drawn = True
        for page in self.tabs:
            self.place.page_link(page, query_params=query)
        is_here = any(page is self.current for page in self.more)
        # A key for each page: the list closes when one of its links is followed.
        rest = self.place.popover(
            f"More: {self.current.title}" if is_here else "More",
            key=f"{KEY}_more_{self.current.url_path or 'plan'}",
        )
        for page in self.more:
            rest.page_link(page, query_params=query)
