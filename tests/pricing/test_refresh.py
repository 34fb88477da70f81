"""The refresh job against a replica of every source on the loopback interface."""

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.errors import FactError, ScenarioError
from core.machine.offer import Offer
from pricing import offers as snapshots
from pricing.fetch.network import SourceError
from pricing.lease import LeaseError, lease
from pricing.offers import SNAPSHOTS, content_id, read_rows
from pricing.publish import write_snapshot
from pricing.refresh import refresh
from pricing.series import sku_of
from pricing.source_state import SourceState, read_quarantine, read_state
from pricing.sources import SOURCES, Source, chosen
from tests.feeds import shapes
from tests.feeds.server import Feed, Reply, as_json, serving

TODAY = datetime.now(UTC).date().isoformat()


@contextmanager
def replica(changes=None):
    """The environment of a replica of every source, and the feed behind it."""
    feed = Feed(shapes.replica() | (changes or {}))
    with serving(feed) as base:
        yield shapes.mirrors(base), feed


def lines(report):
    return {line.source: line for line in report.lines}


def published(folder):
    return snapshots.snapshot(folder=folder / "snapshots").offers


def made(name="made", usd=55.04, count=30, **more):
    """A source without a server: one price in many regions."""
    offer = Offer(
        provider="aws", instance_type="p5.48xlarge", accelerator="H100-80GB-SXM", gpu_count=8,
        region="", purchase="on_demand", usd_per_hour=usd, scale_out_gbit_per_s=None,
        observed_at=TODAY, source=name, quality="high",
    )  # fmt: skip
    rows = [replace(offer, region=f"region-{i}", **more) for i in range(count)]
    return Source(name=name, says="made for a test", fetch=lambda session: rows)


def fails(sentence="It is down."):
    def fetch(session):
        raise SourceError(sentence)

    return fetch


def run(*sources, folder, **more):
    return refresh(sources, folder=folder, environ={}, **more)


# --- the whole of it -----------------------------------------------------------------------------


def test_a_refresh_of_every_source_publishes_what_they_say(tmp_path):
    with replica() as (environ, feed):
        report = refresh(folder=tmp_path, environ=environ)
        offers = published(tmp_path)
        second = refresh(folder=tmp_path, environ=environ)
        again = refresh(folder=tmp_path, environ=environ)
    assert len(report.lines) == len(SOURCES) >= 8
    assert {line.status for line in report.lines} == {"refreshed"}
    assert not report.failed
    assert not report.partial
    assert all(line.rows >= 1 and line.new == line.rows for line in report.lines)
    assert len(offers) == report.offers
    newest = {(o.source, o.instance_type, o.region, o.purchase): o.usd_per_hour for o in offers}
    assert newest["Oracle price list, part B98415", "BM.GPU.H100.8", "*", "on_demand"] == 80.0
    assert newest["AWS spot prices (spot.js)", "p5.48xlarge", "us-east-1", "spot"] == 19.5
    # A new place that is the cheapest by far waits for the second refresh.
    (waited,) = (q for q in report.quarantined if q.rule == "cheapest")
    assert waited.sku not in {sku_of(o) for o in offers}
    assert waited.sku in {sku_of(o) for o in published(tmp_path)}
    assert sum(x.new for x in second.lines) == 1
    # The third time nothing is new, nothing has changed, and the snapshot is the same file.
    assert again.snapshot_id == second.snapshot_id
    assert [(x.new, x.changed, x.gone) for x in again.lines] == [(0, 0, 0)] * len(SOURCES)
    state = read_state(tmp_path)
    assert state.snapshot_id == again.snapshot_id
    assert state.token == 3
    zip_path = f"/v3/aws/{shapes.VERSION}/catalog.zip"
    asked = [a.headers for a in feed.asked if a.path == zip_path]
    assert "if-modified-since" in asked[1]


def test_the_published_snapshot_is_the_one_in_use_and_the_bundled_one_can_still_be_named(
    tmp_path, monkeypatch
):
    bundled = snapshots.installed_id(folder=SNAPSHOTS)
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))
    assert snapshots.installed_id() == bundled
    report = refresh([made()], environ={})
    assert snapshots.installed_id() == report.snapshot_id != bundled
    assert (tmp_path / "prices/snapshots" / f"{report.snapshot_id}.parquet").is_file()
    assert snapshots.snapshot(bundled).id == bundled
    assert snapshots.snapshot().id == report.snapshot_id
    assert {bundled, report.snapshot_id} <= set(snapshots.snapshot_ids())
    with pytest.raises(ScenarioError, match="Unknown price snapshot"):
        snapshots.snapshot("0123456789ab")


def test_bundled_prices_give_way_to_newer_live_ones_of_the_same_machine_only(tmp_path):
    bundled = snapshots.snapshot(folder=SNAPSHOTS).offers
    run(made(), folder=tmp_path)
    offers = published(tmp_path)
    live = [o for o in offers if o.source == "made"]
    kept = [o for o in offers if o.source != "made"]
    gone = [o for o in bundled if o not in set(kept)]
    assert len(live) == 30
    assert gone
    assert {(o.provider, o.accelerator, o.gpu_count, o.purchase) for o in gone} == {
        ("aws", "H100-80GB-SXM", 8, "on_demand")
    }


def test_a_source_says_never_run_live_until_its_real_server_has_answered(tmp_path):
    (source,) = chosen(["oci"])
    with replica() as (environ, _):
        line = lines(refresh([source], folder=tmp_path, environ=environ))["oci"]
    assert (line.status, line.live, round(line.age_days)) == ("refreshed", False, 0)
    answered = replace(made("oci"), name="oci")  # no mirror is named
    line = lines(run(answered, folder=tmp_path, accepted=["oci"]))["oci"]
    assert line.live
    other = lines(run(made(), folder=tmp_path))["gpuhunt"]
    assert (other.status, other.age_days, other.live) == ("not asked", None, False)


# --- failures ------------------------------------------------------------------------------------


def test_a_failing_source_keeps_its_last_good_rows_with_their_age(tmp_path):
    now = datetime.now(UTC)
    later = now + timedelta(days=2)
    with replica() as (environ, feed):
        refresh(folder=tmp_path, environ=environ, now=lambda: now)
        before = [o for o in published(tmp_path) if o.source.startswith("Lambda")]
        feed.routes["/api/v1/instance-types"] = Reply(b"<html>", kind="text/html")
        report = refresh(folder=tmp_path, environ=environ, now=lambda: later)
    line = lines(report)["lambda"]
    assert (line.status, line.rows, round(line.age_days, 2)) == ("failed", 3, 2.0)
    assert "text/html" in line.sentence
    assert report.partial
    assert not report.failed
    after = [o for o in published(tmp_path) if o.source.startswith("Lambda")]
    assert after == before
    assert {o.observed_at for o in after} == {now.date().isoformat()}
    assert {o.observed_at for o in published(tmp_path) if o.source.startswith("Verda")} == {
        later.date().isoformat()
    }


def test_a_part_that_fails_keeps_its_old_rows_and_the_others_are_new(tmp_path):
    (source,) = chosen(["aws_on_demand"])
    now = datetime.now(UTC)
    later = now + timedelta(days=1)
    with replica() as (environ, feed):
        refresh([source], folder=tmp_path, environ=environ, now=lambda: now)
        feed.routes[shapes.aws_path("eu-north-1")] = Reply(status=404)
        report = refresh([source], folder=tmp_path, environ=environ, now=lambda: later)
    line = lines(report)["aws_on_demand"]
    assert (line.status, line.rows) == ("in part", 24)
    assert "eu-north-1: The server answers 404." in line.sentence
    days = {o.region: o.observed_at for o in published(tmp_path) if "price list of EC2" in o.source}
    assert days["eu-north-1"] == now.date().isoformat()
    assert days["us-east-1"] == later.date().isoformat()


def test_when_every_source_fails_nothing_changes(tmp_path):
    run(made(), folder=tmp_path)
    before = (tmp_path / "snapshots/current").read_text()
    report = run(replace(made(), fetch=fails()), folder=tmp_path)
    assert report.failed
    assert not report.published
    assert lines(report)["made"].sentence == "It is down."
    assert (tmp_path / "snapshots/current").read_text() == before
    assert report.snapshot_id == before.strip()


def test_a_first_refresh_that_fails_leaves_the_bundled_snapshot_in_use(tmp_path):
    report = run(replace(made(), fetch=fails()), folder=tmp_path)
    assert report.snapshot_id == snapshots.installed_id(folder=SNAPSHOTS)
    assert not (tmp_path / "snapshots").exists()


def test_a_missing_key_is_no_failure(tmp_path):
    with replica() as (environ, feed):
        report = refresh(folder=tmp_path, environ=environ | {"LAMBDA_API_KEY": ""})
        assert "/api/v1/instance-types" not in feed.paths()
    assert lines(report)["lambda"].status == "no key"
    assert "needs LAMBDA_API_KEY" in lines(report)["lambda"].sentence
    assert not report.partial


def test_a_fault_in_one_source_does_not_take_the_others_with_it(tmp_path, caplog):
    def broken(session):
        return [{}["price"]]

    report = run(made(), replace(made("broken"), fetch=broken), folder=tmp_path)
    assert lines(report)["made"].status == "refreshed"
    assert lines(report)["broken"].sentence == (
        "A fault of this program, not of the source: KeyError."
    )
    assert "the source broken has a fault" in caplog.text


@pytest.mark.parametrize(
    "hostile",
    [
        Reply(write=lambda handler: time.sleep(3)),
        Reply(b"[" * 200_000),
        Reply(b'{"items": NaN}'),
        Reply(b'{"items": [], "items": []}'),
        Reply(status=302, headers={"Location": "http://169.254.169.254/"}),
        Reply(status=503, headers={"Retry-After": "900"}),
        as_json({"items": []}),
        as_json({"products": []}),
    ],
)
def test_a_hostile_source_fails_in_time_and_the_others_publish(tmp_path, hostile):
    path = "/pls/apex/cetools/api/v1/products/"
    sources = [replace(s, deadline_s=1.0) for s in chosen(["oci", "lambda", "verda"])]
    with replica() as (environ, feed):
        refresh(sources, folder=tmp_path, environ=environ)
        feed.routes[path] = hostile
        began = time.monotonic()
        report = refresh(sources, folder=tmp_path, environ=environ)
        took_s = time.monotonic() - began
    assert took_s < 5
    found = lines(report)
    assert (found["oci"].status, found["oci"].rows) == ("failed", 2)
    assert found["oci"].sentence.endswith(".")
    assert {found["lambda"].status, found["verda"].status} == {"refreshed"}
    assert "BM.GPU.H100.8" in {o.instance_type for o in published(tmp_path)}


# --- what is held back ---------------------------------------------------------------------------


def test_a_list_that_is_empty_is_not_believed_whoever_accepts_it(tmp_path):
    run(made(count=1000), folder=tmp_path)
    for accepted in ([], ["made"], []):
        line = lines(run(made(count=0), folder=tmp_path, accepted=accepted))["made"]
        assert (line.status, line.rows) == ("failed", 1000)
        assert line.sentence == "It lists 0 prices where there were 1000."


def test_a_list_that_lost_most_of_itself_is_published_by_the_second_refresh_that_says_so(tmp_path):
    run(made(count=1000), folder=tmp_path)
    found = [run(made(count=count), folder=tmp_path) for count in (10, 100, 90)]
    rows = [lines(report)["made"].rows for report in found]
    assert rows == [1000, 1000, 90]
    assert read_quarantine(tmp_path) == []


def test_a_list_without_end_is_not_believed_and_the_others_are_published(tmp_path, monkeypatch):
    monkeypatch.setattr("pricing.fetched.MAX_OFFERS", 500)
    report = run(made(), made("endless", count=501), folder=tmp_path)
    assert lines(report)["endless"].sentence == "It lists more than 500 prices."
    monkeypatch.setattr("pricing.asking.MAX_LIVE", 500)
    report = run(made(count=300), made("long", count=400), folder=tmp_path)
    assert lines(report)["long"].sentence == "It lists 400 prices, too many for one snapshot."
    assert lines(report)["made"].rows == 300
    assert {o.source for o in published(tmp_path)} >= {"made"}
    assert "long" not in {o.source for o in published(tmp_path)}


def test_a_jump_is_held_back_until_a_second_source_or_a_person_releases_it(tmp_path):
    def price():
        return {o.usd_per_hour for o in published(tmp_path) if o.source == "made"}

    run(made(), folder=tmp_path)
    report = run(made(usd=17.0), folder=tmp_path)
    assert price() == {55.04}
    assert lines(report)["made"].quarantined == 30
    assert {q.rule for q in read_quarantine(tmp_path)} == {"jump"}
    run(made(usd=17.0), made("second", usd=17.2), folder=tmp_path)
    assert price() == {17.0}
    assert read_quarantine(tmp_path) == []
    run(made(usd=80.0), folder=tmp_path, accepted=["made"])
    assert price() == {80.0}


def test_malformed_rows_are_in_the_quarantine_with_their_reason(tmp_path):
    (source,) = chosen(["oci"])
    with replica() as (environ, _):
        report = refresh([source], folder=tmp_path, environ=environ)
    assert lines(report)["oci"].quarantined == 2
    assert {q.rule for q in read_quarantine(tmp_path)} == {"shape"}
    # A source that is silent the next time does not empty it.
    run(replace(source, fetch=fails()), folder=tmp_path)
    assert len(read_quarantine(tmp_path)) == 2


def test_a_dry_run_writes_nothing(tmp_path):
    folder = tmp_path / "prices"
    with replica() as (environ, _):
        report = refresh(folder=folder, environ=environ, dry_run=True)
    assert report.offers > sum(line.rows for line in report.lines) > 0  # with the bundled ones
    assert not report.published
    assert not folder.exists()


# --- clocks --------------------------------------------------------------------------------------


def test_a_clock_that_is_wrong_is_said_and_no_age_is_negative(tmp_path):
    early = datetime.now(UTC) - timedelta(days=1)
    with replica() as (environ, _):
        refresh(chosen(["oci"]), folder=tmp_path, environ=environ)
        report = refresh(chosen(["oci"]), folder=tmp_path, environ=environ, now=lambda: early)
    assert "behind the server's" in lines(report)["oci"].warnings[0]
    state = SourceState(name="x", succeeded_at=datetime.now(UTC).isoformat())
    assert state.age_days(early) == 0.0


# --- stopped by a person -------------------------------------------------------------------------


@pytest.mark.parametrize("waiting", ["for a slow body", "between two attempts"])
def test_an_interrupted_refresh_ends_at_once_and_publishes_nothing(tmp_path, waiting):
    def drip(handler):
        for _ in range(400):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.05)

    slow = Reply(write=drip)
    if waiting == "between two attempts":
        slow = Reply(status=503, headers={"Retry-After": "50"})

    def interrupt(one, done, total):
        raise KeyboardInterrupt

    with replica({"/pls/apex/cetools/api/v1/products/": slow}) as (environ, _):
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            refresh(
                [*chosen(["oci"]), made()], folder=tmp_path, environ=environ, progress=interrupt
            )
        assert time.monotonic() - began < 3
    assert not (tmp_path / "snapshots").exists()
    assert run(made(), folder=tmp_path).published


# --- one at a time -------------------------------------------------------------------------------


def test_two_refreshes_exclude_one_another(tmp_path):
    with lease(tmp_path), pytest.raises(LeaseError, match=r"Another refresh works \(process \d+"):
        run(made(), folder=tmp_path)
    assert run(made(), folder=tmp_path).published


def test_a_refresh_that_lost_its_lease_publishes_nothing(tmp_path):
    run(made(), folder=tmp_path)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.suffix in (".json", "")
              if p.is_file() and not p.name.startswith("lease")}  # fmt: skip

    def taken_over(*_):
        for name in ("lease", "lease.lock"):  # a folder that was emptied under it
            (tmp_path / name).unlink()
        with lease(tmp_path):
            pass

    with pytest.raises(LeaseError, match="publishes nothing"):
        run(made(usd=60.0), folder=tmp_path, progress=taken_over)
    assert {p: p.read_bytes() for p in before} == before


def test_tokens_of_leases_only_rise(tmp_path):
    tokens = []
    for _ in range(5):
        with lease(tmp_path) as held:
            tokens.append(held.token)
            held.check()
    assert tokens == [1, 2, 3, 4, 5]


def test_a_reader_sees_the_old_snapshot_or_the_new_one(tmp_path):
    run(made(), folder=tmp_path)
    stop, seen, broken = threading.Event(), set(), []

    def read():
        folder = tmp_path / "snapshots"
        while not stop.is_set():
            try:
                found = snapshots.installed_id(folder=folder)
                seen.add(content_id(read_rows(folder / f"{found}.parquet")))
            except FactError as e:
                broken.append(e)

    reader = threading.Thread(target=read)
    reader.start()
    ids = {run(made(usd=55.0 + i), folder=tmp_path).snapshot_id for i in range(6)}
    stop.set()
    reader.join()
    assert broken == []
    assert len(seen & ids) >= 2


# --- files ---------------------------------------------------------------------------------------


def test_rows_of_sources_that_are_superseded_are_deleted_and_snapshots_never(tmp_path):
    for usd in (50.0, 51.0, 52.0):
        run(made(usd=usd), folder=tmp_path)
    assert len(list((tmp_path / "sources").glob("*.parquet"))) == 1
    assert len(list((tmp_path / "snapshots").glob("*.parquet"))) == 3


def test_a_damaged_state_is_a_sentence(tmp_path):
    (tmp_path / "state.json").write_text('{"sources": []')
    with pytest.raises(FactError, match="is damaged"):
        run(made(), folder=tmp_path)


def test_a_state_of_a_newer_version_is_read(tmp_path):
    run(made(), folder=tmp_path)
    raw = json.loads((tmp_path / "state.json").read_text())
    raw["sources"]["made"]["added_later"] = 1
    (tmp_path / "state.json").write_text(json.dumps(raw))
    assert read_state(tmp_path).of("made").rows == 30


def test_a_snapshot_without_rows_is_never_written(tmp_path):
    with pytest.raises(FactError, match="0 rows are no price snapshot"):
        write_snapshot([], tmp_path)
