"""A real nginx with deploy/nginx/processes.conf, and clients that speak to it as a page does."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

from tests.support.browsing import ROOT, Server, is_healthy
from tests.support.processes import free_port

CONF = ROOT / "deploy/nginx/processes.conf"
START_S = 10
# What /etc/nginx/nginx.conf is on a server; the file under test is included as it is there.
AROUND = """\
daemon off;
{user}
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    {log}
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/runcast.conf;
}}
"""
# Who was answered by which process: variables of processes.conf.
WHO = "log_format who '$runcast_process $upstream_addr $status'; access_log access.log who;"


def program() -> str | None:
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


@dataclass
class Proxy:
    """A running nginx on one port of the loopback."""

    port: int
    folder: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ports_of(self) -> dict[str, list[int]]:
        """Which processes answered each browser, in the order of its requests."""
        found: dict[str, list[int]] = {}
        for line in (self.folder / "access.log").read_text().splitlines():
            who, *upstream, _ = line.split()
            ports = [int(m[1]) for a in upstream if (m := re.search(r":(\d+)", a))]
            found.setdefault(who, []).extend(ports)
        return found

    def get(
        self, path: str = "/", headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """One request: status, headers, body."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)) as line:
            line.request("GET", path, headers=dict(headers or {}))
            answer = line.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()

    def cookie(self) -> str:
        """The cookie of somebody who is here for the first time."""
        return self.get()[1]["set-cookie"].partition(";")[0]


@contextmanager
def started(folder: Path, ports: Sequence[int]) -> Iterator[Proxy]:
    """nginx in front of two processes or more, with the shipped configuration but for the ports."""
    proxy = Proxy(free_port(), folder)
    text = CONF.read_text()
    options = " max_fails=1 fail_timeout=10s;"
    others = f"{options}\n    ".join(f"server 127.0.0.1:{port}" for port in ports[1:])
    for old, new in (("listen 80;", f"listen 127.0.0.1:{proxy.port};"),
                     ("127.0.0.1:8501", f"127.0.0.1:{ports[0]}"),
                     ("server 127.0.0.1:8502", others)):  # fmt: skip
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    with running(folder, text, log=WHO):
        until = time.monotonic() + START_S
        while not is_healthy(proxy.url):
            assert time.monotonic() < until, (folder / "error.log").read_text()
            time.sleep(0.05)
        yield proxy


@contextmanager
def running(folder: Path, text: str, *, log: str = "access_log off;") -> Iterator[None]:
    """nginx with `text` as its conf.d/runcast.conf, and the shipped headers beside it."""
    (folder / "runcast.conf").write_text(text)
    shutil.copy(CONF.with_name("runcast-headers.conf"), folder)
    user = "user root;" if os.getuid() == 0 else ""  # who may read this folder
    (folder / "nginx.conf").write_text(AROUND.format(folder=folder, user=user, log=log))
    command = [str(program()), "-p", str(folder), "-c", str(folder / "nginx.conf"),
               "-e", str(folder / "error.log")]  # fmt: skip
    subprocess.run([*command, "-t", "-q"], check=True)
    nginx = subprocess.Popen(command)
    try:
        yield
    finally:
        nginx.terminate()
        nginx.wait(10)


@contextmanager
def websocket(
    server: Proxy | Server,
    cookie: str = "",
    *,
    origin: str | None = None,
    host: str = "127.0.0.1",
    tls: ssl.SSLContext | None = None,
) -> Iterator[ClientConnection]:
    """The connection of a page: to this machine, whatever host the page is said to be of."""
    with connect(
        f"{'wss' if tls else 'ws'}://{host}:{server.port}/_stcore/stream",
        ssl=tls,
        address=("127.0.0.1", server.port),
        additional_headers={"Cookie": cookie} if cookie else None,
        origin=origin or server.url,
        subprotocols=["streamlit"],
        max_size=None,
        open_timeout=20,
        proxy=None,
    ) as line:
        yield line


def rerun(line: ClientConnection, query: str) -> tuple[float, int]:
    """Open a link on a connection: seconds until its page is whole, bytes that it took."""
    begin = time.perf_counter()
    size = len(drawn(line, query))
    return time.perf_counter() - begin, size


def drawn(line: ClientConnection, query: str) -> bytes:
    """Open a link on a connection: all that the server says until its page is whole."""
    said = []
    message = BackMsg()
    message.rerun_script.query_string = query.removeprefix("?")
    line.send(message.SerializeToString())
    while True:
        said.append(line.recv(timeout=60, decode=False))
        answer = ForwardMsg.FromString(said[-1])
        if answer.WhichOneof("type") != "script_finished":
            continue
        assert answer.script_finished != ForwardMsg.FINISHED_WITH_COMPILE_ERROR
        if answer.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
            return b"".join(said)
