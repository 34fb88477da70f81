"""The page with two addresses for monitoring: `streamlit run app/server.py`.

It serves what `streamlit run app/main.py` serves, with the same settings, plus /healthz (the
process answers), /readyz (tables, prices and store are there), /api/v1 and /metrics. Errors in
callbacks and fragments are also drawn with their id.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import platform
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit.runtime.state.query_params import CLIENT_STATE_QUERY_STRING_MAX_FIELDS

from app.api import door
from app.log import log
from app.operate.readiness import Kept, ready_json
from app.scenario.version import version
from app.web import answers, rerun_log
from app.web.owner import PROXY_SECRET, USER_HEADER, has_login
from core.errors import not_installed

METRICS = "RUNCAST_METRICS"
_NO_STORE = {"Cache-Control": "no-store"}
_readiness = Kept()


async def healthz(request: Request) -> Response:
    """200 while the process answers."""
    return JSONResponse({"status": "ok"}, headers=_NO_STORE)


async def readyz(request: Request) -> Response:
    """200 if every check passes, else 503; the checks as JSON in both cases."""
    found = ready_json(await run_in_threadpool(_readiness.now))
    ready = found["status"] == "ready"
    if not ready:
        failing = [c["name"] for c in found["checks"] if not c["ok"]]
        log.event("not_ready", level=logging.WARNING, checks=failing)
    return JSONResponse(found, status_code=200 if ready else 503, headers=_NO_STORE)


class UserHeaderGuard:
    """Removes the header that names the user from requests that did not arrive on loopback.

    app/web/owner.py trusts the header by `server.address`; this checks the address at which the
    request arrived, which is right however the server was started.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, without the user header if any client could have sent it."""
        header = os.environ.get(USER_HEADER, "").strip().lower().encode()
        guarded = header and not os.environ.get(PROXY_SECRET)
        if guarded and "headers" in scope and not _is_of_this_machine(scope.get("server")):
            scope["headers"] = [(n, v) for n, v in scope["headers"] if n.lower() != header]
        await self._app(scope, receive, send)


class LongLinkGuard:
    """Opens a link with more parameters than Streamlit reads as one that says so.

    Streamlit drops all of them without a word; of this one the page has a note."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Redirect such a link to the page with how many parameters it had."""
        count = scope.get("query_string", b"").count(b"&") + 1
        if scope["type"] == "http" and count > CLIENT_STATE_QUERY_STRING_MAX_FIELDS:
            said = f"more_than_{CLIENT_STATE_QUERY_STRING_MAX_FIELDS}_parameters={count}"
            headers = {"Location": f"?{said}", **_NO_STORE}
            await Response(status_code=303, headers=headers)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _is_of_this_machine(server: Any) -> bool:
    try:
        return ipaddress.ip_address(str(server[0])).is_loopback
    except (ValueError, TypeError, IndexError):
        return False


def draw_unexpected(error: Exception) -> bool:
    """Draw an error that Streamlit has caught and logged as a sentence with its id."""
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
    return [
        Route(f"{prefix}/healthz", healthz),
        Route(f"{prefix}/readyz", readyz),
        *door.routes(prefix, has_login=has_login, search=answers.ask_for_program),
        *_metrics(prefix),
    ]


def _metrics(prefix: str) -> list[Route]:
    if os.environ.get(METRICS, "").strip().lower() != "on":
        return []
    if find_spec("prometheus_client") is None:
        raise not_installed("prometheus_client", "metrics")
    from app.api import metrics

    return metrics.routes(prefix, load=answers.load)


rerun_log.configure()
app = st.App(
    Path(__file__).with_name("main.py"),
    routes=_routes(),
    middleware=[Middleware(UserHeaderGuard), Middleware(LongLinkGuard)],
    lifespan=_lifespan,
    on_script_error=draw_unexpected,
)
