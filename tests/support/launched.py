"""What tests of launchers share: a job with the fake or the real probe, and who is left behind."""

import dataclasses
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from runners.launchers.follow import Status, follow
from runners.launchers.job import Job
from runners.launchers.launcher import Launcher
from runners.run_state import RunState, folder_of, new_run_id
from tests.support.processes import is_alive

FAKE = Path(__file__).with_name("fake_probe.py")


def job(*, groups: list[str] | None = None, folder: Path | None = None, **changes: Any) -> Job:
    """A job of the fake probe; further keys of its plan as `plan={...}`."""
    run_id = changes.pop("run_id", None) or new_run_id()
    plan = {"run_id": run_id, "groups": groups or ["a", "b"], **changes.pop("plan", {})}
    values: dict[str, Any] = {
        "run_id": run_id,
        "folder": folder or folder_of(run_id),
        "plan": plan,
        "num_nodes": 1,
        "processes": 1,
        "device": "cpu",
        "budget_s": 30.0,
        "limit_s": 60.0,
        "arguments": ("--budget-s", "30"),
        "python": sys.executable,
        "env": {},
        "probe": FAKE,
    }
    return Job(**{**values, **changes})


def state_of(made: Job, launcher: str = "local") -> RunState:
    return RunState(run_id=made.run_id, launcher=launcher, options={}, phase="prepared")


def followed(launcher: Launcher, made: Job) -> tuple[dict[str, Any], list[Status]]:
    """Run a job to its end: the result between the markers, and what was told."""
    told: list[Status] = []
    text, state = follow(launcher, made, state_of(made), told.append, check=json.loads)
    launcher.close(made, state.handle)
    return json.loads(text), told


def alive(run_id: str) -> list[int]:
    """Processes that the run started and that are still there."""
    mark, found = f"RUNCAST_RUN={run_id}/".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (entry / "environ").read_bytes():
                pid = int(entry.name)
                if is_alive(pid) and pid != os.getpid():
                    found.append(pid)
    return found


def gone(run_id: str, within_s: float = 15.0) -> bool:
    """Whether nothing of a run is left, soon."""
    end = time.monotonic() + within_s
    while alive(run_id):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def until(true: Any, within_s: float = 30.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def changed(made: Job, **changes: Any) -> Job:
    return dataclasses.replace(made, **changes)
