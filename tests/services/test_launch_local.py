"""Runs on this machine with the real probe, as a person starts them."""

import json
import re
from pathlib import Path

import pytest

from tests.servers.launch import BUDGET_S, calibrated, measured
from tests.support.launched import gone

pytestmark = [pytest.mark.services, pytest.mark.slow]


def test_two_processes_are_measured_together_within_their_budget(tmp_path):
    summary, result = measured(tmp_path, "--launcher", "local", "--processes-per-node", "2")
    assert (len(result.nodes), result.provenance.world_size) == (1, 2)
    assert {r.params["group"] for r in result.rows("collectives")} == {"intra_node"}
    assert summary["budget_s"] == BUDGET_S
    assert result.wall_s < summary["limit_s"]
    assert gone(result.run_id, 5)
    document = (Path(__file__).parent.parent.parent / "docs/calibration.md").read_text()
    section = document.partition("## Keys of `runcast calibrate --json`\n")[2].partition("\n## ")[0]
    keys = set(re.findall(r"`(\w+)`", section))
    assert {*summary, *(k for s in summary["skipped"] for k in s)} <= keys


def test_one_process_is_measured_and_the_file_says_where(tmp_path):
    out = tmp_path / "one.json"
    done = calibrated(
        tmp_path, "--launcher", "local", "--device", "cpu", "--budget-s", "15", "--yes",
        "--anonymise", "--usd-per-hour", "36", "--out", str(out),
    )  # fmt: skip
    assert f"The result is in {out}." in done.stdout
    assert "running: matmul (1/" in done.stderr
    assert "At most $1.35." in done.stderr  # 15 s and 120 s at a cent a second
    found = json.loads(out.read_bytes())
    assert found["provenance"]["anonymised"] is True
    assert 0 < found["usd"] < 1.35


def test_a_probe_that_has_no_time_says_so(tmp_path):
    done = calibrated(
        tmp_path, "--launcher", "local", "--device", "cpu", "--budget-s", "10", "--yes",
        "--python", "/bin/false", expected=2,
    )  # fmt: skip
    assert "cannot be started here" in done.stderr
