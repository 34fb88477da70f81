"""What a page has asked its server for and has not been answered: read from its websocket.

An edit reaches the server some time after the click, and Streamlit (1.67) marks nothing in between:
on a busy machine the page looks idle with what it had before.
"""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Page, Request, WebSocket
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

ASKS = ("rerun_script", "clear_cache", "file_urls_request")  # each is answered


@dataclass
class Traffic:
    """Messages of a page that nothing has answered yet."""

    asked: bool = False  # for a run that has not begun, or where to put a file
    uploading: bool = False  # a file whose upload has not led to a run yet
    running: bool = False
    ended: int = 0  # runs of this connection

    def watch(self, page: Page) -> None:
        """Read along from the next connection on."""
        page.on("websocket", self._opened)
        page.on("request", lambda r: self._put(r, begins=True))
        page.on("requestfailed", lambda r: self._put(r, begins=False))

    def is_quiet(self) -> bool:
        """Whether everything that was asked for was answered to its end."""
        return not (self.asked or self.uploading or self.running)

    def _opened(self, socket: WebSocket) -> None:
        self.asked = self.uploading = self.running = False  # what was asked before is lost
        self.ended = 0
        socket.on("framesent", self._sent)
        socket.on("framereceived", self._received)

    def _put(self, request: Request, *, begins: bool) -> None:
        if request.method == "PUT":
            self.uploading = begins

    def _sent(self, payload: str | bytes) -> None:
        kind = BackMsg.FromString(payload).WhichOneof("type")  # type: ignore[arg-type]
        self.asked = self.asked or kind in ASKS
        if kind == "rerun_script":
            self.uploading = False

    def _received(self, payload: str | bytes) -> None:
        kind = ForwardMsg.FromString(payload).WhichOneof("type")  # type: ignore[arg-type]
        if kind in ("new_session", "file_urls_response"):
            self.asked = False
        if kind in ("new_session", "script_finished"):
            self.running = kind == "new_session"
            self.ended += kind == "script_finished"
