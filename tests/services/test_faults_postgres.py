"""PostgreSQL is restarted while a page, a refresh and people's saves use it: all three go on."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import time

import pytest

from tests.services.test_faults_kill import everything
from tests.support import event_loop
from tests.support.browsing import FEW, ROOT, served
from tests.support.forks import forks, until_printed
from tests.support.page_client import session

pytestmark = [pytest.mark.services, pytest.mark.slow]

RESTARTS = 3
DOWN_S = 0.5


class Refreshes:
    """A process that refreshes again and again, and what it printed."""

    def __init__(self, folder, environ):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.feeds.refreshing", str(folder), "0"],
            cwd=ROOT, env={**os.environ, **environ}, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.lines = []
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def published(self):
        return [line for line in self.lines if re.fullmatch("[0-9a-f]{12}", line)]

    def end(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


async def _saves(one, name):
    """Save on the page; what it says."""
    seen = await one.click("saved_save", saved_name=name)
    assert " expected (P10-P90 " in seen.text
    return " ".join(seen.alerts)


def test_a_restarted_postgresql_is_used_again_and_nothing_acknowledged_is_lost(
    tmp_path, monkeypatch, postgres_server, postgres_url
):
    environ = {"RUNCAST_DATABASE_URL": postgres_url, "RUNCAST_DATA_DIR": str(tmp_path / "data")}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with forks() as boss, served(tmp_path / "log", **environ) as server:
        refreshes = Refreshes(tmp_path / "data/prices", environ)
        people = boss.start("tests.support.acknowledged", 0, environ=environ)
        try:
            until_printed(people, 4)
            figures = event_loop.run(_restarted(postgres_server, server, people, refreshes))
        finally:
            people.kill()
            refreshes.end()
        written = people.out
    possible, begun = {}, None
    for line in written.splitlines():
        if line == "done":
            possible[begun["kind"], begun["name"]] = {begun["step"]}
        elif line.startswith("refused: "):
            assert " cannot be used: " in line
        else:
            begun = json.loads(line)
            possible.setdefault((begun["kind"], begun["name"]), {None}).add(begun["step"])
    here = everything()
    ours = {key for key in here if not key[1].startswith("page")}
    assert ours <= possible.keys()
    for key, steps in possible.items():
        assert here.get(key) in steps, (key, here.get(key), steps)
    told = [line for line in refreshes.lines if line not in refreshes.published()]
    assert all(" cannot be used: " in line for line in told), told
    done, refused = written.count("done"), written.count("refused: ")
    print(
        f"{RESTARTS} restarts of PostgreSQL under load, {done} writes acknowledged, none lost, "
        f"{refused} refused with a sentence; from its start to the next save on the page "
        f"{max(figures['page']):.1f} s at most, to the next write and refresh of other processes "
        f"{max(figures['both']):.1f} s"
    )
    assert done > 2 * RESTARTS


async def _restarted(postgres, server, people, refreshes):
    """Stop and start it; seconds until each of the three uses it again."""
    found = {"page": [], "both": []}
    async with session(server.url) as one:
        await one.open(FEW)
        await one.edit(saved_section=True)
        assert "Saved as" in await _saves(one, "page 0")
        for n in range(1, RESTARTS + 1):
            await asyncio.to_thread(postgres.stop)
            if n == 1:  # the page says why, and stands
                assert " cannot be used: " in await _saves(one, "page lost")
            await asyncio.sleep(DOWN_S)
            await asyncio.to_thread(postgres.start)
            began, writes, ids = time.monotonic(), people.out.count("done"), refreshes.published()
            # A failed save leaves the section without its field: the next run has it again.
            await one.edit(saved_section=True)
            assert "Saved as" in await _saves(one, f"page {n}")
            found["page"].append(time.monotonic() - began)
            while people.out.count("done") == writes or len(refreshes.published()) == len(ids):
                assert time.monotonic() - began < 60, (people.out[-500:], refreshes.lines[-3:])
                await asyncio.sleep(0.02)
            found["both"].append(time.monotonic() - began)
    return found
