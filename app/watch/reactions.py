"""What an alert starts: the command of the user, without a shell.

It gets the alert as JSON on its standard input, and its kind and sentence as the variables
RUNCAST_ALERT and RUNCAST_ALERT_SENTENCE. One that takes longer than a minute is ended.
"""

from __future__ import annotations

import os
import shlex
import subprocess

import orjson

from app.watch.as_json import alert_json
from app.watch.run import State
from app.watch.words import alert_sentence
from core.errors import ScenarioError, shown
from core.watch.reading import Alert

LONGEST_S = 60.0


def parsed(command: str | None) -> tuple[str, ...]:
    """The words of --on-alert; () without it."""
    if command is None:
        return ()
    try:
        words = tuple(shlex.split(command))
    except ValueError as e:
        raise ScenarioError(f"--on-alert {shown(command)} is no command: {e}.") from None
    if not words:
        raise ScenarioError("--on-alert names no command.")
    return words


def react(words: tuple[str, ...], alert: Alert, state: State) -> str:
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
