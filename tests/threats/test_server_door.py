"""The door of the page as it is shipped: which pages may connect, how much may be sent, and what a
stranger reads when something breaks. Asked of a real server, below the browser."""

from __future__ import annotations

import http.client
import json
import re
import time
import tomllib
from contextlib import closing

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed, InvalidStatus

from app.web.form import MAX_UPLOAD_MB
from tests.conftest import ROOT
from tests.servers.nginx import websocket
from tests.support.browsing import FEW, Server
from tests.support.processes import rss_bytes

pytestmark = pytest.mark.services

SETTINGS = tomllib.loads((ROOT / "app/.streamlit/config.toml").read_text())
LARGE = 3_000_000  # bytes of a file, over the limit
MOST_GROWTH = 60_000_000  # bytes of memory that refusing large files may cost


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("door")
    made = Server(folder / "log", env={"RUNCAST_DATA_DIR": str(folder / "data")})
    try:
        made.start()
        yield made
    finally:
        made.stop()
    said = made.log.read_text()
    # Streamlit tells of a message that is none; nothing else may have gone wrong.
    assert said.count("Traceback") == said.count("Error deserializing back message"), said


def opened(line, query=FEW):
    """Open a link on a connection: what the server says until the page is whole."""
    message = BackMsg()
    message.rerun_script.query_string = query.removeprefix("?")
    line.send(message.SerializeToString())
    said = []
    while True:
        said.append(ForwardMsg.FromString(line.recv(timeout=60)))
        if said[-1].WhichOneof("type") == "script_finished":
            return said


def send_and_wait(line, content):
    """What the server says to it; it may hang up already while it is being sent."""
    line.send(content)
    return line.recv(timeout=30)


def asked(server, method, path, body=b"", headers=None):
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)) as line:
        try:
            line.request(method, path, body, headers or {})
            answer = line.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        except (BrokenPipeError, ConnectionResetError):
            return 0, {}, b""  # hung up on, in the middle of what was too much


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("https://evil.example", "127.0.0.1"),
        ("http://localhost.evil.example", "127.0.0.1"),
        ("http://127.0.0.1.evil.example", "127.0.0.1"),
        ("null", "127.0.0.1"),
        ("file://", "127.0.0.1"),
        # A name of somebody else that points here (DNS rebinding): page and host agree.
        ("http://evil.example", "evil.example"),
    ],
)
def test_a_page_of_another_origin_may_not_connect(server, origin, host):
    with pytest.raises(InvalidStatus, match="403"), websocket(server, origin=origin, host=host):
        pass


def test_the_page_itself_connects(server):
    with websocket(server) as line:
        said = opened(line)
    kinds = [m.delta.WhichOneof("type") for m in said if m.WhichOneof("type") == "delta"]
    assert "new_element" in kinds


def test_the_protections_of_the_server_are_not_switched_off():
    """Streamlit has them on; a line in the settings would be how they go."""
    for name in ("enableCORS", "enableXsrfProtection"):
        assert SETTINGS["server"].get(name, True) is True
    assert SETTINGS["server"]["address"] == "localhost"
    assert SETTINGS["server"]["maxUploadSize"] == MAX_UPLOAD_MB
    assert SETTINGS["client"]["showErrorDetails"] == "none"


def upload(server, line_id, body, token=None):
    """Send a file as the page does, whatever it says of itself."""
    boundary = "x" * 20
    content = (
        (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.json"\r\n'
            "Content-Type: application/json\r\n\r\n"
        ).encode()
        + body
        + f"\r\n--{boundary}--\r\n".encode()
    )
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    if token:
        headers |= {"X-Xsrftoken": token, "Cookie": f"_streamlit_xsrf={token}"}
    path = f"/_stcore/upload_file/{line_id}/11111111-1111-1111-1111-111111111111"
    return asked(server, "PUT", path, content, headers)


def test_an_upload_without_the_token_of_the_page_is_refused(server):
    with websocket(server) as line:
        session = opened(line)[0].new_session.initialize.session_id
        assert session
        assert upload(server, session, b"{}")[0] == 403


def test_large_uploads_are_refused_and_the_memory_stays_flat(server):
    """Four of 3 MB, with the token that a page would send."""
    _, headers, _ = asked(server, "GET", "/_stcore/health")
    cookie = re.search(r"_streamlit_xsrf=([^;]+)", headers.get("set-cookie", ""))
    token = cookie[1] if cookie else ""
    with websocket(server) as line:
        session = opened(line)[0].new_session.initialize.session_id
        status, _, said = upload(server, session, b"{}", token)
        assert status == 204, said
        before = rss_bytes(server.process.pid)
        for _ in range(4):
            status, _, said = upload(server, session, b"x" * LARGE, token)
            assert status in (0, 400, 413), (status, said)
        assert rss_bytes(server.process.pid) - before < MOST_GROWTH


def test_a_message_that_is_too_large_ends_its_connection_only(server):
    with websocket(server) as other, websocket(server) as line:
        opened(other)
        with pytest.raises(ConnectionClosed):
            send_and_wait(line, b"\x00" * (SETTINGS["server"]["maxMessageSize"] + 2) * 1_000_000)
        assert opened(other)


def test_what_is_no_message_does_not_reach_the_others(server):
    with websocket(server) as other, websocket(server) as line:
        line.send(b"\xff" * 1000)
        time.sleep(0.2)
        assert opened(other)


@pytest.mark.parametrize(
    "path",
    ["/../../etc/passwd", "/static/../../.streamlit/config.toml", "/app/static/secrets.toml",
     "/.streamlit/secrets.toml", "/%2e%2e/%2e%2e/etc/passwd", "/component/../../etc/passwd",
     "/media/../../etc/passwd", "/_stcore/metrics/../../x"],
)  # fmt: skip
def test_no_path_leads_to_a_file_of_the_server(server, path):
    _, _, body = asked(server, "GET", path)
    assert b"root:" not in body
    assert b"maxUploadSize" not in body
    assert b"Traceback" not in body


def test_the_server_says_nothing_of_the_machine_that_it_need_not(server):
    _, _, body = asked(server, "GET", "/_stcore/host-config")
    assert str(ROOT) not in body.decode()
    assert json.loads(body)
    for path in ("/no-such-page", "/_stcore/no-such", "/media/none.png"):
        _, _, body = asked(server, "GET", path)
        assert str(ROOT).encode() not in body
