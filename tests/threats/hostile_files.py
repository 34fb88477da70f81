"""Files whose bytes are few and whose work is much: what is sent, and the parser it is sent to.

Run as a program it parses each in a process of its own and prints how many held, or with --json
what each took:

    python -m tests.threats.hostile_files [--json]
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.accuracy.own_runs import report_of_upload
from app.buy.trace_file import read_trace
from app.forecast.calibrations import parse
from app.imports.file import imported
from app.prices.book_file import csv_cells, yaml_cells
from app.scenario.file import read_scenario
from core.errors import RuncastError
from pricing.fetch.decoding import csv_rows, strict_json

MEMORY_BYTES = 512 * 2**20  # of the process of one parser
MOST_CPU_S = 2.0
MOST_TIMES = 20  # memory over the size of the file
FIXED_BYTES = 16 * 10**6  # what is loaded with the first file of a kind
SENT, EMPTY = b'{"schema":"import-result/1",', b"{}," * 660_000 + b"{}]}"
KEYS = ",".join(f'"k{i}":1' for i in range(100_000))
TWICE = f'{{{KEYS},"k99999":1}}'.encode()
HEAD = ",".join(f"k{i}" for i in range(50_000)) + ",k49999\n1\n"
NESTED = b"[" * 200_000


def _trace(content: bytes) -> object:
    return read_trace(content, name="mine")


def _runs(content: bytes) -> object:
    return report_of_upload(content, None, name="mine.csv")


def _import(content: bytes) -> object:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mine")
        path.write_bytes(content)
        return imported(path, format_="profile" if content[:2] == b"\x1f\x8b" else "auto")


def _feed_csv(content: bytes) -> object:
    return list(csv_rows(content.decode().splitlines(keepends=True), ("k1",)))


def _book(content: bytes) -> object:
    return csv_cells(content, "mine.csv")


ATTACKS: dict[str, tuple[Callable[[bytes], object], bytes]] = {
    "import result of 660,000 empty tables": (parse, SENT + b'"tables":[' + EMPTY),
    "import result of 660,000 empty collectives": (parse, SENT + b'"collectives":[' + EMPTY),
    "import result of 660,000 empty matmuls": (parse, SENT + b'"matmuls":[' + EMPTY),
    "import result of 100,000 unknown keys": (parse, SENT + KEYS.encode() + b"}"),
    "import result of 4.9 MB": (
        parse, SENT + b'"matmuls":[' + b'{"m":1,"n":2},' * 350_000 + b"{}]}"
    ),
    "calibration of 5,000 empty rows": (
        parse,
        b'{"schema":"calib-result/1","probe_version":1,"results":[' + b"{}," * 4_999 + b"{}]}",
    ),
    "calibration of 660,000 empty rows": (
        parse, b'{"schema":"calib-result/1","probe_version":1,"results":[' + EMPTY
    ),
    "calibration, nested": (parse, NESTED),
    "feed with 100,000 keys, the last one twice": (strict_json, TWICE),
    "feed with 900,000 keys": (strict_json, ("[{" + ",".join(
        f'"k{i}":1' for i in range(900_000)) + "}]").encode()),
    "feed of a number of 5 MB": (strict_json, b"[" + b"9" * 5_000_000 + b"]"),
    "feed of empty lists": (strict_json, b"[" + b"[]," * 2_900_000 + b"[]]"),
    "feed, nested": (strict_json, NESTED),
    "feed of a CSV with a column twice": (_feed_csv, HEAD.encode()),
    "trace with 100,000 keys, the last one twice": (_trace, TWICE),
    "trace as CSV of 50,001 columns": (_trace, HEAD.encode()),
    "trace of 20,000 columns": (_trace, HEAD.encode()[:100_000] + b",k1\n"),
    "trace of a million lists": (
        _trace, b'{"up":[' + b"[1,2]," * 800_000 + b'[1,2]],"length_s":9}'
    ),
    "trace of quotes": (_trace, b'"' * 4_900_000),
    "runs of 300,000 columns": (_runs, b"a," * 300_000 + b"a\n"),
    "runs of 900,000 commas": (_runs, b"run_id\n" + b"," * 900_000),
    "price book of 30,000 columns": (_book, b"kind," + b"a," * 30_000 + b"a\n"),
    "price book of anchors": (yaml_cells, b"- &a {x: 1}\n" + b"- *a\n" * 10_000),
    "scenario file, nested": (read_scenario, b"a: " + b"[" * 60_000),
    "profile of 47 kB that unpacks to 50 MB": (
        _import, gzip.compress(b'{"traceEvents":[' + b"{}," * 16_000_000 + b"{}]}")
    ),
    "log of open brackets": (_import, (b"{" * 3_900 + b"\n") * 1_000),
    "log of DLLogger, nested": (_import, (b"DLLL {" + b'"a":{' * 700 + b"\n") * 1_000),
}  # fmt: skip


def tried(name: str) -> dict[str, Any]:
    """What parsing one of them took, in a process of its own: seconds of processor time, bytes of
    memory beyond what was held before, and the sentence."""
    parse, content = ATTACKS[name]
    read, write = os.pipe()
    child = os.fork()
    if not child:
        before = _held_bytes()
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
        began = time.process_time()
        try:
            parse(content)
            said = "read"
        except RuncastError as e:
            said = str(e)
        except BaseException as e:  # noqa: BLE001 - the parent judges it
            said = f"!{type(e).__name__}: {str(e)[:200]}"
        found = {
            "name": name,
            "sent_bytes": len(content),
            "cpu_s": round(time.process_time() - began, 3),
            "grown_bytes": max(0, _held_bytes() - before),
            "said": said,
        }
        os.write(write, json.dumps(found).encode()[:60_000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as said_by_child:
        text = said_by_child.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"name": name, "said": "!killed"}


def _held_bytes() -> int:
    """The most memory that this process has held since it began."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def faults(one: dict[str, Any]) -> list[str]:
    """What is wrong with how a file was taken; empty where it held."""
    found = []
    if one["said"].startswith("!") or not one["said"].endswith((".", "?")):
        found.append(f"no sentence: {one['said']}")
    if one.get("cpu_s", 0.0) > MOST_CPU_S:
        found.append(f"{one['cpu_s']:.1f} s of processor time")
    if one.get("grown_bytes", 0) > FIXED_BYTES + MOST_TIMES * one.get("sent_bytes", 0):
        found.append(f"{one['grown_bytes'] / 1e6:.0f} MB of memory")
    return found


def main() -> int:
    every = [tried(name) for name in ATTACKS]
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps(every, indent=1) + "\n")
        return 0
    for one in every:
        for fault in faults(one):
            sys.stdout.write(f"BROKEN {one['name']}: {fault}\n")
    held = sum(not faults(one) for one in every)
    most_s, most_mb = (max(one.get(n, 0) for one in every) for n in ("cpu_s", "grown_bytes"))
    sys.stdout.write(
        f"{len(every)} hostile files tried, {held} held; at most {most_s:.1f} s of processor time "
        f"and {most_mb / 1e6:.0f} MB, in {MEMORY_BYTES >> 20} MiB each\n"
    )
    return held < len(every)


if __name__ == "__main__":
    sys.exit(main())
