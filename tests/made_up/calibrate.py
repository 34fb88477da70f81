"""`runcast calibrate` on this machine with tests/made_up/probe.py in place of the real probe."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from app import cli
from app.calibration import job as calibration_job
from runners.launchers.job import Job

PROBE = Path(__file__).with_name("probe.py")


def main(arguments: Sequence[str]) -> None:
    calibration_job.Job = partial(Job, probe=PROBE)  # type: ignore[assignment, misc]
    cli.main(["calibrate", *arguments])
