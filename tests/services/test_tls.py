"""The shipped nginx with TLS: what docs/deploy.md and docs/teams.md tell a person to change is
changed, and nothing else but ports."""

from __future__ import annotations

import os
import ssl
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from websockets.exceptions import InvalidMessage, InvalidStatus

from tests.servers import nginx
from tests.support.browsing import FEW, Server, served
from tests.support.processes import free_port

pytestmark = pytest.mark.services

SHIPPED = nginx.CONF.parent
NAME = "plan.example.net"  # whatever a person's server is called
ADA = "ada@example.org"
HSTS = "max-age=31536000"
# What Debian's nginx.conf says around the file: TLS from 1.0 on, for servers that say nothing.
DEBIAN = "ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3;\n"
LONG = "/?x=" + "a" * 20_000


@dataclass
class Secure:
    """A running nginx: its ports with and without TLS, and a context that trusts it alone."""

    port: int
    plain_port: int
    trust: ssl.SSLContext

    def get(
        self,
        path: str = "/",
        *,
        tls: bool = True,
        host: str = NAME,
        method: str = "GET",
        **headers: str,
    ) -> httpx.Response:
        """One request, to this machine but by the server's name."""
        address = f"https://127.0.0.1:{self.port}" if tls else f"http://127.0.0.1:{self.plain_port}"
        with httpx.Client(verify=self.trust, trust_env=False, timeout=20) as client:
            request = client.build_request(
                method, address + path, headers={"Host": host, **headers},
                extensions={"sni_hostname": NAME},
            )  # fmt: skip
            return client.send(request)

    def page(self, **headers: str) -> bytes:
        """All that a page is told over its websocket."""
        cookie = headers.get("Cookie", "")
        with nginx.websocket(
            self, cookie, origin=f"https://{NAME}", host=NAME, tls=self.trust
        ) as line:
            return nginx.drawn(line, FEW)


class SignIn(BaseHTTPRequestHandler):
    """In the place of oauth2-proxy: whoever has its cookie is Ada, and her cookies are large."""

    def do_GET(self) -> None:
        known = "_oauth2_proxy=ada" in self.headers.get("Cookie", "")
        if self.path == "/oauth2/auth":
            self.answers(202 if known else 401, {"X-Auth-Request-Email": ADA} if known else {})
        elif self.path.startswith("/oauth2/callback"):
            rest = {"Location": "/", "Set-Cookie": "_oauth2_proxy=ada; Path=/; Secure"}
            self.answers(302, rest, {"Set-Cookie": "_oauth2_proxy_1=" + "c" * 9_000})
        else:
            said = f"Sign in over {self.headers['X-Forwarded-Proto']}, then "
            self.answers(403, {}, body=said + self.headers["X-Auth-Request-Redirect"])

    def answers(self, status: int, *headers: dict[str, str], body: str = "") -> None:
        self.send_response(status)
        for name, value in (pair for some in headers for pair in some.items()):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the terminal of the tests."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> tuple[Path, Path]:
    """A certificate that signs itself, and its key."""
    folder, key = tmp_path_factory.mktemp("certificate"), ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "runcast.pem").write_bytes(made.public_bytes(pem))
    (folder / "runcast.key").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "runcast.pem", folder / "runcast.key"


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Iterator[Server]:
    """One process, told its name as docs/deploy.md says, that believes the proxy's header."""
    if nginx.program() is None:
        missing = "nginx is not installed: apt-get install nginx-light"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    folder = tmp_path_factory.mktemp("page")
    with served(
        folder / "log",
        RUNCAST_DATA_DIR=str(folder / "data"),
        RUNCAST_USER_HEADER="X-Forwarded-Email",
        STREAMLIT_SERVER_ALLOWED_HOSTS=f"{NAME} 127.0.0.1",
        STREAMLIT_SERVER_CORS_ALLOWED_ORIGINS=f"https://{NAME}",
        STREAMLIT_SERVER_COOKIE_SECRET="of-the-tests-0123456789abcdef",
    ) as server:
        yield server


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


@contextmanager
def secure(
    folder: Path, certificate: tuple[Path, Path], page: Server, file: str, *changes: tuple[str, str]
) -> Iterator[Secure]:
    """nginx with a shipped file: its name, its certificate, and the ports of this test."""
    pem, key = certificate
    trust = ssl.create_default_context(cafile=str(pem))
    found = Secure(free_port(), free_port(), trust)
    own = (("/etc/ssl/certs/runcast.pem", str(pem)), ("/etc/ssl/private/runcast.key", str(key)),
           ("listen 443 ssl;", f"listen 127.0.0.1:{found.port} ssl;"))  # fmt: skip
    tls = SHIPPED / "runcast-tls.conf"
    (folder / tls.name).write_text(changed(tls.read_text(), *own))
    own = own if file == "runcast.conf" else ()
    text = changed((SHIPPED / file).read_text(), *own, *changes,
                   ("server_name runcast.example.org;", f"server_name {NAME};"),
                   ("listen 80;", f"listen 127.0.0.1:{found.plain_port};"),
                   ("127.0.0.1:8501", f"127.0.0.1:{page.port}"))  # fmt: skip
    with nginx.running(folder, DEBIAN + text):
        retry(found)
        yield found


def retry(found: Secure) -> None:
    for _ in range(100):
        try:
            found.get("/_stcore/health")
            return
        except httpx.ConnectError:
            threading.Event().wait(0.05)
    pytest.fail("nginx does not answer")


@pytest.fixture(scope="module")
def processes(tmp_path_factory, certificate, page) -> Iterator[Secure]:
    """Sticky processes with TLS: the line of the include is one that a person uncomments."""
    folder = tmp_path_factory.mktemp("processes")
    with secure(folder, certificate, page, "processes.conf",
                ("# include runcast-tls.conf;", "include runcast-tls.conf;"),
                ("127.0.0.1:8502", f"127.0.0.1:{page.port}")) as found:  # fmt: skip
        yield found


@pytest.fixture(scope="module")
def login(tmp_path_factory, certificate, page) -> Iterator[Secure]:
    """The login, asked of a stand-in on the loopback."""
    with ThreadingHTTPServer(("127.0.0.1", 0), SignIn) as sign_in:
        thread = threading.Thread(target=sign_in.serve_forever)
        thread.start()
        try:
            here = ("127.0.0.1:4180", f"127.0.0.1:{sign_in.server_port}")
            folder = tmp_path_factory.mktemp("login")
            with secure(folder, certificate, page, "runcast.conf", here) as found:
                yield found
        finally:
            sign_in.shutdown()
            thread.join()


def policy_headers() -> dict[str, str]:
    """What runcast-headers.conf adds, as nginx reads it."""
    text = (SHIPPED / "runcast-headers.conf").read_text()
    lines = [line.removesuffix(" always;") for line in text.splitlines() if line[:4] == "add_"]
    assert len(lines) == 7
    return {name: value.strip('"') for _, name, value in (line.split(" ", 2) for line in lines)}


SIGNED_IN = {"Cookie": "_oauth2_proxy=ada"}


@pytest.mark.parametrize("path", ["/", "/risk" + FEW, "/_stcore/health", LONG])
@pytest.mark.parametrize("which", ["processes", "login"])
def test_with_tls_the_page_answers_with_every_header(which, path, request):
    answer = request.getfixturevalue(which).get(path, **SIGNED_IN)
    assert answer.status_code == 200
    expected = policy_headers() | {"Strict-Transport-Security": HSTS}
    assert {n: answer.headers.get_list(n) for n in expected} == {
        n: [v] for n, v in expected.items()
    }
    assert answer.headers["Server"] == "nginx"


@pytest.mark.parametrize("host", [NAME, "evil.example"])
@pytest.mark.parametrize("which", ["processes", "login"])
def test_without_tls_everything_is_sent_to_the_servers_own_name(which, host, request):
    path = f"/memory{FEW}"
    answer = request.getfixturevalue(which).get(path, tls=False, host=host)
    assert (answer.status_code, answer.headers["Location"]) == (301, f"https://{NAME}{path}")
    assert "Strict-Transport-Security" not in answer.headers  # RFC 6797, 7.2
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("which", ["processes", "login"])
def test_what_is_for_the_machine_itself_stays_there_with_tls(which, request):
    found = request.getfixturevalue(which)
    for path in ("/readyz", "/_stcore/metrics", "/risk/_stcore/agent/x"):
        answer = found.get(path, **SIGNED_IN)
        assert (answer.status_code, answer.headers["Strict-Transport-Security"]) == (404, HSTS)


@pytest.mark.parametrize("which", ["processes", "login"])
def test_tls_before_1_2_is_refused_by_the_server(which, request, certificate):
    found = request.getfixturevalue(which)
    for version, accepted in (("TLSv1_1", False), ("TLSv1_2", True), ("TLSv1_3", True)):
        old = ssl.create_default_context(cafile=str(certificate[0]))
        old.set_ciphers("ALL:@SECLEVEL=0")  # this side would take it
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            old.minimum_version = old.maximum_version = ssl.TLSVersion[version]
        asked = Secure(found.port, found.plain_port, old)
        if accepted:
            assert asked.get("/_stcore/health", **SIGNED_IN).status_code == 200
        else:  # an alert is what the other side says
            with pytest.raises(httpx.ConnectError, match="alert protocol version"):
                asked.get("/_stcore/health")


def refusal(server: Secure, *, origin: str) -> int | None:
    """The status with which a websocket is refused; None where it is opened. Over TLS 3 of 400
    refused ones ended before an answer was read, for a reason that was not found: refused all the
    same, and asked for again."""
    for _ in range(5):
        try:
            with nginx.websocket(server, origin=origin, host=NAME, tls=server.trust):
                return None
        except InvalidStatus as e:
            return e.response.status_code
        except InvalidMessage:  # no answer at all
            continue
    pytest.fail("five websockets were closed without an answer")


def test_a_page_is_drawn_over_wss_on_the_process_of_its_cookie(processes):
    cookie = processes.get().headers["Set-Cookie"]
    assert cookie.startswith("runcast_process=")
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Lax; Secure")
    assert b"H100-80GB-SXM" in processes.page(Cookie=cookie.partition(";")[0])
    assert refusal(processes, origin="https://evil.example") == 403


def test_who_is_not_signed_in_gets_the_sign_in_page_and_nothing_else(login):
    for path in ("/" + FEW, "/_stcore/health", "/_stcore/stream", LONG):
        answer = login.get(path, **{"X-Forwarded-Email": ADA})
        assert answer.status_code == 403
        assert answer.text == f"Sign in over https, then {path}"
        assert answer.headers["Strict-Transport-Security"] == HSTS
        # Its form would not be sent under the policy of the page.
        assert "Content-Security-Policy" not in answer.headers
    with pytest.raises(InvalidStatus, match="403"):
        login.page()
    assert login.get("/oauth2/auth", **SIGNED_IN).status_code == 404  # for nginx alone


def test_who_signs_in_comes_back_with_large_cookies_and_the_page_knows_the_name(login):
    back = login.get("/oauth2/callback?code=x")
    assert (back.status_code, back.headers["Location"]) == (302, "/")
    cookies = [c.partition(";")[0] for c in back.headers.get_list("Set-Cookie")]
    assert sum(map(len, cookies)) > 9_000
    assert login.get("/" + FEW, Cookie="; ".join(cookies)).status_code == 200
    said = login.page(Cookie="; ".join(cookies))
    assert ADA.encode() in said.replace("\N{WORD JOINER}".encode(), b"")


def test_the_cookie_against_forged_uploads_passes_the_login(login):
    place = "/_stcore/upload_file/none/none"  # of no session: 400, once the token is believed
    first = login.get("/_stcore/health", **SIGNED_IN).headers["Set-Cookie"]
    token = first.partition(";")[0].removeprefix("_streamlit_xsrf=")
    mine = {"Cookie": f"{SIGNED_IN['Cookie']}; _streamlit_xsrf={token}"}
    assert login.get(place, method="PUT", **mine).status_code == 403
    assert login.get(place, method="PUT", **mine, **{"X-Xsrftoken": token}).status_code == 400
