"""No file costs more work or memory than its size allows, and none is parsed twice."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from app.buy.trace_file import read_trace
from app.forecast.calibrations import parse
from core.errors import RuncastError
from hardware.outside.kept import kept_by_hash
from tests.conftest import ROOT
from tests.threats.hostile_files import ATTACKS, HEAD, TWICE, faults


@pytest.fixture
def golden_result():
    return json.loads(sorted((ROOT / "tests/golden").glob("calib-result-1*.json"))[0].read_text())


@pytest.fixture(scope="module")
def tried():
    done = subprocess.run(
        [sys.executable, "-m", "tests.threats.hostile_files", "--json"],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    return {one["name"]: one for one in json.loads(done.stdout)}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_file_is_a_sentence_within_its_bounds(tried, name):
    assert faults(tried[name]) == []


def test_a_file_that_breaks_a_bound_would_be_found():
    fine = {"said": "No.", "cpu_s": 0.1, "grown_bytes": 10, "sent_bytes": 10}
    assert faults(fine) == []
    assert faults({**fine, "cpu_s": 3.0}) == ["3.0 s of processor time"]
    assert faults({**fine, "grown_bytes": 10**9}) == ["1000 MB of memory"]
    assert faults({"name": "x", "said": "!killed"}) == ["no sentence: !killed"]


@pytest.mark.parametrize("content", [TWICE, HEAD.encode()])
def test_a_refused_trace_is_not_parsed_at_every_rerun(content):
    took = []
    for _ in range(5):
        began = time.process_time()
        with pytest.raises(RuncastError):
            read_trace(content, name="mine")
        took.append(time.process_time() - began)
    assert min(took[1:]) < 0.01


def test_what_is_kept_is_of_its_bytes_and_options():
    calls = []

    @kept_by_hash
    def parse(content, *, name):
        calls.append((content, name))
        if content == b"bad":
            raise RuncastError(f"{name} is bad.")
        return content.decode()

    for _ in range(2):
        assert parse(b"one", name="a") == "one"
        assert parse(b"two", name="a") == "two"
        for name in "ab":
            with pytest.raises(RuncastError, match=f"{name} is bad"):
                parse(b"bad", name=name)
    assert len(calls) == 4


ESC = {
    "a title": "\x1b]0;owned\x07", "the clipboard": "\x1b]52;c;Y3VybCBldmls\x07",
    "a link": "\x1b]8;;http://evil\x1b\\here\x1b]8;;\x1b\\", "C1": "\x9b31m", "bidi": "a\u202eb",
    "a line": "one\nrunning as root",
}  # fmt: skip


@pytest.mark.parametrize("kind", ESC)
@pytest.mark.parametrize("key", ["host", "launcher", "driver", "os"])
def test_a_calibration_with_a_text_for_a_terminal_is_refused(golden_result, key, kind):
    golden_result["provenance"][key] = ESC[kind]
    with pytest.raises(RuncastError, match=r"has the character U\+"):
        parse(json.dumps(golden_result).encode())


def test_what_nvidia_smi_draws_of_the_machine_is_kept(golden_result):
    golden_result["provenance"]["topology"] = "\x1b[4mGPU0\x1b[0m\n X"
    assert parse(json.dumps(golden_result).encode())
