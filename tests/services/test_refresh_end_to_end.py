"""`runcast refresh` as a person runs it: its own process, every source, SQLite and PostgreSQL.

Commands are forks of a real command line, but for one that begins as a shell begins it."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from statistics import median

import pytest

from pricing import offers as snapshots
from pricing.lease import LeaseError, lease
from pricing.offers import read_rows
from pricing.refresh import end_publication
from pricing.series import sku_of
from pricing.source_state import last_good, read_state
from pricing.sources import SOURCES
from pricing.store.opening import open_store
from pricing.store.quarantine import quarantine
from pricing.store.queries import changes as changes_in
from pricing.store.queries import refresh_runs
from pricing.store.refresh_record import memory
from tests.feeds import shapes
from tests.feeds.server import Feed, Reply, as_json, serving
from tests.support.forks import forks, until_printed
from tests.support.recorded import prices_in_use

ROOT = Path(__file__).parent.parent.parent
BOTH = ["sqlite", "postgres"]
OCI_PATH = "/pls/apex/cetools/api/v1/products/"
KILLS = int(os.environ.get("RUNCAST_KILLS", "10"))

pytestmark = pytest.mark.services


class Installation:
    """A data folder, a replica of every source, a store of one kind; commands in processes."""

    def __init__(self, boss, folder, base, environ):
        self.boss, self.folder = boss, folder
        self.prices = folder / "prices"
        self.environ = {
            **os.environ, **shapes.mirrors(base), **environ,
            "RUNCAST_DATA_DIR": str(folder), "COLUMNS": "120", "PYTHONWARNINGS": "error",
        }  # fmt: skip
        self.store_environ = environ

    def start(self, *arguments):
        return subprocess.Popen(
            [sys.executable, "-m", "app.cli", *arguments],
            cwd=ROOT, env=self.environ, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *arguments):
        done = self.boss.run("app.cli", *arguments, environ=self.environ)
        return done.status, done.out, done.err

    def store(self):
        return open_store(folder=self.prices, environ=self.store_environ)

    def published(self):
        return snapshots.snapshot(folder=self.prices / "snapshots")


@pytest.fixture(scope="module")
def boss():
    with forks() as found:
        yield found


@pytest.fixture
def feed():
    return Feed(shapes.replica())


@pytest.fixture
def installation(request, boss, tmp_path, feed, store_environ):
    with serving(feed) as base:
        made = Installation(boss, tmp_path, base, store_environ(request.param))
        yield made
        made.store().close()


def agrees(installation):
    """The store takes every source to list what the published snapshot was made of."""
    store, state = installation.store(), read_state(installation.prices)
    runs = refresh_runs(store, limit=200)
    assert next(r for r in runs if r.published).snapshot_id == state.snapshot_id
    assert installation.published().id == state.snapshot_id
    for name in state.sources:
        rows = last_good(state, name, installation.prices)
        assert prices_in_use(store, name) == {sku_of(o): o.usd_per_hour for o in rows}, name


@pytest.mark.parametrize("installation", BOTH, indirect=True)
def test_a_refresh_of_every_source_twice(installation, feed):
    began = time.monotonic()
    status, out, err = installation.run("refresh", "--json")
    first_s = time.monotonic() - began
    told = json.loads(out)
    assert (status, err, told["store"]) == (0, "", "")
    assert told["outcome"] == "refreshed"
    assert len(told["sources"]) == len(SOURCES) >= 8
    assert {s["status"] for s in told["sources"]} == {"refreshed"}
    assert all(s["rows"] >= 1 and s["new"] == s["rows"] for s in told["sources"])
    agrees(installation)
    store = installation.store()
    first = len(changes_in(store, limit=10**6))
    assert first == sum(s["rows"] for s in told["sources"])
    assert {h.key for h in quarantine(store)} == {q["key"] for q in told["quarantine"]}
    (waits,) = (h for h in quarantine(store) if h.rule == "cheapest")

    # One price changes, one machine is no longer listed, one source fails.
    feed.routes["/v1/instance-types"] = changed_verda(feed)
    feed.routes[OCI_PATH] = Reply(status=503, headers={"Retry-After": "900"})
    began = time.monotonic()
    status, out, err = installation.run("refresh", "--json")
    second_s = time.monotonic() - began
    print(f"first refresh {first_s:.1f} s, second {second_s:.1f} s")
    again = json.loads(out)
    assert (status, err, again["store"]) == (3, "", "")
    changes = Counter({s["source"]: s["changed"] + s["gone"] for s in again["sources"]})
    assert +changes == Counter({"verda": 2})
    # A new place that is the cheapest by far has waited for this second refresh.
    assert waits.key not in {h.key for h in quarantine(store)}
    assert len(changes_in(store, limit=10**6)) == first + 2 + 1
    assert again["snapshot"] != told["snapshot"]
    runs = refresh_runs(store)
    assert [(r.outcome, r.snapshot_id) for r in runs] == [
        ("in part", again["snapshot"]),
        ("refreshed", told["snapshot"]),
    ]
    failed = {s.source: s.sentence for s in runs[0].sources if s.status == "failed"}
    assert list(failed) == ["oci"]
    assert "503" in failed["oci"]
    agrees(installation)


def changed_verda(feed):
    """Verda's list with another price of its first machine, and without its third one."""
    listed = json.loads(feed.routes["/v1/instance-types"].body)
    listed[0]["price_per_hour"] = "2.75"  # it was 2.50
    del listed[2]
    return as_json(listed)


@pytest.mark.parametrize("installation", BOTH, indirect=True)
def test_every_command_on_prices_answers_from_the_store(installation, feed):
    assert installation.run("refresh", "--source", "verda", "--source", "oci")[0] == 0
    status, out, err = installation.run("prices", "runs", "--json")
    assert (status, err) == (0, "")
    (run,) = json.loads(out)["runs"]
    assert [s["source"] for s in run["sources"]] == ["oci", "verda"]
    status, out, _ = installation.run(
        "prices", "history", "--cloud", "verda", "--instance", "1H100.80S.30V",
        "--purchase", "on_demand", "--json",
    )  # fmt: skip
    (told,) = json.loads(out)["history"]
    assert [s["usd_per_hour"] for s in told["spells"]] == [2.5]
    status, out, _ = installation.run("prices", "quarantine", "--json")
    assert {h["source"] for h in json.loads(out)["quarantine"]} == {"oci"}
    # A jump that a person releases is published by the next refresh.
    listed = json.loads(feed.routes["/v1/instance-types"].body)
    listed[0]["price_per_hour"] = "10.00"
    feed.routes["/v1/instance-types"] = as_json(listed)
    assert installation.run("refresh", "--source", "verda")[0] == 0
    assert price_of(installation, "1H100.80S.30V") == 2.5
    _, out, _ = installation.run("prices", "quarantine", "--source", "verda", "--json")
    (held,) = json.loads(out)["quarantine"]
    assert (held["rule"], held["releasable"]) == ("jump", True)
    status, out, err = installation.run("prices", "release", held["key"], "--why", "invoice")
    assert (status, err) == (0, "")
    assert "The next refresh publishes about $10.00/h" in out
    assert installation.run("refresh", "--source", "verda")[0] == 0
    assert price_of(installation, "1H100.80S.30V") == 10.0
    assert json.loads(installation.run("prices", "quarantine", "--json")[1])["quarantine"]
    assert (
        "Nothing is held back" in installation.run("prices", "quarantine", "--source", "verda")[1]
    )


def price_of(installation, instance_type):
    found = {
        o.usd_per_hour
        for o in installation.published().offers
        if (o.instance_type, o.purchase) == (instance_type, "on_demand")
        and o.source.startswith("Verda")
    }
    (price,) = found
    return price


@pytest.mark.parametrize("installation", ["postgres"], indirect=True)
def test_of_two_replicas_with_folders_of_their_own_one_refreshes_and_the_other_says_so(
    installation, feed, tmp_path
):
    """They share nothing but the database."""
    listed = feed.routes[OCI_PATH]
    asked = threading.Event()
    answer = threading.Event()

    def slowly(request):
        asked.set()
        answer.wait(60)
        return listed

    feed.routes[OCI_PATH] = slowly
    first = installation.start("refresh", "--source", "oci")
    try:
        assert asked.wait(60)
        installation.environ["RUNCAST_DATA_DIR"] = str(tmp_path / "second")
        status, out, err = installation.run("refresh", "--source", "verda")
        assert (status, out) == (5, "")
        assert re.fullmatch(r"runcast: Another refresh works \(process \d+ on \S+\)\.\n", err)
        assert not (tmp_path / "second/prices/snapshots").exists()
    finally:
        answer.set()
        first.communicate(timeout=60)
    assert first.returncode == 0
    assert installation.run("refresh", "--source", "verda")[0] == 0
    assert [r.token for r in refresh_runs(installation.store())] == [2, 1]


@pytest.mark.parametrize("installation", ["sqlite"], indirect=True)
def test_without_its_database_prices_are_refreshed_and_plans_made(installation):
    secret = "canary-passw0rd"
    installation.environ["RUNCAST_DATABASE_URL"] = f"postgresql://ada:{secret}@127.0.0.1:1/runcast"
    status, out, err = installation.run("refresh", "--source", "verda")
    assert (status, err) == (0, "")
    says = " ".join(out.split())
    assert "The store 'runcast' on 127.0.0.1:1 cannot be used: " in says
    assert "The price history misses this refresh." in says
    assert installation.published().offers
    plan = ["plan", "--model", "llama3.1-8b", "--tokens", "1B", "--seq-len", "8k",
            "--global-batch-size", "64", "--gpu", "H100-80GB-SXM", "--num-gpus", "8"]  # fmt: skip
    assert installation.run(*plan)[0] == 0
    told = [installation.run("prices", *c) for c in (["runs"], ["quarantine"], ["release", "x"])]
    for status, out, err in told:
        assert (status, out) == (2, "")
        assert err.startswith("runcast: The store 'runcast' on 127.0.0.1:1 cannot be used: ")
        assert err.count("\n") == 1
        assert secret not in err
    status, out, err = installation.run("prices", "history", "--instance", "p5.48xlarge")
    assert status == 0  # what is bundled needs no store
    assert "98.32" in out
    assert err.startswith("runcast: The store 'runcast' on 127.0.0.1:1 cannot be used: ")


@pytest.mark.slow
@pytest.mark.timeout(400 + 15 * KILLS)
@pytest.mark.parametrize("kind", BOTH)
def test_after_every_kill_the_store_agrees_with_what_is_published(
    boss, tmp_path, store_environ, kind
):
    environ = store_environ(kind)
    rng = random.Random(7)
    store = open_store(folder=tmp_path, environ=environ)
    acknowledged, recovered, whole, again_s = [], 0, set(), []
    for kill in range(KILLS):
        arguments = tmp_path, kill * 5000
        child = boss.start("tests.feeds.refreshing", *arguments, environ=environ)
        until_printed(child, 1)
        time.sleep(rng.uniform(0.0, 0.3))
        child.kill()
        assert child.status == -signal.SIGKILL, child.err
        acknowledged += child.out.split()
        began = time.monotonic()
        restarted(tmp_path, environ)
        again_s.append(time.monotonic() - began)
        state = read_state(tmp_path)
        (run,) = refresh_runs(store, limit=1)
        recovered += run.outcome == "recovered"
        current = snapshots.installed_id(folder=tmp_path / "snapshots")
        assert run.snapshot_id == state.snapshot_id == current
        rows = last_good(state, "made", tmp_path)
        assert prices_in_use(store, "made") == {sku_of(o): o.usd_per_hour for o in rows}
        assert {r.snapshot_id for r in refresh_runs(store, limit=10_000)} >= set(acknowledged)
        # No acknowledged snapshot is lost, none is half written.
        kept = snapshots.snapshot_ids(folder=tmp_path / "snapshots")
        assert set(acknowledged) <= set(kept)
        for snapshot_id in set(kept) - whole:
            read_rows(tmp_path / "snapshots" / f"{snapshot_id}.parquet")
        whole |= set(kept)
        # The last one printed, or one that was published and not yet printed.
        assert current == acknowledged[-1] or current not in acknowledged[:-1]
    if kind == "sqlite":
        with store.reading() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar_one() == "ok"
    tokens = [r.token for r in refresh_runs(store, limit=10_000)]
    assert tokens == sorted(tokens, reverse=True)
    assert len(set(acknowledged)) == len(acknowledged) >= KILLS
    print(
        f"{kind}: {KILLS} kills, {len(acknowledged)} acknowledged, {recovered} recovered, the next "
        f"refresh may begin after {median(again_s):.2f} s, at most {max(again_s):.2f} s"
    )
    store.close()


def restarted(folder, environ):
    """What the next refresh does before it asks anybody."""
    while True:  # a killed holder of PostgreSQL's lease has it until its term ends
        try:
            with lease(folder), memory(folder, environ) as found:
                state = read_state(folder)
                end_publication(state, folder)
                found.catch_up(state, folder)
                assert found.sentence == ""
                return
        except LeaseError:
            time.sleep(0.05)
