"""The routes of /api/v1: read a request, bound it, answer with JSON.

A mistake is status 400 and one sentence. RUNCAST_API=off serves none of them; where the page asks
for a login, which covers the page alone, they answer only with RUNCAST_API=on.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeAlias

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.api.openapi import PATH, description
from app.api.questions import ASKED, SEARCH, Ask, as_texts
from app.api.rate import Rate
from app.log import log
from app.web.searches import BusyError
from core.errors import RuncastError, ScenarioError
from core.scenario import MAX_QUERY_CHARS
from hardware.outside.json_text import Bounds, OutsideError, json_value

Search: TypeAlias = Callable[[Callable[[], Any], Mapping[str, str], str], Future[Any]]

SWITCH = "RUNCAST_API"
BODY_BYTES = 64_000
BODY = Bounds(num_bytes=BODY_BYTES, values=4_000, depth=4, is_printable=True)
_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
_rate = Rate()


class TooLongError(RuncastError):
    """A body over the bound."""


def routes(prefix: str = "", *, has_login: Callable[[], bool], search: Search) -> list[Route]:
    """One route for each question, and the description; none if they are switched off. `search`
    puts what searches into the queue of the pages, for an address."""
    if _switch() == "off":
        return []
    found = [
        Route(
            f"{prefix}{PATH}/{name}",
            _answering(ask, has_login, search),
            methods=["GET", "POST"],
            name=f"api_{name}",
        )
        for name, ask in ASKED.items()
    ]
    return [*found, Route(f"{prefix}{PATH}/openapi.json", _described, name="api_openapi")]


def _switch() -> str:
    return os.environ.get(SWITCH, "").strip().lower()


async def _described(request: Request) -> Response:
    return _json(description())


def _answering(ask: Ask, has_login: Callable[[], bool], search: Search) -> Callable[[Request], Any]:
    async def answering(request: Request) -> Response:
        with log.request(log.Request(log.new_id(), page="api")):
            took = log.stopwatch(time.thread_time)
            status = 500
            try:
                answer = await answered(request)
                status = answer.status_code
                return answer
            finally:
                log.event("api", question=ask.__name__, status=status, ms=took()["ms"])

    async def answered(request: Request) -> Response:
        if has_login() and _switch() != "on":
            return _error(403, f"This server asks for a login: its operator sets {SWITCH}=on.")
        address = request.client.host if request.client else ""
        if wait_s := _rate.wait_s(address):
            return _error(
                429, f"Too many requests: ask again in {wait_s:.1f} s.", {"Retry-After": "1"}
            )
        try:
            texts = await _texts(request)
            call = partial(ask, texts)
            if ask in SEARCH:
                return _json(await asyncio.wrap_future(search(call, texts, address)))
            return _json(await run_in_threadpool(log.carried(call)))
        except TooLongError as e:
            return _error(413, str(e))
        except BusyError as e:
            return _error(503, str(e), {"Retry-After": "10"})
        except RuncastError as e:
            return _error(400, e.named(lambda field: field))

    return answering


async def _texts(request: Request) -> dict[str, str]:
    """The keys of a request, as texts: of its query, else of its body."""
    if request.method == "GET":
        query = request.url.query
        if len(query) > MAX_QUERY_CHARS:
            raise TooLongError(f"The query is longer than {MAX_QUERY_CHARS} characters.")
        given = request.query_params.multi_items()
        if len({name for name, _ in given}) < len(given):
            raise ScenarioError("A key is given twice: give its values with commas.")
        return dict(given)
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > BODY_BYTES:
            raise TooLongError(f"The body is longer than {BODY_BYTES:,} bytes.")
    try:
        value = json_value(body or b"{}", BODY)
    except OutsideError as e:
        raise ScenarioError(f"The body {e.clause}.") from None
    if not isinstance(value, dict):
        raise ScenarioError('The body is not a JSON object such as {"model": "llama3.1-8b"}.')
    return as_texts(value)


def _json(value: Any) -> Response:
    return Response(
        orjson.dumps(value, option=_OPTIONS),
        media_type="application/json",
        headers={"Cache-Control": "no-store"},
    )


def _error(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        orjson.dumps({"error": sentence}, option=_OPTIONS),
        status_code=status,
        media_type="application/json",
        headers={"Cache-Control": "no-store", **(headers or {})},
    )
