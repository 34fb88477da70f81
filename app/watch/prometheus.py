"""The state of a run as a textfile for Prometheus' node exporter, replaced atomically."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from app.watch.run import State


def textfile(state: State) -> str:
    """The metrics, each with its help."""
    ahead, planned = state.outlook, state.held.planned
    figures = (
        ("share", "Share of the run that is done.", state.share),
        ("tokens_per_second", "Tokens per second of the newest steps.", state.speed),
        ("forecast_tokens_per_second", "Tokens per second as forecast, P50.", planned.p50),
        ("forecast_p10_tokens_per_second", "Tokens per second as forecast, P10.", planned.p10),
        ("goodput_ratio", "Share of time spent on training that was kept.", state.goodput),
        ("end_seconds", "Seconds from the start to the end, P50.", ahead.end_s.p50),
        ("end_p10_seconds", "Seconds from the start to the end, P10.", ahead.end_s.p10),
        ("end_p90_seconds", "Seconds from the start to the end, P90.", ahead.end_s.p90),
        ("usd", "Dollars of the whole run, P50.", ahead.usd.p50 if ahead.usd else None),
        ("chance_on_time_ratio", "Chance to end by the deadline.", ahead.chance_on_time),
        ("loss", "The last training loss.", state.loss),
        ("starts", "How often the job was started.", float(state.num_starts)),
        ("last_step_timestamp_seconds", "Time of the last step.", state.now_s),
    )
    lines = []
    for name, text, value in figures:
        if value is not None:
            lines += [f"# HELP runcast_run_{name} {text}", f"# TYPE runcast_run_{name} gauge"]
            lines.append(f"runcast_run_{name} {float(value):.9g}")
    lines += ["# HELP runcast_run_alerts Alerts so far.", "# TYPE runcast_run_alerts gauge"]
    counts = Counter(alert.kind for alert in state.alerts)
    lines += [f'runcast_run_alerts{{kind="{kind}"}} {n}' for kind, n in sorted(counts.items())]
    if not counts:
        lines.append("runcast_run_alerts 0")
    return "\n".join(lines) + "\n"


def write(path: Path, state: State) -> None:
    """Replace the file, so that no reader sees half of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(textfile(state), encoding="utf-8")
    part.replace(path)
