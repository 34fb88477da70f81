"""How long the page takes, measured inside the page: from the event to the text that it changes.

The clock starts with the event and stops at the first frame after the watched text is another one,
so that neither the test's own process nor its connection to the browser is part of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from playwright.sync_api import Page, WebSocket

from tests.support.browsing import IDLE, TABS

MOST_S = 30
REPEATS, PART_S = 15, 25.0

# Acts on one element and waits until the text of others has changed, and then until all is idle.
ACT = """async ([act, selector, nth, value, watched, until]) => {
  const text = () =>
    Array.from(document.querySelectorAll(watched)).map(e => e.textContent).join('|');
  const idle = IDLE;
  const frame = () => new Promise(r => requestAnimationFrame(r));
  const wait = performance.now() + 5000;  // a table draws its cells after the page is idle
  while (performance.now() < wait && !(text() && document.querySelectorAll(selector)[nth]))
    await frame();
  const el = document.querySelectorAll(selector)[nth];
  if (!el) return null;
  if (act === 'type') {
    el.focus();
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(el, value);
    el.dispatchEvent(new Event('input', {bubbles: true}));
    await new Promise(r => setTimeout(r, 50));
  }
  const before = text(), start = performance.now();
  if (act === 'type')
    el.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}));
  else el.click();
  let changed = 0, settled = 0;
  while (performance.now() - start < until * 1000 && !(changed && settled)) {
    await frame();
    const now = performance.now();
    if (!changed && text() !== before) changed = now - start;
    if (changed && idle()) settled = now - start;
  }
  return changed && settled ? [changed, settled] : null;
}""".replace("IDLE", IDLE)

FIRST = """async ([watched, until]) => {
  while (performance.now() < until * 1000) {
    if (document.querySelector(watched)?.innerText) break;
    await new Promise(r => requestAnimationFrame(r));
  }
  return performance.now();
}"""


@dataclass
class Traffic:
    """Bytes that the page got over its websocket."""

    received: list[int] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.on("websocket", self._watch_socket)

    def _watch_socket(self, socket: WebSocket) -> None:
        socket.on("framereceived", lambda payload: self.received.append(len(payload)))

    def since(self, before: int) -> tuple[int, int]:
        """Bytes since a number of messages, and those of the largest message."""
        new = self.received[before:]
        return sum(new), max(new, default=0)


@dataclass(frozen=True)
class Took:
    """One action: milliseconds to the new text and until all is idle; bytes it took."""

    text_ms: float
    settled_ms: float
    received: int
    largest: int


@dataclass
class Reader:
    """One open page, and what each action on it took."""

    page: Page
    url: str
    traffic: Traffic = field(default_factory=Traffic)

    def __post_init__(self) -> None:
        self.traffic.watch(self.page)

    def open(self, path: str) -> float:
        """Milliseconds from the navigation to the first number of the answer."""
        self.page.goto(self.url + path, wait_until="commit")
        shown = self.page.evaluate(FIRST, ['[data-testid="stMetricValue"]', MOST_S])
        self.settle()
        return float(shown)

    def settle(self) -> None:
        self.page.wait_for_function(IDLE, timeout=MOST_S * 1000)
        self.page.wait_for_timeout(150)
        self.page.wait_for_function(IDLE, timeout=MOST_S * 1000)

    def act(
        self, act: str, selector: str, *, watched: str, value: str = "", nth: int = 0
    ) -> Took | None:
        """Click, or type and press Enter; None where nothing came of it."""
        before = len(self.traffic.received)
        took = self.page.evaluate(ACT, [act, selector, nth, value, watched, MOST_S])
        self.page.wait_for_timeout(120)
        if took is None:
            return None
        received, largest = self.traffic.since(before)
        return Took(took[0], took[1], received, largest)

    def follow(self, number: int) -> tuple[str, Took | None]:
        """Click a tab, or after the last one a link under More; its title and what it took."""
        selector, under = '.st-key-tabs [data-testid="stPageLink"] a', number - len(TABS)
        if under >= 0:
            self.page.locator(".st-key-tabs").get_by_test_id("stPopover").click()
            selector, number = '[data-testid="stPopoverBody"] [data-testid="stPageLink"] a', under
        link = self.page.locator(selector).nth(number)
        title = link.inner_text()
        return title, self.act("click", selector, nth=number, watched="h1, h2")


def repeated(action: Callable[[int], Took | None], most_s: float = PART_S) -> list[Took]:
    """What an action took, as often as time allows."""
    until, found = time.monotonic() + most_s, []
    for n in range(REPEATS):
        if (took := action(n)) is not None:
            found.append(took)
        if time.monotonic() > until:
            break
    return found
