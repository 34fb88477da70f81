"""Check the price files of an archive in a process of its own, whose memory and seconds the kernel
limits: a Parquet file of 50 kB may unpack to gigabytes, and end the process that reads it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from core.errors import FactError
from pricing.offers import read_rows
from pricing.process_limit import limit

MEMORY_BYTES = 512 * 2**20  # beyond what the program itself has
FILE_S = 10.0  # of one file
# -P and the same folders: a module of ours is never looked for in the folder of the caller.
_START = "import sys; sys.path[:] = {}; from pricing.backup.checking import main; main({})"


def check_snapshots(paths: Sequence[Path]) -> None:
    """`FactError` for the first file that is no price snapshot, or takes too much to be read."""
    if not paths:
        return
    places = [os.path.abspath(p) for p in sys.path]
    program = [sys.executable, "-P", "-W", "ignore", "-c", _START.format(places, FILE_S)]
    done = subprocess.run(
        program, input="\n".join(map(str, paths)).encode(), stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    *_, name, sentence = ["", *done.stdout.decode().split("\n")]
    if done.returncode:
        raise FactError(
            sentence
            or f"{name} takes more than {MEMORY_BYTES >> 20} MiB or {FILE_S:g} s to read, or is "
            "damaged"
        )


def main(file_s: float) -> None:
    """Read the files that the input names, one a line: each name is printed before, and the
    sentence of the first that is refused after it."""
    for path in map(Path, sys.stdin.read().splitlines()):
        sys.stdout.write(f"{path.name}\n")
        sys.stdout.flush()
        limit(file_s, MEMORY_BYTES)
        try:
            read_rows(path)
        except FactError as e:
            sys.stdout.write(str(e))
            sys.exit(1)
