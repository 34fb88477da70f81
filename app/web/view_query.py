"""What a page shows beside its scenario, in the address: `show_days=25` and so on.

app/web/link.py leaves these alone; each page says which names it knows.
"""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from app.scenario.link import VIEW


def asked() -> dict[str, str]:
    """What the address asks a page to show, by name."""
    return {
        n.removeprefix(VIEW): v for n, v in st.query_params.to_dict().items() if n.startswith(VIEW)
    }


def write(shows: Mapping[str, str]) -> None:
    """Put what the page shows into the address; no new step of history when it is there already."""
    if shows != asked():
        kept = {n: v for n, v in st.query_params.to_dict().items() if not n.startswith(VIEW)}
        st.query_params.from_dict(kept | {f"{VIEW}{n}": v for n, v in shows.items()})
