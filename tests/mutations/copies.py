"""A copy of the packages in which errors are planted, and tests that are run in it.

One process imports pytest, hypothesis and numpy once and forks for each error: the tests of one
module take a fraction of what starting Python takes.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parent.parent.parent
COPIED = ("app", "core", "hardware", "pricing", "runners", "tests")
QUIET = "not slow and not browser and not services and not journey"
MOST_S = 240  # seconds; an error that makes a test endless is caught, too


def path_of(module: str) -> str:
    """Where a module of core is, by its name, which no other has."""
    (path,) = (ROOT / "core").rglob(f"{module}.py")
    return path.relative_to(ROOT).as_posix()


def tests_of(name: str) -> tuple[str, ...]:
    """The test files of this name, in whichever folders."""
    found = sorted((ROOT / "tests").rglob(f"test_{name}.py"))
    return tuple(path.relative_to(ROOT).as_posix() for path in found)


class Copy:
    """A copy of the checkout under `folder`, with the process that tests it. Nothing is ever
    planted elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._jobs = 0
        left_out = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
        for name in COPIED:
            shutil.copytree(ROOT / name, folder / name, ignore=left_out)
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, folder / name)
        env = {**os.environ, "CI": "1", "PYTHONPATH": str(folder)}
        env |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._tester = subprocess.Popen(
            [sys.executable, "-m", "tests.mutations.tester"],
            cwd=folder, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tester.stdin.close()  # type: ignore[union-attr]
        self._tester.stdout.close()  # type: ignore[union-attr]
        self._tester.wait(timeout=MOST_S)

    def source(self, module: str) -> Path:
        """The file of a module of core in the copy."""
        return self.folder / path_of(module)

    def caught(self, module: str, text: str, files: tuple[str, ...]) -> tuple[bool, str]:
        """Whether a test of these files fails where the module has this text, and what pytest says.
        Only a failed test counts: not a file that cannot be imported."""
        path = self.source(module)
        before = path.read_text(encoding="utf-8")
        self._write(path, text)
        try:
            status, said = self.run(files)
        finally:
            self._write(path, before)
        if status == -signal.SIGALRM:
            return True, f"the tests did not end within {MOST_S} seconds"
        return status == 1 and " failed" in said, said

    def run(self, files: tuple[str, ...]) -> tuple[int, str]:
        """Exit status and output of pytest in the copy."""
        output = self.folder / "output.txt"
        job = {"files": files, "marks": QUIET, "output": str(output), "most_s": MOST_S}
        self._jobs += 1
        print(json.dumps({"job": self._jobs, **job}), file=self._tester.stdin, flush=True)
        # A caller that was interrupted has left the answer to its own job behind.
        answers = map(json.loads, iter(self._tester.stdout.readline, ""))  # type: ignore[union-attr]
        status = next(a["status"] for a in answers if a["job"] == self._jobs)
        return int(status), output.read_text(encoding="utf-8", errors="replace")

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        # Bytecode is told apart by whole seconds and size: another error may have both.
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
            compiled.unlink()
