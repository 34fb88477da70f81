"""The state of a run as JSON, one line a minute: the keys that docs/watch.md documents."""

from __future__ import annotations

from typing import Any

from app.document.as_json import number
from app.watch.diagnosis import Diagnosed, diagnosed
from app.watch.learned import failure_fields
from app.watch.moves import Move
from app.watch.run import State
from app.watch.words import alert_sentence
from core.cost.uncertain import Uncertain
from core.watch.reading import Alert

SCHEMA = "runcast-watch/1"


def state_json(state: State, moves: tuple[Move, ...] | None = None) -> dict[str, Any]:
    """Everything that is known of a run at a time."""
    planned, ahead = state.held.planned, state.outlook
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
        "believed_tokens_per_s": _spread(ahead.speed),
        "goodput": state.goodput,
        "lost_s": state.lost_s,
        "loss": None if state.loss is None else number(state.loss),
        "peak_memory_bytes": state.peak_memory_bytes or None,
        "end_s": _spread(ahead.end_s),
        "forecast_end_s": number(state.forecast_end_s),
        "usd": None if ahead.usd is None else _spread(ahead.usd),
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


def alert_json(alert: Alert, state: State) -> dict[str, Any]:
    """One alert."""
    rate = state.held.planned.usd_per_hour
    return {
        "kind": alert.kind,
        "at_s": number(alert.at_s),
        "since_s": number(alert.since_s),
        "size": number(alert.size),
        "significance": None if alert.significance is None else number(alert.significance),
        "subject": alert.subject,
        "lost_s": number(alert.lost_s),
        "lost_usd": None if rate is None else number(alert.lost_s / 3600 * rate),
        "sentence": alert_sentence(alert, state),
        "causes": [_cause(one, rate) for one in diagnosed(alert, state)],
    }


def _cause(one: Diagnosed, rate: float | None) -> dict[str, Any]:
    cause, saved_s = one.cause, one.saved_s
    return {
        "cause": cause.cause,
        "sign": cause.sign,
        "remedy": cause.remedy,
        "source": cause.source,
        "seen": one.is_seen,
        "evidence": None if one.sign is None else one.sign.text,
        "faster_share": one.faster,
        "saves_s": saved_s,
        "saves_usd": None if rate is None or saved_s is None else number(saved_s / 3600 * rate),
    }


def _spread(found: Uncertain) -> dict[str, Any]:
    return {"p10": number(found.p10), "p50": number(found.p50), "p90": number(found.p90)}
