"""A search is made once for everybody, in the background, and its error is everybody's too."""

from __future__ import annotations

import threading
import time

import pytest

from app.web.searches import LEFT_S, BusyError, Searches, UnwantedError
from hardware.outside import interrupt

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


# --- who waits -----------------------------------------------------------------------------------


class Sessions:
    """Searches of sessions that come and go; a search runs until it is let go."""

    def __init__(self, **changes):
        self.here, self.go, self.ended, self.order = set(), threading.Event(), [], []
        self.searches = made(
            is_here=self.here.__contains__,
            **{"lanes": [(0.2, 1), (0.02, 2)], "at_once": 4, **changes},
        )

    def ask(self, session, key, *, work=1.0):
        self.here.add(session)
        return self.searches.ask(key, lambda: self._search(key), session=session, work=work)

    def _search(self, key):
        self.order.append(key)
        try:
            while not self.go.is_set():
                interrupt.check()
                time.sleep(0.005)
        except UnwantedError:
            self.ended.append(key)
            raise
        return key

    def until(self, condition, within_s=WAIT_S):
        end = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.005)


@pytest.fixture
def sessions():
    found = Sessions()
    yield found
    found.go.set()


def test_a_search_that_nobody_waits_for_ends_within_half_a_second(sessions):
    sessions.ask("a", "one")
    sessions.ask("b", "one")
    sessions.here.discard("a")
    time.sleep(0.6)
    assert sessions.ended == []  # another one waits for it
    began = time.monotonic()
    sessions.here.discard("b")
    sessions.until(lambda: sessions.ended == ["one"])
    assert time.monotonic() - began < 0.5
    sessions.go.set()
    assert sessions.ask("c", "one").result(WAIT_S) == "one"


def test_an_edit_ends_the_search_before_it(sessions):
    sessions.ask("a", "one")
    sessions.searches.leave("a")
    sessions.ask("a", "two")
    sessions.until(lambda: sessions.ended == ["one"], 0.5)
    sessions.until(lambda: "two" in sessions.order)
    assert sessions.ended == ["one"]


def test_a_rerun_that_asks_again_keeps_its_search(sessions):
    found = sessions.ask("a", "one")
    for _ in range(5):
        sessions.searches.leave("a")
        time.sleep(0.15)
        assert sessions.ask("a", "one") is found
    assert sessions.ended == []


def test_a_run_that_asks_for_nothing_ends_the_search_of_the_one_before(sessions):
    sessions.ask("a", "one")
    sessions.searches.leave("a")
    sessions.until(lambda: sessions.ended, 0.5 + LEFT_S)
    assert sessions.ended == ["one"]


def test_a_cheap_question_waits_behind_no_costly_one_and_nothing_is_left_of_a_flood(sessions):
    for n in range(48):
        sessions.ask(f"flood {n}", f"costly {n}")
    cheap = sessions.ask("visitor", "cheap", work=0.1)
    sessions.until(lambda: "cheap" in sessions.order, 0.5)
    assert sessions.order == ["costly 0", "cheap"]
    for n in range(48):
        sessions.here.discard(f"flood {n}")
    sessions.until(lambda: not sessions.searches.is_running("costly 0"), 0.5)
    sessions.go.set()
    assert cheap.result(WAIT_S) == "cheap"
    time.sleep(0.1)
    assert sessions.order == ["costly 0", "cheap"]  # what waited for a turn never ran


def test_a_tiny_question_has_a_turn_that_cheap_ones_cannot_take(sessions):
    for n in range(8):
        sessions.ask(f"flood {n}", f"cheap {n}", work=0.1)
    sessions.ask("visitor", "tiny", work=0.01)
    sessions.until(lambda: len(sessions.order) == 3)
    time.sleep(0.1)
    assert sessions.order == ["cheap 0", "cheap 1", "tiny"]


def test_a_session_has_one_costly_search_at_a_time():
    sessions = Sessions(lanes=[(0.2, 3)])
    sessions.ask("a", "one")
    sessions.ask("a", "two")
    sessions.ask("b", "three")
    sessions.until(lambda: len(sessions.order) == 2)
    time.sleep(0.1)
    assert sessions.order == ["one", "three"]
    sessions.go.set()
    sessions.until(lambda: sessions.order == ["one", "three", "two"])


def test_who_waits_is_told_when_and_a_full_queue_says_so():
    sessions = Sessions(most_waiting=2)
    sessions.ask("a", "running")
    sessions.ask("b", "next", work=1.5)
    sessions.ask("c", "last", work=2.0)
    assert sessions.searches.turn("running") == ""
    assert sessions.searches.turn("next") == "Busy: yours is next, about 2 s."
    assert sessions.searches.turn("last") == "Busy: 1 searches are before yours, about 5 s."
    with pytest.raises(BusyError, match=r"2 searches are waiting. Try again in about 9 s\."):
        sessions.ask("d", "too many")
    sessions.here.discard("c")
    assert not sessions.ask("d", "now there is room").done()
    sessions.go.set()


def test_the_answers_are_bounded_by_their_bytes():
    searches = made(most=100, most_bytes=100, size=lambda answer: answer)
    for n in (40, 30, 20):
        assert searches.ask(n, lambda n=n: n).result(WAIT_S) == n
    time.sleep(0.02)
    assert searches.ask(50, lambda: 50).result(WAIT_S) == 50
    time.sleep(0.02)
    calls = []
    for n in (20, 30, 50, 40):  # 40 was the oldest
        searches.ask(n, lambda n=n: calls.append(n) or n).result(WAIT_S)
    assert calls == [40]
