"""A search is made once for everybody, in the background, and its error is everybody's too."""

from __future__ import annotations

import threading
import time

import pytest

from app.web.searches import Searches

WAIT_S = 10.0


def made(**changes):
    return Searches(**{"most": 4, "keep_s": 60.0, "failed_s": 60.0, "at_once": 2, **changes})


def test_one_search_for_everybody_who_asks_while_it_runs_and_after():
    go, calls = threading.Event(), []

    def search():
        calls.append(1)
        assert go.wait(WAIT_S)
        return "found"

    searches = made()
    asked = [searches.ask("key", search) for _ in range(5)]
    assert searches.is_running("key")
    go.set()
    assert [a.result(WAIT_S) for a in asked] == ["found"] * 5
    assert searches.ask("key", search).result(WAIT_S) == "found"
    assert calls == [1]
    assert not searches.is_running("key")
    assert not searches.is_running("another")


def test_who_asked_may_be_gone_before_it_ends():
    go, searches = threading.Event(), made()

    def session():
        searches.ask("key", lambda: go.wait(WAIT_S) and "found")

    one = threading.Thread(target=session)
    one.start()
    one.join()
    go.set()
    assert searches.ask("key", lambda: "again").result(WAIT_S) == "found"


def test_an_error_reaches_everybody_and_is_not_for_ever():
    searches = made(failed_s=0.05)

    def search():
        raise ValueError("no such thing")

    for _ in range(2):
        with pytest.raises(ValueError, match="no such thing"):
            searches.ask("key", search).result(WAIT_S)
    until = time.monotonic() + WAIT_S
    while searches.ask("key", lambda: "found").exception(WAIT_S):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_answers_grow_old_and_the_oldest_goes_first():
    searches = made(most=2, keep_s=0.05)
    assert searches.ask("key", lambda: 1).result(WAIT_S) == 1
    time.sleep(0.06)
    assert searches.ask("key", lambda: 2).result(WAIT_S) == 2
    searches = made(most=2)
    for key in "abac":  # b is the oldest now
        searches.ask(key, lambda: 1).result(WAIT_S)
    assert searches.ask("a", lambda: 2).result(WAIT_S) == 1
    assert searches.ask("b", lambda: 2).result(WAIT_S) == 2


def test_a_running_search_is_not_started_again_however_long_it_takes():
    go, searches = threading.Event(), made(keep_s=0.0)
    first = searches.ask("key", lambda: go.wait(WAIT_S) and 1)
    time.sleep(0.02)
    assert searches.ask("key", lambda: 2) is first
    go.set()
    assert first.result(WAIT_S) == 1
    assert searches.ask("key", lambda: 2).result(WAIT_S) == 2
