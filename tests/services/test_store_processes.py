"""Several processes and one store: starting at once, taking over from one another, losing it."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from pricing.lease import LeaseError
from pricing.series import sku_of
from pricing.store.engine import StoreError
from pricing.store.lease import store_lease
from pricing.store.opening import open_store
from pricing.store.queries import observed, refresh_runs
from pricing.store.recording import record
from tests.servers.postgres import PASSWORD
from tests.support.recorded import found, offer, run_of

ROOT = Path(__file__).parent.parent.parent
BOTH = ["sqlite", "postgres"]

pytestmark = pytest.mark.services


@contextmanager
def process(what, folder, environ, *more):
    running = subprocess.Popen(
        [sys.executable, "-m", "tests.support.store_process", what, str(folder), *more],
        cwd=ROOT, env={**os.environ, **environ}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield running
    finally:
        running.kill()
        running.wait()
        running.stdin.close()
        running.stdout.close()


@pytest.mark.parametrize("kind", BOTH)
def test_processes_that_start_at_once_make_the_tables_once(tmp_path, store_environ, kind):
    environ = store_environ(kind)
    started = [process("open", tmp_path, environ) for _ in range(4)]
    entered = [s.__enter__() for s in started]
    try:
        assert [p.stdout.readline() for p in entered] == ["open\n"] * 4
    finally:
        for s in started:
            s.__exit__(None, None, None)
    store = open_store(folder=tmp_path, environ=environ)
    assert refresh_runs(store) == []
    store.close()


def test_a_holder_that_slept_past_its_term_writes_nothing(tmp_path, store_environ):
    """The first process is stopped by a signal: it cannot know that its time is over."""
    environ = store_environ("postgres")
    store = open_store(folder=tmp_path, environ=environ)
    with process("hold", tmp_path, environ, "1.0") as first:
        assert first.stdout.readline() == "1\n"
        busy = r"Another refresh works \(process \d+ on "
        with pytest.raises(LeaseError, match=busy), store_lease(store):
            pass
        time.sleep(1.5)  # it renews
        with pytest.raises(LeaseError), store_lease(store):
            pass
        first.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        with store_lease(store) as held:
            assert held.token == 2
            first.send_signal(signal.SIGCONT)
            first.stdin.write("\n")
            first.stdin.flush()
            says = first.stdout.readline()
            with held.writing() as connection:
                record(connection, run_of(found("oci", [offer(50.0)]), token=held.token))
    assert says == "Another refresh has begun meanwhile: this one publishes nothing.\n"
    assert [r.token for r in refresh_runs(store)] == [2]
    assert [o.usd_per_hour for o in observed(store, sku_of(offer()))[0]] == [50.0]
    store.close()


def test_nobody_takes_the_lease_over_while_its_holder_writes(tmp_path, store_environ):
    """Also when its term ends in the middle: the row is locked until the transaction has ended."""
    environ = store_environ("postgres")
    store = open_store(folder=tmp_path, environ=environ)
    with ExitStack() as until_the_end, store_lease(store, term_s=0.5) as held:
        with held.writing() as connection:
            second = until_the_end.enter_context(process("hold", tmp_path, environ, "5"))
            time.sleep(2.5)  # its term ended long ago, and it could not renew
            record(connection, run_of(found("oci", [offer(50.0)]), token=held.token))
        says = second.stdout.readline()
        assert says.startswith("Another refresh works") or says == "2\n"
    assert [r.token for r in refresh_runs(store)] == [1]
    store.close()


def test_a_killed_holder_is_taken_over_after_its_term(tmp_path, store_environ):
    environ = store_environ("postgres")
    store = open_store(folder=tmp_path, environ=environ)
    with process("hold", tmp_path, environ, "1.0") as first:
        assert first.stdout.readline() == "1\n"
        first.kill()
        began = time.monotonic()
        while True:
            try:
                with store_lease(store) as held:
                    assert held.token == 2
                    break
            except LeaseError:
                assert time.monotonic() - began < 10
                time.sleep(0.1)
    store.close()


def test_a_lease_that_was_given_back_is_free_at_once(tmp_path, store_environ):
    store = open_store(folder=tmp_path, environ=store_environ("postgres"))
    tokens = []
    for _ in range(3):
        with store_lease(store) as held:
            tokens.append(held.token)
    assert tokens == [1, 2, 3]
    store.close()


def test_a_wrong_password_is_a_sentence_without_it(tmp_path, postgres_server):
    url = postgres_server.url("postgres", password=f"{PASSWORD}-wrong")
    with pytest.raises(StoreError) as error:
        open_store(folder=tmp_path, environ={"RUNCAST_DATABASE_URL": url})
    assert "password authentication failed" in str(error.value)
    assert PASSWORD not in str(error.value)


def test_a_database_that_is_not_there_is_a_sentence(tmp_path, postgres_server):
    environ = {"RUNCAST_DATABASE_URL": postgres_server.url("nothing_here")}
    with pytest.raises(StoreError, match='database "nothing_here" does not exist'):
        open_store(folder=tmp_path, environ=environ)


def test_a_server_that_goes_away_is_a_sentence_and_one_that_returns_is_used(
    tmp_path, store_environ, postgres_server
):
    store = open_store(folder=tmp_path, environ=store_environ("postgres"))
    postgres_server.stop()
    try:
        with pytest.raises(StoreError, match="cannot be used"):
            refresh_runs(store)
    finally:
        postgres_server.start()
    assert refresh_runs(store) == []
    store.close()
