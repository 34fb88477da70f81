"""Many people at once: `python -m tests.support.load --sessions 50 --processes 1,2,4`.

Each session is a websocket client with a scenario of its own. It opens its link, thinks, edits its
training tokens to numbers that nobody else has, thinks again. After every run it looks at all that
it was sent: a number of another session is an error, and so is an answer that is not its own. One
real Chromium edits beside them. `--processes` above 1 are behind a real nginx with sticky sessions.

What is printed: seconds until the server has sent the whole page (the browser's own: until it shows
the new text), memory that a session adds, processor time of a rerun: alone on a server whose
searches are done (the median), and under the load (the mean, searches of new scenarios with it).
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

from tests.bench.ui_page import Reader
from tests.servers import nginx
from tests.support.browsing import FEW, FLAGS, ROOT, Server, served
from tests.support.page_client import Seen, crossed, session
from tests.support.processes import MIB, cpu_s, rss_bytes

SECRET = "of-the-tests-0123456789abcdef"
BATCH, SEQ_LEN = 512, 8192  # of the scenarios: what the steps of an answer are counted with
ALONE = 20  # reruns whose processor time is measured one by one
RAMP_S = 0.2  # between two people who come
BROWSER, BROWSER_EDITS = 800, 5  # its number among the sessions
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@dataclass
class Load:
    """What so many sessions on so many processes came to."""

    processes: int
    sessions: int
    opens_s: list[float] = field(default_factory=list)
    edits_s: list[float] = field(default_factory=list)
    kilobytes: list[float] = field(default_factory=list)
    browser_ms: list[float] = field(default_factory=list)
    alone_cpu_ms: list[float] = field(default_factory=list)
    load_cpu_ms: float = math.nan
    session_mib: float = math.nan
    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)  # what a session saw of another one

    def line(self) -> str:
        browser = f"{median(self.browser_ms):.0f}" if self.browser_ms else "-"
        return (
            f"{self.processes:>9}{self.sessions:>9}{len(self.edits_s):>7}"
            f"{_p(self.opens_s, 50):>9.2f}{_p(self.opens_s, 95):>7.2f}"
            f"{_p(self.edits_s, 50):>9.2f}{_p(self.edits_s, 95):>7.2f}"
            f"{max(self.edits_s, default=math.nan):>7.2f}{browser:>9}"
            f"{self.session_mib:>9.2f}{_p(self.alone_cpu_ms, 50):>8.0f}{self.load_cpu_ms:>8.0f}"
            f"{_p(self.kilobytes, 50):>7.0f}{len(self.errors):>8}{len(self.foreign):>9}"
        )


HEAD = (
    f"{'':>9}{'':>9}{'':>7}{'open, s':>16}{'edit, s':>23}{'browser':>9}{'MiB a':>9}"
    f"{'CPU ms a rerun':>16}{'kB':>7}{'':>8}{'of':>9}\n"
    f"{'processes':>9}{'sessions':>9}{'edits':>7}{'p50':>9}{'p95':>7}{'p50':>9}{'p95':>7}"
    f"{'most':>7}{'p50 ms':>9}{'session':>9}{'alone':>8}{'load':>8}{'edit':>7}{'errors':>8}"
    f"{'others':>9}"
)


def _p(values: Sequence[float], percent: int) -> float:
    if len(values) < 2:
        return values[0] if values else math.nan
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def tokens_of(number: int, edit: int) -> str:
    """A number of training tokens that no other session has at any time."""
    return str(100_000_000_000 + number * 1_000_000_000 + edit * 10_000_000)


def link_of(tokens: str) -> str:
    return f"{FEW.removeprefix('?')}&{urlencode({'num_tokens': tokens})}"


def wrong(seen: Seen, tokens: str) -> list[str]:
    """What in a run is not of the session's own scenario."""
    found = [f"{n} tokens beside {tokens}" for n in sorted(crossed(seen, tokens))]
    steps = math.ceil(int(tokens) / (BATCH * SEQ_LEN))
    if f"{steps:,} steps" not in seen.text:
        found.append(f"no plan of {steps:,} steps for {tokens} tokens")
    return found


# --- the servers ---------------------------------------------------------------------------------


@contextmanager
def servers(count: int, folder: Path) -> Iterator[tuple[str, list[Server], nginx.Proxy | None]]:
    """So many processes on one data folder; more than one are behind nginx."""
    env = {"STREAMLIT_SERVER_COOKIE_SECRET": SECRET, "RUNCAST_DATA_DIR": str(folder / "data")}
    with ExitStack() as stack:
        found = [
            stack.enter_context(served(folder / f"{n}.log", "--server.allowedHosts=127.0.0.1",
                                       **env)) for n in range(count)
        ]  # fmt: skip
        if count == 1:
            yield found[0].url, found, None
            return
        proxy = stack.enter_context(nginx.started(folder, [s.port for s in found]))
        yield proxy.url, found, proxy


def pid_of(server: Server) -> int:
    assert server.process is not None
    return server.process.pid


# --- the people ----------------------------------------------------------------------------------


async def _alone(server: Server, load: Load, reruns: int) -> None:
    """Processor time of reruns whose answers are known, on a server that does nothing else."""
    tokens = [tokens_of(0, n) for n in (1, 2)]
    async with session(server.url) as one:
        await one.open(link_of(tokens[0]))
        for n in range(4):
            await one.edit(form_num_tokens=tokens[n % 2])
        for n in range(reruns):
            before = cpu_s(pid_of(server))
            await one.edit(form_num_tokens=tokens[n % 2])
            await asyncio.sleep(0.02)  # the run's thread ends after its last message
            load.alone_cpu_ms.append((cpu_s(pid_of(server)) - before) * 1000)


@dataclass
class Crowd:
    """Everybody of one measurement: who is here, and when the last one has come."""

    url: str
    load: Load
    edits: int
    think_s: float
    come: asyncio.Barrier
    go: asyncio.Event = field(default_factory=asyncio.Event)
    stay: asyncio.Event = field(default_factory=asyncio.Event)

    async def person(self, number: int, cookie: str) -> None:
        """One person, from the link to the last edit; then the page stays open."""
        rng = random.Random(number)
        came = False
        try:
            await asyncio.sleep(number * RAMP_S)
            async with session(self.url, cookie=cookie) as one:
                self._note(self.load.opens_s, await one.open(link_of(tokens_of(number, 0))),
                           tokens_of(number, 0))  # fmt: skip
                came = True
                await self.come.wait()
                await self.go.wait()
                for edit in range(1, self.edits + 1):
                    await asyncio.sleep(self.think_s * rng.uniform(0.5, 1.5))
                    tokens = tokens_of(number, edit)
                    self._note(self.load.edits_s, await one.edit(form_num_tokens=tokens), tokens)
                await self.come.wait()
                await self.stay.wait()
        except Exception as e:  # noqa: BLE001 - whatever it is, it is the finding
            self.load.errors.append(f"session {number}: {type(e).__name__}: {e}")
            for _ in range(1 if came else 2):
                await self.come.wait()

    def _note(self, into: list[float], seen: Seen, tokens: str) -> None:
        into.append(seen.seconds)
        self.load.kilobytes.append(seen.received / 1000)
        self.load.foreign += wrong(seen, tokens)
        self.load.errors += seen.alerts


def _browse(url: str, load: Load, begin: float) -> None:
    """One person with a real browser: edits until the page shows the new text."""
    chromium = next(filter(None, map(shutil.which, BROWSERS)), None)
    if chromium is None:
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.on("pageerror", lambda e: load.errors.append(f"the browser: {e}"))
        reader = Reader(page, url)
        reader.open("/?" + link_of(tokens_of(BROWSER, 0)))
        time.sleep(max(0.0, begin - time.monotonic()))
        for edit in range(1, BROWSER_EDITS + 1):
            took = reader.act("type", 'input[aria-label="Training tokens"]',
                              value=tokens_of(BROWSER, edit),
                              watched='[data-testid="stMain"] [data-testid="stCode"]')  # fmt: skip
            if took is None:
                load.errors.append("the browser showed no new link within its time")
                continue
            load.browser_ms.append(took.text_ms)
            shown = page.get_by_test_id("stMain").get_by_test_id("stCode").inner_text()
            if f"num_tokens={tokens_of(BROWSER, edit)}" not in shown:
                load.foreign.append(f"the browser shows {shown}")
        browser.close()


async def measured(
    folder: Path, count: int, sessions: int, edits: int, think_s: float, *,
    browser: bool = True, alone: int = ALONE,
) -> Load:  # fmt: skip
    """One row of the table: so many sessions on so many processes."""
    load = Load(count, sessions)
    with servers(count, folder) as (url, found, proxy):
        pids = [pid_of(s) for s in found]
        for server in found:
            await _alone(server, load, alone)
        before = sum(map(rss_bytes, pids))
        crowd = Crowd(url, load, edits, think_s, asyncio.Barrier(sessions + 1))
        cookies = [proxy.cookie() if proxy else "" for _ in range(sessions)]
        everybody = [
            asyncio.create_task(crowd.person(n, cookies[n - 1])) for n in range(1, sessions + 1)
        ]
        await crowd.come.wait()
        cpu, runs = sum(map(cpu_s, pids)), len(load.edits_s)
        clicks = asyncio.to_thread(_browse, url, load, time.monotonic()) if browser else None
        there = asyncio.create_task(clicks) if clicks else None
        crowd.go.set()
        await crowd.come.wait()
        if there:
            await there
        runs = len(load.edits_s) - runs + len(load.browser_ms)
        load.load_cpu_ms = (sum(map(cpu_s, pids)) - cpu) / max(runs, 1) * 1000
        load.session_mib = (sum(map(rss_bytes, pids)) - before) / sessions / MIB
        crowd.stay.set()
        await asyncio.gather(*everybody)
    return load


def where() -> str:
    """Commit, day and machine of a measurement."""
    git = ["git", "log", "-1", "--format=%h"]
    done = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False)
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC at {done.stdout.strip() or 'no commit'}, "
        f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.support.load")
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--processes", default="1,2,4")
    parser.add_argument("--edits", type=int, default=5)
    parser.add_argument("--think-s", type=float, default=8.0)
    parser.add_argument("--no-browser", action="store_true")
    given = parser.parse_args()
    print(where())
    print(HEAD)
    bad = 0
    for count in map(int, given.processes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            load = asyncio.run(
                measured(Path(folder), count, given.sessions, given.edits, given.think_s,
                         browser=not given.no_browser)
            )  # fmt: skip
        print(load.line(), flush=True)
        for said in [*load.errors, *load.foreign][:10]:
            print(f"  {said}")
        bad += len(load.errors) + len(load.foreign)
    print(f"load average after: {os.getloadavg()[0]:.1f}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
