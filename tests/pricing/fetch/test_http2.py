"""HTTP/2 where a feed's server offers it: a loopback server with TLS, ALPN and real frames."""

import contextlib
import json
import socket
import ssl
import threading
import time
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import httpx
import pytest

from pricing.fetch import network
from pricing.fetch.network import Deadline, GuardedTransport, PassedDeadlineError

PEM = Path(__file__).parents[2] / "feeds" / "loopback.pem"  # self-signed, of these tests only
BODY = json.dumps({"price": 1}).encode()


def _speak_h2(tls, *, pieces, pause_s, ends):
    """Answer every stream of one connection."""
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    connection.initiate_connection()
    tls.sendall(connection.data_to_send())
    while data := tls.recv(65_536):
        for event in connection.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                headers = [(":status", "200"), ("content-type", "application/json")]
                connection.send_headers(event.stream_id, headers)
                for n, piece in enumerate(pieces):
                    last = ends and n == len(pieces) - 1
                    connection.send_data(event.stream_id, piece, end_stream=last)
                    tls.sendall(connection.data_to_send())
                    time.sleep(pause_s)
                if not ends:
                    return
        tls.sendall(connection.data_to_send())


def _speak_plain(tls):
    """HTTP/1.1, one answer."""
    tls.recv(65_536)
    head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(BODY)}\r\nconnection: close\r\n\r\n"
    tls.sendall(head.encode() + BODY)


@contextlib.contextmanager
def serving(*, offers=("h2", "http/1.1"), pieces=(BODY,), pause_s=0.0, ends=True):
    """The port of a server on 127.0.0.1, and how many connections it took."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    context.set_alpn_protocols(list(offers))
    listening = socket.create_server(("127.0.0.1", 0))
    taken = []

    def serve():
        with contextlib.suppress(OSError):  # closed: the test is over
            while True:
                plain, _ = listening.accept()
                taken.append(1)
                threading.Thread(target=answer, args=(plain,), daemon=True).start()

    def answer(plain):
        with contextlib.suppress(OSError), context.wrap_socket(plain, server_side=True) as tls:
            if tls.selected_alpn_protocol() == "h2":
                _speak_h2(tls, pieces=pieces, pause_s=pause_s, ends=ends)
            else:
                _speak_plain(tls)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1], taken
    finally:
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(5)


@pytest.fixture
def client(monkeypatch):
    """A client of one loopback port that trusts the tests' certificate."""
    monkeypatch.setattr(network, "_ssl_context", lambda: ssl.create_default_context(cafile=PEM))

    def _client(port, limit_s=5.0):
        deadline = Deadline(limit_s, threading.Event())
        own = frozenset({("127.0.0.1", port)})
        return httpx.Client(transport=GuardedTransport(deadline, own), trust_env=False)

    return _client


@pytest.mark.parametrize(
    ("offers", "version"), [(("h2", "http/1.1"), "HTTP/2"), (("http/1.1",), "HTTP/1.1")]
)
def test_what_the_server_speaks_is_spoken(client, offers, version):
    with serving(offers=offers) as (port, _), client(port) as asking:
        answer = asking.get(f"https://127.0.0.1:{port}/list")
    assert answer.json() == {"price": 1}
    assert answer.http_version == version


def test_pages_of_one_feed_share_one_connection(client):
    with serving() as (port, taken), client(port) as asking:
        for page in range(5):
            assert asking.get(f"https://127.0.0.1:{port}/list?page={page}").json() == {"price": 1}
    assert len(taken) == 1


def test_a_slow_body_ends_at_the_deadline_in_frames_too(client):
    began = time.monotonic()
    ended = pytest.raises((PassedDeadlineError, httpx.ReadTimeout))
    slow = serving(pieces=[b" "] * 200, pause_s=0.1)
    with slow as (port, _), client(port, 1.0) as asking, ended:
        asking.get(f"https://127.0.0.1:{port}/list")
    assert 0.9 <= time.monotonic() - began < 3


def test_a_body_that_is_cut_off_is_an_error(client):
    cut, refused = serving(pieces=(BODY[:5],), ends=False), pytest.raises(httpx.HTTPError)
    with cut as (port, _), client(port) as asking, refused:
        asking.get(f"https://127.0.0.1:{port}/list")


def test_an_unknown_certificate_is_refused():
    with serving() as (port, taken):
        own = frozenset({("127.0.0.1", port)})
        transport = GuardedTransport(Deadline(5.0, threading.Event()), own)
        with (
            httpx.Client(transport=transport) as asking,
            pytest.raises(httpx.TransportError, match="self-signed"),
        ):
            asking.get(f"https://127.0.0.1:{port}/list")
        assert taken
