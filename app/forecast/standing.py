"""What speaks against recommending a plan, though it is searched and shown: stable words."""

from __future__ import annotations

import datetime as dt

from app.forecast.plans import Row
from core.scenario import Scenario


def against(scenario: Scenario, row: Row, day: dt.date) -> tuple[str, ...]:
    """Why this plan is not recommended while another one stands; empty if nothing speaks against
    it."""
    return ()
