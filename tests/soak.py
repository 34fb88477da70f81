"""People who come, edit at random and go, for half an hour: `python -m tests.soak --minutes 30`.

What is watched is the server's process: memory, open files, threads. After a warm-up, in which the
caches fill, a line is fitted through its memory; the bounds are below. The scenarios are drawn from
a fixed set that is larger than what the server keeps of answers, so caches turn over all the time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

from tests.browsing import served
from tests.load import pid_of, where
from tests.page_client import PageError, Session, crossed, session
from tests.processes import MIB, cpu_s, num_files, num_threads, rss_bytes

SAMPLE_S = 5.0
WARM_UP, LEAST_WARM_UP_S = 0.4, 150.0  # of the time; the server keeps who left for two minutes
MOST_MIB_PER_HOUR = 60.0  # of the fitted line, beyond its own standard error
MOST_FILES, MOST_THREADS = 5, 5  # more at the end than after the warm-up, all sessions gone
GPUS = ("H100-80GB-SXM", "A100-80GB-SXM", "H200-141GB-SXM", "B200-180GB")
MODELS = ("llama3.1-8b", "llama3.1-70b", "qwen2.5-7b", "mixtral-8x7b")
PAGES = (
    "Plan", "Options & compare", "Memory & speed", "Prices & risk", "Launch & export", "Method",
    "Audit", "Price data", "Calibration", "Accuracy", "Recommendations",
)  # fmt: skip


@dataclass
class Watched:
    """Samples of one process over time."""

    pid: int
    at_s: list[float] = field(default_factory=list)
    rss_mib: list[float] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)

    def look(self, at_s: float) -> None:
        self.at_s.append(at_s)
        self.rss_mib.append(rss_bytes(self.pid) / MIB)
        self.files.append(num_files(self.pid))
        self.threads.append(num_threads(self.pid))

    def slope(self, since_s: float) -> tuple[float, float]:
        """MiB an hour of a line through the memory since then, and its standard error.

        Samples beside one another are not independent: the error is that of means of ten parts.
        """
        kept = np.array(self.at_s) >= since_s
        at, rss = np.array(self.at_s)[kept], np.array(self.rss_mib)[kept]
        parts = min(10, len(at))
        x = np.array([part.mean() for part in np.array_split(at, parts)]) / 3600
        y = np.array([part.mean() for part in np.array_split(rss, parts)])
        (slope, start) = np.polyfit(x, y, 1)
        rest = y - (slope * x + start)
        spread = float(np.sum((x - x.mean()) ** 2))
        error = np.sqrt(float(np.sum(rest**2)) / max(parts - 2, 1) / spread) if spread else 0.0
        return float(slope), float(error)


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


async def soak(url: str, pid: int, minutes: float, people: int, seed: int) -> tuple[Watched, Done]:
    """So many people for so many minutes; then nobody, until the server has forgotten them."""
    began, done, watched = time.monotonic(), Done(), Watched(pid)
    until = began + minutes * 60
    crowd = [
        asyncio.create_task(_person(url, random.Random(f"{seed} {n}"), until, done))
        for n in range(people)
    ]
    while time.monotonic() < until:
        await asyncio.sleep(SAMPLE_S)
        watched.look(time.monotonic() - began)
    await asyncio.gather(*crowd)
    return watched, done


def verdict(watched: Watched, done: Done, warm_s: float) -> list[str]:
    """What is not flat, and what went wrong; empty where all is well."""
    slope, error = watched.slope(warm_s)
    later = [n for n, at in enumerate(watched.at_s) if at >= warm_s]
    tenth = max(1, len(later) // 10)
    found = list(done.wrong)
    if slope - 2 * error > MOST_MIB_PER_HOUR:
        found.append(f"memory grows by {slope:.0f} MiB an hour (standard error {error:.0f})")
    for name, values, most in (("open files", watched.files, MOST_FILES),
                               ("threads", watched.threads, MOST_THREADS)):  # fmt: skip
        first = median(values[n] for n in later[:tenth])
        last = median(values[n] for n in later[-tenth:])
        if last - first > most:
            found.append(f"{name} grow from {first:g} to {last:g}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.soak")
    minutes = float(os.environ.get("SOAK_MINUTES", "30"))
    parser.add_argument("--minutes", type=float, default=minutes)
    parser.add_argument("--people", type=int, default=6)
    parser.add_argument("--seed", type=int, default=11)
    given = parser.parse_args()
    print(where())
    with tempfile.TemporaryDirectory() as folder:
        data = str(Path(folder) / "data")
        with served(Path(folder) / "log", RUNCAST_DATA_DIR=data) as server:
            pid = pid_of(server)
            watched, done = asyncio.run(
                soak(server.url, pid, given.minutes, given.people, given.seed)
            )
            cpu = cpu_s(pid)
    warm_s = min(max(given.minutes * 60 * WARM_UP, LEAST_WARM_UP_S), given.minutes * 50)
    slope, error = watched.slope(warm_s)
    print(
        f"{given.minutes:g} minutes, {done.sessions} sessions, {done.edits} edits, {cpu:.0f} s of "
        f"processor; memory {watched.rss_mib[0]:.0f} MiB at first, after the warm-up "
        f"{slope:+.0f} MiB an hour (standard error {error:.0f}), {watched.rss_mib[-1]:.0f} MiB at "
        f"the end; open files {watched.files[0]} to {watched.files[-1]} (most "
        f"{max(watched.files)}), threads {watched.threads[0]} to {watched.threads[-1]} (most "
        f"{max(watched.threads)})"
    )
    every = max(1, len(watched.at_s) // 20)
    for at, rss, files, threads in list(zip(watched.at_s, watched.rss_mib, watched.files,
                                            watched.threads, strict=True))[::every]:  # fmt: skip
        print(f"{at:7.0f} s {rss:7.0f} MiB {files:5d} files {threads:5d} threads")
    found = verdict(watched, done, warm_s)
    for said in found[:20]:
        print(said)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
