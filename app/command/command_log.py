"""Log each command, with one id per invocation, and show the user a short message for a bug."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import typer

from app.document.echo import echo
from app.log import log

BUG = 1  # exit status


@dataclass(slots=True)
class Ended:
    """How a command ended."""

    status: int = BUG


@contextmanager
def command(app: typer.Typer, arguments: Sequence[str] | None) -> Iterator[Ended]:
    """Log one command: one line at its end.

    An exception that is not a user's mistake is logged; the user gets a sentence with its id, and
    the exit status is 1.
    """
    if warned := log.configure():
        echo(f"runcast: {warned}", err=True)
    ended = Ended()
    with log.request(log.Request(log.new_id())) as request:
        took = log.stopwatch(time.process_time)
        try:
            yield ended
        except Exception as error:  # noqa: BLE001 - logged, and shown as a sentence
            echo(f"runcast: {sentence(log.failed('unexpected', error))}", err=True)
        name = _name(app, sys.argv[1:] if arguments is None else arguments)
        log.event("command", command=name, status=ended.status, **took(), **request.figures())


def sentence(log_id: str) -> str:
    """The message about a bug for the user of the command."""
    return (
        f"Something went wrong that should not; the log has it under id {log_id} "
        f"({log.LEVEL}=debug adds what it said)."
    )


def _name(app: typer.Typer, arguments: Sequence[str]) -> str:
    """The command's name in the product. Nothing else that was typed is logged."""
    if not logging.getLogger("runcast").isEnabledFor(logging.INFO):
        return ""
    known = {*_names(app)}
    return next((a for a in arguments if a in known), "")


def _names(app: typer.Typer) -> Iterator[str]:
    for one in app.registered_commands:
        name = one.name or getattr(one.callback, "__name__", "")
        yield str(name).replace("_", "-")
    for group in app.registered_groups:
        inner = group.typer_instance
        yield str(group.name or (inner.info.name if inner else "") or "")
