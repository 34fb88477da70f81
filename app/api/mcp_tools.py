"""The seven questions as tools of a Model Context Protocol server, by the official SDK.

A tool takes the keys of its question as JSON values and answers with the document of `--json`; a
mistake is an error of the tool, one sentence, which its caller reads and mends.
"""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
import orjson
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from app.api.openapi import SUMMARIES, body_schema
from app.api.questions import ASKED, as_texts
from app.scenario.version import version
from core.errors import RuncastError

TOP = "5"  # plans and offers that a model reads, if `top` is left out
LISTS = ("plan", "programme", "offers")
READS_ONLY = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)


async def _listed(context: Any, params: Any) -> types.ListToolsResult:
    tools = [
        types.Tool(
            name=name,
            description=SUMMARIES[name],
            input_schema=body_schema(name),
            annotations=READS_ONLY,
        )
        for name in ASKED
    ]
    return types.ListToolsResult(tools=tools)


async def _called(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    ask = ASKED.get(params.name)
    if ask is None:
        return _said(f"There is no tool {params.name!r}: {', '.join(ASKED)}.", wrong=True)
    try:
        texts = as_texts(params.arguments or {})
        if params.name in LISTS:
            texts = {"top": TOP, **texts}
        found = await asyncio.to_thread(ask, texts)
    except RuncastError as e:
        return _said(e.named(lambda field: field), wrong=True)
    return _said(orjson.dumps(found, option=orjson.OPT_SERIALIZE_NUMPY).decode())


def _said(text: str, *, wrong: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=wrong)


def server() -> Server[Any]:
    """The server, for any transport of the SDK."""
    return Server(
        "runcast",
        version=version(),
        instructions="Forecasts of training runs of language models: time, dollars, layouts. "
        "Numbers may be texts such as 15T or 8k; every document ends its keys in their unit.",
        on_list_tools=_listed,
        on_call_tool=_called,
    )


async def serve_stdio() -> None:
    """Answer on standard input and output until the client closes them."""
    made = server()
    async with stdio_server() as (incoming, outgoing):
        await made.run(incoming, outgoing, made.create_initialization_options())
