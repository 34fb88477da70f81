"""A run so far in sentences: its state, its alerts, their causes."""

from __future__ import annotations

import datetime as dt
import math

from app.document import format as fmt
from app.watch.run import State
from core.cost.uncertain import Uncertain
from core.watch.reading import Alert, Event

NAMES = {
    "slower_than_p10": "Slower than forecast", "slowing": "Slowing", "rank_behind": "Rank behind",
    "rank_silent": "Rank silent", "stall": "Stall", "repeated_restarts": "Repeated restarts",
    "memory": "Memory nearly full", "loss_not_finite": "Loss not finite",
    "loss_spike": "Loss jumped", "loss_flat": "Loss does not fall", "fault": "Fault in the log",
}  # fmt: skip
LOST = {
    "start_up": "start-up", "restart": "restarts", "stall": "stalls", "checkpoint": "checkpoints",
    "pause": "short pauses",
}  # fmt: skip
PASSED = ("stall", "loss_not_finite", "loss_spike", "loss_flat")  # what they cost is known


def clock(at_s: float) -> str:
    """A time of the log's clock.

    >>> clock(1772359260.5)
    '2026-03-01 10:01:00'
    """
    if at_s < 1e8:  # a log without times is counted from 0
        return f"{fmt.days(at_s / 3600)} after its start"
    moment = dt.datetime.fromtimestamp(min(at_s, 4e9), dt.UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def span(seconds: float) -> str:
    """A duration."""
    return fmt.days(seconds / 3600)


def spread(found: Uncertain, per_hour: float | None = None) -> str:
    """P50 with P10 and P90, as durations or, with a price, as dollars."""
    if per_hour is None:
        return f"{span(found.p50)} ({span(found.p10)} to {span(found.p90)})"
    return f"{fmt.usd(found.p50)} ({fmt.usd(found.p10)} to {fmt.usd(found.p90)})"


def state_sentences(state: State) -> list[str]:
    """How the run is and how it goes on, most important first."""
    if state.speed is None and not state.tokens:
        return ["No step was logged yet."]
    planned, ahead = state.held.planned, state.outlook
    sentences = [
        f"{fmt.percent(state.share)} of {fmt.tokens(planned.tokens)} tokens after "
        f"{span(state.elapsed_s)}, step {state.num_steps:,.0f}."
    ]
    if state.speed is not None:
        place = "below" if state.speed < planned.p10 else (
            "above" if state.speed > planned.p90 else "inside"
        )  # fmt: skip
        sentences.append(
            f"{fmt.tokens_per_s(state.speed)}, {place} the forecast of "
            f"{fmt.tokens_per_s(planned.p50)} (P10 to P90 {fmt.tokens_per_s(planned.p10)} to "
            f"{fmt.tokens_per_s(planned.p90)})."
        )
    if state.goodput is not None:
        parts = sorted(state.lost_s.items(), key=lambda part: -part[1])
        lost = ", ".join(f"{LOST[kind]} {span(s)}" for kind, s in parts if s >= 1)
        sentences.append(
            f"Goodput {fmt.percent(state.goodput)}" + (f"; lost: {lost}." if lost else ".")
        )
    ends = f"All in {spread(ahead.end_s)} from its start; forecast {span(state.forecast_end_s)}."
    sentences.append(ends)
    if ahead.usd is not None:
        sentences.append(f"All in {spread(ahead.usd, planned.usd_per_hour)}.")
    if ahead.chance_on_time is not None:
        sentences.append(f"On time with a chance of {fmt.chance(ahead.chance_on_time)}.")
    if state.num_starts > 1:
        sentences.append(f"Started {state.num_starts} times.")
    return sentences


def alert_sentence(alert: Alert, state: State) -> str:
    """One alert: what, since when, what it costs by the end."""
    text = f"{NAMES[alert.kind]} since {clock(alert.since_s)}{_size(alert)}."
    if alert.lost_s >= 1:
        rate = state.held.planned.usd_per_hour
        cost = "" if rate is None else f", {fmt.usd(alert.lost_s / 3600 * rate)}"
        if alert.kind in PASSED:
            text += f" It has cost {span(alert.lost_s)}{cost}."
        else:
            text += f" It costs {span(alert.lost_s)}{cost} by the end, if it stays so."
    return text


def _size(alert: Alert) -> str:
    match alert.kind:
        case "slower_than_p10":
            return f": {fmt.percent(alert.size)} slower than the P50"
        case "slowing":
            sure = f" ({alert.significance:.0f} standard errors)" if alert.significance else ""
            return f": {fmt.percent(alert.size)} slower than it was{sure}"
        case "rank_behind":
            return f": rank {alert.subject} is {fmt.percent(alert.size)} slower than the others"
        case "rank_silent":
            return f": rank {alert.subject} prints nothing while the others train on"
        case "stall":
            return f": {span(alert.size)} without a step"
        case "repeated_restarts":
            return f": {alert.size:.0f} within a day"
        case "memory":
            return f": {fmt.percent(alert.size)} of the device"
        case "fault":
            return f": {alert.subject}"
        case _:
            return "" if not math.isfinite(alert.size) else f": at {alert.size:.4g}"


def event_sentence(event: Event) -> str:
    """What stopped the run, when and for how long."""
    return f"{clock(event.at_s)}: {event.kind}, {span(event.lost_s)} lost"
