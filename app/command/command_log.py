"""Log each command, with one id per invocation, and show the user a short message for a bug."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

import typer

from app.log import log

BUG = 1  # exit status


class command:  # noqa: N801 - used as a context, like the functions of contextlib
    """Log one command: one line at its end.

    An exception that is not a user's mistake is logged; the user gets a sentence with its id, and
    the exit status is 1.
    """

    def __init__(self, app: typer.Typer, arguments: Sequence[str] | None) -> None:
        self._app = app
        self._arguments = list(sys.argv[1:] if arguments is None else arguments)
        self.status = BUG

    def __enter__(self) -> Self:
        if warned := log.configure():
            print(f"runcast: {warned}", file=sys.stderr)
        self._request = log.Request(log.new_id())
        self._working = log.request(self._request)
        self._working.__enter__()
        self._began, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        places: TracebackType | None,
    ) -> bool:
        is_bug = isinstance(error, Exception)
        try:
            if isinstance(error, Exception):
                log_id = log.failed("unexpected", error)
                print(f"runcast: {sentence(log_id)}", file=sys.stderr)
            if error is None or is_bug:
                log.event(
                    "command",
                    command=self._name(),
                    status=self.status,
                    ms=round((time.perf_counter() - self._began) * 1000, 1),
                    cpu_ms=round((time.process_time() - self._cpu) * 1000, 1),
                    **self._request.figures(),
                )
        finally:
            self._working.__exit__(None, None, None)
        return is_bug

    def _name(self) -> str:
        """The command's name in the product. Nothing else that was typed is logged."""
        if not logging.getLogger("runcast").isEnabledFor(logging.INFO):
            return ""
        known = {*_names(self._app)}
        return next((a for a in self._arguments if a in known), "")


def sentence(log_id: str) -> str:
    """The message about a bug for the user of the command."""
    return (
        f"Something went wrong that should not; the log has it under id {log_id} "
        f"({log.LEVEL}=debug adds what it said)."
    )


def _names(app: typer.Typer) -> Iterator[str]:
    for one in app.registered_commands:
        name = one.name or getattr(one.callback, "__name__", "")
        yield str(name).replace("_", "-")
    for group in app.registered_groups:
        inner = group.typer_instance
        yield str(group.name or (inner.info.name if inner else "") or "")
