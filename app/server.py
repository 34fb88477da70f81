"""The page with two addresses for whoever watches it: `streamlit run app/server.py`.

It serves what `streamlit run app/main.py` serves, by the same settings, and beside it /healthz (the
process answers) and /readyz (tables, prices and store are there). Errors in callbacks and fragments
are drawn with their id too.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import platform
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app.log import log
from app.operate.readiness import Kept, ready_json
from app.scenario.version import version
from app.web import rerun_log
from app.web.owner import PROXY_SECRET, USER_HEADER

_NO_STORE = {"Cache-Control": "no-store"}
_readiness = Kept()


async def healthz(request: Request) -> Response:
    """200 while the process answers."""
    return JSONResponse({"status": "ok"}, headers=_NO_STORE)


async def readyz(request: Request) -> Response:
    """200 where everything is there, else 503; the checks as JSON either way."""
    found = ready_json(await run_in_threadpool(_readiness.now))
    ready = found["status"] == "ready"
    if not ready:
        failing = [c["name"] for c in found["checks"] if not c["ok"]]
        log.event("not_ready", level=logging.WARNING, checks=failing)
    return JSONResponse(found, status_code=200 if ready else 503, headers=_NO_STORE)


class UserHeaderGuard:
    """Takes the header that names the user out of what did not come in over this machine.

    app/web/owner.py believes it by `server.address`; this looks at the address that a request
    arrived at, which a server started in another way cannot contradict.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, without that header where anybody could have sent it."""
        header = os.environ.get(USER_HEADER, "").strip().lower().encode()
        guarded = header and not os.environ.get(PROXY_SECRET)
        if guarded and "headers" in scope and not _is_of_this_machine(scope.get("server")):
            scope["headers"] = [(n, v) for n, v in scope["headers"] if n.lower() != header]
        await self._app(scope, receive, send)


def _is_of_this_machine(server: Any) -> bool:
    try:
        return ipaddress.ip_address(str(server[0])).is_loopback
    except (ValueError, TypeError, IndexError):
        return False


def draw_unexpected(error: Exception) -> bool:
    """Draw an error that Streamlit caught, which has logged it, as a sentence with its id."""
    if st.get_option("client.showErrorDetails") != "none":
        return False
    st.exception(rerun_log.UnexpectedError(rerun_log.sentence(log.id_of(error))))
    return True


@asynccontextmanager
async def _lifespan(app: st.App) -> AsyncIterator[None]:
    log.adopt()
    log.event("server_started", version=version(), python=platform.python_version())
    yield
    log.event("server_stopped")


def _routes() -> list[Route]:
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    prefix = f"/{base}" if base else ""
    return [Route(f"{prefix}/healthz", healthz), Route(f"{prefix}/readyz", readyz)]


rerun_log.configure()
app = st.App(
    Path(__file__).with_name("main.py"),
    routes=_routes(),
    middleware=[Middleware(UserHeaderGuard)],
    lifespan=_lifespan,
    on_script_error=draw_unexpected,
)
