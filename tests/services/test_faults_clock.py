"""The clock is off, the time zone and the language are others: ages, sentences, same bytes.

Either a refresh has another time and the commands the machine's own, or whole programs have another
time of day, by a library that is loaded before the one that asks the kernel.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from pricing.refresh import refresh
from tests.feeds.refreshing import made
from tests.support.browsing import ROOT

pytestmark = [pytest.mark.services, pytest.mark.slow]

LINK = "?model=llama3.1-8b&gpu=H100-80GB-SXM&num_gpus=64&cloud=aws"
SWEEP = "model: llama3.1-8b\ngpu: h100\nnum_gpus: [[8], [64]]\ncloud: aws\n"


def run(*words, **environ):
    """A command in a process of its own, as a shell starts it."""
    kept = {k: v for k, v in os.environ.items() if k not in ("LANG", "LANGUAGE", "LC_ALL", "TZ")}
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *map(str, words)],
        cwd=ROOT, env={**kept, "COLUMNS": "200", **environ}, capture_output=True, check=False,
        timeout=120,
    )  # fmt: skip


def said(done):
    return " ".join((done.stdout + done.stderr).decode().split())


@pytest.fixture(scope="module")
def clock_off_by(tmp_path_factory):
    """The environment of a program whose time of day is so many days off."""
    if (compiler := shutil.which("cc")) is None or not sys.platform.startswith("linux"):
        pytest.skip("there is no C compiler here")
    library = tmp_path_factory.mktemp("clock") / "clock.so"
    source = ROOT / "tests/support/clock.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return lambda days: {"LD_PRELOAD": str(library), "CLOCK_OFF_S": str(days * 86_400)}


REFRESH = """
import json, sys
from datetime import UTC, datetime
from pricing.refresh import refresh
from tests.feeds.refreshing import made
report = refresh([made(float(sys.argv[1]))], environ={})
print(json.dumps([datetime.now(UTC).timestamp(), report.published, report.store,
                  [line.age_days or 0.0 for line in report.lines]]))
"""
COMMANDS = (("plan", "--link", LINK), ("doctor", "--json"))


def refreshed(usd, environ):
    """When a refresh in a program of its own thought to be, after it was published and kept."""
    done = subprocess.run(
        [sys.executable, "-c", REFRESH, str(usd)], cwd=ROOT, capture_output=True, text=True,
        check=True, timeout=120, env={**os.environ, **environ},
    )  # fmt: skip
    at, published, store, ages = json.loads(done.stdout)
    assert (published, store) == (True, "")
    assert min(ages) >= 0.0
    return at


@pytest.mark.parametrize("days", [-1, 365])
def test_programs_work_while_the_clock_is_wrong_and_after_it_is_right(tmp_path, clock_off_by, days):
    here = {"RUNCAST_DATA_DIR": str(tmp_path)}
    wrong = {**here, **clock_off_by(days)}

    def asked(environ):
        for words in COMMANDS:
            done = run(*words, **environ)
            assert done.returncode == 0 or words[0] == "doctor", said(done)
            assert "Traceback" not in said(done)
            assert not re.search(r"-\d[\d.]* (hour|day|month|year)s? (old|ago)", said(done))
            found = re.findall(r'"age_days": (-?[\d.]+)', said(done))
            assert min(map(float, found), default=0.0) >= 0.0
            assert found or words[0] == "plan"

    refreshed(43.0, here)
    asked(wrong)
    off_s = refreshed(44.0, wrong) - datetime.now(UTC).timestamp()
    assert off_s == pytest.approx(days * 86_400, abs=600)  # the clock was wrong indeed
    asked(here)
    refreshed(45.0, here)


def test_the_doctor_says_that_a_source_answered_at_a_time_to_come(tmp_path):
    """The file that a refresh leaves whose clock was two days ahead."""
    folder, moved = tmp_path / "prices", datetime.now(UTC) + timedelta(days=2)
    refresh([made(43.0)], folder=folder, environ={}, now=lambda: moved)
    state = json.loads((folder / "state.json").read_text())
    state["sources"]["verda"] = {**state["sources"].pop("made"), "name": "verda"}
    (folder / "state.json").write_text(json.dumps(state))
    done = run("doctor", RUNCAST_DATA_DIR=str(tmp_path))
    assert "answered at a time to come" in said(done)
    assert "Set this machine's clock." in said(done)


def languages():
    """A language that writes 1.234,5 or has its own letter i, where one is installed."""
    listed = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout
    found = [n for n in listed.split() if n.lower().startswith(("tr_tr", "de_de"))]
    return found[0] if found else "C"


def test_time_zone_and_language_change_no_byte_of_a_plan_and_of_a_table(tmp_path):
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    found = []
    for zone, language in (("UTC", "C.UTF-8"), ("Pacific/Kiritimati", languages())):
        environ = {"TZ": zone, "LC_ALL": language, "RUNCAST_DATA_DIR": str(tmp_path / "data")}
        out = tmp_path / zone.replace("/", "-")
        plan = run("plan", "--link", LINK, "--json", **environ)
        swept = run("sweep", tmp_path / "sweep.yaml", "--out", out, "--workers", "1", **environ)
        assert (plan.returncode, swept.returncode) == (0, 0), plan.stderr + swept.stderr
        assert json.loads(plan.stdout)["plans"]
        found.append((plan.stdout, (out / "results.csv").read_bytes(),
                      (out / "results.parquet").read_bytes()))  # fmt: skip
    assert found[0] == found[1]
