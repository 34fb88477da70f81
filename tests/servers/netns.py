"""Nodes of their own network on this machine, joined by a link of known bandwidth.

Each node is a network namespace with an address of 10.77.0.0/24 on a bridge, a token bucket on
what it sends and its own sshd. Only the network is separate: cores, files and clock are shared.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.servers.sshd import Keys, program, serving

BRIDGE, CONTROLLER, PORT = "rcbr0", "10.77.0.254", 22
# Of a full Ethernet frame as the shaper counts it, 1,514 bytes, TCP with timestamps carries 1,448.
PAYLOAD = 1448 / 1514
# Messages up to the burst pass the shaper unshaped. A timer that comes later than the burst lasts
# loses what the link could have carried: 2 kB at 200 Mbit/s forgive 80 us (0.85 to 0.90 of the rate
# was carried), 8 kB at 100 Mbit/s 650 us (0.97 to 0.99, with a core busy or not).
SHAPER = ("burst", "8kb", "latency", "20ms")


def missing() -> str:
    """Why there can be no such nodes here; '' if there can."""
    if os.geteuid() != 0:
        return "Network namespaces need root."
    if lacks := [p for p in ("ip", "tc", "ethtool") if not shutil.which(p)]:
        return f"There is no {', '.join(lacks)}: apt-get install iproute2 ethtool."
    if program() is None:
        return "There is no sshd: apt-get install openssh-server."
    for command in ("ip netns add rcprobe", "ip netns exec rcprobe tc qdisc add dev lo root tbf "
                    "rate 1mbit burst 2kb latency 20ms"):  # fmt: skip
        done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
        if done.returncode:
            _try("ip netns del rcprobe")
            return f"The kernel allows no namespaces or no token bucket: {done.stderr.strip()}."
    _try("ip netns del rcprobe")
    return ""


@dataclass(frozen=True)
class Node:
    """One node: its name for ssh, its namespace and its address."""

    name: str
    namespace: str
    address: str


@dataclass(frozen=True)
class Nodes:
    nodes: tuple[Node, ...]
    config: Path  # for `ssh -F`
    truth_bytes_per_s: float


@contextmanager
def shaped_nodes(folder: Path, *, num_nodes: int, rate_mbit: int) -> Iterator[Nodes]:
    """Nodes whose links carry `rate_mbit` of frames."""
    keys = Keys(folder)
    keys.make()
    known = folder / "known_hosts"
    nodes = tuple(Node(f"node{i}", f"rcn{i}", f"10.77.0.{i}") for i in range(1, num_nodes + 1))
    with ExitStack() as stack:
        stack.callback(_remove, nodes)
        _remove(nodes)  # of a run that was killed
        _run(f"ip link add {BRIDGE} type bridge")
        _run(f"ip addr add {CONTROLLER}/24 dev {BRIDGE}")
        _run(f"ip link set {BRIDGE} up")
        for i, node in enumerate(nodes, start=1):
            inside = f"ip -n {node.namespace}"
            _run(f"ip netns add {node.namespace}")
            _run(f"{inside} link set lo up")
            _run(f"ip link add rcb{i} type veth peer name rcv{i} netns {node.namespace}")
            _run(f"ip link set rcb{i} master {BRIDGE} up")
            _run(f"{inside} addr add {node.address}/24 dev rcv{i}")
            _run(f"{inside} link set rcv{i} up")
            _run(f"ethtool -K rcb{i} tso off gso off gro off")
            execute = f"ip netns exec {node.namespace}"
            _run(f"{execute} ethtool -K rcv{i} tso off gso off gro off")
            _run(f"{execute} tc qdisc add dev rcv{i} root tbf rate {rate_mbit}mbit "
                 + " ".join(SHAPER))  # fmt: skip
        known.write_text("".join(keys.known(node.address, PORT) for node in nodes))
        config = folder / "ssh_config"
        config.write_text("".join(keys.client(n.name, n.address, PORT, known) for n in nodes))
        for node in nodes:
            stack.enter_context(
                serving(keys, node.address, PORT, "ip", "netns", "exec", node.namespace)
            )
        yield Nodes(nodes, config, rate_mbit * 1e6 / 8 * PAYLOAD)


def _remove(nodes: tuple[Node, ...]) -> None:
    for i, node in enumerate(nodes, start=1):
        _try(f"ip link del rcb{i}")  # at once; with the namespace alone it goes later
        _try(f"ip netns del {node.namespace}")
    _try(f"ip link del {BRIDGE}")


def _run(command: str) -> None:
    done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
    assert not done.returncode, f"{command}: {done.stderr}"


def _try(command: str) -> None:
    with suppress(OSError):
        subprocess.run(command.split(), capture_output=True, check=False)
