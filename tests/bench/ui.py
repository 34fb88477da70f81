"""What somebody at the page waits for, in a real Chromium against a real server. `make bench-ui`.

Each line is p50 and P95 of several repeats, from the event in the browser to its new text; scenario
edits and page changes until all is idle. Bytes are what the browser got over the websocket for one
action. Seconds of the server's processor are read from the system. The bars are those of an idle
machine; the load average says how idle this one was, and fixed work, in Chromium and in Python, how
fast: two of one kind differ by a factor of two. With --url it is a server that runs already, say
two behind a proxy.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.bench.ui_page import ACT, MOST_S, PART_S, Reader, Took, repeated
from tests.support.browsing import FLAGS, MORE, TABS, served
from tests.support.load import pid_of
from tests.support.processes import cpu_s

FEW = "/?gpu=H100-80GB-SXM,B200-180GB&deadline_days=14"
EVERY = "/?deadline_days=14"
NUMBERS = '[data-testid="stMetric"]'
LINK = '[data-testid="stMain"] [data-testid="stCode"]'  # which changes with every edit
SORT = '[data-testid="stMain"] [data-testid="stRadio"] [role="radiogroup"] label'
FIXED_WORK = """() => {
  const start = performance.now();
  let sum = 0;
  for (let n = 0; n < 2e7; n++) sum += Math.sqrt(n) % 7;
  return sum > 0 && performance.now() - start;
}"""
THINK_S = 1.0
MOST_KB = 100.0


@dataclass
class Line:
    """One row of the table: a name, milliseconds, the bars they are held against, bytes."""

    name: str
    ms: list[float]
    p50_bar: float | None = None
    p95_bar: float | None = None
    received: list[int] = field(default_factory=list)
    largest: int = 0
    note: str = ""

    def __str__(self) -> str:
        if not self.ms:
            return f"{self.name:<46}{'not there':>9}"
        kb = f"{max(self.received) / 1000:8.1f}" if self.received else f"{'':>8}"
        big = f"{self.largest / 1000:8.1f}" if self.received else f"{'':>8}"
        bars = "/".join(f"{b:.0f}" if b else "-" for b in (self.p50_bar, self.p95_bar))
        return (
            f"{self.name:<46}{self.p50:8.0f}{self.p95:8.0f}  {bars:<10}{len(self.ms):4d}{kb}{big}"
            f"  {self.note}"
        )

    @property
    def p50(self) -> float:
        return statistics.median(self.ms)

    @property
    def p95(self) -> float:
        return sorted(self.ms)[max(0, -(-95 * len(self.ms) // 100) - 1)]

    def is_over(self, times: float) -> bool:
        """Whether it takes longer, or more bytes, than so many times its bars."""
        if not self.ms:
            return False
        bars = ((self.p50_bar, self.p50), (self.p95_bar, self.p95))
        slow = any(bar and got > times * bar for bar, got in bars)
        return slow or max(self.received, default=0) > times * MOST_KB * 1000


def of(name: str, took: list[Took], p50: float | None, p95: float | None, *, settled: bool) -> Line:
    return Line(
        name,
        [t.settled_ms if settled else t.text_ms for t in took],
        p50,
        p95,
        [t.received for t in took],
        max((t.largest for t in took), default=0),
    )


def reader(browser: Browser, url: str) -> Reader:
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, reduced_motion="reduce", locale="en-US"
    )
    return Reader(context.new_page(), url)


def speed(browser: Browser) -> str:
    """How fast this machine is at work that no commit changes, the best of three."""
    page = browser.new_page()
    in_browser = min(float(page.evaluate(FIXED_WORK)) for _ in range(3))
    page.close()
    in_python = []
    for _ in range(3):
        start = time.perf_counter()
        sum(n * n % 7 for n in range(2_000_000))
        in_python.append((time.perf_counter() - start) * 1000)
    return f"fixed work: {in_browser:.0f} ms in Chromium, {min(in_python):.0f} ms in Python"


def first_paint(browser: Browser, url: str, started: float | None) -> list[Line]:
    lines, begun = [], time.monotonic()
    if started is not None:
        one = reader(browser, url)
        ms = one.open(EVERY)
        up = (begun - started) * 1000
        note = f"and {up:.0f} ms from the command to a server that answers"
        lines.append(Line("first numbers, cold server", [ms], None, 4000, note=note))
        one.page.context.close()
    warm = []
    for _ in range(5):
        one = reader(browser, url)
        warm.append(one.open(EVERY))
        one.page.context.close()
    return [*lines, Line("first numbers, new session on a warm server", warm, None, 2500)]


def views(one: Reader, pid: int | None) -> list[Line]:
    """Edits of what is shown: nothing is searched."""
    one.open(FEW)
    before = cpu_s(pid) if pid else float("nan")
    sorts = repeated(lambda n: one.act("click", SORT, nth=(n + 1) % 2, watched=LINK))
    used = (cpu_s(pid) - before) / max(len(sorts), 1) if pid else float("nan")
    line = of("view: sort the table", sorts, 150, 300, settled=False)
    line.note = f"{used * 1000:.0f} ms of the server's processor a rerun" if pid else ""
    part = '[data-testid="stSidebar"] details summary'
    one.page.get_by_role("button", name="More settings").click()
    one.settle()
    opened = repeated(
        lambda n: one.act(
            "click", part, nth=1, watched='[data-testid="stSidebar"] [data-testid="stWidgetLabel"]'
        )
    )
    pins = repeated(
        lambda n: one.act(
            "click", '[data-testid="stMain"] [data-testid="stCheckbox"] input', watched=LINK
        )
    )
    return [
        line,
        of("view: open and close a part of the form", opened, 150, 300, settled=False),
        of("view: pin a plan (until idle)", pins, 150, 300, settled=True),
    ]


def edits(one: Reader) -> list[Line]:
    """Edits of the scenario, each to a value that nobody asked for before."""

    def typed(label: str, value: str) -> Took | None:
        watched = LINK if label == "Deadline (days)" else NUMBERS  # which it may leave as they are
        return one.act("type", f'input[aria-label="{label}"]', value=value, watched=watched)

    one.open(FEW)
    searched = repeated(lambda n: typed("Global batch size", str(192 + 64 * n)))
    limits = repeated(lambda n: typed("Deadline (days)", f"{1 + n / 4:g}"))
    tokens = repeated(lambda n: typed("Training tokens", f"{110 + n}B"))
    one.open(EVERY)
    every = repeated(lambda n: typed("Global batch size", str(192 + 64 * n)), 2 * PART_S)
    deadlines = repeated(lambda n: typed("Deadline (days)", f"{1 + n / 4:g}"))
    return [
        of("edit, two accelerators: batch size (searches)", searched, None, 500, settled=True),
        of("edit, two accelerators: tokens", tokens, None, 500, settled=True),
        of("edit, two accelerators: deadline", limits, None, 500, settled=True),
        of("edit, whole catalogue: first new text", every, None, 500, settled=False),
        of("edit, whole catalogue: batch size (searches)", every, None, 2000, settled=True),
        of("edit, whole catalogue: deadline", deadlines, None, 500, settled=True),
    ]


def pages(one: Reader) -> list[Line]:
    one.open(FEW)
    took: dict[str, list[Took]] = {}
    until = time.monotonic() + 2 * PART_S
    for _ in range(4):  # the first round also reads what only that page needs
        for number in [*range(1, len(TABS) + len(MORE)), 0]:
            title, one_took = one.follow(number)
            if one_took:
                took.setdefault(title, []).append(one_took)
        if time.monotonic() > until:
            break
    again = [t for name in took for t in took[name][1:]]
    lines = [of("page change, all pages", again, None, 700, settled=True)]
    return lines + [of(f"  {t}", took[t][1:], None, 700, settled=True) for t in took]


def users(browser: Browser, url: str, number: int, pid: int | None) -> list[Line]:
    """Everybody edits a view about once a second, in browsers of their own."""
    readers = [reader(browser, url) for _ in range(number)]
    for one in readers:
        one.open(FEW)
    measure = f"a => {{ window.bench = ({ACT})(a); }}"
    found: list[float] = []
    before, start = (cpu_s(pid) if pid else float("nan")), time.monotonic()
    for turn in range(6):
        for one in readers:
            args = ["click", SORT, (turn + 1) % 2, "", LINK, MOST_S]
            one.page.evaluate(measure, args)
            time.sleep(THINK_S / number)
        took = [one.page.evaluate("() => window.bench") for one in readers]
        found += [t[1] for t in took if t]
    used = (cpu_s(pid) - before) / (time.monotonic() - start) if pid else float("nan")
    for one in readers:
        one.page.context.close()
    note = f"{used:.0%} of a core" if pid else ""
    return [Line(f"{number} active users: sort the table", found, None, 2000, note=note)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", help="a server that runs already, in place of one of its own")
    parser.add_argument("--users", type=int, default=10)
    parser.add_argument("--only", default="paint,views,edits,pages,users")
    parser.add_argument("--fail", action="store_true", help="exit 1 at twice a bar")
    given = parser.parse_args()
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
    parts, lines = given.only.split(","), []
    print(f"load average before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    head = f"{'':<46}{'p50 ms':>8}{'p95 ms':>8}  {'bars':<10}{'n':>4}{'most kB':>8}{'largest':>8}"

    def show(new: list[Line]) -> None:
        lines.extend(new)
        for line in new:
            print(line, flush=True)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
        print(f"{speed(browser)}\n{head}")
        with _server(given.url) as (url, pid, started):
            if "paint" in parts:
                show(first_paint(browser, url, started))
            one = reader(browser, url)
            for name, part in (
                ("views", lambda: views(one, pid)), ("edits", lambda: edits(one)),
                ("pages", lambda: pages(one)),
                ("users", lambda: users(browser, url, given.users, pid)),
            ):  # fmt: skip
                if name in parts:
                    show(part())
        browser.close()
    print(f"load average after: {os.getloadavg()[0]:.2f}")
    over = [line.name for line in lines if line.is_over(2)]
    if over:
        print(f"over twice a bar: {', '.join(over)}")
        sys.exit(1 if given.fail else 0)


@contextmanager
def _server(url: str | None) -> Iterator[tuple[str, int | None, float | None]]:
    """A server with an empty store, or the given one: address, process id, when it was started."""
    if url is not None:
        yield url.rstrip("/"), None, None
        return
    with tempfile.TemporaryDirectory() as data:
        started = time.monotonic()
        with served(Path(data) / "log", RUNCAST_DATA_DIR=data) as server:
            yield server.url, pid_of(server), started


if __name__ == "__main__":
    main()
