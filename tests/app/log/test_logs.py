"""The log: lines, ids, levels, and what is never in it."""

import io
import json
import logging
import threading
import time

import pytest

from app.log import log
from app.log.redaction import HIDDEN, redacted, secrets_of

SECRET = "canary-s3cret-value"


@pytest.fixture
def lines(capsys):
    """Set the log up by these variables; what was written since the last time, line by line."""
    hook = threading.excepthook

    def configured(**environ):
        log.configure({"RUNCAST_LOG": "json", **environ})
        return lambda: [
            json.loads(line) if line.startswith("{") else line
            for line in capsys.readouterr().err.splitlines()
        ]

    yield configured
    logging.captureWarnings(capture=False)
    threading.excepthook = hook
    log.configure({})


def failing(text):
    raise KeyError(text)


def raised(text):
    with pytest.raises(KeyError) as caught:
        failing(text)
    return caught.value


def test_an_event_is_one_line_of_json_with_the_id_of_its_request(lines):
    said = lines()
    with log.request(log.Request("3f9a2b1c", session="s1", page="plan")):
        log.event("search", ms=12.5, candidates=7)
    log.event("server_stopped")
    first, second = said()
    assert first.pop("time").endswith("Z")
    assert first == {
        "level": "info", "event": "search", "request_id": "3f9a2b1c", "session": "s1",
        "page": "plan", "ms": 12.5, "candidates": 7,
    }  # fmt: skip
    assert "request_id" not in second


def test_text_is_quiet_unless_a_level_is_asked_for(lines):
    said = lines(RUNCAST_LOG="")
    log.event("search", ms=1)
    assert said() == []
    said = lines(RUNCAST_LOG="text", RUNCAST_LOG_LEVEL="info")
    log.event("search", ms=1)
    assert [line.split(" ", 1)[1] for line in said()] == ["info search ms=1"]


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({"RUNCAST_LOG": "xml"}, "RUNCAST_LOG is neither json nor text"),
        ({"RUNCAST_LOG_LEVEL": "loud"}, "RUNCAST_LOG_LEVEL is none of debug, info"),
        ({"RUNCAST_LOG": "JSON", "RUNCAST_LOG_LEVEL": "Debug"}, ""),
    ],
)
def test_a_setting_that_cannot_be_meant_is_a_sentence(lines, environ, sentence):
    lines()
    said = log.configure(environ)
    assert said.startswith(sentence)
    assert bool(said) == bool(sentence)


def test_an_exception_is_logged_by_kind_and_place_and_says_nothing(lines):
    said = lines()
    log_id = log.failed("unexpected", raised("1.23 USD of book acme"))
    (line,) = said()
    assert (line["request_id"], line["error"]) == (log_id, "KeyError")
    assert line["where"][-1].startswith("tests/app/log/test_logs.py:")
    assert line["where"][-1].endswith(" failing")
    assert "acme" not in json.dumps(line)


def test_at_debug_it_says_what_it_says_without_secrets(lines):
    said = lines(RUNCAST_LOG_LEVEL="debug", LAMBDA_API_KEY=SECRET)
    log.failed("unexpected", raised(f"{SECRET} and more"))
    assert said()[0]["error_said"] == f"'{HIDDEN} and more'"


def test_as_text_an_exception_is_found_by_whoever_looks_for_tracebacks(lines):
    said = lines(RUNCAST_LOG="text")
    log.failed("unexpected", raised("x"))
    written = said()
    assert "error unexpected request_id=" in written[0]
    assert written[1].startswith("Traceback")
    assert written[-1].endswith(" failing")


def test_one_error_keeps_the_id_under_which_it_was_seen_first(lines):
    said = lines()
    error = raised("x")
    with log.request(log.Request("3f9a2b1c")):
        assert log.failed("unexpected", error) == "3f9a2b1c"
    assert log.failed("unexpected", error) == "3f9a2b1c"
    assert [line["request_id"] for line in said()] == ["3f9a2b1c"] * 2


def test_what_a_library_says_goes_through_the_same_formatter(lines):
    logger = logging.getLogger("streamlit.made_up_for_this_test")
    handler = logging.StreamHandler(written := io.StringIO())
    logger.addHandler(handler)
    logger.propagate = False
    lines(COOKIE_SECRET=SECRET)
    logger.warning("GET https://me:%s@host/?token=abc\n%s", "pw12345", SECRET)
    line = json.loads(written.getvalue())
    assert (line["event"], line["logger"]) == ("library", "streamlit.made_up_for_this_test")
    assert line["said"] == f"GET https://{HIDDEN}@host/?token={HIDDEN} {HIDDEN}"


def test_a_logger_that_came_later_is_adopted(lines):
    lines()
    logger = logging.getLogger("uvicorn.made_up_later")
    logger.addHandler(handler := logging.StreamHandler())
    log.adopt()
    assert isinstance(handler.formatter, log.Lines)


def test_a_thread_that_dies_is_a_line(lines):
    said = lines()
    thread = threading.Thread(target=failing, args=(SECRET,))
    thread.start()
    thread.join()
    (line,) = said()
    assert line["event"] == "thread_failed"
    assert SECRET not in json.dumps(line)


def test_another_thread_works_for_the_request_that_sent_it(lines):
    lines()
    with log.request(log.Request("3f9a2b1c")) as one:
        work = log.carried(lambda: log.current())
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    assert found == [one]
    assert log.current() is None


@pytest.mark.parametrize(
    "text",
    [
        f"password={SECRET}",
        f"'api_key': '{SECRET}'",
        f"postgresql://runcast:{SECRET}@db/runcast",
        f"Authorization: Bearer {SECRET}",
        f"LAMBDA_API_KEY = {SECRET}",
        f"cookie_secret: {SECRET},",
    ],
)
def test_what_is_written_like_a_secret_is_taken_out(text):
    assert SECRET not in redacted(text, ())
    assert HIDDEN in redacted(text, ())


def test_ordinary_sentences_stay_as_they_are():
    text = "Tokens: 1e12 of 70 keys at https://example.org/?model=x (author: somebody@example.org)"
    assert redacted(text, ()) == text


def test_secrets_are_found_by_name_and_in_addresses():
    environ = {
        "RUNCAST_PROXY_SECRET": "a" * 16,
        "RUNCAST_DATABASE_URL": "postgresql://me:p%40ss-word@host/db",
        "GCP_API_KEY": "short",
        "MONKEY": "bananas-bananas",
    }
    found = secrets_of(environ, {"auth": {"client_secret": "nested-secret", "port": 7}})
    assert set(found) == {"a" * 16, "p%40ss-word", "p@ss-word", "nested-secret"}


def test_a_rerun_is_hardly_slower_for_it(lines):
    """Two lines and their ids; 0.3 ms of computing is what a rerun may lose."""
    lines()
    rounds, best = 50, float("inf")
    for _ in range(5):
        began = time.thread_time()
        for _ in range(rounds):
            with log.request(log.Request(log.new_id(), session="a", page="plan")) as one:
                log.adopt()
                one.add(searches=1, candidates=10)
                log.event("search", outcome="done", ms=1.0, candidates=10, plans=2)
                log.event("rerun", outcome="done", ms=1.0, cpu_ms=1.0, **one.counts)
        best = min(best, (time.thread_time() - began) / rounds)
    assert best < 0.3e-3
