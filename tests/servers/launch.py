"""`runcast calibrate` as a person runs it, in a process of its own, with the real probe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from runners.calibration.result import CalibResult, parse_result

ROOT = Path(__file__).parents[2]
# Reduced shapes: half a minute on a quiet core. The budget leaves room for other tests on it.
BUDGET_S = 120
QUICK = ("--device", "cpu", "--budget-s", str(BUDGET_S), "--python", sys.executable)


def lacking(reason: str, *, installable: bool = True) -> NoReturn:
    """Skip, but where CI is set what can be installed must be."""
    if os.environ.get("CI") and installable:
        pytest.fail(reason)
    pytest.skip(reason)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "app.cli", "calibrate", *words]


def environ(folder: Path, **more: str) -> dict[str, str]:
    """Where the run is remembered, and one thread a process: the cores are shared."""
    return {
        **os.environ, "RUNCAST_DATA_DIR": str(folder), "OMP_NUM_THREADS": "1", "COLUMNS": "100",
        **more,
    }  # fmt: skip


def calibrated(
    folder: Path, *words: str, expected: int = 0, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    done = subprocess.run(
        command(*words), cwd=ROOT, env=environ(folder, **more), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
    assert done.returncode == expected, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def measured(folder: Path, *words: str, **more: str) -> tuple[dict[str, Any], CalibResult]:
    """Measure with the real probe: the summary, and the result as it is read back."""
    out = folder / "calibration.json"
    done = calibrated(folder, *words, *QUICK, "--yes", "--json", "--out", str(out), **more)
    summary = json.loads(done.stdout)
    assert summary["result_file"] == str(out)
    result = parse_result(out.read_bytes())
    assert result.run_id == summary["run_id"]
    assert result.provenance.launcher == summary["launcher"]
    assert result.rows("matmul")
    return summary, result
