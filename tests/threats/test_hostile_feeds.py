"""A price source whose decoding does not end delays no other, and holds the lease no longer."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pricing.lease import lease
from pricing.refresh import refresh
from pricing.sources import Source, chosen
from tests.feeds.server import Feed, Reply, serving
from tests.made_up import plans
from tests.servers.price_attacks import PATH
from tests.threats.hostile_files import TWICE

DEADLINE_S = 1.0


def good() -> Source:
    """A source that answers at once."""
    one = plans.offer(
        scale_out_gbit_per_s=None, observed_at=datetime.now(UTC).date().isoformat(), source="good"
    )
    rows = [replace(one, region=f"region-{i}") for i in range(30)]
    return Source(name="good", says="made for a test", fetch=lambda session: rows)


@pytest.fixture
def never():
    """A source that computes for ever and looks at no clock."""
    over = threading.Event()

    def fetch(session):
        while not over.is_set():
            sum(range(1_000))
        return ()

    yield Source(name="never", says="made for a test", fetch=fetch, deadline_s=DEADLINE_S)
    over.set()


def statuses(report):
    return {line.source: line.status for line in report.lines if line.status != "not asked"}


def sentences(report):
    return {line.source: line.sentence for line in report.lines}


def test_a_decoder_that_never_ends_is_left_behind_and_the_others_are_published(never, tmp_path):
    alone_s = report_s(tmp_path)
    began = time.monotonic()
    report = refresh([never, good()], folder=tmp_path, environ={})
    # The source that is left behind still takes its share of the processor.
    assert time.monotonic() - began < DEADLINE_S + 1.0 + 4 * alone_s
    assert report.published
    assert statuses(report) == {"good": "refreshed", "never": "failed"}
    assert "longer than its 1 s" in sentences(report)["never"]
    with lease(tmp_path):  # nobody holds it
        pass


def report_s(folder):
    """How long a refresh of a good source alone takes here."""
    began = time.monotonic()
    refresh([good()], folder=folder / "alone", environ={})
    return time.monotonic() - began


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

    source = Source(name="slow", says="made for a test", fetch=fetch, deadline_s=0.2)
    refresh([source], folder=tmp_path, environ={})
    time.sleep(0.1)
    assert not [t for t in threading.enumerate() if t.name == "source slow"]


def test_a_feed_with_a_key_twice_is_refused_at_once(tmp_path):
    with serving(Feed({PATH: Reply(TWICE)})) as base:
        environ = {"RUNCAST_PRICE_URL_VERDA": base}
        began = time.monotonic()
        report = refresh(chosen(["verda"]), folder=tmp_path, environ=environ)
        assert time.monotonic() - began < 5.0
    assert "the key 'k99999' twice" in sentences(report)["verda"]
