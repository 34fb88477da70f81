"""`runcast watch` on two processes that train on this machine with the exported FSDP2 files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.servers.launch import ROOT, environ

pytestmark = [pytest.mark.services, pytest.mark.slow, pytest.mark.serial]

MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
    "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
}  # fmt: skip
HEALTHY, FAULTY = 200, 155  # steps
SLOW, KILLED, NOT_FINITE, SAVED = 75, 125, 145, 40  # steps at which it happens; each 40th is saved
EVERY_S, SLOW_S, STEADY_S = 0.15, 0.3, 0.25
# Data comes at a fixed rate and is kept until it is used: what else runs here moves the end little.
# The rate begins after the first steps, whose lateness the next ones would make up for.
WAITS = """\
    DUE.append((DUE[-1] if len(DUE) > 4 else time.monotonic()) + (%g if step < %d else %g))
    time.sleep(max(DUE[-1] - time.monotonic(), 0.0))
"""
KILLS = f"""\
    if step == {KILLED} and dist.get_rank() == 1 and not os.path.exists("killed"):
        Path("killed").touch()
        os.kill(os.getpid(), 9)
"""
BROKEN = f"""\
        if step == {NOT_FINITE}:
            with torch.no_grad():
                [p.mul_(float("nan")) for p in model.parameters()]
"""
DATA, STEP = "    seed = (step *", "        loss = step_of("
FIRST = "def batch("


class Watched:
    """A training run in a folder, and the states that `runcast watch` beside it gave."""

    def __init__(self, folder: Path, steps: int, data: str, step: str = "") -> None:
        self.folder, self.steps, self.data, self.step = folder, steps, data, step
        self.processes: list[subprocess.Popen[bytes]] = []
        folder.mkdir()

    def start(self) -> None:
        """Export the files, put the faults in, start torchrun and the watcher."""
        (self.folder / "config.json").write_text(json.dumps(MODEL))
        made = [
            sys.executable, "-m", "app.cli", "export", "--config", self.folder / "config.json",
            "--tokens", self.steps * 4 * 64, "--seq-len", 64, "--global-batch-size", 4, "--gpu",
            "h100", "--num-gpus", 2, "--sharding", "fsdp2", "--to", "fsdp2,torchrun", "--name",
            "tiny", "--out", self.folder / "files",
        ]  # fmt: skip
        subprocess.run(
            [str(word) for word in made], cwd=ROOT, env=environ(self.folder), check=True,
            capture_output=True, timeout=200,
        )  # fmt: skip
        script = self.folder / "files/fsdp2_train.py"
        text = script.read_text()
        assert text.count(DATA) == text.count(STEP) == 1
        text = text.replace(DATA, self.data + DATA).replace(STEP, self.step + STEP)
        script.write_text(text.replace(FIRST, f"DUE = []\n\n\n{FIRST}"))
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        launch = self.folder / "files/torchrun.sh"
        command = f"bash torchrun.sh --device cpu --resume --checkpoint-every {SAVED}"
        command += " --checkpoint-dir kept"
        self._begin(
            ["bash", "-c", f"{command} || {command}"], "run.log", cwd=launch.parent,
            env=environ(self.folder, PATH=path, GLOO_SOCKET_IFNAME="lo", PYTHONPATH=""),
        )  # fmt: skip
        self._begin(
            [sys.executable, "-m", "app.cli", "watch", str(self.folder / "run.log"), "--report",
             str(launch), "--every", "1", "--json"],
            "states", cwd=ROOT, env=environ(self.folder),
        )  # fmt: skip

    def _begin(self, words: list[str], out: str, *, cwd: Path, env: dict[str, str]) -> None:
        with (self.folder / out).open("wb") as file:
            started = subprocess.Popen(
                words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=file,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self.processes.append(started)

    def states(self) -> list[dict]:
        """Every state, once the run and the watcher have ended."""
        train, watch = self.processes
        assert train.wait(150) == 0, (self.folder / "run.log").read_text()[-2000:]
        status = watch.wait(30)
        found = (self.folder / "states").read_text()
        assert status in (0, 3), found
        return [json.loads(line) for line in found.splitlines()]

    def end(self) -> None:
        """End what still runs."""
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A run with faults and a steady one, at once: both wait for their data most of the time."""
    folder = tmp_path_factory.mktemp("watched")
    faulty = Watched(folder / "faulty", FAULTY, WAITS % (EVERY_S, SLOW, SLOW_S) + KILLS, BROKEN)
    steady = Watched(folder / "steady", HEALTHY, WAITS % (STEADY_S, HEALTHY, STEADY_S))
    try:
        faulty.start()
        steady.start()
        yield {"faulty": faulty, "steady": steady}
    finally:
        steady.end()
        faulty.end()


def test_the_end_is_known_from_a_tenth_of_the_steps_on(watched):
    states = watched["steady"].states()
    last = states[-1]
    assert (last["done"], last["starts"]) == (True, 1)
    tenth = next(s for s in states if s["share"] >= 0.1)
    assert tenth["share"] < 0.3
    assert tenth["end_s"]["p50"] == pytest.approx(last["elapsed_s"], rel=0.05)
    assert not {a["kind"] for a in last["alerts"]} & {"slowing", "fault", "loss_not_finite"}


def test_a_slow_down_a_killed_rank_and_a_loss_that_is_none_are_alerted_as_what_they_are(watched):
    states = watched["faulty"].states()
    last = states[-1]
    alerts = {a["kind"]: a for a in last["alerts"]}
    slow = alerts["slowing"]
    assert 0.2 < slow["size"] < 0.6
    assert slow["at_s"] - slow["since_s"] < 120
    before = [s for s in states if s["steps"] < SLOW]
    assert before
    assert not any(a["kind"] == "slowing" for s in before for a in s["alerts"])
    assert last["starts"] == 2
    redone = (KILLED - KILLED // SAVED * SAVED) * SLOW_S
    assert redone < last["lost_s"]["restart"] < 60
    assert "exitcode: -9" in alerts["fault"]["sentence"]
    assert alerts["loss_not_finite"]
    assert last["steps"] > FAULTY - 2
