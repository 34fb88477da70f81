"""Kubernetes: the real kubectl's command line where there is one, and a stand-in for a cluster.

There is no API server here. The manifest is held against the strict schema in test_launchers.py.
"""

import os
import shutil
import subprocess
import sys

import pytest

from runners.launchers.kubernetes import Kubernetes
from runners.launchers.quoting import LaunchError, UnreachableError
from tests.servers.launch import lacking
from tests.support.launched import followed, gone, job

pytestmark = [pytest.mark.services, pytest.mark.slow]

# `kubectl` without a cluster: applying a Job runs its container's command here, in a folder.
CLUSTER = """#!{python}
import json, os, subprocess, sys
from pathlib import Path
import yaml
at = Path({at!r})
words = [w for w in sys.argv[1:] if not w.startswith(("--namespace", "--context"))]
if words[0] == "apply":
    objects = {{o["kind"]: o for o in yaml.safe_load_all(Path(words[2]).read_text())}}
    mount = at / "mount"
    mount.mkdir(parents=True, exist_ok=True)
    for name, text in objects["ConfigMap"]["data"].items():
        (mount / name).write_text(text)
    container = objects["Job"]["spec"]["template"]["spec"]["containers"][0]
    command = [w.replace("/tmp/runcast", str(at / "work")).replace("/runcast", str(mount))
               for w in container["command"]]
    env = {{**os.environ, "JOB_COMPLETION_INDEX": "0",
           **{{e["name"]: e["value"] for e in container["env"]}}}}
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    (at / "log").write_bytes(done.stdout)
    failed = [{{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}}]
    (at / "job").write_text(json.dumps({{"status": {{"succeeded": 1}} if not done.returncode
                                        else {{"conditions": failed}}}}))
elif words[:2] == ["get", "job"]:
    sys.stdout.write((at / "job").read_text() if (at / "job").exists() else "")
elif words[0] == "logs":
    sys.stdout.write((at / "log").read_text())
elif words[0] == "delete":
    (at / "job").unlink(missing_ok=True)
"""


@pytest.fixture(autouse=True)
def _runs(tmp_path, monkeypatch):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path / "data"))


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A program called kubectl, first on the path."""
    at = tmp_path / "cluster"
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text(CLUSTER.format(python=sys.executable, at=str(at)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return at


def test_what_the_pod_prints_comes_back_and_the_job_is_removed(cluster):
    made = job(groups=["a", "b"], env={"GREETING": "$(x) 'y'"})
    result, told = followed(Kubernetes("torch:1", poll_s=0.1), made)
    assert result["groups"] == ["a", "b"]
    assert result["env"]["GREETING"] == "$(x) 'y'"
    assert told[-1].state == "done"
    assert not (cluster / "job").exists()
    assert gone(made.run_id, 5)


def test_a_pod_that_fails_says_why_and_is_applied_again(cluster):
    made = job(groups=["a"], plan={"dies_at": "a"})
    place = Kubernetes("torch:1", poll_s=0.1)
    for _ in range(2):
        with pytest.raises(LaunchError, match=r"the Job failed: .*ended with status 7"):
            followed(place, made)


def test_the_real_kubectl_takes_the_options(tmp_path, monkeypatch):
    """Without a cluster it complains of the connection, and of none of the words."""
    if shutil.which("kubectl") is None:
        lacking("There is no kubectl.", installable=False)
    config = tmp_path / "config"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:9'}}]\nusers: [{name: u}]\n"
    )
    monkeypatch.setenv("KUBECONFIG", str(config))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    made = job()
    place = Kubernetes("torch:1", namespace="lab", context="c")
    for ask in (place.submit, lambda j: place.poll(j, ""), lambda j: place.cancel(j, "")):
        with pytest.raises(UnreachableError, match="kubectl: "):
            ask(made)
    for words in (
        *place.plan(made).commands,
        place._kubectl("logs", "--selector=a=b", "--tail=-1"),
    ):
        done = subprocess.run([*words, "--help"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
