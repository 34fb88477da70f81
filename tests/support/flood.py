"""A flood of costly links whose senders close the connection: `python -m tests.support.flood`.

Each asks for every accelerator at 32 numbers of GPUs, and is another question. After a second its
connection is closed; then a new visitor asks something cheap. What is printed: how long that one
waits, alone before and right after the flood, and the memory of the server once it is idle.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from streamlit.proto.BackMsg_pb2 import BackMsg

from tests.support.browsing import served
from tests.support.load import pid_of, where
from tests.support.page_client import session
from tests.support.processes import MIB, cpu_s, rss_bytes

FLOOD = 48
STAYS_S = 1.0
IDLE_S, IDLE_SHARE, MOST_S = 3.0, 0.05, 20.0  # of a core: what is left of a flood
COUNTS = ",".join(str(8 * n) for n in range(1, 33))
CHEAP = "model=llama3.1-8b&gpu=H100-80GB-SXM&num_gpus=8&num_tokens={}B"


@dataclass(frozen=True, kw_only=True)
class Flooded:
    """What a new visitor and the server had of it."""

    opened: int
    alone_s: float
    cheap_s: float
    before_mib: float
    most_mib: float
    left_mib: float

    def line(self) -> str:
        return (
            f"{self.opened} costly links, closed after {STAYS_S:g} s: a cheap question takes "
            f"{self.cheap_s:.2f} s right after them, {self.alone_s:.2f} s alone; the server holds "
            f"{self.before_mib:.0f} MiB before, {self.most_mib:.0f} at most, {self.left_mib:.0f} "
            "after"
        )


async def _gone(url: str, number: int) -> None:
    """Follow a costly link and go without a word."""
    message = BackMsg()
    message.rerun_script.query_string = (
        f"model=deepseek-v3&num_gpus={COUNTS}&num_tokens={number + 1}000000000000"
        f"&global_batch_size={1024 + 32 * number}"
    )
    async with session(url) as one:
        await one.line.send(message.SerializeToString())
        await asyncio.sleep(STAYS_S)
        one.line.close_timeout = 0.0  # it read nothing, so that it would wait 10 s for a word


async def _cheap(url: str, tokens: int) -> float:
    async with session(url) as one:
        return (await one.open(CHEAP.format(tokens))).seconds


async def flooded(folder: Path) -> Flooded:
    """A server of its own, flooded once."""
    with served(folder / "log", RUNCAST_DATA_DIR=str(folder / "data")) as server:
        pid = pid_of(server)
        await _cheap(server.url, 1)  # everything is loaded
        await _gone(server.url, FLOOD)
        await asyncio.sleep(2.0)
        alone_s = await _cheap(server.url, 2)
        before = rss_bytes(pid)
        await asyncio.gather(*(_gone(server.url, n) for n in range(FLOOD)))
        most = rss_bytes(pid)
        cheap_s = await _cheap(server.url, 3)
        until, left, idle_s = time.monotonic() + MOST_S, most, 0.0
        while time.monotonic() < until and idle_s < IDLE_S:
            spent_s = cpu_s(pid)
            await asyncio.sleep(0.5)
            idle_s = idle_s + 0.5 if cpu_s(pid) - spent_s < IDLE_SHARE * 0.5 else 0.0
            left = rss_bytes(pid)
            most = max(most, left)
    return Flooded(
        opened=FLOOD, alone_s=alone_s, cheap_s=cheap_s, before_mib=before / MIB,
        most_mib=most / MIB, left_mib=left / MIB,
    )  # fmt: skip


def main() -> None:
    print(where())
    with tempfile.TemporaryDirectory() as folder:
        print(asyncio.run(flooded(Path(folder))).line())


if __name__ == "__main__":
    main()
