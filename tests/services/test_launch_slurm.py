"""Runs on a real SLURM: munged, slurmctld and two slurmd of this machine, with made-up GPUs."""

import json
import signal
import subprocess

import pytest

from runners.launchers.follow import follow
from runners.launchers.quoting import LaunchError
from runners.launchers.slurm import Slurm
from tests.servers.launch import BUDGET_S, calibrated, lacking, measured
from tests.servers.slurm import missing, slurm_cluster
from tests.support.launched import alive, changed, followed, gone, job, state_of, until

pytestmark = [pytest.mark.services, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster():
    if reason := missing():
        lacking(reason, installable="apt-get" in reason)
    with slurm_cluster(num_nodes=2) as found:
        yield found


@pytest.fixture
def place(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", str(cluster.conf))
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))
    return Slurm(partition="debug", poll_s=0.5)


def test_two_nodes_are_measured_together(cluster, tmp_path):
    summary, result = measured(
        tmp_path, "--launcher", "slurm", "--nodes", "2", "--partition", "debug",
        SLURM_CONF=str(cluster.conf),
    )  # fmt: skip
    assert len(result.nodes) == result.provenance.world_size == 2
    assert result.rows("collectives")
    assert summary["handle"].isdigit()
    state = cluster.asked("scontrol", "show", "job", "-o", summary["handle"])
    assert "JobState=COMPLETED" in state
    assert f"TimeLimit=00:{(BUDGET_S + 120) // 60:02}:00" in state  # and 120 s to start
    assert gone(result.run_id, 5)


def test_a_job_gets_the_gpus_that_were_asked_for(place):
    place.gpus_per_node = 8
    result, _ = followed(place, job(num_nodes=2))
    assert result["env"]["CUDA_VISIBLE_DEVICES"] == "0,1,2,3,4,5,6,7"
    assert result["env"]["SLURM_CPUS_PER_TASK"] == "16"  # all of the node's; it was one
    assert result["env"]["WORLD_SIZE"] == "2"
    assert result["env"]["MASTER_ADDR"] == "127.0.0.1"  # the node's address; its name is unknown


def test_the_script_is_one_that_sbatch_takes(place, cluster, tmp_path):
    place.gpus_per_node = 8
    made = job(num_nodes=2, limit_s=720)
    for wanted, nodes in ((0, 2), (1, 4)):
        script = tmp_path / f"{nodes}.sbatch"
        script.write_text(place.script(changed(made, num_nodes=nodes)))
        tried = subprocess.run(
            ["sbatch", "--test-only", str(script)], env=cluster.environ, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert tried.returncode == wanted, tried.stderr


def test_what_slurm_refuses_is_a_sentence(place):
    with pytest.raises(LaunchError, match=r"sbatch refused the job: .*[Ii]nvalid partition"):
        Slurm(partition="nosuch").submit(job())
    with pytest.raises(LaunchError, match=r"sbatch refused the job: .*configuration is not avail"):
        Slurm(partition="debug", gpus_per_node=16).submit(job(num_nodes=2))


def test_submitting_twice_is_one_job(place, cluster):
    made = job(plan={"group_s": 30})
    first = place.submit(made)
    assert place.submit(made) == first
    until(lambda: place.poll(made, first).state == "running")
    place.cancel(made, first)
    assert gone(made.run_id, 15)


def test_a_cancelled_job_leaves_nobody(place):
    made = job(num_nodes=2, plan={"group_s": 60, "child": True})
    handle = place.submit(made)
    until(lambda: len(alive(made.run_id)) >= 6)
    place.cancel(made, handle)
    until(lambda: place.poll(made, handle).state == "failed")
    assert "CANCELLED" in place.poll(made, handle).sentence
    assert gone(made.run_id, 15)


def test_a_probe_that_fails_is_resumed_from_where_it_was(place):
    made = job(groups=["a", "b"], plan={"dies_at": "b"})
    # It fails at b only while nothing was measured: the shared folder keeps what was.
    with pytest.raises(LaunchError, match=r"ended as FAILED.*the probe ended with status 7"):
        followed(place, changed(made, plan={**made.plan, "groups": ["b"]}))
    text, state = follow(
        place, changed(made, plan={**made.plan, "dies_at": ""}), state_of(made), lambda _: None,
        check=json.loads,
    )  # fmt: skip
    assert json.loads(text)["groups"] == ["a", "b"]
    assert state.handle.isdigit()


def test_a_node_that_is_killed_ends_the_job(place, cluster):
    made = job(num_nodes=2, groups=["a", "b"], plan={"group_s": 4, "child": True})
    handle = place.submit(made)
    until((made.folder / "result.json.part").exists)
    node = cluster.daemons["slurmd2"]
    node.send_signal(signal.SIGKILL)
    node.wait()
    cluster.asked("scontrol", "update", "NodeName=node2", "State=DOWN", "Reason=killed")
    until(lambda: place.poll(made, handle).state == "failed", 60)
    assert "NODE_FAIL" in place.poll(made, handle).sentence
    cluster.start_node(2)
    cluster.asked("scontrol", "update", "NodeName=node2", "State=RESUME")
    assert gone(made.run_id, 30)
    result, _ = followed(place, made)  # the same folder: it goes on after what was measured
    assert result["groups"] == ["a", "b"]


def test_the_queue_is_told(place, cluster, tmp_path):
    big = job(num_nodes=2, plan={"group_s": 30})
    cluster.asked("scontrol", "update", "PartitionName=debug", "State=DOWN")
    try:
        handle = place.submit(big)
        waiting = place.poll(big, handle)
        assert waiting.state == "queued"
        assert "PENDING" in waiting.sentence
        words = ("--cancel", big.run_id)
        done = calibrated(tmp_path, *words, expected=2, SLURM_CONF=str(cluster.conf))
        assert "No run is remembered here" in done.stderr  # it was not made by the command
        place.cancel(big, handle)
    finally:
        cluster.asked("scontrol", "update", "PartitionName=debug", "State=UP")
    assert place.poll(big, handle).state == "failed"
