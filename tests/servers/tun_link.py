"""A link of known rate and known delay between two network namespaces, in user space.

    python tun_link.py NAMESPACE NAMESPACE RATE_MBIT DELAY_MS

Each namespace gets a TUN device `rct0` with the address 10.78.0.1 or .2. A packet that one side
sends waits for its turn at the rate, then for the delay, and is written to the other side. "ready"
is printed when it works. On SIGTERM it says which share of the packets it wrote over a millisecond
late, and ends: with too many of them the link was not the one that was asked for.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress

DEVICE, ADDRESSES = "rct0", ("10.78.0.1", "10.78.0.2")
# Of an IP packet of 1,500 bytes, TCP with timestamps carries 1,448.
PAYLOAD = 1448 / 1500
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
LATE_S = 1e-3
CLONE_NEWNET = 0x40000000


def enter(namespace: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    held = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    if libc.setns(held, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
    os.close(held)


def opened(namespace: str, address: str) -> int:
    """The packets of a new device in a namespace."""
    enter(namespace)
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    for command in (
        f"ip addr add {address}/24 dev {DEVICE}",
        f"ip link set {DEVICE} up mtu 1500 txqueuelen 4000",
        "sysctl -qw net.ipv4.tcp_slow_start_after_idle=0",  # pauses between samples cost nothing
        "sysctl -qw net.ipv4.tcp_no_metrics_save=1",
    ):
        subprocess.run(command.split(), check=True)
    return device


class Count:
    """Packets that were written, and those of them that were late."""

    written = late = 0


def ended(*_: object) -> None:
    print(Count.late / max(1, Count.written), flush=True)
    os._exit(0)


def relay(one: int, two: int, bits_per_s: float, delay_s: float) -> None:
    """Carry packets both ways, until it is ended."""
    other = {one: two, two: one}
    free_at = {one: 0.0, two: 0.0}
    waiting: dict[int, deque[tuple[float, bytes]]] = {one: deque(), two: deque()}
    while True:
        now = time.monotonic()
        for side, queue in waiting.items():
            while queue and queue[0][0] <= now:
                Count.written += 1
                Count.late += now - queue[0][0] > LATE_S
                with suppress(OSError):  # the other side's device is down: the packet is lost
                    os.write(other[side], queue.popleft()[1])
        due = [queue[0][0] for queue in waiting.values() if queue]
        pause = max(0.0, min(due) - time.monotonic()) if due else None
        for side in select.select([one, two], [], [], pause)[0]:
            with suppress(BlockingIOError):
                while True:
                    packet = os.read(side, 2048)
                    begin = max(time.monotonic(), free_at[side])
                    free_at[side] = begin + len(packet) * 8 / bits_per_s
                    waiting[side].append((free_at[side] + delay_s, packet))


def main(first: str, second: str, rate_mbit: float, delay_ms: float) -> None:
    one, two = opened(first, ADDRESSES[0]), opened(second, ADDRESSES[1])
    signal.signal(signal.SIGTERM, ended)
    with suppress(PermissionError):
        os.nice(-15)  # other work of the machine is not to change the link
    print("ready", flush=True)
    relay(one, two, rate_mbit * 1e6, delay_ms / 1e3)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
