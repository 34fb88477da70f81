"""`runcast mcp`: the seven questions as tools of a Model Context Protocol server."""

from __future__ import annotations

from importlib.util import find_spec

from core.errors import not_installed


def mcp() -> None:
    """Answer agents by the Model Context Protocol.

    On standard input and output; tools: plan, estimate, programme, audit, offers, models, gpus
    (docs/api.md).
    """
    if find_spec("mcp") is None:
        raise not_installed("mcp", "mcp")
    import asyncio

    from app.api.mcp_tools import serve_stdio

    asyncio.run(serve_stdio())
