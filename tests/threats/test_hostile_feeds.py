"""A price source whose reading does not end, or takes all memory, delays no other, and holds the
lease no longer."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from pricing.lease import lease
from pricing.refresh import refresh
from pricing.sources import Source, chosen
from tests.conftest import ROOT
from tests.feeds.server import Feed, Reply, serving
from tests.servers.price_attacks import PATH
from tests.threats import evil_sources as evil
from tests.threats import hostile_feeds
from tests.threats.hostile_files import TWICE

DEADLINE_S = 1.0


def source(fetch, name="", **more):
    return Source(name=name or fetch.__name__, says="made for a test", fetch=fetch, **more)


def statuses(report):
    return {line.source: line.status for line in report.lines if line.status != "not asked"}


def sentences(report):
    return {line.source: line.sentence for line in report.lines}


def is_there(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_decoder_that_never_ends_is_ended_and_the_others_are_published(tmp_path):
    environ = {"PROCESS": str(tmp_path / "process")}
    never = source(evil.endless, deadline_s=DEADLINE_S)
    refresh([source(evil.honest)], folder=tmp_path / "alone", environ={})  # what is read once
    began = time.monotonic()
    refresh([source(evil.honest)], folder=tmp_path / "alone", environ={})
    alone_s = time.monotonic() - began
    began = time.monotonic()
    report = refresh([never, source(evil.honest)], folder=tmp_path, environ=environ)
    assert time.monotonic() - began < DEADLINE_S + 1.0 + 4 * alone_s  # it has a share of the CPU
    assert report.published
    assert statuses(report) == {"honest": "refreshed", "endless": "failed"}
    assert "longer than its 1 s" in sentences(report)["endless"]
    told = tmp_path / "process"  # which a starved process may not have written
    assert not told.exists() or not is_there(int(told.read_text()))
    with lease(tmp_path):  # nobody holds it
        pass


@pytest.mark.parametrize(
    ("fetch", "why"),
    [
        (evil.hungry, "more than 512 MiB of memory"),
        (evil.crashing, "ended without an answer"),
        (evil.faulty, "A fault of this program, not of the source: KeyError"),
    ],
)
def test_a_decoder_that_takes_all_memory_or_crashes_takes_only_itself(tmp_path, fetch, why):
    report = refresh([source(fetch), source(evil.honest)], folder=tmp_path, environ={})
    assert report.published
    assert statuses(report) == {"honest": "refreshed", fetch.__name__: "failed"}
    assert why in sentences(report)[fetch.__name__]


REFRESHING = """
import sys
from pathlib import Path
from pricing.refresh import refresh
from pricing.sources import Source
from tests.threats import evil_sources as evil
sources = [Source(name="never", says="", fetch=evil.endless, deadline_s=60)]
refresh(sources, folder=Path(sys.argv[1]), environ={"PROCESS": sys.argv[1] + "/process"})
"""


def test_a_refresh_that_is_killed_leaves_no_process_and_no_lease(tmp_path):
    number = tmp_path / "process"
    with subprocess.Popen([sys.executable, "-c", REFRESHING, str(tmp_path)], cwd=ROOT) as program:
        while not (number.exists() and number.read_text()):
            time.sleep(0.05)
        program.kill()
    until = time.monotonic() + 10.0
    while is_there(int(number.read_text())):
        assert time.monotonic() < until
        time.sleep(0.05)
    with lease(tmp_path):
        pass


@pytest.mark.slow
@pytest.mark.serial  # measures waits
def test_no_server_that_means_harm_delays_an_honest_source_by_a_second():
    wrong = {name: said for name, *taken in hostile_feeds.asked()
             if (said := hostile_feeds.faults(*taken))}  # fmt: skip
    assert wrong == {}


@pytest.mark.parametrize("slow", ["rows", "values"])
def test_a_decoder_of_ours_ends_itself_at_the_deadline(tmp_path, slow):
    """Rows are looked at between two of them, objects of JSON too."""
    from pricing.fetch.decoding import csv_rows, strict_json

    def fetch(session):
        while True:
            if slow == "rows":
                list(csv_rows(["a\n", "1\n"], ("a",)))
            else:
                strict_json('{"a": 1}')

    slow = source(fetch, "slow", deadline_s=0.2)
    refresh([slow], folder=tmp_path, environ={})
    time.sleep(0.1)
    assert not [t for t in threading.enumerate() if t.name == "source slow"]


def test_a_feed_with_a_key_twice_is_refused_at_once(tmp_path):
    with serving(Feed({PATH: Reply(TWICE)})) as base:
        environ = {"RUNCAST_PRICE_URL_VERDA": base}
        began = time.monotonic()
        report = refresh(chosen(["verda"]), folder=tmp_path, environ=environ)
        assert time.monotonic() - began < 5.0
    assert "the key 'k99999' twice" in sentences(report)["verda"]
