"""A page without a browser: what Chromium says to the server and hears from it, over a websocket.

A session opens a link, edits fields by their keys, clicks buttons and changes pages, each as one
run of the script. What the run drew is kept as text, so that a test can look whose answer it is.
It draws nothing: what a browser adds is measured with one (tests/bench/ui.py).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

ANSWER_S = 120.0  # for one run; what is slower than this hangs
_TEXT = ("body", "value", "label", "title", "code_text")  # of elements that a person reads


class PageError(Exception):
    """The page showed an exception, could not be compiled, or went away."""


@dataclass
class Seen:
    """One run of the script, as its session saw it."""

    seconds: float = 0.0
    received: int = 0  # bytes of all messages
    texts: list[str] = field(default_factory=list)
    alerts: list[str] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    def said_of(self, pattern: bytes) -> set[bytes]:
        """What a pattern's group matches in any message, whatever element that was of."""
        return {found for message in self.raw for found in re.findall(pattern, message)}


@dataclass
class Session:
    """One connection, and what is known of its page."""

    line: ClientConnection
    query: str = ""
    page: str = ""  # hash of the page's script; '' is the first one
    ids: dict[str, str] = field(default_factory=dict)  # of widgets and sections, by their keys
    opened: set[str] = field(default_factory=set)  # sections, which a browser says with every run
    pages: dict[str, str] = field(default_factory=dict)  # hashes by title

    async def open(self, query: str) -> Seen:
        """Follow a link: everything is taken from the address."""
        self.query = query.removeprefix("?")
        return await self._run(BackMsg())

    async def follow(self, title: str) -> Seen:
        """Another page, with the same query."""
        self.page = self.pages[title]
        return await self._run(BackMsg())

    async def edit(self, **fields: str | bool) -> Seen:
        """Type into fields, or open (True) and close sections, as one run."""
        message = BackMsg()
        self.opened |= {name for name, value in fields.items() if value is True}
        self.opened -= {name for name, value in fields.items() if value is False}
        for name, value in fields.items():
            if isinstance(value, str):
                self._state(message, name).string_value = value
            elif not value:
                self._state(message, name).bool_value = False
        return await self._run(message)

    async def click(self, name: str, **fields: str) -> Seen:
        """Press a button; what was typed before goes with it, as a browser sends it."""
        message = BackMsg()
        for other, value in fields.items():
            self._state(message, other).string_value = value
        self._state(message, name).trigger_value = True
        return await self._run(message)

    def _state(self, message: BackMsg, name: str) -> WidgetState:
        try:
            return message.rerun_script.widget_states.widgets.add(id=self.ids[name])
        except KeyError:
            raise PageError(f"the page has no {name}: {sorted(self.ids)}") from None

    async def _run(self, message: BackMsg) -> Seen:
        """Send one message and hear its run to the end."""
        message.rerun_script.query_string = self.query
        if self.page:
            message.rerun_script.page_script_hash = self.page
        for section in sorted(self.opened):
            self._state(message, section).bool_value = True
        begin, seen = time.perf_counter(), Seen()
        await self.line.send(message.SerializeToString())
        async with asyncio.timeout(ANSWER_S):
            while not self._hears(await self.line.recv(decode=False), seen):
                pass
        seen.seconds = time.perf_counter() - begin
        return seen

    def _hears(self, data: bytes, seen: Seen) -> bool:
        """Take one message in; whether the run has ended with the whole page."""
        seen.received += len(data)
        said = ForwardMsg.FromString(data)
        kind = said.WhichOneof("type")
        if kind == "new_session":
            seen.texts, seen.alerts, seen.raw = [], [], []
        elif kind == "page_info_changed":
            self.query = said.page_info_changed.query_string
        elif kind == "navigation":
            self.pages = {p.page_name: p.page_script_hash for p in said.navigation.app_pages}
        elif kind == "delta":
            self._draws(said, seen)
        elif kind == "script_finished":
            if said.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
                raise PageError("the script cannot be compiled")
            return bool(said.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY)
        seen.raw.append(data)
        return False

    def _draws(self, said: ForwardMsg, seen: Seen) -> None:
        what = said.delta.WhichOneof("type")
        if what == "add_block":
            self._knows(said.delta.add_block.expandable.id)
            return
        if what != "new_element":
            return
        kind = said.delta.new_element.WhichOneof("type")
        if kind is None:
            return
        element = getattr(said.delta.new_element, kind)
        self._knows(getattr(element, "id", ""))
        if kind == "exception":
            raise PageError(f"{element.type}: {element.message}")
        texts = [t for n in _TEXT if isinstance(t := getattr(element, n, ""), str) and t]
        seen.texts += texts
        if kind == "alert":
            seen.alerts += texts

    def _knows(self, id: str) -> None:
        """The id of a widget ends with its key."""
        if id.startswith("$$ID-"):
            self.ids[id.split("-", 2)[2]] = id


@asynccontextmanager
async def session(url: str, *, cookie: str = "") -> AsyncIterator[Session]:
    """A new session of the page behind `url`; a cookie keeps it on its process behind nginx."""
    async with connect(
        url.replace("http", "ws", 1) + "/_stcore/stream",
        additional_headers={"Cookie": cookie} if cookie else None,
        origin=url,  # type: ignore[arg-type]
        subprotocols=["streamlit"],  # type: ignore[list-item]
        max_size=None,
        open_timeout=60,
        proxy=None,
    ) as line:
        yield Session(line)


def crossed(seen: Seen, mine: str) -> set[str]:
    """Numbers of training tokens in any link, chart or table of a run that are not one's own."""
    found = {f.decode() for f in seen.said_of(rb"num_tokens=([0-9.e]+)")}
    return {f for f in found if float(f) != float(mine)}
