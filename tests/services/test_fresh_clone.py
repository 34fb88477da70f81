"""A stranger's first minutes: the project's files in an empty folder, then `make run`.

Installs from the package registries that the machine is set up for.
"""

import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.processes import free_port

ROOT = Path(__file__).parent.parent.parent
FIRST_START_S = 900  # an empty environment, on a slow network
SECOND_START_S = 30

# What a stranger's shell does not have: this environment, and the settings of an outer make.
OURS = ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "PYTHONPATH", "VIRTUAL_ENV")
SHELL = {name: value for name, value in os.environ.items() if name not in OURS}

pytestmark = [pytest.mark.services, pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def clone(tmp_path_factory, project_files) -> Path:
    """What a clone of this tree would hold."""
    folder = tmp_path_factory.mktemp("clone")
    for file in project_files:
        target = folder / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    return folder


@contextmanager
def make_run(clone: Path, *, within_s: float) -> Iterator[tuple[str, float]]:
    """`make run` until it answers: its address and the seconds that took. Ended with its group."""
    port = free_port()
    begin = time.monotonic()
    log = clone.with_name(f"make-run-{port}.log")
    with log.open("w") as out:
        make = subprocess.Popen(
            ["make", "run", f"PORT={port}"],
            cwd=clone,
            env=SHELL,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        health = f"http://localhost:{port}/_stcore/health"
        while time.monotonic() - begin < within_s:
            assert make.poll() is None, log.read_text()
            with suppress(urllib.error.URLError, OSError):
                if urllib.request.urlopen(health, timeout=5).read() == b"ok":
                    break
            time.sleep(0.2)
        else:
            pytest.fail(f"no answer within {within_s} s: {log.read_text()}")
        yield f"http://localhost:{port}", time.monotonic() - begin
    finally:
        os.killpg(make.pid, signal.SIGTERM)
        make.wait(30)


def test_make_run_serves_the_page_and_starts_again_in_seconds(clone):
    with make_run(clone, within_s=FIRST_START_S) as (url, _):
        assert b"<title>" in urllib.request.urlopen(url, timeout=10).read()
    assert not list((clone / ".venv").glob("lib/python*/site-packages/torch"))
    with make_run(clone, within_s=SECOND_START_S) as (_, seconds):
        assert seconds < SECOND_START_S


def test_a_link_shows_the_same_numbers_in_a_second_clone(clone, new_user):
    ann = new_user()
    ann.open("/?v=1&model=llama3.1-70b&num_tokens=1e12&gpu=H100-80GB-SXM&deadline_days=60")
    assert len(ann.headlines()) == 5
    with make_run(clone, within_s=FIRST_START_S) as (url, _):
        bob = new_user()
        bob.base_url = url.replace("localhost", "127.0.0.1")
        bob.open("/?" + ann.link().partition("?")[2])
        assert bob.headlines() == ann.headlines()
        assert bob.sentence() == ann.sentence()
        assert bob.table() == ann.table()
        assert bob.notes() == []
