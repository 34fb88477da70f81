"""Reruns of the page in the log: one line each, an id for who sees an error, nothing private."""

import asyncio
import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app.log import log
from app.operate import readiness
from app.operate.readiness import Check, Kept, ready_json
from app.web import rerun_log
from core.errors import ScenarioError
from core.scenario import Scenario
from pricing.disk import write_atomically
from pricing.store.opening import open_store
from pricing.store.saved import save_scenario

ROOT = Path(__file__).parents[3]
MAIN = str(ROOT / "app/main.py")
QUICK = {"gpu": "H100-80GB-SXM", "cloud": "aws", "num_gpus": "64"}
CANARIES = ("canary-s3cret-value", "canary scenario", "canary-book", "1.234567", "canary-person")
RATE = {"kind": "rate", "provider": "aws", "accelerator": "h100", "usd_per_gpu_hour": "1.234567"}


@pytest.fixture
def page(monkeypatch, tmp_path, capsys):
    """A page with a JSON log, and something private in every place; `said()` is its log."""
    secret, scenario, book, _, person = CANARIES
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("RUNCAST_LOG", "json")
    monkeypatch.setenv("RUNCAST_PROXY_SECRET", secret)
    monkeypatch.setattr(rerun_log, "_configured", [])
    kept = json.dumps({"added_on": "2026-11-22", "rows": [{**RATE, "line": 2}]})
    write_atomically(tmp_path / f"data/price_books/{book}.json", kept.encode())
    save_scenario(open_store(), owner=person, name=scenario, query="v=1&model=llama3.1-70b")
    before, details = threading.excepthook, st.get_option("client.showErrorDetails")
    st.set_option("client.showErrorDetails", "none")  # as app/.streamlit has it
    test = AppTest.from_file(MAIN, default_timeout=60)
    for name, value in {**QUICK, "price_book": book}.items():
        test.query_params[name] = value
    test.said = lambda: capsys.readouterr().err
    yield test
    logging.captureWarnings(capture=False)
    threading.excepthook = before
    st.set_option("client.showErrorDetails", details)
    log.configure({})


def ran(coroutine):
    """What a coroutine returns. In a thread: a browser test leaves its loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def events(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_a_rerun_is_a_line_with_its_page_and_what_it_searched(page):
    page.run()
    assert not page.exception
    found = events(page.said())
    rerun = found[-1]
    assert (rerun["event"], rerun["page"], rerun["outcome"]) == ("rerun", "plan", "done")
    assert rerun["ms"] >= rerun["cpu_ms"] > 0
    searches = [e for e in found if e["event"] == "search"]
    assert rerun["searches"] == len(searches) == 1
    assert rerun["candidates"] == searches[0]["candidates"] > 100
    assert {e["request_id"] for e in found} == {rerun["request_id"]}
    page.run()
    second = events(page.said())[-1]
    assert second["searches"] == 0
    assert second["session"] == rerun["session"]
    assert second["request_id"] != rerun["request_id"]


def test_nothing_private_is_in_the_log_whatever_goes_wrong(page, monkeypatch):
    page.run()
    private = " ".join(CANARIES)

    def failing(scenario):
        raise KeyError(private)

    monkeypatch.setattr("app.web.answers.answer_of", failing)
    page.run()
    said = page.said()
    assert [e["event"] for e in events(said)][-2:] == ["unexpected", "rerun"]
    assert not [c for c in CANARIES if c in said]
    shown = " ".join(e.message for e in page.exception)
    assert not [c for c in CANARIES if c in shown]
    monkeypatch.setenv("RUNCAST_LOG_LEVEL", "debug")  # what an error says, but for secrets
    rerun_log.configure()
    page.run()
    said = page.said()
    assert CANARIES[1] in said
    assert CANARIES[0] not in said


def test_the_page_shows_the_id_that_the_log_has(page, monkeypatch):
    def failing(scenario):
        raise ZeroDivisionError("of a bug")

    monkeypatch.setattr("app.web.answers.answer_of", failing)
    page.run()
    (shown,) = page.exception
    unexpected, rerun = events(page.said())[-2:]
    assert shown.message == rerun_log.sentence(unexpected["request_id"])
    assert (unexpected["event"], unexpected["error"]) == ("unexpected", "ZeroDivisionError")
    assert unexpected["where"][-1].endswith(" failing")
    assert (rerun["outcome"], rerun["request_id"]) == ("failed", unexpected["request_id"])
    assert page.header[0].value.startswith("Forecast ")  # what was drawn before it stands


def test_a_mistake_of_the_user_is_no_bug(page, monkeypatch):
    def refusing(scenario):
        raise ScenarioError("Nothing fits, says this test.")

    monkeypatch.setattr("app.web.answers.answer_of", refusing)
    page.run()
    assert [e.value for e in page.error] == ["Nothing fits, says this test."]
    assert [e["event"] for e in events(page.said())] == ["rerun"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["a1b2-c3d4"], "a1b2-c3d4"),
        ([], ""),
        (["one", "two"], ""),
        (["{}\n"], ""),
        (["x" * 65], ""),
        (["<script>"], ""),
    ],
)
def test_the_id_of_a_proxy_is_kept_where_it_is_one(monkeypatch, given, kept):
    class Context:
        class headers:  # noqa: N801 - as st.context has it
            @staticmethod
            def get_all(name):
                return given if name == "X-Request-ID" else []

    monkeypatch.setattr(st, "context", Context)
    assert rerun_log._connection() == kept


# --- commands ------------------------------------------------------------------------------------


@pytest.fixture
def json_log(monkeypatch):
    monkeypatch.setenv("RUNCAST_LOG", "json")
    before = threading.excepthook
    yield
    logging.captureWarnings(capture=False)
    threading.excepthook = before
    log.configure({})


def test_a_command_is_a_line_with_what_it_searched(run, json_log):
    arguments = ["--model", "llama3.1-8b", "--tokens", "1T", "--seq-len", "8k",
                 "--global-batch-size", "512", "--gpu", "h100", "--num-gpus", "64"]  # fmt: skip
    status, _, err = run("plan", *arguments, "--json")
    search, command = events(err)
    assert status == 0
    assert (command["command"], command["status"], command["searches"]) == ("plan", 0, 1)
    assert command["request_id"] == search["request_id"]
    assert "llama" not in err


def test_what_is_no_command_is_not_repeated(run, json_log):
    status, _, err = run("--help")
    assert (status, events(err)[0]["command"]) == (0, "")
    status, _, err = run("canary-typed-by-mistake")
    assert status == 2
    (line,) = events(err)
    assert (line["command"], line["status"]) == ("", 2)


def test_a_bug_in_a_command_is_a_sentence_with_an_id(run, monkeypatch):
    def failing():
        raise KeyError("canary 1.234567")

    monkeypatch.setattr("app.catalogue.as_json.gpus_json", failing)
    status, out, err = run("gpus")
    assert (status, out) == (1, "")
    last = err.splitlines()[-1]
    assert last.startswith("runcast: Something went wrong that should not; the log has it under id")
    assert f"request_id={last.split('under id ')[1][:8]} error=KeyError" in err
    assert "Traceback" in err
    assert "canary" not in err


# --- endpoints -----------------------------------------------------------------------------------


def found(ok):
    return [Check(name="store", ok=ok, sentence="as this test says", numbers={"kind": "sqlite"})]


@pytest.mark.parametrize(
    ("ok", "status", "word"), [(True, 200, "ready"), (False, 503, "not ready")]
)
def test_ready_or_not_is_said_with_every_check(monkeypatch, ok, status, word):
    from app import server

    monkeypatch.setattr(server, "_readiness", Kept(lambda: found(ok)))
    answer = ran(server.readyz(None))
    assert answer.status_code == status
    assert answer.headers["cache-control"] == "no-store"
    assert json.loads(answer.body) == {
        "status": word,
        "checks": [{"name": "store", "ok": ok, "sentence": "as this test says", "kind": "sqlite"}],
    }
    assert json.loads(ran(server.healthz(None)).body) == {"status": "ok"}


def test_a_flood_of_questions_is_answered_once():
    asked = []

    def ask():
        asked.append(1)
        return found(ok=True)

    kept = Kept(ask, keep_s=60.0)
    threads = [threading.Thread(target=kept.now) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(asked) == 1
    fresh = Kept(ask, keep_s=0.0)
    fresh.now()
    fresh.now()
    assert len(asked) == 3


def test_what_is_missing_is_a_sentence_without_a_path(monkeypatch, tmp_path):
    data = tmp_path / "data"
    write_atomically(data / "prices/snapshots/current", b"0123456789ab\n")
    write_atomically(data / "prices/store.sqlite", b"no database at all" * 100)
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(data))
    told = {c.name: c for c in readiness.checks()}
    assert told["tables"].ok
    assert not told["prices"].ok
    assert not told["store"].ok
    assert "file is not a database" in told["store"].sentence
    assert str(tmp_path) not in json.dumps(ready_json(list(told.values())))


def test_a_store_that_is_not_there_yet_is_ready_and_is_not_made(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path / "data"))
    assert all(c.ok for c in readiness.checks())
    assert not (tmp_path / "data").exists()


def test_a_database_that_is_away_is_a_sentence_without_its_password(monkeypatch):
    address = "postgresql://me:canary-s3cret-value@127.0.0.1:9/runcast"
    monkeypatch.setenv("RUNCAST_DATABASE_URL", address)
    (store,) = [c for c in readiness.checks() if c.name == "store"]
    assert not store.ok
    assert store.sentence.startswith("The store 'runcast' on 127.0.0.1:9 cannot be used")
    assert "canary" not in store.sentence


@pytest.mark.parametrize(
    ("server", "secret", "passed"),
    [
        (("127.0.0.1", 8501), "", True),
        (("::1", 8501), "", True),
        (("10.0.0.7", 8501), "", False),
        (("203.0.113.5", 443), "", False),
        (None, "", False),
        (("10.0.0.7", 8501), "s" * 16, True),  # app/web/owner.py asks for the secret then
    ],
)
def test_the_users_header_is_believed_over_this_machine_only(monkeypatch, server, secret, passed):
    from app.server import UserHeaderGuard

    monkeypatch.setenv("RUNCAST_USER_HEADER", "X-Forwarded-Email")
    monkeypatch.setenv("RUNCAST_PROXY_SECRET", secret)
    seen = []

    async def inner(scope, receive, send):
        seen.extend(n for n, _ in scope["headers"])

    headers = [(b"x-forwarded-email", b"me@example.org"), (b"host", b"a")]
    scope = {"type": "websocket", "server": server, "headers": headers}
    ran(UserHeaderGuard(inner)(scope, None, None))
    assert seen == ([b"x-forwarded-email", b"host"] if passed else [b"host"])


@pytest.mark.parametrize(("count", "is_said"), [(1_000, False), (1_001, True)])
def test_a_link_of_more_parameters_than_are_read_says_so(count, is_said):
    from app.server import LongLinkGuard

    sent = []

    async def inner(scope, receive, send):
        sent.append("page")

    async def send(message):
        sent.append(dict(message.get("headers", ())).get(b"location"))

    query = "&".join(f"k{n}=1" for n in range(count)).encode()
    scope = {"type": "http", "path": "//evil.example", "query_string": query, "headers": []}
    ran(LongLinkGuard(inner)(scope, None, send))
    assert sent[0] == (b"?more_than_1000_parameters=1001" if is_said else "page")
    said = {"more_than_1000_parameters": "1001"}
    assert "more_than_1000_parameters='1001' is not a field" in Scenario.from_query(said)[1][0]
