"""Follow a run until it ends: read, alert, say its state each minute."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import orjson

from app.command.given import Given
from app.document.echo import echo
from app.document.live import Screen
from app.watch.as_json import state_json
from app.watch.document import blocks
from app.watch.moves import Move, moves_of
from app.watch.plan import held_against
from app.watch.prometheus import write
from app.watch.reactions import parsed, react
from app.watch.run import Watched
from core.errors import ScenarioError, shown
from core.watch.reading import Alert
from hardware.outside.text import escaped_json
from runners.watch.beside import Sign, signs_of
from runners.watch.job import JobLogs, check_starts
from runners.watch.lines import Found

HEALTHY, ALERTED, NO_STEP = 0, 3, 4  # exit statuses
POLL = 1.0  # seconds between two looks at the logs
LOOK_AGAIN = 30.0  # seconds between two looks for new files
ASK_AGAIN = 600.0  # seconds between two searches of offers
REDRAW = 0.2  # seconds between two pictures of a replay
FASTEST = 1e9


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

    @classmethod
    def of(
        cls, *, once: bool, replay: str | None, textfile: str | None, on_alert: str | None,
        every: str | None, beside: str | None, offers: bool, as_json: bool,
    ) -> Self:  # fmt: skip
        """The options as typed, checked."""
        if once and replay is not None:
            raise ScenarioError("Give --once or --replay, not both.")
        return cls(
            once=once,
            replay=None if replay is None else _speed(replay),
            textfile=None if textfile is None else Path(textfile),
            on_alert=parsed(on_alert),
            every_s=60.0 if every is None else _positive("--every", every),
            beside=None if beside is None else Path(beside),
            offers=offers,
            as_json=as_json,
        )


def _speed(text: str) -> float:
    return FASTEST if text == "max" else _positive("--replay", text)


def _positive(option: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= FASTEST:
        raise ScenarioError(f"{option} {shown(text)} is no number above 0.")
    return value


def followed(
    given: Given, source: str, *, layout: str | None, report: str | None, options: Options
) -> int:
    """Follow a run to its end; the exit status."""
    path = Path(source)
    check_starts(path)
    held = held_against(given, layout, report)
    signs: tuple[Sign, ...] = ()
    if options.beside is not None:
        signs = signs_of(options.beside, network_gb_per_s=held.network_gb_per_s)
    with ExitStack() as stack:
        logs = stack.enter_context(JobLogs(path, held.facts))
        if (options.once or options.replay is not None) and not path.exists():
            raise ScenarioError(f"{shown(source)} is not there.")
        screen = None if options.as_json else stack.enter_context(Screen())
        run = _Following(Watched(held, logs, signs), options, screen)
        if options.once:
            run.take(logs.found(is_last=True))
        elif options.replay is not None:
            run.replay(options.replay)
        else:
            run.live(path)
        run.say()
        state = run.watched.state()
    if not state.tokens:
        return NO_STEP
    return ALERTED if state.alerts or state.mismatches else HEALTHY


class _Following:
    """One followed run, and where its states go."""

    def __init__(self, watched: Watched, options: Options, screen: Screen | None) -> None:
        self.watched, self.options, self.screen = watched, options, screen
        self._moves: tuple[Move, ...] | None = None
        self._asked = 0.0

    def take(self, found: Iterable[Found]) -> None:
        """Take findings, and react to their alerts."""
        for _, alerts in self.watched.taken(found):
            self._react(alerts)

    def say(self) -> None:
        """Give the state to each of its readers."""
        state = self.watched.state()
        now = time.monotonic()
        if self.options.offers and (self._moves is None or now - self._asked > ASK_AGAIN):
            self._moves, self._asked = moves_of(state), now
        if self.screen is not None:
            self.screen.show(blocks(state, self._moves))
        else:
            echo(escaped_json(orjson.dumps(state_json(state, self._moves)).decode()))
        if self.options.textfile is not None:
            write(self.options.textfile, state)

    def replay(self, speed: float) -> None:
        """A log that is there, at a multiple of its speed: a state for each period of its clock."""
        began, first, said, drawn = time.monotonic(), None, None, 0.0
        for at_s, alerts in self.watched.taken(self.watched.logs.found(is_last=True)):
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
        watched = self.watched
        self.take(watched.logs.found())
        # Time that passes without a line is counted on the clock of the log, whose zone is unknown.
        age = max(time.time() - _changed(path), 0.0) if watched.tracker.num_readings else 0.0
        heard, looked, said, before = time.monotonic() - age, time.monotonic(), 0.0, 0
        while not watched.is_done:
            now = time.monotonic()
            if now - looked > LOOK_AGAIN or not watched.logs.num_lines:
                watched.logs.look()
                looked = now
            self.take(watched.logs.found(arrived=time.time()))
            if watched.tracker.num_readings > before:
                heard, before = now, watched.tracker.num_readings
            last = watched.tracker.last_at_s
            if last is not None:
                self._react(list(watched.tracker.tick(last + now - heard)))
            if now - said >= self.options.every_s or said == 0.0:
                self.say()
                said = now
            time.sleep(POLL)

    def _react(self, alerts: list[Alert]) -> None:
        for alert in alerts:
            if self.options.on_alert and (
                failed := react(self.options.on_alert, alert, self.watched.state())
            ):
                echo(failed, err=True)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return time.time()
