"""Nodes that run the verbs of on_node.py: this machine, or hosts behind `ssh`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hardware.outside.json_text import Bounds, OutsideError, json_value
from runners.launchers.launcher import Command, Progress
from runners.launchers.quoting import LaunchError, UnreachableError

COMMAND_S = 40.0  # of one command on a node, with its connection
STOP_S = 60.0
# Of each verb, what its answer must have.
ANSWERS: dict[str, dict[str, type]] = {
    "hello": {"address": str, "python": str, "torch": bool},
    "poll": {"state": str, "log": str, "at": int},
    "stop": {"left": int},
}
ANSWER = Bounds(num_bytes=1_000_000, values=1_000, depth=4, digits=20)
LOST = "ended without a message: it was killed, or the node was"


class Nodes:
    """The verbs of on_node.py on several nodes at once."""

    def __init__(self, names: Sequence[str], call: Callable[[int, Command, float], str]) -> None:
        self.names = names
        self._call = call  # node, verb with arguments, seconds -> what it printed
        self._read = dict.fromkeys(range(len(names)), 0)  # bytes of each log

    def ask(self, rank: int, *verb: str, timeout_s: float = COMMAND_S) -> dict[str, Any]:
        """The JSON that a verb prints on one node."""
        text = self._call(rank, verb, timeout_s)
        last = text.rstrip().rpartition("\n")[2]
        try:
            answer = json_value(last, ANSWER)
        except OutsideError as e:
            raise LaunchError(
                f"{self.names[rank]} answered something else than this program: it {e.clause}."
            ) from None
        needed = ANSWERS.get(verb[0], {})
        if not isinstance(answer, dict) or any(
            type(answer.get(name)) is not kind for name, kind in needed.items()
        ):
            raise LaunchError(f"{self.names[rank]} answered something else than this program.")
        return answer

    def ask_all(self, *verb: str, timeout_s: float = COMMAND_S) -> list[dict[str, Any]]:
        """Run one verb on every node in parallel, with RANK replaced by the rank of the node."""

        def one(rank: int) -> dict[str, Any]:
            mine = [str(rank) if word == "RANK" else word for word in verb]
            return self.ask(rank, *mine, timeout_s=timeout_s)

        with ThreadPoolExecutor(min(16, len(self.names))) as pool:
            return list(pool.map(one, range(len(self.names))))

    def poll(self, folder: str) -> Progress:
        """The common state of all nodes. If a node failed, the others are stopped, which would wait
        for it."""
        found = [
            self.ask(rank, "poll", folder, str(rank), str(self._read[rank]))
            for rank in range(len(self.names))
        ]
        for rank, answer in enumerate(found):
            self._read[rank] = answer["at"]
        log = "".join(answer["log"] for answer in found)
        bad = [
            f"{name} {_why(answer)}"
            for name, answer in zip(self.names, found, strict=True)
            if answer["state"] in ("lost", "absent") or answer.get("status")
        ]
        if bad:
            self.stop(folder)
            return Progress("failed", "; ".join(bad), log)
        ended = all(answer["state"] == "ended" for answer in found)
        return Progress("done" if ended else "running", "", log)

    def stop(self, folder: str) -> None:
        """End the run, and everything it started, on every node that answers."""
        left, silent = 0, []
        for rank, name in enumerate(self.names):
            try:
                answer = self.ask(rank, "stop", folder, str(rank), timeout_s=STOP_S)
                left += answer["left"]
            except UnreachableError:
                silent.append(name)
        if silent:
            raise UnreachableError(
                f"{', '.join(silent)} did not answer: the run there ends at its limit."
            )
        if left:
            raise LaunchError(f"{left} processes of the run could not be ended.")


def _why(answer: dict[str, Any]) -> str:
    if answer["state"] == "lost":
        return LOST
    if answer["state"] == "absent":
        return "knows nothing of the run"
    last = [line for line in str(answer["log"]).splitlines() if line.strip()]
    reason = str(answer.get("reason") or f"ended with status {answer.get('status')}")
    errors = [line for line in last if "Error" in line or line.startswith("runcast probe:")]
    return f"failed: {reason}" + (f" ({errors[-1].strip()[:200]})" if errors else "")
