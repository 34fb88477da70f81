"""The process that tests a copy: it reads jobs, one JSON object a line, and forks for each.

What the tests take from others is imported once. A child lets go of all that is ours, and imports
what its copy holds at that time.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from importlib import import_module

import hypothesis.extra.numpy  # noqa: F401
import numpy  # noqa: F401
import pydantic  # noqa: F401
import pytest

import tests.conftest

OURS = ("app", "core", "hardware", "pricing", "runners", "tests")


def main() -> None:
    """Until there are no more jobs."""
    for name in tests.conftest.pytest_plugins:
        import_module(name)
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if not child:
            _test(job)
        _, status = os.waitpid(child, 0)
        answer = {"job": job["job"], "status": os.waitstatus_to_exitcode(status)}
        print(json.dumps(answer), flush=True)


def _test(job: dict[str, object]) -> None:
    output = os.open(str(job["output"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    signal.alarm(int(str(job["most_s"])))
    for name in [n for n in sys.modules if n.partition(".")[0] in OURS]:
        del sys.modules[name]
    # Hypothesis is imported already: its own assertions are not rewritten, and need not be.
    imported = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    arguments = [*imported, "-x", "-q", "-n", "0", "--tb=line", "-p", "no:cacheprovider"]
    files = [str(f) for f in job["files"]]  # type: ignore[attr-defined]
    status = pytest.main([*arguments, "-m", str(job["marks"]), *files])
    sys.stdout.flush()
    os._exit(int(status))


if __name__ == "__main__":
    main()
