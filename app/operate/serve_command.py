"""`runcast serve`: the page from any installation, on this machine only unless asked otherwise."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from app.command.options import Text, text_option
from app.document.echo import echo
from core.errors import RuncastError, not_installed, shown
from core.units import whole_number

PAGE = Path(__file__).parents[1] / "server.py"
PORT = 8501
LOOPBACK = ("127.0.0.1", "localhost", "::1")
ANSWERS_WITHIN_S = 60.0
ENDS_WITHIN_S = 10.0


def serve(
    port: Annotated[Text, text_option("--port", "N", f"Where it listens ({PORT}).")] = None,
    address: Annotated[
        Text, text_option("--address", "HOST", "Whom it listens to (127.0.0.1: this machine).")
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open a browser.")
    ] = False,
) -> None:
    """Serve the page until Ctrl-C, and open it in a browser.

    Nothing is sent anywhere: no telemetry, and prices are refreshed only when asked. Other settings
    are those of Streamlit's environment variables (docs/deploy.md).
    """
    if find_spec("streamlit") is None:
        raise not_installed("streamlit", "ui")
    number, host = (
        PORT if port is None else whole_number(port, "--port", 65_535),
        address or LOOPBACK[0],
    )
    _check_free(host, number)
    at = f"http://{'localhost' if host in (*LOOPBACK, '0.0.0.0', '::') else host}:{number}"
    if host not in LOOPBACK and not os.environ.get("STREAMLIT_SERVER_ALLOWED_HOSTS"):
        echo(
            f"Listening on {host}: a browser on another machine connects only under a name that "
            "STREAMLIT_SERVER_ALLOWED_HOSTS lists (docs/deploy.md).",
            err=True,
        )
    process = _started(host, number)
    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    if not no_browser:
        threading.Thread(target=_open_when_healthy, args=(at, process), daemon=True).start()
    echo(f"Runcast is at {at} (Ctrl-C ends it).")
    try:
        status = process.wait()
    except KeyboardInterrupt:
        status = _ended(process)
    if status > 0:
        raise typer.Exit(status)


def _started(host: str, port: int) -> subprocess.Popen[bytes]:
    """Streamlit's own server on app/server.py, whose settings are beside it.

    PYTHONSAFEPATH: an app.py in the folder that it is started in would be imported for our package
    of that name.
    """
    root = str(PAGE.parents[1])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [
            sys.executable, "-m", "streamlit", "run", str(PAGE),
            f"--server.port={port}", f"--server.address={host}", "--server.headless=true",
        ],
        env={**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.DEVNULL,
    )  # fmt: skip


def _check_free(host: str, port: int) -> None:
    """RuncastError if nothing can listen there: another server, a foreign address."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, kind, _, _, where = found[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
    except OSError as e:
        raise RuncastError(
            f"Cannot listen on {shown(host)} at port {port}: {(e.strerror or str(e)).lower()}; "
            "--port takes another one."
        ) from None


def _open_when_healthy(at: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + ANSWERS_WITHIN_S
    while time.monotonic() < until and process.poll() is None:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"{at}/_stcore/health", timeout=1),
        ):
            webbrowser.open(at)
            return
        time.sleep(0.2)


def _ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end that Ctrl-C has asked of both, then insist."""
    try:
        return process.wait(ENDS_WITHIN_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        return process.wait()
