"""A screen of blocks that is drawn again in place, on a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rich.live import Live
from rich.text import Text

from app.document.blocks import Block, Section
from app.document.terminal import console, print_blocks


class Screen:
    """Blocks on a terminal; without one nothing is drawn until the last ones."""

    def __init__(self) -> None:
        self._out = console()
        self._live = Live(console=self._out, auto_refresh=False, vertical_overflow="crop")
        self._last: tuple[Block | Section, ...] = ()

    def __enter__(self) -> Self:
        if self._out.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._out.is_terminal:
            self._live.stop()
        elif kind is None:
            print_blocks(self._out, self._last)

    def show(self, blocks: Iterable[Block | Section]) -> None:
        """Draw blocks in place of those before."""
        self._last = tuple(blocks)
        if not self._out.is_terminal:
            return
        with self._out.capture() as captured:
            print_blocks(self._out, self._last)
        self._live.update(Text.from_ansi(captured.get()), refresh=True)
