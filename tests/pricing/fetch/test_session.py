"""Hostile and broken price feeds, each from a real server on the loopback interface."""

import gzip
import json
import socket
import threading
import time
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime

import pytest

from pricing.fetch import network
from pricing.fetch.body_cache import BodyCache
from pricing.fetch.network import SourceError, is_public
from pricing.fetch.session import ATTEMPTS, JSON, NoCredentialError, Session
from tests.feeds.server import Feed, Reply, as_json, as_text, gzipped, serving

URL = "https://prices.example/list"
GOOD = as_json({"price": 1})


@contextmanager
def asking(route, *, deadline_s=5.0, environ=None, **more):
    """A session whose source is a loopback server with this answer at /list."""
    feed = Feed({"/list": route} if not isinstance(route, dict) else route)
    with serving(feed) as base:
        variables = {"RUNCAST_PRICE_URL_TEST": base, **(environ or {})}
        with Session(source="test", deadline_s=deadline_s, environ=variables, **more) as session:
            yield session, feed


def refusal(route, **more):
    """The sentence with which an answer is refused, and the seconds it took."""
    began = time.monotonic()
    with asking(route, **more) as (session, _), pytest.raises(SourceError) as e:
        session.json(URL)
    return str(e.value), time.monotonic() - began


def test_a_plain_and_a_gzipped_answer_are_read():
    for route in (GOOD, gzipped(GOOD)):
        with asking(route) as (session, feed):
            assert session.json(URL) == {"price": 1}
        assert feed.asked[0].headers["accept-encoding"] == "gzip"


# --- slow ----------------------------------------------------------------------------------------


def drip(handler):
    for _ in range(200):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.05)


def test_a_slow_body_ends_at_the_deadline():
    said, took_s = refusal(Reply(write=drip), deadline_s=0.6)
    assert "longer than its 0.6 s" in said
    assert took_s < 3


def test_a_header_that_drips_ends_at_the_deadline():
    """Each byte arrives in time for a timeout of one read, so only the deadline can end it."""
    stop = threading.Event()

    def serve(listener):
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not stop.wait(0.05):
                try:
                    connection.sendall(b"a")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        variables = {"RUNCAST_PRICE_URL_TEST": f"http://127.0.0.1:{listener.getsockname()[1]}"}
        began = time.monotonic()
        with (
            Session(source="test", deadline_s=0.6, environ=variables) as session,
            pytest.raises(SourceError, match=r"longer than its 0\.6 s"),
        ):
            session.json(URL)
        took_s = time.monotonic() - began
        stop.set()
        thread.join()
    assert took_s < 3


# --- large ---------------------------------------------------------------------------------------


def test_an_endless_body_ends_at_the_cap():
    sent = 0

    def pour(handler):
        nonlocal sent
        while True:
            handler.wfile.write(b"x" * 65_536)
            sent += 65_536

    said, _ = refusal(Reply(write=pour), cap_bytes=1_000_000)
    assert "larger than 1 MB" in said
    assert sent < 20_000_000


def test_a_gzip_bomb_ends_at_the_cap():
    bomb = gzip.compress(b"\0" * 50_000_000)
    assert len(bomb) < 60_000
    reply = Reply(bomb, headers={"Content-Encoding": "gzip"})
    assert "larger than 2 MB" in refusal(reply, cap_bytes=2_000_000)[0]


def test_the_cap_is_of_all_requests_together():
    big = as_json({"x": "y" * 600_000})
    with asking({"/list": big, "/next": big}, cap_bytes=1_000_000) as (session, _):
        session.json(URL)
        with pytest.raises(SourceError, match="larger than"):
            session.json("https://prices.example/next")


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "deflate", "zstd"])
def test_an_encoding_that_was_not_asked_for_is_refused(encoding):
    reply = Reply(gzip.compress(GOOD.body), headers={"Content-Encoding": encoding})
    assert "plain and gzip are read" in refusal(reply)[0]


def test_a_gzip_body_that_ends_early_or_is_none_is_refused():
    headers = {"Content-Encoding": "gzip"}
    whole = gzip.compress(GOOD.body * 1000)
    assert "ends too early" in refusal(Reply(whole[:-9], headers=headers))[0]
    assert "damaged" in refusal(Reply(b"plain text", headers=headers))[0]


# --- not what it should be -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"price": 1', "is not JSON"),
        (b'{"price": NaN}', "has 'NaN'"),
        (b'{"price": Infinity}', "has 'Infinity'"),
        (b'{"price": 1, "price": 2}', "the key 'price' twice"),
        (b"[" * 100_000, "nested too deeply"),
        (b"<!DOCTYPE html><html>busy</html>", "a web page"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b'{"n": ' + b"9" * 5000 + b"}", "5,000 digits"),
        (b"", "is not JSON"),
        (b"[" + b"{}," * 3_000_001 + b"{}]", "more than 3,000,000 values"),
    ],
)
def test_json_that_is_none_is_refused(body, says):
    assert says in refusal(Reply(body))[0]


def test_a_wrong_content_type_is_refused():
    assert "'text/html', not application/json" in refusal(Reply(GOOD.body, kind="text/html"))[0]
    assert "'image/png'" in refusal(Reply(GOOD.body, kind="image/png"))[0]


def test_a_body_shorter_than_announced_is_tried_again_and_then_refused():
    def short(handler):
        handler.wfile.write(b"{}")

    reply = Reply(write=short, headers={"Content-Length": "50"})
    with asking(reply, deadline_s=20.0) as (session, feed):
        with pytest.raises(SourceError, match="The connection failed"):
            session.json(URL)
        assert len(feed.asked) == ATTEMPTS


# --- redirects -----------------------------------------------------------------------------------


def test_a_redirect_on_the_same_host_is_followed():
    moved = Reply(status=302, headers={"Location": "/new"})
    with asking({"/list": moved, "/new": GOOD}) as (session, _):
        assert session.json(URL) == {"price": 1}


def to(location):
    return Reply(status=302, headers={"Location": location})


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("http://169.254.169.254/latest/meta-data/", "private address 169.254.169.254"),
        ("http://127.0.0.1:1/", "private address 127.0.0.1"),
        ("http://localhost:1/", "private address"),
        ("http://10.0.0.8/", "private address 10.0.0.8"),
        ("http://192.168.1.1/", "private address"),
        ("http://100.100.100.200/", "private address"),
        ("http://[::1]:1/", "private address ::1"),
        ("http://[::ffff:169.254.169.254]/", "private address"),
        ("http://2852039166/", "private address 169.254.169.254"),
        ("file:///etc/passwd", "is not https"),
        ("ftp://prices.example/", "is not https"),
        ("/list", "redirects more than 3 times"),
        ("http://[bad", "not an address"),
    ],
)
def test_a_redirect_to_a_private_place_or_in_a_circle_is_refused(location, says):
    assert says in refusal(to(location))[0]


def test_a_key_is_dropped_when_a_redirect_leaves_its_host(monkeypatch):
    monkeypatch.setattr(network, "is_public", lambda address: True)
    elsewhere = Feed({"/list": GOOD})
    with serving(elsewhere) as other, asking(to(f"{other}/list")) as (session, feed):
        assert session.json(URL, headers={"authorization": "Bearer secret"}) == {"price": 1}
    assert "authorization" in feed.asked[0].headers
    assert "authorization" not in elsewhere.asked[0].headers


def test_a_redirected_post_is_not_followed():
    with asking(to("/new")) as (session, _), pytest.raises(SourceError, match="redirects a POST"):
        session.json(URL, post={"query": "x"})


@pytest.mark.parametrize(
    "address",
    ["10.0.0.1", "172.16.0.1", "127.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "::1",
     "fe80::1%eth0", "fd00::1", "::ffff:127.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::",
     "::127.0.0.1", "::ffff:0:a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "64:ff9b:1::5db8:d822", "fec0::1",
     "192.0.0.192", "168.63.129.16", "2606:4700::200:5efe:a9fe:a9fe", "100.64.0.1"],
)  # fmt: skip
def test_private_addresses_are_known_in_every_form(address):
    assert not is_public(address)


def test_public_addresses_are_public():
    assert is_public("93.184.216.34")
    assert is_public("2606:4700::1111")
    assert is_public("::ffff:93.184.216.34")


# --- storms --------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 503])
def test_a_storm_is_waited_out(status):
    storm = [Reply(status=status), Reply(status=status), GOOD]
    with asking(storm, deadline_s=20.0) as (session, feed):
        assert session.json(URL) == {"price": 1}
        assert len(feed.asked) == 3


def test_retry_after_is_obeyed():
    storm = [Reply(status=429, headers={"Retry-After": "1"}), GOOD]
    began = time.monotonic()
    with asking(storm, deadline_s=20.0) as (session, _):
        session.json(URL)
    assert 1.0 <= time.monotonic() - began < 4.0


@pytest.mark.parametrize("as_date", [False, True])
def test_a_wait_past_the_deadline_fails_at_once(as_date):
    later = datetime.now(UTC) + timedelta(hours=1)
    asked = format_datetime(later, usegmt=True) if as_date else "3600"
    said, took_s = refusal(Reply(status=503, headers={"Retry-After": asked}))
    assert "past the deadline" in said
    assert took_s < 2


@pytest.mark.parametrize(
    ("status", "says", "attempts"),
    [(429, "answers 429", ATTEMPTS), (503, "answers 503", ATTEMPTS), (404, "answers 404", 1),
     (403, "is its key valid", 1)],
)  # fmt: skip
def test_a_storm_without_end_fails_after_four_attempts_and_a_refusal_at_once(
    status, says, attempts
):
    with asking(Reply(status=status), deadline_s=20.0) as (session, feed):
        with pytest.raises(SourceError, match=says):
            session.json(URL)
        assert len(feed.asked) == attempts


def test_a_server_that_is_not_there_is_a_sentence():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    variables = {"RUNCAST_PRICE_URL_TEST": f"http://127.0.0.1:{port}"}
    with (
        Session(source="test", deadline_s=20.0, environ=variables) as session,
        pytest.raises(SourceError, match="The connection failed"),
    ):
        session.json(URL)


# --- what is kept --------------------------------------------------------------------------------


def test_what_has_not_changed_is_not_sent_again(tmp_path):
    route = as_json({"price": 1}, headers={"ETag": '"abc"'})
    for _ in range(2):
        with asking(route, cache=BodyCache(tmp_path)) as (session, feed):
            assert session.json(URL) == {"price": 1}
    assert feed.asked[0].headers["if-none-match"] == '"abc"'
    assert session.bytes_read == 0


def test_a_damaged_cache_is_as_good_as_none(tmp_path):
    route = as_json({"price": 1}, headers={"ETag": '"abc"'})
    with asking(route, cache=BodyCache(tmp_path)) as (session, _):
        session.json(URL)
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(kept.read_bytes().replace(b'"price": 1', b'"price": 9'))
    with asking(route, cache=BodyCache(tmp_path)) as (session, feed):
        assert session.json(URL) == {"price": 1}
        assert "if-none-match" not in feed.asked[0].headers


def test_a_server_that_says_unchanged_of_nothing_is_refused(tmp_path):
    assert "not cached" in refusal(Reply(status=304), cache=BodyCache(tmp_path))[0]


def test_only_the_wanted_lines_of_a_large_text_are_held_and_kept(tmp_path):
    text = "".join(f"{'yes' if i % 1000 == 0 else 'no'},{i}\n" for i in range(10_000))
    route = as_text(text, headers={"ETag": '"v1"'})
    for _ in range(2):
        with asking(route, cache=BodyCache(tmp_path)) as (session, _):
            found = list(session.lines(URL, lambda line: line.startswith("yes")))
        assert found == [f"yes,{i}" for i in range(0, 10_000, 1000)]
    assert session.bytes_read == 0  # the second time
    assert sum(p.stat().st_size for p in tmp_path.iterdir()) < 1000


def test_lines_that_break_off_are_an_error_and_are_not_kept(tmp_path):
    reply = Reply(
        b"yes,1\nyes,2\n", "text/csv", headers={"Content-Length": "5000", "ETag": '"v1"'},
        write=lambda handler: None,
    )  # fmt: skip
    with (
        asking(reply, cache=BodyCache(tmp_path)) as (session, _),
        pytest.raises(SourceError, match="The connection failed"),
    ):
        list(session.lines(URL, lambda line: True))
    assert list(tmp_path.iterdir()) == []


# --- clock, keys, pages --------------------------------------------------------------------------


@pytest.mark.parametrize(("hours", "says"), [(5, "ahead of"), (-5, "behind")])
def test_a_clock_that_disagrees_with_the_server_is_said(hours, says):
    with asking(GOOD, now=lambda: datetime.now(UTC) + timedelta(hours=hours)) as (session, _):
        session.json(URL)
    assert says in session.warnings[0]
    assert len(session.warnings) == 1


def test_a_body_is_dated_by_its_server_but_never_after_today():
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    for modified, day in ((noon - timedelta(days=3), 18), (noon + timedelta(days=900), 21)):
        stamp = format_datetime(modified, usegmt=True)
        route = as_json({}, headers={"Last-Modified": stamp})
        with asking(route, now=lambda: noon) as (session, _):
            assert session.body(URL, accept=JSON)[1] == date(2026, 11, day)


def test_a_key_comes_from_the_environment_and_is_in_no_sentence():
    with asking(Reply(status=401), environ={"SOME_KEY": "s3cret-value"}) as (session, feed):
        with pytest.raises(SourceError) as e:
            session.json(URL, headers={"authorization": session.credential("SOME_KEY")})
        assert feed.asked[0].headers["authorization"] == "s3cret-value"
        assert "s3cret" not in str(e.value) + json.dumps(session.warnings)
        with pytest.raises(NoCredentialError, match="needs OTHER_KEY"):
            session.credential("OTHER_KEY")


def test_a_key_that_would_split_a_header_is_refused():
    with (
        Session(source="test", environ={"SOME_KEY": "a\r\nX-Evil: 1"}) as session,
        pytest.raises(SourceError, match="no header may have") as e,
    ):
        session.credential("SOME_KEY")
    assert "Evil" not in str(e.value)


@pytest.mark.parametrize("link", ["https://evil.example/list", "http://127.0.0.1:1/list"])
def test_a_next_page_on_another_host_is_refused(link):
    with asking(GOOD) as (session, _), pytest.raises(SourceError, match="on another host"):
        session.follow(link, of=URL)


@pytest.mark.parametrize("base", ["ftp://mirror", "mirror", "http://"])
def test_a_mirror_that_is_none_is_refused(base):
    with pytest.raises(SourceError, match="not an http"):
        Session(source="test", environ={"RUNCAST_PRICE_URL_TEST": base})
