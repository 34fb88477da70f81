"""People who come, edit at random and go, for half an hour: `python -m tests.support.soak --minutes
30`.

What is watched is the server's process: memory, open files, threads. The half hour has parts. After
each everybody has gone, and once the server has forgotten them (after two minutes) it is looked at:
what grows between such rests is kept for nobody. The first part fills the caches. The scenarios are
drawn from a set that is larger than what the server keeps of answers, so caches turn over.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.support.browsing import served
from tests.support.load import pid_of, where
from tests.support.page_client import PageError, Session, crossed, session
from tests.support.processes import MIB, cpu_s, num_files, num_threads, rss_bytes

PARTS = 6
PAUSE_S = 125.0  # the server keeps who left for two minutes
SAMPLE_S = 5.0
MOST_MIB_PER_THOUSAND = 5.0  # edits: of the line through the rests, beyond two standard errors
MOST_FILES, MOST_THREADS = 3, 3  # more at the last rest than at the second
GPUS = ("H100-80GB-SXM", "A100-80GB-SXM", "H200-141GB-SXM", "B200-180GB")
MODELS = ("llama3.1-8b", "llama3.1-70b", "qwen2.5-7b", "mixtral-8x7b")
PAGES = (
    "Plan", "Compare", "Memory & speed", "Risk & money", "Launch", "Method",
    "Audit", "Prices", "Calibrate", "Accuracy", "Published advice, checked",
)  # fmt: skip


@dataclass(frozen=True)
class Rest:
    """What the process holds with nobody there, after so many edits."""

    edits: int
    rss_mib: float
    files: int
    threads: int


@dataclass
class Most:
    """The most that the process held while people were there."""

    rss_mib: float = 0.0
    files: int = 0
    threads: int = 0

    def look(self, pid: int) -> None:
        self.rss_mib = max(self.rss_mib, rss_bytes(pid) / MIB)
        self.files = max(self.files, num_files(pid))
        self.threads = max(self.threads, num_threads(pid))


def mib_per_thousand(rests: Sequence[Rest]) -> tuple[float, float]:
    """MiB per thousand edits of a line through the memory of the rests, and its standard error."""
    x = np.array([rest.edits for rest in rests]) / 1000
    y = np.array([rest.rss_mib for rest in rests])
    (slope, start) = np.polyfit(x, y, 1)
    left = float(np.sum((y - (slope * x + start)) ** 2))
    spread = float(np.sum((x - x.mean()) ** 2))
    return float(slope), float(np.sqrt(left / max(len(rests) - 2, 1) / spread))


@dataclass
class Done:
    """What the sessions did, and what went wrong."""

    sessions: int = 0
    edits: int = 0
    wrong: list[str] = field(default_factory=list)


def query_of(rng: random.Random) -> str:
    """One of about 40,000 scenarios."""
    gpus = ",".join(sorted(rng.sample(GPUS, rng.choice((1, 2)))))
    return (
        f"model={rng.choice(MODELS)}&gpu={gpus}&cloud=aws&num_gpus=64,256"
        f"&num_tokens={rng.randrange(1, 200)}000000000&seq_len={rng.choice((4096, 8192))}"
    )


async def _edit(one: Session, rng: random.Random) -> None:
    """Anything that somebody does on the Plan page, or another page and back."""
    what = rng.random()
    if what < 0.5:
        tokens = f"{rng.randrange(1, 200)}000000000"
        seen = await one.edit(form_num_tokens=tokens)
        if found := crossed(seen, tokens):
            raise PageError(f"{found} beside {tokens}")
    elif what < 0.6:
        await one.edit(form_seq_len=rng.choice(("2048", "4096", "8192", "16384")))
    elif what < 0.7:
        await one.edit(form_num_tokens=rng.choice(("-1", "nonsense", "1e999", "")))
    elif what < 0.8:
        if "form_section_failures" not in one.ids:
            await one.click("form_more")
        await one.edit(form_section_failures=rng.random() < 0.5)
    elif what < 0.9:
        await one.open(query_of(rng))
    else:
        await one.follow(rng.choice(PAGES))
        await one.follow("Plan")


async def _person(url: str, rng: random.Random, until: float, done: Done) -> None:
    """Come, edit a few times, go without a word; again and again."""
    while time.monotonic() < until:
        try:
            async with session(url) as one:
                done.sessions += 1
                await one.open(query_of(rng))
                for _ in range(rng.randrange(1, 12)):
                    if time.monotonic() > until:
                        break
                    await asyncio.sleep(rng.uniform(0.2, 2.0))
                    await _edit(one, rng)
                    done.edits += 1
        except Exception as e:  # noqa: BLE001 - whatever it is, it is the finding
            done.wrong.append(f"{type(e).__name__}: {e}"[:300])
            await asyncio.sleep(1.0)


async def soak(url: str, pid: int, minutes: float, people: int, seed: str, done: Done) -> Most:
    """So many people for so many minutes."""
    until, most = time.monotonic() + minutes * 60, Most()
    crowd = [
        asyncio.create_task(_person(url, random.Random(f"{seed} {n}"), until, done))
        for n in range(people)
    ]
    while time.monotonic() < until:
        await asyncio.sleep(SAMPLE_S)
        most.look(pid)
    await asyncio.gather(*crowd)
    return most


async def at_rest(url: str, pid: int, edits: int) -> Rest:
    """Wait until the server has forgotten everybody: it does when the next one comes."""
    await asyncio.sleep(PAUSE_S)
    async with session(url) as one:
        await one.open(query_of(random.Random(0)))
    await asyncio.sleep(1.0)
    return Rest(edits, rss_bytes(pid) / MIB, num_files(pid), num_threads(pid))


def verdict(rests: Sequence[Rest], done: Done) -> list[str]:
    """What is not flat after the first part, and what went wrong; empty where all is well."""
    found, settled = list(done.wrong), rests[1:]
    slope, error = mib_per_thousand(settled)
    if slope - 2 * error > MOST_MIB_PER_THOUSAND:
        found.append(
            f"memory grows by {slope:.0f} MiB per thousand edits (standard error {error:.0f})"
        )
    for name, first, last, most in (
        ("open files", settled[0].files, settled[-1].files, MOST_FILES),
        ("threads", settled[0].threads, settled[-1].threads, MOST_THREADS),
    ):
        if last - first > most:
            found.append(f"{name} grow from {first} to {last}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.support.soak")
    parser.add_argument("--minutes", type=float, default=30.0, help="of edits, without the rests")
    parser.add_argument("--people", type=int, default=6)
    parser.add_argument("--seed", type=int, default=11)
    given = parser.parse_args()
    print(where())
    done, rests = Done(), []
    with tempfile.TemporaryDirectory() as folder:
        data = str(Path(folder) / "data")
        with served(Path(folder) / "log", RUNCAST_DATA_DIR=data) as server:
            pid = pid_of(server)
            for part in range(PARTS):
                minutes, seed = given.minutes / PARTS, f"{given.seed} {part}"
                most = asyncio.run(soak(server.url, pid, minutes, given.people, seed, done))
                rest = asyncio.run(at_rest(server.url, pid, done.edits))
                rests.append(rest)
                print(
                    f"after {rest.edits:6d} edits: {rest.rss_mib:4.0f} MiB, {rest.files} files, "
                    f"{rest.threads} threads at rest; at most {most.rss_mib:4.0f} MiB, "
                    f"{most.files} files, {most.threads} threads",
                    flush=True,
                )
            cpu = cpu_s(pid)
    slope, error = mib_per_thousand(rests[1:])
    print(
        f"{given.minutes:g} minutes, {done.sessions} sessions, {done.edits} edits, {cpu:.0f} s of "
        f"processor; after the first part {slope:+.1f} MiB per thousand edits (standard error "
        f"{error:.1f})"
    )
    found = verdict(rests, done)
    for said in found[:20]:
        print(said)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
