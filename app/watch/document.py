"""A run so far: as sentences, as the screen of a terminal, and as JSON (docs/watch.md)."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import asdict
from typing import Any

from app.document import format as fmt
from app.document.as_json import number
from app.document.blocks import Block, Bullets, Paragraph, Section
from app.watch.diagnosis import Diagnosed, cause_sentences, diagnosed
from app.watch.moves import Move, move_sentences
from app.watch.run import WatchedRun, failure_fields
from core.cost.uncertain import Uncertain
from core.watch.records import Alert, Event

SCHEMA = "runcast-watch/1"
MORE_CAUSES = 3  # of an alert
NEWEST = 5  # alerts, and events, on one screen
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


def blocks(state: WatchedRun, moves: tuple[Move, ...] | None = None) -> tuple[Block | Section, ...]:
    """Everything that fits one screen, most important first."""
    content: list[Block | Section] = [Paragraph(text, strong=True) for text in state.mismatches]
    content += [Paragraph(text) for text in state_sentences(state)]
    alerts = state.alerts[-NEWEST:]
    if alerts:
        older = len(state.alerts) - len(alerts)
        title = "Alerts" + (f", {older} older ones left out" if older else "")
        content.append(Bullets(tuple(alert_sentence(a, state) for a in alerts), title))
        causes = tuple(cause_sentences(alerts[-1], state, MORE_CAUSES))
        if causes:
            content.append(Bullets(causes, "Likely causes of the last one, in order"))
    if events := [e for e in state.events if e.kind != "start_up"][-NEWEST:]:
        content.append(Bullets(tuple(map(event_sentence, events)), "Last events"))
    if moves is not None:
        content.append(Bullets(tuple(move_sentences(state, moves)), "Stay or move"))
    content += [Paragraph(text) for text in state.notes]
    return tuple(content)


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


def state_sentences(state: WatchedRun) -> list[str]:
    """How the run is and how it goes on, most important first."""
    if state.speed is None and not state.tokens:
        return ["No step was logged yet."]
    planned, ahead = state.planned, state.outlook
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
    ends = f"All in {spread(ahead.end_s)} from its start; forecast {span(state.planned.end_s)}."
    sentences.append(ends)
    if ahead.usd is not None:
        sentences.append(f"All in {spread(ahead.usd, planned.usd_per_hour)}.")
    if ahead.chance_on_time is not None:
        sentences.append(f"On time with a chance of {fmt.chance(ahead.chance_on_time)}.")
    if state.num_starts > 1:
        sentences.append(f"Started {state.num_starts} times.")
    return sentences


def alert_sentence(alert: Alert, state: WatchedRun) -> str:
    """One alert: what, since when, what it costs by the end."""
    text = f"{NAMES[alert.kind]} since {clock(alert.since_s)}{_size(alert)}."
    if alert.lost_s >= 1:
        rate = state.planned.usd_per_hour
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


def state_json(state: WatchedRun, moves: tuple[Move, ...] | None = None) -> dict[str, Any]:
    """Everything that is known of a run at a time."""
    planned, ahead = state.planned, state.outlook
    return {
        "schema": SCHEMA,
        "at_s": number(state.now_s),
        "begin_s": None if state.begin_s is None else number(state.begin_s),
        "elapsed_s": number(state.elapsed_s),
        "tokens": state.tokens,
        "share": state.share,
        "steps": state.num_steps,
        "starts": state.num_starts,
        "tokens_per_s": state.speed,
        "forecast_tokens_per_s": {"p10": planned.p10, "p50": planned.p50, "p90": planned.p90},
        "believed_tokens_per_s": _quantiles(ahead.speed),
        "goodput": state.goodput,
        "lost_s": state.lost_s,
        "loss": None if state.last_loss is None else number(state.last_loss),
        "peak_memory_bytes": state.peak_memory_bytes or None,
        "end_s": _quantiles(ahead.end_s),
        "forecast_end_s": number(state.planned.end_s),
        "usd": None if ahead.usd is None else _quantiles(ahead.usd),
        "chance_on_time": ahead.chance_on_time,
        "done": state.is_done,
        "alerts": [alert_json(alert, state) for alert in state.alerts],
        "moves": None if moves is None else [_move(move) for move in moves],
        "next_plan": failure_fields(state),
        "mismatches": list(state.mismatches),
        "notes": list(state.notes),
    }


def _move(move: Move) -> dict[str, Any]:
    return {
        "plan": move.plan.id,
        "provider": move.plan.offer.provider,
        "accelerator": move.plan.offer.accelerator,
        "num_gpus": move.plan.num_gpus,
        "left_s": number(move.seconds),
        "left_usd": number(move.usd),
        "left_here_s": number(move.here_s),
        "left_here_usd": number(move.here_usd),
        "move_s": {part: number(seconds) for part, seconds in move.once_s.items()},
        "move_usd": number(move.once_usd),
        "saves_usd_until_share": move.until,
        "saves_time_until_share": move.until_s,
    }


def alert_json(alert: Alert, state: WatchedRun) -> dict[str, Any]:
    """One alert."""
    rate = state.planned.usd_per_hour
    values = asdict(alert)
    return {
        **{name: number(x) if isinstance(x, float) else x for name, x in values.items()},
        "lost_usd": None if rate is None else number(alert.lost_s / 3600 * rate),
        "sentence": alert_sentence(alert, state),
        "causes": [_cause(item, rate) for item in diagnosed(alert, state)],
    }


def _cause(item: Diagnosed, rate: float | None) -> dict[str, Any]:
    cause, saved_s = item.cause, item.saved_s
    return {
        "cause": cause.cause,
        "sign": cause.sign,
        "remedy": cause.remedy,
        "source": cause.source,
        "seen": item.is_seen,
        "evidence": None if item.sign is None else item.sign.text,
        "faster_share": item.faster,
        "saves_s": saved_s,
        "saves_usd": None if rate is None or saved_s is None else number(saved_s / 3600 * rate),
    }


def _quantiles(found: Uncertain) -> dict[str, Any]:
    return {"p10": number(found.p10), "p50": number(found.p50), "p90": number(found.p90)}
