"""SkyPilot: its own parser of tasks and of commands, and a stand-in for the cloud behind it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runners.launchers.quoting import LaunchError
from runners.launchers.skypilot import SkyPilot
from tests.servers.launch import lacking
from tests.support.launched import followed, gone, job

pytestmark = [pytest.mark.services, pytest.mark.slow]

# Reads a task with SkyPilot's schema, and a command line with the options of its command.
CHECK = """
import json, sys
from pathlib import Path
import sky
from sky.client.cli import command
asked = json.loads(Path(sys.argv[1]).read_text())
task = sky.Task.from_yaml(asked["task"])
(resources,) = task.resources
taken = []
for words in asked["commands"]:
    context = getattr(command, words[1]).make_context(words[1], list(words[2:]))
    taken.append({k: v for k, v in context.params.items() if v not in (None, False, (), [])})
print(json.dumps({"nodes": task.num_nodes, "accelerators": resources.accelerators,
                  "spot": resources.use_spot, "files": task.file_mounts, "taken": taken},
                 default=str))
"""

# `sky` without a cloud: the "machine" is a folder, which is its home.
CLOUD = """#!{python}
import os, shutil, subprocess, sys
from pathlib import Path
import yaml
home = Path({home!r})
words = sys.argv[1:]
if words[0] == "launch":
    task = yaml.safe_load(Path(words[-1]).read_text())
    for there, here in task["file_mounts"].items():
        place = home / there.removeprefix("~/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(here, place)
    env = {{**os.environ, "HOME": str(home), "SKYPILOT_NODE_RANK": "0",
           "SKYPILOT_NODE_IPS": "127.0.0.1"}}
    subprocess.run(["bash", "-c", task["setup"]], env=env, cwd=home, check=True)
    done = subprocess.run(["bash", "-c", task["run"]], env=env, cwd=home, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    name = task["name"]
    (home / "log").write_text("".join(
        f"\\x1b[36m({{name}}, pid=7)\\x1b[0m {{line}}\\n" for line in done.stdout.splitlines()))
    (home / "status").write_text("0" if not done.returncode else "100")
elif words[:2] == ["logs", "--status"]:
    sys.exit(int((home / "status").read_text()) if (home / "status").exists() else 102)
elif words[0] == "logs":
    sys.stdout.write((home / "log").read_text())
elif words[0] == "down":
    (home / "down").write_text(words[-1])
"""


def sky_python() -> str | None:
    """An interpreter with skypilot: the one that is named, or that of `make clusters`."""
    if named := os.environ.get("RUNCAST_SKY_PYTHON"):
        return named
    found = Path(sys.prefix, "sky/bin/python")
    return str(found) if found.exists() else None


@pytest.fixture(autouse=True)
def _runs(tmp_path, monkeypatch):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path / "data"))


def checked(launch, folder):
    """What SkyPilot itself makes of a launch."""
    if sky_python() is None:
        lacking(
            "No interpreter has skypilot: `make clusters`, or RUNCAST_SKY_PYTHON names one.",
            installable=False,
        )
    for path, content in launch.files.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(content)
    (task,) = [p for p in launch.files if p.endswith("task.yaml")]
    asked = folder / "asked.json"
    asked.write_text(json.dumps({"task": task, "commands": launch.commands}))
    return subprocess.run(
        [str(sky_python()), "-c", CHECK, str(asked)], capture_output=True, text=True, check=False,
        env={**os.environ, "HOME": str(folder), "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"},
        timeout=120,
    )  # fmt: skip


def test_skypilot_itself_reads_the_task_and_the_commands(tmp_path):
    made = job(num_nodes=2)
    place = SkyPilot("H100:8", infra="aws/us-east-1", use_spot=True)
    launch = place.plan(made)
    more = (place._status(made), ("sky", "down", "--yes", made.name))
    done = checked(type(launch)(launch.files, (*launch.commands, *more)), tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["nodes"] == 2
    assert found["accelerators"] == {"H100": 8}
    assert found["spot"] is True
    assert set(found["files"].values()) == {str(made.folder / n) for n in made.files()}
    launched, status, down = found["taken"]
    assert launched["yes"] is launched["down"] is launched["detach_run"] is True
    assert launched["cluster"] == made.name
    assert launched["idle_minutes_to_autostop"] == 5
    assert status["status"] is True
    assert down["clusters"] == [made.name]


def test_a_key_that_skypilot_does_not_know_is_refused_by_it(tmp_path):
    launch = SkyPilot("H100:8").plan(job())
    files = {
        p: c.replace(b"num_nodes:", b"num_node:") if p.endswith(".yaml") else c
        for p, c in launch.files.items()
    }
    done = checked(type(launch)(files, launch.commands), tmp_path)
    assert done.returncode != 0
    assert "num_node" in done.stderr


@pytest.fixture
def cloud(tmp_path, monkeypatch):
    """A program called sky, first on the path."""
    home = tmp_path / "home"
    home.mkdir()
    program = tmp_path / "bin" / "sky"
    program.parent.mkdir()
    program.write_text(CLOUD.format(python=sys.executable, home=str(home)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return home


def test_what_a_cluster_prints_comes_back_and_the_cluster_is_taken_down(cloud):
    made = job(groups=["a", "b"])
    result, told = followed(SkyPilot("H100:8", poll_s=0.1), made)
    assert result["groups"] == ["a", "b"]
    assert (told[-1].state, told[-1].done) == ("done", 2)
    assert (cloud / "down").read_text() == made.name
    assert gone(made.run_id, 5)


def test_a_job_that_fails_on_the_cluster_says_so(cloud):
    with pytest.raises(LaunchError, match="failed: runcast: node 0: the probe ended with status 7"):
        followed(SkyPilot("H100:8", poll_s=0.1), job(groups=["a"], plan={"dies_at": "a"}))
    assert (cloud / "status").read_text() == "100"
    assert (cloud / "down").exists()  # what failed costs nothing more
