"""Runs on a real Ray cluster of this machine, through its job server alone."""

import pytest

from runners.launchers.quoting import LaunchError, UnreachableError
from runners.launchers.ray_jobs import RayJobs
from tests.servers.launch import lacking, measured
from tests.servers.ray_cluster import ray_cluster, ray_python
from tests.support.launched import alive, followed, gone, job, until

pytestmark = [pytest.mark.services, pytest.mark.slow]


@pytest.fixture(scope="module")
def address():
    if ray_python() is None:
        lacking(
            "No interpreter has ray[default]: `make clusters`, or RUNCAST_RAY_PYTHON names one.",
            installable=False,
        )
    with ray_cluster(num_nodes=2) as found:
        yield found


@pytest.fixture
def place(address, tmp_path, monkeypatch):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))
    return RayJobs(address, poll_s=0.5)


def test_one_node_is_measured(address, tmp_path):
    summary, result = measured(tmp_path, "--launcher", "ray", "--address", address)
    assert result.provenance.world_size == 1
    assert summary["handle"] == f"runcast-{result.run_id}"
    assert gone(result.run_id, 5)


def test_two_nodes_are_measured_together(place):
    result, told = followed(place, job(num_nodes=2, groups=["a", "b"], plan={"group_s": 1.0}))
    assert result["env"]["WORLD_SIZE"] == "2"
    assert result["env"]["GLOO_SOCKET_IFNAME"]
    assert {t.group for t in told} >= {"a"}  # what a node says of itself comes through


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_cancelled_job_leaves_nobody(place, nodes):
    made = job(num_nodes=nodes, plan={"group_s": 60, "child": True})
    handle = place.submit(made)
    assert place.submit(made) == handle  # found, not sent again
    until(lambda: len(alive(made.run_id)) >= 2 * nodes, 60)
    place.cancel(made, handle)
    until(lambda: place.poll(made, handle).state == "failed", 30)
    assert "STOPPED" in place.poll(made, handle).sentence
    assert gone(made.run_id, 15)


def test_a_job_that_failed_is_sent_again(place):
    made = job(groups=["a"], plan={"dies_at": "a"})
    with pytest.raises(LaunchError, match=r"Ray job ended: FAILED.*ended with status 7"):
        followed(place, made)
    with pytest.raises(LaunchError, match="ended with status 7"):  # not: it is there already
        followed(place, made)


def test_what_is_no_ray_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))
    with pytest.raises(UnreachableError, match="does not answer"):
        RayJobs("http://127.0.0.1:9").submit(job())
