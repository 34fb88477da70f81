"""Page settings in the address that are not part of the scenario, such as `show_days=25`.

app/web/link.py leaves them alone; each page lists the names it uses.
"""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from app.scenario.link import VIEW


def asked() -> dict[str, str]:
    """The page settings in the address, by name."""
    return {
        n.removeprefix(VIEW): v for n, v in st.query_params.to_dict().items() if n.startswith(VIEW)
    }


def write(shows: Mapping[str, str]) -> None:
    """Put page settings into the address; adds no step to the history if they are there already."""
    if shows != asked():
        kept = {n: v for n, v in st.query_params.to_dict().items() if not n.startswith(VIEW)}
        st.query_params.from_dict(kept | {f"{VIEW}{n}": v for n, v in shows.items()})
