"""A real nginx with deploy/nginx/runcast.conf, and what answers in the place of oauth2-proxy.

Who somebody is, is their cookie `who`: the tests are about what nginx and Runcast make of it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.browsing import ROOT
from tests.support.processes import free_port

CONFIG = ROOT / "deploy/nginx/runcast.conf"
START_S = 20
FOLDERS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


class _SignIn(BaseHTTPRequestHandler):
    """Says who a request is of, as oauth2-proxy does with --set-xauthrequest."""

    def do_GET(self) -> None:
        who = SimpleCookie(self.headers.get("Cookie", "")).get("who")
        if self.path.startswith("/oauth2/auth"):
            self.send_response(202 if who else 401)
            if who:
                self.send_header("X-Auth-Request-Email", who.value)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = f"Sign in, then {self.headers.get('X-Auth-Request-Redirect')}".encode()
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the terminal of the tests."""


def nginx_program() -> str:
    """Where nginx is. Without one a test is skipped, but never where CI is set."""
    found = shutil.which("nginx", path=os.environ["PATH"] + os.pathsep + "/usr/sbin")
    if found is None:
        missing = "There is no nginx: apt-get install nginx-light."
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return found


def _config(prefix: Path, port: int, page_port: int, sign_in_port: int) -> str:
    """The shipped server, on this machine's ports and without TLS."""
    shipped = CONFIG.read_text()
    lines = [line for line in shipped.splitlines() if "ssl_certificate" not in line]
    server = "\n".join(lines)
    for old, new in (
        ("listen 80;", f"listen unix:{prefix}/plain;"),
        ("listen 443 ssl;", f"listen 127.0.0.1:{port};"),
        ("127.0.0.1:8501", f"127.0.0.1:{page_port}"),
        ("127.0.0.1:4180", f"127.0.0.1:{sign_in_port}"),
    ):
        assert old in server
        server = server.replace(old, new)
    temporary = "\n".join(f"{name}_temp_path {prefix}/{name};" for name in FOLDERS)
    user = "user root root;\n" if os.geteuid() == 0 else ""
    return (
        f"{user}daemon off;\npid {prefix}/pid;\nworker_processes 1;\n"
        f"error_log {prefix}/error.log;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}\n{server}\n}}\n"
    )


@contextmanager
def signing_proxy(prefix: Path, page_port: int) -> Iterator[str]:
    """The address of a running nginx before the page of a port."""
    program, port = nginx_program(), free_port()
    with ThreadingHTTPServer(("127.0.0.1", 0), _SignIn) as sign_in:
        thread = threading.Thread(target=sign_in.serve_forever, daemon=True)
        thread.start()
        file = prefix / "nginx.conf"
        file.write_text(_config(prefix, port, page_port, sign_in.server_port))
        shutil.copy(CONFIG.with_name("runcast-headers.conf"), prefix)
        command = [program, "-p", str(prefix), "-c", str(file), "-e", str(prefix / "error.log")]
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        try:
            _wait(running, f"http://127.0.0.1:{port}/", prefix)
            yield f"http://127.0.0.1:{port}"
        finally:
            running.terminate()
            running.wait(20)
            sign_in.shutdown()
            thread.join()


def _wait(running: subprocess.Popen[bytes], url: str, prefix: Path) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and running.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=1)
        except urllib.error.HTTPError as e:
            if e.code == 403:  # nobody is logged in
                e.close()
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"nginx did not start: {(prefix / 'error.log').read_text()}")
