"""Launch files held against the real tools: parsers, a local SLURM, a local Ray, two processes."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
import yaml

from runners.recipes import kubernetes, ray, slurm
from runners.recipes.registry import files_of
from tests.made_up.plans import layout
from tests.made_up.recipes import one_gpu, recipe_job
from tests.servers.launch import ROOT, lacking
from tests.servers.ray_cluster import ray_cluster, ray_python
from tests.servers.slurm import missing, slurm_cluster
from tests.servers.stack_environment import asked
from tests.services.test_launch_sky import sky_python

pytestmark = [pytest.mark.services, pytest.mark.slow]

# Two processes that meet, on CPUs: what each saw is a file.
TRAIN = """\
import os, sys
import torch, torch.distributed as dist

dist.init_process_group("gloo")
x = torch.full((4,), float(dist.get_rank() + 1))
dist.all_reduce(x)
with open(os.path.join(sys.argv[1], f"rank{dist.get_rank()}"), "w") as out:
    out.write(f"{dist.get_world_size()} {x[0].item()} {os.environ['NCCL_DEBUG']} {sys.argv[2:]}")
if "SLURM_STEP_ID" in os.environ:  # what srun gave the task of this node
    with open(f"cpus{dist.get_rank()}", "w") as out:
        out.write(os.environ["SLURM_CPUS_PER_TASK"] + " of " + os.environ["SLURM_CPUS_ON_NODE"])
dist.destroy_process_group()
"""
SAW = "2 3.0 WARN ['a $(b)']"
RECORD = '#!/bin/bash\nprintf "%s\\0" "$@" > "$SAID"\n'


def two(**changes):
    """Two GPUs, on as many nodes as asked."""
    given = {
        "num_gpus": 2, "layout": layout(tp=1, dp_shard=2, num_microbatches=32), **changes
    }  # fmt: skip
    return recipe_job(**given)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "out").mkdir()
    return tmp_path


def command(folder):
    return f"python {folder}/train.py {folder}/out 'a $(b)'"


def seen(folder):
    return [p.read_text() for p in sorted((folder / "out").iterdir())]


def environ(**more):
    """Programs of this interpreter first; one thread a process."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", **more}


# --- the document --------------------------------------------------------------------------------


def test_the_three_commands_of_the_document_train(tmp_path):
    section = (ROOT / "docs/launch.md").read_text().partition("## From a plan to two running")[2]
    block = re.search(r"\n\n((?:    .*\n)+)", section)[1]
    commands = block.replace("\\\n", " ").splitlines()
    assert len(commands) == 3
    done = subprocess.run(
        ["bash", "-euc", block], cwd=tmp_path, env=environ(RUNCAST_DATA_DIR=str(tmp_path)),
        check=False, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    losses = [float(x) for x in re.findall(r"loss: ([\d.]+)", done.stdout)]
    assert len(losses) == 3
    assert losses[0] > losses[1] > losses[2]
    assert re.search(r"dp_shard=2|world: 2", done.stdout)


# --- torchrun ------------------------------------------------------------------------------------


def words_for_torchrun(text, tmp_path, program="torchrun"):
    """What a script of ours calls torchrun with, as bash expands it."""
    (tmp_path / "bin").mkdir(exist_ok=True)
    fake = tmp_path / "bin" / program
    fake.write_text(RECORD)
    fake.chmod(0o755)
    said = tmp_path / "said"
    subprocess.run(
        ["bash", "-c", text], check=True, timeout=30, stdin=subprocess.DEVNULL,
        env={"PATH": f"{fake.parent}:/usr/bin:/bin", "SAID": str(said), "HEAD": "node-0",
             "NODE_RANK": "1"},
    )  # fmt: skip
    return said.read_text().split("\0")[:-1]


@pytest.mark.parametrize(
    ("name", "job", "options", "nodes"),
    [
        ("torchrun", one_gpu(), {}, (1, 1)),
        ("torchrun", recipe_job(), {}, (2, 2)),
        ("torchrun", recipe_job(), {"command": "python -m pkg.train --x 1"}, (2, 2)),
        ("torchrun", recipe_job(), {"command": "./go.sh x"}, (2, 2)),
        ("torchrun-elastic", recipe_job(), {"min_nodes": "1"}, (1, 2)),
    ],
)
def test_torchruns_own_parser_takes_the_words(tmp_path, name, job, options, nodes):
    from torch.distributed.run import config_from_args, parse_args

    (text,) = files_of(name, job, options).values()
    parsed = parse_args(words_for_torchrun(text, tmp_path))
    config, entry, words = config_from_args(parsed)
    assert (config.min_nodes, config.max_nodes) == nodes
    assert config.nproc_per_node == job.num_gpus // job.num_nodes
    if job.num_nodes > 1:
        assert config.rdzv_backend == "c10d"
        assert config.rdzv_endpoint == "node-0:29500"
        assert config.run_id == job.name
    if options.get("command") == "./go.sh x":
        assert (entry, words) == ("./go.sh", ["x"])
    else:
        assert sys.executable in str(entry)


@pytest.mark.parametrize(
    ("old", "new"),
    [("--nnodes=1:2", "--nnodes=2:1"), ("--nnodes=1:2", "--nodes-of-mine=2"),
     ("--nproc-per-node=8", "--nproc-per-node=eight")],
)  # fmt: skip
def test_torchruns_own_parser_refuses_a_broken_copy(tmp_path, old, new):
    from torch.distributed.run import config_from_args, parse_args

    (text,) = files_of("torchrun-elastic", recipe_job(), {"min_nodes": "1"}).values()
    words = words_for_torchrun(text.replace(old, new), tmp_path)
    with pytest.raises((SystemExit, AssertionError, ValueError)):
        config_from_args(parse_args(words))


def test_the_script_of_one_node_runs_two_processes(folder):
    (text,) = files_of("torchrun", two(num_nodes=1), {"command": command(folder)}).values()
    script = folder / "torchrun.sh"
    script.write_text(text)
    subprocess.run(["bash", str(script)], env=environ(), check=True, timeout=120, cwd=folder)
    assert seen(folder) == [SAW, SAW]


def test_two_nodes_meet_at_the_rendezvous(folder):
    """Two `nodes` on this machine, one process each."""
    options = {"command": command(folder), "hosts": "127.0.0.1,127.0.0.2", "port": "29731"}
    (text,) = files_of("torchrun-elastic", two(num_nodes=2), options).values()
    script = folder / "torchrun.sh"
    script.write_text(text)
    begun = [subprocess.Popen(["bash", str(script)], env=environ(), cwd=folder) for _ in range(2)]
    assert [p.wait(120) for p in begun] == [0, 0]
    assert seen(folder) == [SAW, SAW]


# --- SLURM ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    if reason := missing():
        lacking(reason, installable="apt-get" in reason)
    with slurm_cluster(num_nodes=2) as found:
        yield found


def submitted(cluster, text, path):
    path.write_text(text)
    return subprocess.run(
        ["sbatch", "--test-only", str(path)], env=cluster.environ, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_sbatch_takes_the_batch_file_and_refuses_broken_copies(cluster, tmp_path):
    (text,) = files_of("slurm", recipe_job(), {"partition": "debug"}).values()
    done = submitted(cluster, text, tmp_path / slurm.FILE)
    assert done.returncode == 0, done.stderr
    assert "using 32 processors on nodes node[1-2]" in done.stderr  # 2 without --exclusive
    for old, new, says in (
        ("--gpus-per-node=8", "--gpus-per-node=16", "configuration is not available"),
        ("--nodes=2", "--nodes=4", "node count|configuration is not available"),
        ("--requeue", "--requeue-of-mine", "unrecognized option"),
        ("--time=", "--time=x", "[Ii]nvalid.*time"),
        ("--partition=debug", "--partition=none", "invalid partition"),
    ):
        assert old in text
        done = submitted(cluster, text.replace(old, new), tmp_path / "broken.sbatch")
        assert done.returncode != 0
        assert re.search(says, done.stderr), done.stderr


def test_the_batch_file_runs_on_two_nodes(cluster, folder):
    options = {"command": command(folder), "partition": "debug", "port": "29733"}
    (text,) = files_of("slurm", two(num_nodes=2), options).values()
    script = folder / slurm.FILE
    script.write_text(text)
    env = {**environ(), "SLURM_CONF": str(cluster.conf)}
    done = subprocess.run(
        ["sbatch", "--parsable", str(script)], env=env, cwd=folder, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    number, end = done.stdout.strip(), time.monotonic() + 120
    while "COMPLETED" not in (state := cluster.asked("scontrol", "show", "job", "-o", number)):
        logs = "".join(p.read_text() for p in folder.glob("*.out"))
        assert "JobState=FAILED" not in state, logs
        assert time.monotonic() < end, state + logs
        time.sleep(0.3)
    assert "TimeLimit=1-02:00:00" in state
    assert "Requeue=1" in state
    assert seen(folder) == [SAW, SAW]
    # Every CPU of both nodes, which have 16 each; it was one before.
    assert "NumCPUs=32 " in state
    assert [p.read_text() for p in sorted(folder.glob("cpus*"))] == ["16 of 16"] * 2


def test_a_job_queues_again_when_its_partition_ends(cluster, tmp_path):
    """The signal that SLURM would send 120 s before the end, sent by hand."""
    options = {"command": "sleep 120", "partition": "debug", "partition_hours": "1"}
    (text,) = files_of("slurm", two(num_nodes=2), options).values()
    (tmp_path / slurm.FILE).write_text(text)
    done = subprocess.run(
        ["sbatch", "--parsable", slurm.FILE], env={**environ(), "SLURM_CONF": str(cluster.conf)},
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    number = done.stdout.strip()

    def state():
        return cluster.asked("scontrol", "show", "job", "-o", number)

    def waited(words):
        end = time.monotonic() + 60
        while words not in state():
            assert time.monotonic() < end, state()
            time.sleep(0.3)

    waited("JobState=RUNNING")
    assert "TimeLimit=01:00:00" in state()
    time.sleep(2)  # until the batch script has its trap
    cluster.asked("scancel", "--batch", "--signal=USR1", number)
    waited("Restarts=1")
    cluster.asked("scancel", number)


# --- SkyPilot ------------------------------------------------------------------------------------

SKY = """
import json, sys
import sky, yaml
def read(text, overrides):
    task = sky.Task.from_yaml_config(yaml.safe_load(text), env_overrides=overrides)
    (r,) = task.resources
    for storage in task.storage_mounts.values():  # as it would before it mounts them
        storage._validate_source(storage.source, storage.mode, False)
    return {"nodes": task.num_nodes, "accelerators": r.accelerators, "spot": r.use_spot,
            "cloud": str(r.cloud), "region": r.region, "tier": str(r.network_tier),
            "run": task.run, "mounts": list(task.storage_mounts), "disk": r.disk_size,
            "image": str(r.image_id), "setup": task.setup}
told = {}
for name, question in json.load(open(sys.argv[1])).items():
    try:
        told[name] = read(*question)
    except Exception as e:
        told[name] = {"error": f"{type(e).__name__}: {e}"}
print(json.dumps(told))
"""
BUCKET = [["CHECKPOINT_BUCKET", "s3://mine"]]
BUCKETS = (
    "gs://mine/runs", "r2://mine/runs", "nebius://mine/runs", "oci://mine@us-ashburn-1/runs",
    "cos://us-east/mine/runs", "https://me.blob.core.windows.net/mine/runs", "cw://mine/runs",
)  # fmt: skip
NOT_SKY = {  # old, new, what SkyPilot says of it
    "key": ("num_nodes: 2", "num_node: 2", "num_nodes"),
    "number": ("num_nodes: 2", "num_nodes: two", "two"),
    "count": ("H100:8", "H100:eight", "eight"),
    "tier": ("network_tier: best", "network_tier: fast", "fast"),
}


@pytest.fixture(scope="module")
def sky(tmp_path_factory):
    """What SkyPilot makes of each task, and of broken copies; in one process, which it takes
    seconds to start."""
    if sky_python() is None:
        lacking(
            "No interpreter has skypilot: `make clusters`, or RUNCAST_SKY_PYTHON names one.",
            installable=False,
        )
    (spot,) = files_of("skypilot", recipe_job(purchase="spot"), {}).values()
    (usual,) = files_of("skypilot", recipe_job(), {}).values()
    questions = {"spot": (spot, BUCKET), "no bucket": (usual, [])}
    large = recipe_job(checkpoint_bytes=980 * 2**30)
    for bucket in BUCKETS:
        given = {"bucket": bucket, "image": "nvidia/cuda:1"}
        (text,) = files_of("skypilot", large, given).values()
        questions[bucket] = (text, [])
    for name, (old, new, _) in NOT_SKY.items():
        assert old in usual
        questions[name] = (usual.replace(old, new), BUCKET)
    folder = tmp_path_factory.mktemp("sky")
    (folder / "questions.json").write_text(json.dumps(questions))
    done = subprocess.run(
        [str(sky_python()), "-c", SKY, "questions.json"], cwd=folder,
        env={**os.environ, "HOME": str(folder), "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"},
        capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_skypilot_takes_the_task(sky):
    found = sky["spot"]
    assert "error" not in found, found
    assert (found["nodes"], found["accelerators"]) == (2, {"H100": 8})
    assert (found["cloud"], found["region"]) == ("AWS", "us-east-1")
    assert found["spot"] is True
    assert found["tier"].lower().endswith("best")
    assert found["mounts"] == ["/checkpoints"]
    assert "--nnodes=2" in found["run"]


@pytest.mark.parametrize("bucket", BUCKETS)
def test_skypilot_takes_every_kind_of_bucket_with_a_folder(sky, bucket):
    found = sky[bucket]
    assert "error" not in found, found
    assert (found["disk"], "docker:nvidia/cuda:1" in found["image"]) == (1236, True)
    assert "import torch" in found["setup"]


def test_skypilot_refuses_the_task_without_a_bucket(sky):
    assert "CHECKPOINT_BUCKET' is None" in sky["no bucket"]["error"]


@pytest.mark.parametrize("name", NOT_SKY)
def test_skypilot_refuses_a_broken_copy(sky, name):
    assert NOT_SKY[name][2] in sky[name]["error"]


# --- Kubernetes ----------------------------------------------------------------------------------


def strict(objects):
    """The newest schema of Kubernetes, where every key must be known."""
    import kubernetes_validate

    for one in objects:
        kubernetes_validate.validate(one, "1.37", strict=True)


NODES = recipe_job(vcpus=192, host_ram_gib=2048.0)


PODS = {"JobSet": "k8s-jobset", "PyTorchJob": "k8s-pytorchjob", "TrainJob": "k8s-trainjob"}


@pytest.mark.parametrize("job", [NODES, one_gpu()], ids=["nodes", "one"])
def test_kubernetes_takes_the_job_and_the_pods_of_the_others(job):
    options = {"image": "registry/torch:1", "namespace": "training", "queue": "research"}
    (text,) = files_of("k8s-job", job, options).values()
    objects = list(yaml.safe_load_all(text))
    pods = inner("JobSet", job, options) + inner("PyTorchJob", job, options)
    strict(objects + pods)  # raises where a key is unknown or of another type
    assert {o["kind"] for o in objects} >= {"Job"}
    assert {o["kind"] for o in pods} == {"Job", "Pod"}


def inner(kind, job, options):
    """What a JobSet and a PyTorchJob make of their templates, as objects of Kubernetes itself."""
    (text,) = files_of(PODS[kind], job, options).values()
    spec, meta = yaml.safe_load(text)["spec"], {"name": "x"}
    if kind == "JobSet":
        (one,) = spec["replicatedJobs"]
        spec = one["template"]["spec"]
        return [{"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}]
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": kind["template"]["spec"]}
        for kind in spec["pytorchReplicaSpecs"].values()
    ]


def closed(schema):
    """A definition in which every key must be known, but for those of pods and of free maps."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(part) for key, part in schema.items()}
    return {**found, "additionalProperties": False} if "properties" in schema else found


def of_kind(kind, text):
    """Hold the `spec` of a job of this kind against its project's definition."""
    definitions = Path(__file__).with_name("kubernetes_jobs.yaml").read_text()
    schema = closed(yaml.safe_load(definitions)[kind])
    jsonschema.validate(yaml.safe_load(text)["spec"], schema)


@pytest.mark.parametrize("job", [NODES, one_gpu()], ids=["nodes", "one"])
@pytest.mark.parametrize("kind", PODS)
def test_the_definition_of_each_kind_takes_its_job_and_no_unknown_key(kind, job):
    (text,) = files_of(PODS[kind], job, {"image": "registry/torch:1"}).values()
    of_kind(kind, text)
    for old, new in {
        "JobSet": [("maxRestarts:", "maxRestart:"), ("replicas: 1", "replicas: one"),
                   ("completionMode:", "completionMod:")],
        "PyTorchJob": [("nprocPerNode: '", "nprocPerNode: 1 #"), ("backoffLimit", "backOffLimit")],
        "TrainJob": [("numNodes:", "numNode:"), ("resourcesPerNode:", "resources:")],
    }[kind]:  # fmt: skip
        assert old in text
        with pytest.raises(jsonschema.ValidationError):
            of_kind(kind, text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [("restartPolicy:", "restartPolici:"), ("completions: 2", "completions: two"),
     ("backoffLimit:", "backOffLimit:"), ("clusterIP:", "clusterIp:"),
     ("- name: shm\n", "- nam: shm\n"), ("completionMode: Indexed", "completionMode: [Indexed]")],
)  # fmt: skip
def test_kubernetes_refuses_a_broken_copy(old, new):
    from kubernetes_validate import SchemaNotFoundError, ValidationError

    text = files_of("k8s-job", recipe_job(), {})[kubernetes.JOB_FILE]
    assert old in text
    with pytest.raises(ValidationError) as e:
        strict(list(yaml.safe_load_all(text.replace(old, new))))
    assert not isinstance(e.value, SchemaNotFoundError)


# --- Ray -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def address():
    if ray_python() is None:
        lacking(
            "No interpreter has ray[default]: `make clusters`, or RUNCAST_RAY_PYTHON names one.",
            installable=False,
        )
    with ray_cluster() as found:
        yield found


def test_ray_takes_the_job_and_refuses_a_broken_copy(address, tmp_path):
    """The submission is real. The script in it needs no torch, which that Ray may lack."""
    files = files_of("ray-job", two(num_nodes=2), {"env:GREETING": "$(x) 'y'"})
    (tmp_path / ray.SCRIPT).write_text(
        "import os\nprint('saw', os.environ['GREETING'], os.environ['RAY_STORAGE'])\n"
    )
    script = tmp_path / ray.SUBMIT
    beside = Path(str(ray_python())).parent
    env = {
        **os.environ, "RAY_ADDRESS": address, "RAY_STORAGE": "/a b",
        "PATH": f"{beside}:{os.environ['PATH']}",
    }  # fmt: skip

    def submitted(text):
        script.write_text(text)
        return subprocess.run(
            ["bash", str(script)], env=env, cwd=tmp_path, capture_output=True, text=True,
            check=False, timeout=120,
        )  # fmt: skip

    done = submitted(files[ray.SUBMIT])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "saw $(x) 'y' /a b" in done.stdout
    assert "succeeded" in done.stdout
    for old, new in (("--submission-id", "--submission-ids"), ('{"working_dir', "{working_dir")):
        assert old in files[ray.SUBMIT]
        assert submitted(files[ray.SUBMIT].replace(old, new)).returncode != 0


def test_ray_train_runs_the_script_in_two_workers(folder):
    """Where an interpreter has Ray and torch: on CPUs, in a Ray of its own."""
    if importlib.util.find_spec("ray") is None:
        lacking("This interpreter has torch and no Ray.", installable=False)
    job = two(num_nodes=2)
    files = files_of("ray-train", job, {"command": command(folder)})
    (folder / ray.SCRIPT).write_text(files[ray.SCRIPT])
    done = subprocess.run(
        [sys.executable, ray.SCRIPT], cwd=folder, check=False, capture_output=True, text=True,
        timeout=240,
        env=environ(RAY_TRAIN_ON_CPUS="1", RAY_STORAGE=str(folder / "store"), NCCL_DEBUG="WARN",
                    RAY_USAGE_STATS_ENABLED="0", HOME=str(folder), RAY_AUTH_MODE="disabled"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert seen(folder) == [SAW, SAW]


# --- Accelerate and DeepSpeed --------------------------------------------------------------------


ACCELERATE = """
import json, sys
from accelerate.commands.launch import launch_command_parser

def parsed(words):
    try:
        found = launch_command_parser().parse_args(words)
    except SystemExit:
        return None
    return {k: getattr(found, k) for k in (
        "num_processes", "num_machines", "mixed_precision", "module", "training_script_args",
        "main_process_ip", "machine_rank")}

print(json.dumps([parsed(words) for words in json.load(open(sys.argv[1]))]))
"""
DEEPSPEED = """
import json, sys
from deepspeed.launcher.runner import fetch_hostfile

found = []
for text in json.load(open(sys.argv[1])):
    open("hostfile", "w").write(text)
    try:
        found.append(dict(fetch_hostfile("hostfile")))
    except ValueError as e:
        found.append(str(e))
print(json.dumps(found))
"""


@pytest.mark.parametrize("job", [recipe_job(), one_gpu(precision="fp8")], ids=["nodes", "one"])
def test_accelerates_own_parser_takes_the_words_and_no_broken_copy(tmp_path, job):
    calls = []
    for line in ("python train.py --x 1", "python -m pkg.train --x 1"):
        (text,) = files_of("accelerate-launch", job, {"command": line}).values()
        first, *words = words_for_torchrun(text, tmp_path, "accelerate")
        assert first == "launch"
        calls += [words, ["--num_process_count=2", *words], ["--mixed_precision=bf17", *words]]
    found = asked("light", ACCELERATE, calls, tmp_path)
    assert [f is None for f in found] == [False, True, True] * 2
    for one, module in ((found[0], False), (found[3], True)):
        assert (one["num_processes"], one["num_machines"]) == (job.num_gpus, job.num_nodes)
        assert one["mixed_precision"] == job.precision
        assert bool(one["module"]) is module
        assert one["training_script_args"] == ["--x", "1"]
        if job.num_nodes > 1:
            assert (one["main_process_ip"], one["machine_rank"]) == ("node-0", 1)


def test_deepspeeds_own_reader_takes_the_hostfile_and_no_broken_copy(tmp_path):
    (text,) = files_of("hostfile", recipe_job(), {"hosts": "node-0,node-1"}).values()
    texts = [text, text.replace("slots=8", "slots=eight"), text + "node-1 slots=8\n"]
    read, *broken = asked("light", DEEPSPEED, texts, tmp_path)
    assert read == {"node-0": 8, "node-1": 8}
    assert all(isinstance(x, str) for x in broken)


def test_a_plan_that_is_changed_after_it_was_made_is_refused():
    """The planner's rules hold here, too: no tool sees what they refuse."""
    job = dataclasses.replace(recipe_job(), global_batch_size=65)
    with pytest.raises(ValueError, match="not the global batch of 65"):
        files_of("slurm", job, {})
