"""Real processes that begin at once: one that has imported everything, and forks for each order.

Starting a command takes a second, most of it imports. A test that kills hundreds of them at random
points asks this process instead: each order is a child of its own, with its own session, files and
environment, that `kill -9` ends as any other. `python -m tests.support.forks` reads orders as JSON
lines.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.support.processes import is_alive

ROOT = Path(__file__).parents[2]
# What the orders need: imported once, before the first of them.
IMPORTED = (
    "app.cli", "app.saved.saved", "app.saved.command", "app.sweep.cells", "app.sweep.run",
    "app.sweep.results",
    "app.calibration.added", "app.calibration.calibrate_command", "app.calibration.job",
    "app.prices.book_file", "app.forecast.price_book",
    "app.plan.as_json",
    "app.prices.refresh_command", "pricing.book.files", "pricing.refresh",
    "tests.support.acknowledged",
    "tests.made_up.calibrate", "tests.feeds.refreshing", "runners.launchers.follow",
)  # fmt: skip


@dataclass
class Forked:
    """A child that runs, or ran."""

    pid: int
    out_file: Path
    err_file: Path
    _boss: Forks
    status: int | None = None

    def kill(self) -> None:
        """`kill -9`, of this process alone; what it printed before is kept."""
        os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def ends_within(self, seconds: float) -> bool:
        """Whether it ends by itself in that time."""
        end = time.monotonic() + seconds
        while is_alive(self.pid):
            if time.monotonic() >= end:
                return False
            time.sleep(0.005)
        return True

    def wait(self) -> int:
        """Its exit status once it has ended; -9 after a kill."""
        if self.status is None:
            self.status = int(self._boss.order({"wait": self.pid})["status"])
        return self.status

    @property
    def out(self) -> str:
        return self.out_file.read_text(encoding="utf-8")

    @property
    def err(self) -> str:
        return self.err_file.read_text(encoding="utf-8")


@dataclass
class Forks:
    """The process that forks, and where its children write."""

    process: subprocess.Popen[str]
    folder: Path
    count: int = 0
    children: list[Forked] = field(default_factory=list)

    def order(self, what: Mapping[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        return dict(json.loads(self.process.stdout.readline()))

    def start(self, module: str, *arguments: object, environ: Mapping[str, str]) -> Forked:
        """Run `module.main(arguments)` in a child of its own, which ends with this one's test."""
        self.count += 1
        files = [self.folder / f"{self.count}.{kind}" for kind in ("out", "err")]
        for file in files:
            file.touch()
        order = {"module": module, "arguments": list(map(str, arguments)), "env": dict(environ),
                 "files": list(map(str, files))}  # fmt: skip
        child = Forked(int(self.order(order)["pid"]), *files, self)
        self.children.append(child)
        return child

    def run(self, module: str, *arguments: object, environ: Mapping[str, str]) -> Forked:
        """The same, to its end."""
        done = self.start(module, *arguments, environ=environ)
        done.wait()
        return done


@contextmanager
def forks() -> Iterator[Forks]:
    """A process that has imported everything; it ends with the block."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.forks"], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
                 "PYTHONWARNINGS": "error"},
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            found = Forks(process, Path(folder))
            try:
                yield found
            finally:
                for child in found.children:  # those of a test that failed
                    if child.status is None:
                        child.kill()
        finally:
            process.stdin.close()
            process.wait(30)
            process.stdout.close()


def until_printed(child: Forked, lines: int, within_s: float = 60.0) -> None:
    """Wait until a child has printed so many lines; it may end before."""
    end = time.monotonic() + within_s
    while child.out.count("\n") < lines and is_alive(child.pid):
        assert time.monotonic() < end, child.err
        time.sleep(0.002)


def _child(order: Mapping[str, Any]) -> None:
    """What a child does; it never returns."""
    status = 1
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        for number, name in enumerate(order["files"], start=1):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
        os.environ.update(order["env"])
        import_module(order["module"]).main(order["arguments"])
        status = 0
    except SystemExit as e:
        status = e.code if isinstance(e.code, int) else 0 if e.code is None else 1
    except BaseException:  # noqa: BLE001 - it is printed, and the parent reads the status
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    for name in IMPORTED:
        getattr(import_module(name), "prepare", int)()
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            _, status = os.waitpid(order["wait"], 0)
            print(json.dumps({"status": os.waitstatus_to_exitcode(status)}), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            _child(order)
        print(json.dumps({"pid": pid}), flush=True)


if __name__ == "__main__":
    main()
