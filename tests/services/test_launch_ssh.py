"""Runs over a real sshd: measured, refused, cut off, killed, cancelled."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from runners.launchers import on_node
from runners.launchers.follow import follow
from runners.launchers.quoting import LaunchError, UnreachableError
from runners.launchers.ssh import Ssh
from runners.run_state import known_runs, new_run_id, read_state
from tests.servers.launch import ROOT, calibrated, command, environ, lacking, measured
from tests.servers.sshd import program, ssh_hosts
from tests.support.launched import alive, followed, gone, job, state_of, until

pytestmark = [pytest.mark.services, pytest.mark.slow]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    if program() is None:
        lacking("There is no sshd: apt-get install openssh-server.")
    with ssh_hosts(tmp_path_factory.mktemp("sshd")) as found:
        yield found


@pytest.fixture
def base(tmp_path, monkeypatch):
    """The folder on the hosts; runs are remembered beside it."""
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))
    (tmp_path / "hosts").mkdir()
    return tmp_path / "hosts"


@pytest.fixture
def place(hosts, base):
    """Two hosts, which are one machine."""
    made = Ssh(("one", "two"), config=str(hosts.config), base=str(base), poll_s=0.3)
    yield made
    made.hang_up()


def on(hosts, base, names):
    return [
        "--launcher", "ssh", "--hosts", names, "--ssh-config", str(hosts.config),
        "--folder", str(base),
    ]  # fmt: skip


def test_two_hosts_are_measured_together(hosts, base):
    summary, result = measured(base.parent, *on(hosts, base, "one,two"))
    assert len(result.nodes) == result.provenance.world_size == 2
    assert {r.params["group"] for r in result.rows("collectives")} == {"inter_node"}
    assert all(r.wrong == 0 for r in result.rows("collectives"))
    assert set(result.provenance.env) >= {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}
    assert summary["handle"] == str(base / f"runcast-{result.run_id}")
    assert not list(base.iterdir())  # nothing is left on the hosts
    assert gone(result.run_id, 5)


def test_a_host_behind_a_jump_host_is_measured(hosts, base):
    made = job()
    result, _ = followed(Ssh(("inner",), config=str(hosts.config), base=str(base)), made)
    assert result["groups"] == ["a", "b"]
    assert gone(made.run_id, 5)


def test_a_run_is_cancelled_from_another_terminal(hosts, base):
    first = subprocess.Popen(
        command(*on(hosts, base, "one"), "--device", "cpu", "--python", sys.executable, "--yes"),
        cwd=ROOT, env=environ(base.parent), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    for line in first.stderr:
        if line.startswith("running: "):
            break
    (run_id,) = known_runs()
    busy = calibrated(base.parent, "--resume", run_id, expected=2)
    assert "Another process follows the run" in busy.stderr
    calibrated(base.parent, "--cancel", run_id)
    assert gone(run_id, 5)
    assert "it was stopped" in first.stderr.read()
    first.stderr.close()
    assert first.wait(60) == 2


def test_an_unknown_host_key_is_refused_and_nothing_is_run(hosts, base):
    done = calibrated(
        base.parent, *on(hosts, base, "stranger"), "--device", "cpu", "--yes", expected=2
    )
    assert "ssh does not know the host key of stranger: connect once by hand" in done.stderr
    assert not list(base.iterdir())


def test_another_host_key_than_the_known_one_is_refused(hosts, base, tmp_path):
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    key = " ".join(other.with_suffix(".pub").read_text().split()[:2])
    known = tmp_path / "known_hosts"
    known.write_text(f"[127.0.0.1]:{hosts.port} {key}\n")
    config = tmp_path / "ssh_config"
    config.write_text(hosts.keys.client("one", "127.0.0.1", hosts.port, known))
    with pytest.raises(LaunchError, match="not the one that ssh knows"):
        Ssh(("one",), config=str(config), base=str(base)).submit(job())


def test_a_key_that_opens_nothing_and_a_host_that_is_not_there(hosts, base, tmp_path):
    stranger = tmp_path / "stranger"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(stranger)], check=True)
    text = hosts.config.read_text().replace(str(hosts.keys.folder / "client_key"), str(stranger))
    config = tmp_path / "ssh_config"
    config.write_text(text)
    with pytest.raises(LaunchError, match="one refused the login"):
        Ssh(("one",), config=str(config), base=str(base)).submit(job())
    with pytest.raises(LaunchError, match="No host has the name"):
        Ssh(("no-such-host.invalid",), config=str(config)).submit(job())
    config.write_text(text.replace(f"Port {hosts.port}", "Port 9"))
    with pytest.raises(UnreachableError, match="one cannot be reached"):
        Ssh(("one",), config=str(config), base=str(base)).submit(job())


def test_the_remote_status_and_what_it_says_come_back(place):
    made = job(num_nodes=2, groups=["a"], plan={"dies_at": "a"})
    with pytest.raises(LaunchError, match="failed: the probe ended with status 1"):
        followed(place, made)
    assert gone(made.run_id, 10)


def test_a_cancelled_run_leaves_no_process_on_any_host(place):
    made = job(num_nodes=2, plan={"group_s": 60, "child": True})
    handle = place.submit(made)
    until(lambda: len(alive(made.run_id)) >= 6)  # torchrun, probe and its child, twice
    place.cancel(made, handle)
    assert gone(made.run_id, 1)
    place.close(made, handle)


def test_a_node_that_is_killed_ends_the_run_on_the_others_and_it_goes_on_later(place, base):
    made = job(num_nodes=2, groups=["a", "b"], plan={"group_s": 5, "child": True})
    handle = place.submit(made)
    part = base / made.name / "result.json.part"
    until(part.exists)
    os.kill(on_node.running(base / made.name, 1), signal.SIGKILL)
    until(lambda: place.poll(made, handle).state == "failed")
    assert gone(made.run_id, 10)
    said = place.poll(made, handle).sentence
    assert "two ended without a message: it was killed, or the node was" in said
    assert json.loads(part.read_text())["groups"] == ["a"]
    result, _ = followed(place, made)
    assert result["groups"] == ["a", "b"]
    assert gone(made.run_id, 5)


def test_a_launcher_killed_while_it_measures_is_resumed(hosts, base):
    """The real probe: the second launcher finds the first one's run, and no second one starts."""
    words = on(hosts, base, "one")
    folder = base.parent
    budget = ["--device", "cpu", "--budget-s", "20", "--python", sys.executable]
    first = subprocess.Popen(
        command(*words, *budget, "--yes"), cwd=ROOT, env=environ(folder),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    for line in first.stderr:
        if line.startswith("running: layers"):
            break
    first.send_signal(signal.SIGKILL)
    first.wait()
    first.stderr.close()
    (run_id,) = known_runs()
    supervisor = on_node.running(base / f"runcast-{run_id}", 0)
    assert supervisor, "the run goes on without its launcher"
    assert read_state(run_id).phase == "submitted"
    out = folder / "brought.json"
    done = calibrated(folder, "--resume", run_id, "--json", "--out", str(out))
    summary = json.loads(done.stdout)
    assert (summary["run_id"], summary["submissions"]) == (run_id, 1)
    assert json.loads(out.read_bytes())["provenance"]["sessions"] == 1
    assert gone(run_id, 5)
    again = calibrated(folder, "--resume", run_id, "--json", "--out", str(out))
    assert json.loads(again.stdout) == summary  # what is here is not fetched again


def test_a_launcher_that_is_interrupted_cancels(hosts, base):
    first = subprocess.Popen(
        command(*on(hosts, base, "one"), "--device", "cpu", "--python", sys.executable, "--yes"),
        cwd=ROOT, env=environ(base.parent), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    for line in first.stderr:
        if line.startswith("running: "):
            break
    first.send_signal(signal.SIGINT)
    said = first.stderr.read()
    first.stderr.close()
    assert first.wait(60) == 130
    (run_id,) = known_runs()
    assert f"--resume {run_id}" in said
    assert read_state(run_id).phase == "cancelled"
    assert gone(run_id, 5)


def test_a_connection_that_goes_away_leaves_a_run_that_is_brought_back(hosts, base):
    """The first launcher loses the host; the run there ends by itself and is collected later."""
    made = job(run_id=new_run_id(), groups=["a"], plan={"group_s": 1.0})
    config = base.parent / "ssh_config"
    config.write_text(hosts.config.read_text())
    place = Ssh(("one",), config=str(config), base=str(base), poll_s=0.2)
    handle = place.submit(made)
    place.hang_up()
    config.write_text(hosts.config.read_text().replace(f"Port {hosts.port}", "Port 9"))
    with pytest.raises(UnreachableError, match="one cannot be reached"):
        place.poll(made, handle)
    place.hang_up()
    time.sleep(1.0)
    config.write_text(hosts.config.read_text())
    text, _ = follow(place, made, state_of(made), lambda _: None, check=json.loads)
    assert json.loads(text)["groups"] == ["a"]
    place.close(made, handle)
    assert not list(base.iterdir())
