"""Follow a run until it ends: read, alert, say its state each minute."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import orjson

from app.command.given import Given
from app.document.echo import echo
from app.document.live import Screen
from app.watch.document import alert_json, alert_sentence, blocks, state_json
from app.watch.moves import Move, moves_of
from app.watch.plan import plan_of_options
from app.watch.run import WatchedRun
from core.errors import ScenarioError, shown
from core.watch.records import Alert, StepRecord
from hardware.outside.text import escaped_json
from runners.watch.beside import Sign, signs_of
from runners.watch.job import JobLogs, check_starts
from runners.watch.signs import LineSign

HEALTHY, ALERTED, NO_STEP = 0, 3, 4  # exit statuses
POLL = 1.0  # seconds between two looks at the logs
LOOK_AGAIN = 30.0  # seconds between two looks for new files
ASK_AGAIN = 600.0  # seconds between two searches of offers
REDRAW = 0.2  # seconds between two pictures of a replay
FASTEST = 1e9
LONGEST_S = 60.0  # seconds of a command that an alert starts


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a run is followed."""

    once: bool = False
    replay: float | None = None  # times its speed
    textfile: Path | None = None
    on_alert: tuple[str, ...] = ()
    every_s: float = 60.0
    beside: Path | None = None
    offers: bool = False
    as_json: bool = False


def positive(option: str, text: str | None) -> float | None:
    """The number above 0 that an option gives; `max` is the largest."""
    if text is None:
        return None
    try:
        value = FASTEST if text == "max" else float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= FASTEST:
        raise ScenarioError(f"{option} {shown(text)} is no number above 0.")
    return value


def followed(
    given: Given, source: str, *, layout: str | None, report: str | None, options: Options
) -> int:
    """Follow a run to its end; the exit status."""
    if options.once and options.replay is not None:
        raise ScenarioError("Give --once or --replay, not both.")
    path = Path(source)
    check_starts(path)
    plan = plan_of_options(given, layout, report)
    signs: tuple[Sign, ...] = ()
    if options.beside is not None:
        signs = signs_of(options.beside, network_gb_per_s=plan.network_gb_per_s)
    with ExitStack() as stack:
        logs = stack.enter_context(JobLogs(path, plan.facts))
        if (options.once or options.replay is not None) and not path.exists():
            raise ScenarioError(f"{shown(source)} is not there.")
        screen = None if options.as_json else stack.enter_context(Screen())
        state = WatchedRun(planned=plan.planned, plan=plan, logs=logs, signs=signs)
        run = _Following(state, options, screen)
        if options.once:
            run.take(logs.found(is_last=True))
        elif options.replay is not None:
            run.replay(options.replay)
        else:
            run.live(path)
        run.say()
    if not state.tokens:
        return NO_STEP
    return ALERTED if state.alerts or state.mismatches else HEALTHY


class _Following:
    """One followed run, and where its states go."""

    def __init__(self, state: WatchedRun, options: Options, screen: Screen | None) -> None:
        self.state, self.options, self.screen = state, options, screen
        self._moves: tuple[Move, ...] | None = None
        self._asked = 0.0

    def take(self, entries: Iterable[StepRecord | LineSign]) -> None:
        """Take findings, and react to their alerts."""
        for _, alerts in self.state.take(entries):
            self._react(alerts)

    def say(self) -> None:
        """Give the state to each of its readers."""
        state, now = self.state, time.monotonic()
        if self.options.offers and (self._moves is None or now - self._asked > ASK_AGAIN):
            self._moves, self._asked = moves_of(state), now
        if self.screen is not None:
            self.screen.show(blocks(state, self._moves))
        else:
            echo(escaped_json(orjson.dumps(state_json(state, self._moves)).decode()))
        if self.options.textfile is not None:
            _replace(self.options.textfile, textfile(state))

    def replay(self, speed: float) -> None:
        """A log that is there, at a multiple of its speed: a state for each period of its clock."""
        began, first, said, drawn = time.monotonic(), None, None, 0.0
        for at_s, alerts in self.state.take(self.state.logs.found(is_last=True)):
            first = at_s if first is None else first
            if (ahead := (at_s - first) / speed - (time.monotonic() - began)) > 0:
                time.sleep(ahead)
            self._react(alerts)
            said = at_s if said is None else said
            if at_s - said >= self.options.every_s:
                now = time.monotonic()
                if self.screen is None or now - drawn > REDRAW:
                    said, drawn = at_s, now
                    self.say()

    def live(self, path: Path) -> None:
        """A log that grows, until the last step of the run."""
        state = self.state
        self.take(state.logs.found())
        # Time that passes without a line is counted on the clock of the log, whose zone is unknown.
        age = max(time.time() - _changed(path), 0.0) if state.num_readings else 0.0
        heard, looked, said, before = time.monotonic() - age, time.monotonic(), 0.0, 0
        while not state.is_done:
            now = time.monotonic()
            if now - looked > LOOK_AGAIN or not state.logs.num_lines:
                state.logs.look()
                looked = now
            self.take(state.logs.found(arrived=time.time()))
            if state.num_readings > before:
                heard, before = now, state.num_readings
            last = state.last_at_s
            if last is not None:
                self._react(list(state.tick(last + now - heard)))
            if now - said >= self.options.every_s or said == 0.0:
                self.say()
                said = now
            time.sleep(POLL)

    def _react(self, alerts: list[Alert]) -> None:
        for alert in alerts:
            if self.options.on_alert and (
                failed := react(self.options.on_alert, alert, self.state)
            ):
                echo(failed, err=True)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return time.time()


def command_words(command: str | None) -> tuple[str, ...]:
    """The words of --on-alert; () without it."""
    try:
        words = tuple(shlex.split(command or ""))
    except ValueError as e:
        raise ScenarioError(f"--on-alert {shown(command)} is no command: {e}.") from None
    if command is not None and not words:
        raise ScenarioError("--on-alert names no command.")
    return words


def react(words: tuple[str, ...], alert: Alert, state: WatchedRun) -> str:
    """Run the command for an alert; '' or a sentence on why it failed."""
    about = {"RUNCAST_ALERT": alert.kind, "RUNCAST_ALERT_SENTENCE": alert_sentence(alert, state)}
    try:
        done = subprocess.run(
            words,
            input=orjson.dumps(alert_json(alert, state)),
            env={**os.environ, **about},
            stdout=subprocess.DEVNULL,
            timeout=LONGEST_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"--on-alert {shown(words[0])} failed: {type(e).__name__}."
    if done.returncode:
        return f"--on-alert {shown(words[0])} ended with status {done.returncode}."
    return ""


def textfile(state: WatchedRun) -> str:
    """The metrics, each with its help."""
    ahead, planned = state.outlook, state.planned
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
        ("loss", "The last training loss.", state.last_loss),
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


def _replace(path: Path, text: str) -> None:
    """Replace a file, so that no reader sees half of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
