"""State of every run of the probe, so that a killed launcher can resume.

One folder a run, named by its id, in the user's state folder ($RUNCAST_DATA_DIR/runs where that is
set): state.json, the copied files, and the result. state.json is written before anything is started
and replaced atomically; it has no secrets.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from platformdirs import user_state_path

from core.errors import shown, unknown_sentence
from hardware.outside.json_text import Bounds, json_value
from runners.launchers.quoting import LaunchError

SCHEMA = "runcast-run/1"
STATE, LOCK = "state.json", "lock"
PLAN, RESULT = "calib-plan.json", "calibration.json"  # as planned; as fetched and checked
PHASES = ("prepared", "submitted", "collected", "failed", "cancelled")
STATE_BYTES = 2**20
RUN = Bounds(num_bytes=STATE_BYTES, values=100_000)
_RUN_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """One run: its command and its progress."""

    run_id: str
    launcher: str
    options: Mapping[str, Any]  # of the command, as typed; job and launcher follow from it
    phase: str
    handle: str = ""  # the launcher's handle of the job
    sentence: str = ""  # why it failed
    submissions: int = 0
    probe_sha256: str = ""
    began_at: str = ""
    changed_at: str = ""
    schema: str = SCHEMA


def runs_folder() -> Path:
    """The folder of all runs."""
    named = os.environ.get("RUNCAST_DATA_DIR", "").strip()
    try:
        base = Path(named).expanduser() if named else user_state_path("runcast")
    except RuntimeError:  # the home of an unknown user
        raise LaunchError(f"RUNCAST_DATA_DIR is {shown(named)}, which is no folder here.") from None
    return base.absolute() / "runs"


def new_run_id() -> str:
    """An id that no other run has."""
    return str(uuid.uuid4())


def folder_of(run_id: str, base: Path | None = None) -> Path:
    """The folder of a run; anything but an id is refused before it becomes a path."""
    if not _RUN_ID.fullmatch(run_id):
        raise LaunchError(f"{shown(run_id)} is no id of a run: it looks like {uuid.UUID(int=0)}.")
    return (base or runs_folder()) / run_id


def known_runs() -> list[str]:
    """Ids of all known runs, the newest first."""
    found = [p for p in runs_folder().glob("*/" + STATE) if _RUN_ID.fullmatch(p.parent.name)]
    found.sort(key=lambda p: p.stat().st_mtime, reverse=True)
    return [p.parent.name for p in found]


def read_state(run_id: str) -> RunState:
    """The state of one run."""
    file = folder_of(run_id) / STATE
    try:
        with file.open("rb") as opened:
            held = json_value(opened.read(STATE_BYTES), RUN)
    except FileNotFoundError:
        known = known_runs()
        sentence = unknown_sentence("run", run_id, known) if known else "No run is remembered here."
        raise LaunchError(sentence) from None
    except ValueError:
        held = None
    names = {f.name for f in fields(RunState)}
    sound = isinstance(held, dict) and held.get("schema") == SCHEMA and set(held) <= names
    if not sound or held.get("run_id") != run_id or held.get("phase") not in PHASES:
        raise LaunchError(f"{shown(str(file))} is not the state of this run.")
    return RunState(**held)


def write_state(state: RunState, **changes: Any) -> RunState:
    """Write a state, completely or not at all; returns it."""
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    state = replace(state, **changes, changed_at=now, began_at=state.began_at or now)
    folder = folder_of(state.run_id)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_whole(folder / STATE, json.dumps(asdict(state), indent=1).encode() + b"\n")
    return state


def write_whole(file: Path, content: bytes) -> None:
    """Write a file completely or not at all, even after a power cut."""
    new = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with new.open("wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        new.replace(file)
    except OSError as e:  # an error of a write has no file name
        new.unlink(missing_ok=True)
        raise OSError(e.errno, e.strerror, str(file)) from None


@contextmanager
def held(run_id: str) -> Iterator[Path]:
    """The folder of a run, locked by this process: two must not follow one run."""
    folder = folder_of(run_id)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        lock = FileLock(folder / LOCK, timeout=0).acquire()
    except Timeout:
        raise LaunchError(f"Another process follows the run {run_id}.") from None
    with lock:
        yield folder
