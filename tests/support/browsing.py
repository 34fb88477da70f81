"""A running page and a browser of fresh profiles, each watched for errors and foreign hosts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, WebSocket, expect, sync_playwright
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.support.page_traffic import Traffic
from tests.support.processes import free_port

ROOT = Path(__file__).parents[2]
START_S = 60
SETTLE_S = 60
expect.set_options(timeout=SETTLE_S * 1000)  # not 5 s: other tests run beside this one
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
# The row of tabs, what stands under More, and the page that a plan leads to; each with its address.
TABS = {
    "Plan": "/",
    "Compare": "/options",
    "Risk & money": "/risk",
    "Launch": "/launch",
    "Calibrate": "/calibration",
}
MORE = {
    "Run": "/run",
    "Prices": "/prices",
    "Audit": "/audit",
    "Published advice, checked": "/decisions",
    "Accuracy": "/accuracy",
    "Method": "/method",
}
MEMORY = "Where its bytes and seconds go"
PAGES = {"Plan": "/", MEMORY: "/memory", **TABS, **MORE}
# A scenario that is searched fast.
FEW = "?gpu=H100-80GB-SXM,A100-80GB-SXM&cloud=aws&num_gpus=64,512"
SCREENSHOTS = "RUNCAST_SCREENSHOTS"  # a folder that keeps the pictures of the pages
TALLEST = 12_000  # pixels of a picture

# Streamlit marks the run on its root element; stale parts are those of the run before.
IDLE = """() => {
  const app = document.querySelector('[data-testid="stApp"]');
  return app && app.dataset.testScriptState === 'notRunning'
    && app.dataset.testConnectionState === 'CONNECTED'
    && !document.querySelector('[data-stale="true"]')
    && !document.querySelector('[data-testid="stSkeleton"]')
    && !document.querySelector('[data-testid="stSpinner"]')
    && !document.querySelector('.st-key-first_look') }"""
# What stands out at the side; what scrolls within itself does not.
OVERHANG = """main => {
  const right = main.getBoundingClientRect().right + 1;
  const scrolls = e => {
    for (let a = e.parentElement; a && a !== main; a = a.parentElement)
      if (getComputedStyle(a).overflowX !== 'visible' && a.getBoundingClientRect().right <= right)
        return true;
    return false };
  const found = [...main.querySelectorAll('*')].filter(e => {
    const box = e.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && box.right > right && !e.closest('svg') && !scrolls(e)
  }).map(e => `${e.tagName} ${e.dataset.testid || ''} ${e.innerText || ''}`.slice(0, 80));
  if (main.scrollWidth > main.clientWidth + 1) found.unshift('the page itself');
  return found }"""
# How long the page is: what is loaded when it is needed (a table, a chart) draws after all is idle.
LENGTH = """() => [...document.querySelectorAll('[data-testid="stMain"], '
  + '[data-testid="stSidebarContent"]')].map(e => e.scrollHeight).join()"""
BACKGROUND = """() => getComputedStyle(document.querySelector('[data-testid="stApp"]'))
  .backgroundColor"""
TWO_FRAMES = "() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"
# What Streamlit writes into its log when a widget is used wrongly.
WIDGET_WARNINGS = ("Session State API", "widget with key", "DuplicateWidgetID", "deprecated")


@dataclass
class User:
    """One person: a browser profile with one tab, and everything that went wrong in it."""

    page: Page
    base_url: str
    wrong: list[str] = field(default_factory=list)
    traffic: Traffic = field(default_factory=Traffic)

    def open(self, query: str = "") -> None:
        """Open the page at a link and wait for its answer."""
        self.traffic.ended = 0
        self.page.goto(self.base_url + query)
        self._settled(ended=1)

    def settle(self) -> None:
        """Wait until the page has drawn its answer, and nothing moves any more."""
        self.page.wait_for_timeout(300)  # a selection takes a moment to be sent
        self._settled()

    def _settled(self, *, ended: int = 0) -> None:
        """Wait until so many runs of this connection have ended, and nothing moves any more."""
        until, quiet, length = time.monotonic() + SETTLE_S, 0, ""
        while quiet < 3:
            self.page.wait_for_function(IDLE, timeout=SETTLE_S * 1000)
            before, length = length, self.page.evaluate(LENGTH)
            is_still = self.traffic.ended >= ended and self.traffic.is_quiet()
            quiet = quiet + 1 if is_still and length == before else 0
            assert time.monotonic() < until, f"the page does not settle: {self.traffic}"
            self.page.wait_for_timeout(30)
        self.page.evaluate(TWO_FRAMES)

    def type(self, label: str, text: str) -> None:
        """Type into a field of the form, as a person does."""
        box = self.page.get_by_label(label, exact=True)
        box.fill(text)
        box.press("Enter")
        self.settle()

    def press(self, name: str) -> None:
        """Press a button."""
        self.page.get_by_role("button", name=name, exact=True).click()
        self.settle()

    def short_link(self) -> str:
        """The short link of the saved scenario that is open in the sidebar."""
        code = self.page.get_by_test_id("stSidebar").get_by_test_id("stCode")
        return code.inner_text().strip()

    def unfold(self, title: str) -> None:
        """Open a section of the form; its fields are drawn then."""
        self.more_settings()
        self.page.get_by_test_id("stSidebar").locator("summary").filter(has_text=title).click()
        self.settle()

    def more_settings(self) -> None:
        """Show the parts of the form that are behind More."""
        button = self.page.get_by_role("button", name="More settings")
        if button.count():
            button.click()
            self.settle()

    def follow(self, label: str, path: str) -> None:
        """Click a link to another page and wait until it is there."""
        if label in MORE:
            self.page.locator(".st-key-tabs").get_by_test_id("stPopover").click()
        self.page.get_by_role("link", name=label, exact=True).click()
        self.page.wait_for_url(re.compile(rf"^{re.escape(self.base_url + path)}(\?|$)"))
        self.settle()

    def walk(self) -> Iterator[str]:
        """Every page by its link, from the one that is open; each page's own name in turn."""
        for label, path in PAGES.items():
            self.page.set_viewport_size(self.window())
            self.follow(label, path)
            self.unroll()
            yield path.strip("/") or "plan"

    def themes(self) -> Iterator[str]:
        """Both themes of the page that is open, each as a system that changes to it shows it."""
        shown = []
        for theme in ("light", "dark"):
            self.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            self.settle()
            shown.append(self.page.evaluate(BACKGROUND))
            yield theme
        assert len(set(shown)) == 2, f"the page did not change its theme: {shown}"

    def window(self) -> dict[str, int]:
        """The size of the window before anything was unrolled."""
        width = self.page.viewport_size["width"]  # type: ignore[index]
        return {"width": width, "height": 844 if width < 600 else 900}

    def back(self) -> None:
        self.page.go_back()
        self.settle()

    def forward(self) -> None:
        self.page.go_forward()
        self.settle()

    def query(self) -> str:
        return self.page.url.partition("?")[2]

    def value(self, label: str) -> str:
        return self.page.get_by_label(label, exact=True).input_value()

    def sentence(self) -> str:
        return self.page.get_by_test_id("stMarkdown").nth(1).inner_text()

    def headlines(self) -> list[str]:
        """The four numbers on top, with their labels."""
        return self.page.get_by_test_id("stMetric").all_inner_texts()

    def table(self) -> list[str]:
        """The cells of the ranked table as a screen reader reads them."""
        cells = self.page.get_by_test_id("stDataFrame").first.locator('[role="gridcell"]')
        cells.first.wait_for(state="attached")
        return cells.all_text_contents()

    def notes(self) -> list[str]:
        return self.page.get_by_test_id("stAlert").all_inner_texts()

    def link(self) -> str:
        """The link that the page offers to copy."""
        return self.page.get_by_test_id("stCode").inner_text().strip()

    def unroll(self) -> None:
        """Make the window as high as the page, so that all of it is drawn."""
        width = self.page.viewport_size["width"]  # type: ignore[index]
        for _ in range(2):  # what comes into sight may grow
            height = self.page.get_by_test_id("stMain").evaluate("e => e.scrollHeight")
            self.page.set_viewport_size({"width": width, "height": min(height + 1, TALLEST)})
            self.settle()

    def overhang(self) -> list[str]:
        """What of the page stands out at its side, as somebody would look for it."""
        return list(self.page.get_by_test_id("stMain").evaluate(OVERHANG))


@dataclass
class Server:
    """`streamlit run` of the page on one port, which may be killed and started again."""

    log: Path
    options: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it is healthy; the log is written on."""
        self.port = self.port or free_port()
        command = [
            sys.executable, "-m", "streamlit", "run", "app/main.py",
            f"--server.port={self.port}", "--server.address=127.0.0.1", *self.options,
        ]  # fmt: skip
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": str(ROOT), **self.env},
            )
        until = time.monotonic() + START_S
        while time.monotonic() < until and self.process.poll() is None:
            if is_healthy(self.url):
                return
            time.sleep(0.1)
        pytest.fail(f"the page did not start: {self.log.read_text()}")

    def stop(self, *, kill: bool = False) -> None:
        """End it: politely, or as a machine does that loses power."""
        if self.process is None:
            return
        (self.process.kill if kill else self.process.terminate)()
        self.process.wait(20)
        self.process = None

    def complaints(self) -> list[str]:
        """What the log should not have; a traceback whole."""
        said = self.log.read_text()
        if "Traceback" in said:
            return [said]
        return [line for line in said.splitlines() if any(w in line for w in WIDGET_WARNINGS)]


@contextmanager
def served(log: Path, *options: str, **env: str) -> Iterator[Server]:
    """A server of one's own; at the end its log must be clean."""
    server = Server(log, options, env)
    try:
        server.start()
        yield server
    finally:
        server.stop()
    assert server.complaints() == []


@pytest.fixture(scope="session")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page as `streamlit run` serves it; its log must stay clean."""
    data = tmp_path_factory.getbasetemp() / "data"  # as in conftest.py: no developer's own
    with served(tmp_path_factory.mktemp("server") / "log", RUNCAST_DATA_DIR=str(data)) as server:
        yield server.url


@pytest.fixture(scope="session")
def keep_picture() -> Callable[[User, str], None]:
    """Keep a picture of a page, in the folder that RUNCAST_SCREENSHOTS names; none without it."""
    named = os.environ.get(SCREENSHOTS)

    def keep(user: User, name: str) -> None:
        if named:
            user.page.screenshot(path=Path(named, f"{name}.png"))

    return keep


def is_healthy(url: str) -> bool:
    """Whether a server of the page answers there."""
    try:
        with urllib.request.urlopen(f"{url}/_stcore/health", timeout=1) as answer:
            return answer.read() == b"ok"
    except OSError:
        return False


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    """Chromium; every `new_user` is a fresh profile in it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def new_user(base_url: str, browser: Browser) -> Iterator[Callable[..., User]]:
    """Make a user; at the end nobody may have met an error or a foreign host."""
    users: list[User] = []

    def make(**options: object) -> User:
        given = {
            "viewport": {"width": 1440, "height": 900},
            "reduced_motion": "reduce",
            "locale": "en-US",
            "timezone_id": "UTC",
            **options,
        }
        context = browser.new_context(**given)  # type: ignore[arg-type]
        context.set_default_timeout(SETTLE_S * 1000)
        context.route(re.compile(r"^https?://(?!127\.0\.0\.1)"), lambda route: route.abort())
        user = User(context.new_page(), base_url)
        user.traffic.watch(user.page)
        user.page.on("pageerror", lambda e: user.wrong.append(str(e)))
        user.page.on("dialog", lambda d: (user.wrong.append(d.message), d.dismiss()))
        user.page.on("request", lambda r: _note_foreign(user, r.url))
        users.append(user)
        return user

    yield make
    for user in users:
        user.page.context.close()
    assert [w for user in users for w in user.wrong] == []


def connections(user: User) -> list[int]:
    """How many runs each connection of the page has seen to their end; call before it opens.

    After a connection is lost, the page still shows what it had: only a run of the next one says
    that the server is there again.
    """
    runs: list[int] = []

    def opened(socket: WebSocket) -> None:
        runs.append(0)
        n = len(runs) - 1

        def received(payload: str | bytes) -> None:
            said = ForwardMsg.FromString(payload)  # type: ignore[arg-type]
            runs[n] += said.WhichOneof("type") == "script_finished"

        socket.on("framereceived", received)

    user.page.on("websocket", opened)
    return runs


def reconnect(user: User, runs: list[int], lost: int, label: str, text: str) -> None:
    """Wait until a later connection than the first `lost` ones is there, and edit a field.

    Streamlit (1.67) runs nothing when it reconnects: the first edit makes a new session, which
    begins with the link. So this edit is not taken, and the next one is.
    """
    until = time.monotonic() + START_S
    while len(runs) == lost:
        assert time.monotonic() < until, f"the page does not come back: {runs}"
        user.page.wait_for_timeout(50)
    user.page.wait_for_function(IDLE, timeout=60_000)
    user.type(label, text)
    while not any(runs[lost:]):
        assert time.monotonic() < until, f"the page does not run again: {runs}"
        user.page.wait_for_timeout(50)
    user.settle()


def _note_foreign(user: User, url: str) -> None:
    if not url.startswith((user.base_url, "data:", "blob:", user.base_url.replace("http", "ws"))):
        user.wrong.append(url)
