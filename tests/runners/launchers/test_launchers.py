"""Launchers without a cluster: what would run, what is refused, a run on this machine, its ends."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import kubernetes_validate
import pytest
import yaml

from app.calibration import job as calibration_job
from app.calibration.job import CalibrateOptions, job_of, launcher_of, limits_of, measured_of
from core.errors import RuncastError
from runners import run_state
from runners.launchers import on_node, quoting
from runners.launchers.follow import Clock, follow, result_in
from runners.launchers.kubernetes import Kubernetes
from runners.launchers.launcher import Done, Launch, Launcher, Progress, called, why_ended
from runners.launchers.local import Local
from runners.launchers.nodes import Nodes
from runners.launchers.quoting import LaunchError, UnreachableError
from runners.launchers.ray_jobs import RayJobs
from runners.launchers.skypilot import SkyPilot
from runners.launchers.slurm import Slurm, time_limit
from runners.launchers.ssh import Ssh
from runners.probe_file import probe_text
from runners.run_state import known_runs, new_run_id, read_state, write_state
from tests.support.launched import alive, changed, followed, gone, job, state_of, until

ROOT = Path(__file__).parents[3]
STOPPED = "runcast: node 0: it was stopped"
BAD = ("a;b", "a b", "$(x)", "`x`", "a\nb", "-oProxyCommand=x", "a&b", "a|b", "a'b", 'a"b', "", "ä")


@pytest.fixture(autouse=True)
def _runs(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path / "data"))


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("text", BAD)
@pytest.mark.parametrize(
    "check",
    [
        lambda t: quoting.name(t, "--partition"),
        lambda t: quoting.path(t, "--python"),
        lambda t: quoting.image(t, "--image"),
        quoting.hosts,
        lambda t: quoting.variables([t + "=1"]),
    ],
    ids=["name", "path", "image", "hosts", "variables"],
)
def test_what_a_shell_would_read_is_refused_in_one_sentence(check, text):
    with pytest.raises(LaunchError) as e:
        check(text)
    assert "\n" not in str(e.value)
    assert str(e.value).endswith(".")


@pytest.mark.parametrize("text", ["one,one", "one:0", "one:70000", "a@b@c", "[::1]", "-F/x"])
def test_hosts_that_cannot_be_are_refused(text):
    with pytest.raises(LaunchError, match="--hosts"):
        quoting.hosts(text)


@pytest.mark.parametrize("text", ["WANDB_API_KEY=x", "HF_TOKEN=x", "PASSWORD=x", "A=b\x1b[2J"])
def test_a_secret_is_not_written_to_files(text):
    with pytest.raises(LaunchError, match="--env"):
        quoting.variables([text])


def launch_of_options(run_id: str | None = None, **options) -> Launch:
    """From options to what would run."""
    asked = CalibrateOptions(**options)
    run_id = run_id or new_run_id()
    place = launcher_of(asked)
    return place.plan(job_of(asked, run_id, measured_of(asked, run_id)[0]))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"launcher": "slrum"}, "Did you mean 'slurm'"),
        ({"launcher": "local", "hosts": "a"}, "--hosts is for --launcher ssh, not local"),
        ({"launcher": "ssh"}, "--launcher ssh needs --hosts"),
        ({"launcher": "ssh", "hosts": "a,b", "nodes": "3"}, "--nodes 3 and 2 --hosts contradict"),
        ({"launcher": "ssh", "hosts": "a;reboot"}, "--hosts 'a;reboot' is refused"),
        ({"launcher": "local", "nodes": "2"}, "one node: this machine"),
        ({"launcher": "local", "nodes": "0"}, "--nodes '0' is not a whole number"),
        ({"launcher": "local", "device": "tpu"}, "Unknown device 'tpu'"),
        ({"launcher": "slurm"}, "--launcher slurm needs --gpus-per-node, or --device cpu"),
        ({"launcher": "slurm", "device": "cpu", "partition": "a b"}, "--partition 'a b' is ref"),
        ({"launcher": "slurm", "device": "cpu", "account": "$(id)"}, "--account"),
        ({"launcher": "slurm", "device": "cpu", "folder": "/a/../b"}, "leads through '..'"),
        ({"launcher": "ray", "device": "cpu"}, "--launcher ray needs --address"),
        ({"launcher": "ray", "device": "cpu", "address": "file:///etc"}, "no address of a Ray"),
        ({"launcher": "ray", "device": "cpu", "address": "http://u:p@h"}, "without a name"),
        ({"launcher": "sky", "gpu": "H100:8"}, "--launcher sky needs --usd-per-hour"),
        ({"launcher": "sky", "gpu": "H100", "usd_per_hour": "9"}, "give a name and how many"),
        ({"launcher": "sky", "gpu": "H1000:8", "usd_per_hour": "9"}, "Unknown accelerator"),
        ({"launcher": "sky", "gpu": "H100:8", "usd_per_hour": "9", "infra": "a;b"}, "--infra"),
        ({"launcher": "k8s", "device": "cpu"}, "--launcher k8s needs --image"),
        ({"launcher": "k8s", "device": "cpu", "image": "i", "namespace": "a b"}, "--namespace"),
        ({"launcher": "local", "max_usd": "5"}, "--max-usd needs --usd-per-hour"),
        ({"launcher": "local", "usd_per_hour": "9", "max_usd": "0.1"}, "buys 40 s of 1 nodes"),
        ({"launcher": "local", "budget_s": "nan"}, "--budget-s 'nan' is not a number above 0"),
        ({"launcher": "local", "budget_s": "5"}, "--budget-s 5 is less than 10 s"),
        ({"launcher": "local", "python": "py;thon"}, "--python 'py;thon' is refused"),
        ({"launcher": "local", "interface": "eth0;"}, "--interface 'eth0;' is refused"),
        ({"launcher": "local", "env": ("A B=1",)}, "is no NAME=VALUE"),
        ({"launcher": "local", "gpus_per_node": "8", "device": "cpu"}, "contradict"),
        ({"launcher": "local", "plan": "nonsense"}, "is no link"),
    ],
)
def test_options_that_cannot_be_are_one_sentence(options, says):
    with pytest.raises(RuncastError) as e:
        launch_of_options(**options)
    assert says in str(e.value)
    assert "\n" not in str(e.value)


def test_dollars_buy_fewer_seconds_and_are_counted_over_all_nodes():
    asked = CalibrateOptions(launcher="ssh", hosts="a,b", usd_per_hour="36", max_usd="6")
    limits = limits_of(asked)
    assert limits.billed_s == pytest.approx(300)  # 6 dollars of 2 nodes at a cent a second each
    assert limits.budget_s == pytest.approx(180)
    assert limits.usd == pytest.approx(6)
    made = job_of(asked, new_run_id(), {})
    assert list(made.arguments) == [
        "--budget-s", "180", "--usd-per-hour", "72", "--max-usd", "6",
    ]  # fmt: skip
    plain = limits_of(CalibrateOptions(launcher="sky", gpu="H100:8", usd_per_hour="36", nodes="2"))
    assert plain.usd == pytest.approx(2 * 36 * (600 + 120 + 900) / 3600)


# --- what would run ------------------------------------------------------------------------------

EVERY = {
    "local": {"device": "cpu"},
    "ssh": {"hosts": "one,user@two:2222"},
    "slurm": {"nodes": "2", "gpus_per_node": "8", "partition": "gpu", "account": "lab"},
    "ray": {"nodes": "2", "gpus_per_node": "8", "address": "http://127.0.0.1:8265"},
    "sky": {"nodes": "2", "gpu": "H100:8", "usd_per_hour": "30", "infra": "aws/us-east-1"},
    "k8s": {"nodes": "2", "gpus_per_node": "8", "image": "pytorch/pytorch:2.9"},
}


@pytest.mark.parametrize("launcher", EVERY)
def test_a_dry_run_shows_what_would_run_and_runs_nothing(launcher, run, tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("something was run"))
    monkeypatch.setattr(httpx.Client, "send", lambda *_, **__: pytest.fail("something was sent"))
    words = [w for k, v in EVERY[launcher].items() for w in (f"--{k.replace('_', '-')}", v)]
    status, out, err = run("calibrate", "--launcher", launcher, *words, "--dry-run", "--json")
    assert status == 0, err
    shown = json.loads(out)
    assert shown["files"]
    assert shown["commands"]
    assert not (tmp_path / "data/runs").exists()
    again = launch_of_options(shown["run_id"], launcher=launcher, **EVERY[launcher])
    assert {p: c.decode() for p, c in again.files.items()} == shown["files"]
    assert [list(c) for c in again.commands] == shown["commands"]
    status, out, err = run("calibrate", "--launcher", launcher, *words, "--dry-run")
    assert status == 0
    assert out.count("\n$ ") == len(shown["commands"])


def test_remote_commands_cross_the_shell_quoted():
    made = job(num_nodes=2, processes=None)
    launch = Ssh(("one", "user@two:2222"), base="~/a b/$(x)").plan(made)
    remote = [c[-1] for c in launch.commands if c[0] == "ssh"]
    assert len(remote) == 6
    for line in remote:
        words = subprocess.run(
            ["sh", "-c", f"printf '%s\\n' {line}"], capture_output=True, text=True, check=True,
            env={"HOME": "/home-of-it"},
        ).stdout.splitlines()  # fmt: skip
        assert any(w.startswith("/home-of-it/a b/$(x)/runcast-") for w in words) or "hello" in line
    for command in launch.commands:
        assert "--" in command[:-1]
        assert not any("StrictHostKeyChecking" in w or "UserKnownHosts" in w for w in command)
    assert "Port=2222" in launch.commands[-1]
    assert launch.commands[-1][-2] == "user@two"


def test_the_batch_script_asks_for_what_was_asked():
    made = job(num_nodes=2, folder=Path("/shared/runs/x"), limit_s=720)
    launch = Slurm(partition="gpu", account="lab", qos="high", gpus_per_node=8).plan(made)
    script = launch.files["/shared/runs/x/job.sbatch"].decode()
    asked = dict(
        line.removeprefix("#SBATCH --").partition("=")[::2]
        for line in script.splitlines()
        if line.startswith("#SBATCH")
    )
    assert asked == {
        "job-name": made.name, "nodes": "2", "ntasks-per-node": "1", "gpus-per-node": "8",
        "time": "00:12:00", "partition": "gpu", "account": "lab", "qos": "high",
        "chdir": "/shared/runs/x", "output": "/shared/runs/x/slurm.out", "open-mode": "append",
        "no-requeue": "", "exclusive": "", "mem": "0",
    }  # fmt: skip
    # SLURM gives a task one CPU unless it is told otherwise.
    assert '--cpus-per-task="$SLURM_CPUS_ON_NODE"' in script
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    assert time_limit(1) == "00:01:00"
    with pytest.raises(LaunchError, match="--folder names another"):
        Slurm().plan(changed(made, folder=Path("/shared/my runs/%j")))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"container": "pyxis", "container_image": "nvcr.io#nvidia/pytorch:1"},
         ["--container-image='nvcr.io#nvidia/pytorch:1'", '--container-workdir="$PWD" sh -c']),
        ({"container": "apptainer", "container_image": "/x.sif", "container_mounts": "/d:/d"},
         ['apptainer exec --nv --bind="$PWD:$PWD",/d:/d --pwd="$PWD" /x.sif sh -c']),
        ({"modules": "cuda/12,gcc", "venv": "/v"},
         ["\nmodule load cuda/12 gcc || exit 1\n", "\n. /v/bin/activate || exit 1\n"]),
    ],
)  # fmt: skip
def test_the_probe_runs_in_the_software_that_is_named(options, words):
    asked = CalibrateOptions(launcher="slurm", gpus_per_node="8", **options)
    made = changed(job(folder=Path("/shared/x")), device="cuda")
    script = launcher_of(asked).plan(made).files["/shared/x/job.sbatch"].decode()
    assert [w for w in words if w not in script] == []
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    with pytest.raises(RuncastError, match="--container-image belong together"):
        launcher_of(CalibrateOptions(launcher="slurm", gpus_per_node="8", container="pyxis"))


def test_the_probe_is_written_for_nodes_that_are_measured_by_hand(run, tmp_path):
    file = tmp_path / "probe.py"
    words = ("calibrate", "--emit-probe", str(file))
    status, out, err = run(*words, "--device", "cpu", "--json")
    assert status == 0, err
    made = json.loads(out)
    assert file.read_text() == probe_text()
    plan = json.loads(Path(made["plan"]).read_text())
    assert (plan["schema"], plan["run_id"]) == ("calib-plan/1", made["run_id"])
    assert made["commands"][0] == [
        "python3", "probe.py", "--plan", "probe.plan.json", "--out", "result.json"
    ]  # fmt: skip
    status, _, err = run(*words)
    assert (status, "is there already" in err) == (2, True)
    other = ("calibrate", "--emit-probe", str(tmp_path / "other.py"), "--software-date", "2026-10")
    assert "Did you mean 'torchtitan'?" in run(*other, "--stack", "torchtitann")[2]
    assert run(*other, "--stack", "torchtitan")[0] == 0
    told = json.loads((tmp_path / "other.plan.json").read_text())["told"]
    assert told == {"stack": "torchtitan", "software_date": "2026-10"}
    status, _, err = run(*words, "--launcher", "ssh")
    assert (status, "leave --launcher" in err) == (2, True)


def test_slurm_says_why_a_job_failed_though_an_earlier_poll_read_it(tmp_path, monkeypatch):
    made, states = job(folder=tmp_path), iter([("RUNNING", ""), ("FAILED", "NonZeroExitCode")])
    monkeypatch.setattr(Slurm, "_state", lambda self, handle: next(states))
    (tmp_path / "slurm.out").write_text("runcast: node 0: the probe ended with status 7\n")
    place = Slurm()
    assert place.poll(made, "8").state == "running"
    failed = place.poll(made, "8")
    assert failed.sentence.endswith("(node 0: the probe ended with status 7)")
    assert failed.log == ""


def test_the_node_that_failed_is_named_not_one_that_was_stopped_because_of_it():
    failed = "runcast: node 1: the probe ended with status 1"
    log = f"{failed}\nsrun: error: node2: task 1: Exited\n\x1b[36m(pid=7)\x1b[0m {STOPPED}\n"
    assert why_ended(log) == failed
    assert why_ended(f"srun: Terminating\n{STOPPED}\n") == STOPPED  # somebody cancelled it
    assert why_ended("") == ""


@pytest.mark.parametrize("nodes", [1, 4])
def test_the_kubernetes_objects_pass_the_strict_schema(nodes):
    place = Kubernetes("registry.example/torch:2.9", namespace="lab", gpus_per_node=8)
    made = job(num_nodes=nodes, processes=8)
    launch = place.plan(made)
    (text,) = launch.files.values()
    objects = list(yaml.safe_load_all(text))
    assert [o["kind"] for o in objects] == ["ConfigMap", "Service", "Job"]
    for found in objects:
        kubernetes_validate.validate(found, "1.34", strict=True)
    spec = objects[2]["spec"]
    assert spec["completions"] == spec["parallelism"] == nodes
    assert objects[0]["data"]["node.py"] == made.probe.read_text()
    (container,) = spec["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 8}
    assert len(text) < 1_000_000  # what a ConfigMap may hold, with room
    spec["restartPolici"] = "Never"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(objects[2], "1.34", strict=True)


def test_the_skypilot_task_says_what_was_asked():
    made = job(num_nodes=2)
    place = SkyPilot("H100:8", infra="aws/us-east-1", use_spot=True)
    task = yaml.safe_load(place.plan(made).files[str(made.folder / "task.yaml")])
    assert task["num_nodes"] == 2
    assert task["resources"] == {
        "accelerators": "H100:8", "infra": "aws/us-east-1", "use_spot": True,
    }  # fmt: skip
    assert set(task["file_mounts"].values()) == {str(made.folder / n) for n in made.files()}
    (command,) = place.plan(made).commands
    assert "--down" in command
    assert command[command.index("--cluster") + 1] == made.name
    subprocess.run(["bash", "-n"], input=task["run"] + task["setup"], text=True, check=True)


def test_the_same_job_is_the_same_package_for_ray():
    made = job(num_nodes=2)
    place = RayJobs("http://127.0.0.1:8265/")
    name, content = place.package(made)
    assert (name, content) == place.package(made)
    assert place.body(made)["runtime_env"] == {"working_dir": f"gcs://{name}"}
    assert shlex.split(place.body(made)["entrypoint"])[:2] == ["python3", "on_ray.py"]


# --- confirmation --------------------------------------------------------------------------------


def test_nothing_starts_without_a_yes(run, tmp_path):
    status, out, err = run(
        "calibrate", "--launcher", "local", "--device", "cpu", "--usd-per-hour", "2"
    )
    assert status == 2
    assert "Nothing was started: --yes starts it" in err
    assert "At most $0.1" in err  # 180 s of 2 dollars an hour
    assert not (tmp_path / "data/runs").exists()
    assert not out


def test_a_machine_without_a_gpu_is_measured_as_one_only_if_that_is_said(run, monkeypatch):
    monkeypatch.setattr(calibration_job, "GPUS", ("/dev/no-such-device",))
    status, _, err = run("calibrate", "--launcher", "local", "--dry-run")
    assert (status, "No GPU is here: --device cpu measures the processor" in err) == (2, True)
    monkeypatch.setattr(calibration_job, "GPUS", ("/dev/null",))
    status, out, err = run("calibrate", "--launcher", "local", "--dry-run", "--json")
    assert status == 0, err
    plan = next(t for p, t in json.loads(out)["files"].items() if p.endswith("plan.json"))
    assert json.loads(plan)["reduced"] is False


def test_a_cost_that_is_not_known_is_said(run):
    _, _, err = run("calibrate", "--launcher", "ssh", "--hosts", "a,b", "--dry-run")
    assert "What that costs is not known" in err
    assert "2 nodes of one process a GPU on a, b" in err


def test_a_resumed_run_keeps_its_options(run):
    unknown = new_run_id()
    status, _, err = run("calibrate", "--resume", unknown, "--budget-s", "60")
    assert (status, "leave --budget-s out" in err) == (2, True)
    status, _, err = run("calibrate", "--resume", unknown)
    assert (status, "No run is remembered here" in err) == (2, True)
    status, _, err = run("calibrate", "--resume", "../../etc")
    assert (status, "is no id of a run" in err) == (2, True)


# --- a run on this machine -----------------------------------------------------------------------


def test_a_local_run_brings_its_result_back_and_leaves_nobody():
    made = job(groups=["a", "b", "c"], plan={"child": True}, env={"GREETING": "a b; $(c) 'd'"})
    result, told = followed(Local(poll_s=0.05), made)
    assert result["groups"] == ["a", "b", "c"]
    assert result["env"]["GREETING"] == "a b; $(c) 'd'"
    assert result["env"]["GLOO_SOCKET_IFNAME"] == "lo"
    assert result["env"]["NCCL_SOCKET_IFNAME"] == "=lo"
    assert (told[-1].state, told[-1].done, told[-1].total) == ("done", 3, 3)
    assert gone(made.run_id, 2)
    assert read_state(made.run_id).phase == "submitted"


def test_a_launcher_that_was_killed_finds_its_run_again():
    """The second launcher knows only the id: it submits again, and finds what is running."""
    made = job(groups=["a"], plan={"group_s": 1.0})
    first = Local(poll_s=0.05)
    first.submit(made)
    pid = on_node.running(made.folder, 0)
    second = Local(poll_s=0.05)
    text, _ = follow(second, made, state_of(made), lambda _: None, check=json.loads)
    assert json.loads(text)["groups"] == ["a"]
    assert (made.folder / "node-0.pid").read_text().split()[0] == str(pid)


def test_a_cancelled_run_ends_with_all_that_it_started():
    made = job(plan={"group_s": 60, "child": True})
    place = Local(poll_s=0.05)
    handle = place.submit(made)
    until(lambda: len(alive(made.run_id)) >= 2)
    place.cancel(made, handle)
    assert gone(made.run_id, 1)
    ended = place.poll(made, handle)
    assert ended.state == "failed"
    assert "it was stopped" in ended.sentence


def test_a_supervisor_that_is_killed_takes_the_probe_with_it_and_the_run_goes_on_later():
    made = job(groups=["a", "b"], plan={"group_s": 0.5, "child": True})
    place = Local(poll_s=0.05)
    handle = place.submit(made)
    until(lambda: (made.folder / "result.json.part").exists())
    os.kill(on_node.running(made.folder, 0), signal.SIGKILL)
    assert gone(made.run_id, 10)  # nobody polled: what it left ended by itself
    lost = place.poll(made, handle)
    assert (lost.state, "ended without a message" in lost.sentence) == ("failed", True)
    result, told = followed(place, made)
    assert result["groups"] == ["a", "b"]
    assert gone(made.run_id, 5)
    assert told[-1].state == "done"


def test_a_run_over_its_limit_is_ended():
    made = job(plan={"group_s": 60, "child": True}, limit_s=0.5)
    with pytest.raises(LaunchError, match="over its limit of 0 s"):
        followed(Local(poll_s=0.05), made)
    assert gone(made.run_id, 5)


def test_a_probe_that_fails_says_why_and_is_tried_again():
    made = job(groups=["a", "b"], plan={"dies_at": "a"})
    place = Local(poll_s=0.05)
    with pytest.raises(LaunchError, match=r"ended with status 7.*--resume .* tries again"):
        followed(place, made)
    assert read_state(made.run_id).phase == "failed"
    (made.folder / "result.json.part").write_text('{"groups": ["a"]}')
    state = read_state(made.run_id)
    text, state = follow(place, made, state, lambda _: None, check=json.loads)
    assert json.loads(text)["groups"] == ["a", "b"]
    assert state.submissions == 2


def test_a_truncated_result_is_refused_and_kept_apart():
    made = job(plan={"truncated": True})
    place = Local(poll_s=0.05)
    with pytest.raises(RuncastError, match=r"is cut off.*tries again"):
        follow(place, made, state_of(made), lambda _: None)
    assert read_state(made.run_id).phase == "failed"


def test_python_without_torch_is_a_sentence(tmp_path):
    lacking = tmp_path / "python"
    lacking.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S "$@"\n')
    lacking.chmod(0o755)
    with pytest.raises(LaunchError, match="has no torch: name one that has with --python"):
        Local().submit(job(python=str(lacking)))


# --- following -----------------------------------------------------------------------------------


class Scripted(Launcher):
    """A launcher that says what the test wants."""

    poll_s = 1.0
    where = "nowhere"

    def __init__(self, answers, text=""):
        self.answers, self.text, self.cancelled = list(answers), text, False

    def plan(self, job):
        return Launch({}, ())

    def submit(self, job):
        return "7"

    def find(self, job):
        return "7"

    def poll(self, job, handle):
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def cancel(self, job, handle):
        self.cancelled = True

    def collect(self, job, handle):
        return self.text


def ticking() -> Clock:
    now = [0.0]
    return Clock(now=lambda: now[0], sleep=lambda s: now.__setitem__(0, now[0] + s))


def test_a_lost_connection_is_waited_for_and_then_left_to_be_resumed():
    made = job()
    gap = [UnreachableError("no route")] * 20
    text = f"-----BEGIN RUNCAST RESULT {made.run_id}-----\n{{}}\n"
    text += f"-----END RUNCAST RESULT {made.run_id}-----\n"
    place = Scripted([Progress("running"), *gap, Progress("done")], text)
    found, _ = follow(place, made, state_of(made), lambda _: None, ticking(), check=json.loads)
    assert found == "{}"
    place = Scripted([Progress("running"), *gap * 10])
    with pytest.raises(UnreachableError, match=f"--resume {made.run_id}"):
        follow(place, made, state_of(made), lambda _: None, ticking())
    assert read_state(made.run_id).phase == "submitted"
    assert not place.cancelled  # it may well be going on


def test_a_run_that_never_ends_is_cancelled():
    place = Scripted([Progress("running")])
    with pytest.raises(LaunchError, match="did not end and was cancelled"):
        follow(place, job(), state_of(job()), lambda _: None, ticking())
    assert place.cancelled


def test_progress_is_read_from_what_the_probe_says():
    told = []
    log = "noise\n\x1b[36m(supervise pid=7)\x1b[0m runcast: group matmul 3/13 2.5 s\n"
    place = Scripted([Progress("running", "", log), Progress("failed", "x\x1b[31m.")])
    with pytest.raises(LaunchError, match=r"The run failed: x\. "):
        follow(place, job(), state_of(job()), told.append, ticking())
    assert (told[1].group, told[1].done, told[1].total) == ("matmul", 3, 13)


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "printed no result"), ("-----BEGIN RUNCAST RESULT {}-----\n{{", "cut off after 2")],
)
def test_a_result_is_what_stands_between_its_own_markers(text, says):
    run_id = new_run_id()
    with pytest.raises(LaunchError, match=says):
        result_in(text.format(run_id), run_id)
    other = "-----BEGIN RUNCAST RESULT other-----\n1\n-----END RUNCAST RESULT other-----\n"
    own = other.replace("other", run_id).replace("\n1\n", "\n2\n")
    assert result_in(other + own + other, run_id) == "2"


def test_a_node_that_fails_ends_the_others():
    asked = []

    def call(rank, verb, timeout_s):
        asked.append((rank, verb[0]))
        if verb[0] == "stop":
            return json.dumps({"stopped": True, "left": 0})
        state = "running" if rank else "lost"
        return json.dumps({"state": state, "log": "", "at": 0})

    found = Nodes(["one", "two"], call).poll("folder")
    assert found.state == "failed"
    assert found.sentence == "one ended without a message: it was killed, or the node was"
    assert [a for a in asked if a[1] == "stop"] == [(0, "stop"), (1, "stop")]


def test_what_a_node_prints_instead_of_json_is_a_sentence():
    with pytest.raises(LaunchError, match="one answered something else than this program"):
        Nodes(["one"], lambda *_: "Last login: today\n").ask(0, "hello")


@pytest.mark.parametrize(
    "answer",
    ["{}", "[]", "null", '{"state": 1, "log": "", "at": 0}', '{"state": "running"}',
     '{"state": "running", "log": "", "at": ' + "9" * 5_000 + "}", "[" * 100_000,
     '{"state": "running", "log": "", "at": "1"}', '{"state": "ended", "log": [], "at": 0}'],
)  # fmt: skip
def test_an_answer_of_a_node_that_is_malformed_is_a_sentence(answer):
    nodes = Nodes(["one"], lambda *_: answer)
    with pytest.raises(LaunchError, match=r"one") as e:
        nodes.poll("folder")
    assert str(e.value).endswith(".")
    with pytest.raises(LaunchError):
        nodes.stop("folder")
    with pytest.raises(LaunchError):
        nodes.ask_all("hello")


@pytest.mark.parametrize("status", ['"x"', '{"conditions": [1]}', '{"ready": "x"}', "[1]"])
def test_an_answer_of_kubernetes_that_is_malformed_is_a_sentence(status, monkeypatch):
    text = f'{{"status": {status}}}'
    monkeypatch.setattr(Kubernetes, "_call", lambda self, *words: Done(0, text, ""))
    with pytest.raises(LaunchError, match="something else than a Job"):
        Kubernetes(image="a").poll(job(), "job")


def test_a_program_that_prints_without_end_is_ended_at_the_bound():
    floods = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
    with pytest.raises(LaunchError, match="printed more than 64 MiB and was ended"):
        called([sys.executable, "-c", floods], timeout_s=60)


def test_a_program_whose_output_stays_open_is_not_waited_for():
    """As `ssh` does with a shared connection: a child of it holds the pipes."""
    began = time.monotonic()
    done = called(["sh", "-c", "echo one; echo two >&2; sleep 20 & exit 3"], timeout_s=15)
    assert (done.status, done.out, done.err) == (3, "one\n", "two\n")
    assert time.monotonic() - began < 10


def test_a_command_that_hangs_is_given_up(tmp_path):
    begin = time.monotonic()
    with pytest.raises(UnreachableError, match="sleep did not answer within 0 s"):
        called(("sleep", "30"), timeout_s=0.2)
    assert time.monotonic() - begin < 5
    with pytest.raises(LaunchError, match="no-such-program is not installed"):
        called(("no-such-program",), timeout_s=1)


# --- state ---------------------------------------------------------------------------------------


def test_a_state_of_something_else_is_refused():
    made = job()
    write_state(state_of(made))
    assert known_runs() == [made.run_id]
    file = run_state.folder_of(made.run_id) / run_state.STATE
    for text in ("", "[]", '{"schema": "x"}', file.read_text().replace("prepared", "flying")):
        file.write_text(text)
        with pytest.raises(LaunchError, match="is not the state of this run"):
            read_state(made.run_id)


def test_two_processes_do_not_follow_one_run():
    run_id = new_run_id()
    with run_state.held(run_id), pytest.raises(LaunchError, match="Another process follows"):
        run_state.held(run_id).__enter__()


def test_the_interface_is_the_one_that_reaches_the_first_node(monkeypatch):
    assert on_node.interface_to("127.0.0.1", 1) == "lo"
    assert on_node.interface_to("127.0.0.1", 2) == "lo"  # two supervisors of one machine
    asked = []
    monkeypatch.setattr(on_node, "route_address", lambda a: asked.append(a[0]) or "127.0.0.1")
    monkeypatch.setattr(on_node.socket, "gethostbyname", lambda _: "127.0.1.1")
    on_node.interface_to("node1", 2)  # as Debian's /etc/hosts has a host's own name
    assert asked == [on_node.ANYWHERE[0]]
    monkeypatch.setattr(on_node, "interface_of", lambda _: None)
    with pytest.raises(OSError, match="no network interface has the address"):
        on_node.interface_to("node1", 2)


def test_several_nodes_are_joined_by_torchrun_with_both_interfaces_set():
    made = job(num_nodes=2, processes=8, interface="ib0", env={"NCCL_DEBUG": "INFO"})
    held = json.loads(made.files(master_addr="10.0.0.1")["job.json"])
    env = on_node.environment(held, 1)
    assert (env["GLOO_SOCKET_IFNAME"], env["NCCL_SOCKET_IFNAME"]) == ("ib0", "=ib0")
    assert env["NCCL_DEBUG"] == "INFO"
    assert env["RUNCAST_RUN"] == f"{made.run_id}/1"
    command = on_node.command(held, 1, env, 8)
    assert command[1:8] == [
        "-m", "torch.distributed.run", "--nnodes=2", "--node-rank=1", "--nproc-per-node=8",
        "--max-restarts=0", "--master-addr=10.0.0.1",
    ]  # fmt: skip
    assert 20_000 <= int(env["MASTER_PORT"]) < 30_000


def test_what_was_said_of_the_nodes_is_kept_with_the_result():
    def told(**options):
        return measured_of(CalibrateOptions(**options), new_run_id())[0]["told"]

    sky = {"launcher": "sky", "gpu": "H100:8", "infra": "gcp/us-central1/us-central1-a"}
    assert told(**sky) == {"cloud": "gcp", "region": "us-central1", "purchase": "on_demand"}
    assert told(**sky, spot=True)["purchase"] == "spot"
    assert told(launcher="k8s", image="torch:1") == {"image": "torch:1"}
    assert told(launcher="ssh", hosts="a") == {}
    assert measured_of(CalibrateOptions(**sky), new_run_id())[0]["sku_key"] == "H100-80GB-SXM"


def test_a_link_decides_what_is_measured():
    link = "?v=1&model=llama3.1-70b&gpu=h100&num_gpus=64&tp=8&micro_batch_size=1&seq_len=8192"
    link += "&global_batch_size=512&num_tokens=1e12"
    asked = CalibrateOptions(launcher="ssh", hosts="a", plan=link)
    plan, sentences = measured_of(asked, new_run_id())
    shapes = {s["label"]: (s["m"], s["n"], s["k"]) for s in plan["shapes"]}
    # Llama 3.1 70B (arXiv:2407.21783, table 3): hidden 8192, MLP 28672, 64 heads, 8 key heads.
    assert shapes["mlp_up.fwd"] == (8192, 2 * 28672 // 8, 8192)
    assert shapes["qkv.fwd"] == (8192, (8 + 2) * 128, 8192)
    assert plan["sku_key"] == "H100-80GB-SXM"
    assert any("tp=8" in s and "64 H100-80GB-SXM" in s for s in sentences)
