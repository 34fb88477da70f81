"""Launch files: round trips, what is refused, what the header says."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
import subprocess

import pytest
import yaml

from core.errors import RuncastError
from runners import recipes
from runners.recipes import kubernetes, launch, skypilot, slurm
from runners.recipes.job import RecipeError, check_job
from runners.recipes.registry import OPTIONS, exported, files_of, target, targets
from runners.recipes.target import NOT_VALIDATED
from tests.made_up.plans import layout
from tests.made_up.recipes import one_gpu, recipe_job

MINE = (
    "torchrun", "torchrun-elastic", "slurm", "skypilot", "ray-train", "ray-job", "k8s-job",
    "k8s-jobset", "k8s-pytorchjob", "k8s-trainjob", "hostfile", "accelerate-launch",
)  # fmt: skip
SHAPES = {
    "one GPU": one_gpu(),
    "one node": recipe_job(
        num_gpus=8, num_nodes=1, layout=layout(tp=2, dp_shard=4, num_microbatches=16)
    ),
    "two nodes": recipe_job(),
    "idle GPUs": recipe_job(
        num_gpus=8, num_nodes=2, layout=layout(tp=2, dp_shard=4, num_microbatches=16)
    ),
    "thirty-two nodes": recipe_job(
        num_gpus=256, num_nodes=32, global_batch_size=512,
        layout=layout(tp=4, pp=2, dp_shard=16, dp_replicate=2, num_microbatches=16),
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", MINE)
def test_what_is_written_says_the_plan_again(name, shape):
    job = SHAPES[shape]
    found = target(name).read(files_of(name, job, {}))
    assert found.nodes == job.num_nodes
    assert found.gpus_per_node == job.num_gpus // job.num_nodes
    assert found.world_size == job.num_gpus


@pytest.mark.parametrize("name", MINE)
def test_a_changed_number_is_read_as_changed_or_refused(name):
    """The reader really reads: another count of GPUs in the file is another answer."""
    files = files_of(name, recipe_job(), {})
    other = {
        p: t.replace("--nproc-per-node=8", "--nproc-per-node=4")
        .replace("GPUS_PER_NODE = 8", "GPUS_PER_NODE = 4")
        .replace("--num_processes=16", "--num_processes=8")
        .replace("slots=8", "slots=4")
        for p, t in files.items()
    }
    assert other != files
    try:
        found = target(name).read(other)
    except RecipeError:
        return
    assert found.world_size == 8


@pytest.mark.parametrize("name", [*MINE, "nccl-env", "preflight"])
def test_the_header_says_where_a_file_is_from(name):
    job = recipe_job()
    for text in files_of(name, job, {}).values():
        lines = [line for line in text.splitlines() if line.startswith("#")]
        head = " ".join(line.removeprefix("#").strip() for line in lines)
        for part in (job.header.product, job.header.link, job.header.prices,
                     *job.header.forecast, *job.header.assumptions):  # fmt: skip
            assert part in head
        not_validated = target(name).tier == "not_validated"
        assert (NOT_VALIDATED in head) is not_validated
        assert ("Validated with" in head) is not not_validated


def test_every_module_with_targets_is_registered():
    """None is left out without a word."""
    found = []
    for info in pkgutil.iter_modules(recipes.__path__):
        if info.name != "fsdp2_train":  # a script that is exported, not a module of ours
            module = importlib.import_module(f"runners.recipes.{info.name}")
            found += [t.name for t in getattr(module, "TARGETS", ())]
    assert sorted(found) == sorted(targets())


def test_targets_have_names_of_their_own_and_known_options():
    assert set(MINE) <= set(targets())
    for one in targets().values():
        assert set(one.options) <= set(OPTIONS)
        assert one.title
        assert one.tool


# --- the planner's own rules -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"num_gpus": 15}, "not the 15 GPUs"),
        ({"global_batch_size": 63}, "not the global batch of 63"),
        ({"num_nodes": 1}, "hold fewer than 16"),
        ({"memory_bytes_per_gpu": 90e9}, "GiB a GPU of"),
        ({"layout": layout(tp=3, dp_shard=4, num_microbatches=16), "num_gpus": 12},
         "attention heads of 32 is not divided evenly by tp 3"),
        ({"layout": layout(tp=1, cp=16, dp_shard=1, num_microbatches=64), "seq_len": 8200},
         "not cut evenly by cp 16"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", MINE)
def test_every_target_asks_the_planner_first(name, changes, says):
    job = recipe_job(**changes)
    with pytest.raises(RecipeError, match=says):
        target(name).write(job, {})


def test_query_groups_that_do_not_divide_are_refused():
    """Real tools accept 7 query groups; the planner does not."""
    job = recipe_job()
    odd = dataclasses.replace(
        job, model=dataclasses.replace(job.model, num_kv_heads=7)  # type: ignore[type-var]
    )  # fmt: skip
    with pytest.raises(RecipeError, match="7 KV heads and tp 2 do not divide one another"):
        check_job(odd)


def test_nodes_of_unequal_numbers_of_gpus_are_refused():
    job = recipe_job(num_nodes=3, num_gpus=16)
    with pytest.raises(RecipeError, match="not spread evenly over 3 nodes"):
        files_of("slurm", job, {})


def test_accelerators_without_torchrun_are_refused():
    job = recipe_job(accelerator="TPU-v5p", vendor="google")
    for name in (*MINE, "nccl-env", "preflight"):
        with pytest.raises(RecipeError, match=r"TPU-v5p|nvidia-smi"):
            files_of(name, job, {})


# --- single launchers ------------------------------------------------------------------------


def test_the_time_limit_is_the_p90_with_failures_in_whole_hours():
    text = files_of("slurm", recipe_job(limit_hours=25.01), {})[slurm.FILE]
    assert "#SBATCH --time=1-02:00:00" in text
    given = files_of("slurm", recipe_job(limit_hours=None), {"time_hours": "3"})[slurm.FILE]
    assert "#SBATCH --time=0-03:00:00" in given
    with pytest.raises(RecipeError, match="not expected to end"):
        files_of("slurm", recipe_job(limit_hours=None), {})


def directives(text):
    return [x.removeprefix("#SBATCH --") for x in text.splitlines() if x.startswith("#SBATCH")]


def test_slurm_is_asked_for_all_of_a_node_or_for_the_cpus_that_were_given():
    """With neither SLURM gives the eight processes of a node one CPU."""
    text = files_of("slurm", recipe_job(vcpus=192), {})[slurm.FILE]
    assert {"exclusive", "mem=0"} <= set(directives(text))
    assert '--cpus-per-task="$SLURM_CPUS_ON_NODE"' in text  # srun takes one by itself
    assert "192 vCPUs" in text
    some = files_of("slurm", recipe_job(), {"cpus_per_node": "96", "memory_gib": "900"})
    found = directives(some[slurm.FILE])
    assert {"cpus-per-task=96", "mem=900G"} <= set(found)
    assert "exclusive" not in found


def test_a_run_longer_than_its_partition_allows_queues_again():
    job = recipe_job(limit_hours=480.0)  # 20 days pend for ever on a partition of 7
    capped = files_of("slurm", job, {"partition_hours": "168"})[slurm.FILE]
    assert {"time=7-00:00:00", "signal=B:USR1@120", "requeue"} <= set(directives(capped))
    assert "scontrol requeue" in capped
    assert target("slurm").read({slurm.FILE: capped}).world_size == 16
    whole = files_of("slurm", job, {"partition_hours": "500"})[slurm.FILE]
    assert "time=20-00:00:00" in directives(whole)
    assert "scontrol requeue" not in whole
    assert "sinfo" in files_of("slurm", job, {})[slurm.FILE]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"container": "pyxis", "container_image": "nvcr.io#nvidia/pytorch:26.01-py3",
          "container_mounts": "/data:/data:ro,/x:/y"},
         ["--container-image='nvcr.io#nvidia/pytorch:26.01-py3'",
          '--container-mounts="$PWD:$PWD",/data:/data:ro,/x:/y', '--container-workdir="$PWD"']),
        ({"container": "apptainer", "container_image": "/img/torch.sif"},
         ['apptainer exec --nv --bind="$PWD:$PWD" --pwd="$PWD" /img/torch.sif torchrun']),
        ({"modules": "cuda/12.6,gcc", "venv": "/shared/venv/"},
         ["\nmodule load cuda/12.6 gcc || exit 1\n", "\n. /shared/venv/bin/activate || exit 1\n"]),
    ],
)  # fmt: skip
def test_the_software_of_a_slurm_job(options, words, tmp_path):
    options = {"command": "python t.py", "partition_hours": "48", **options}
    text = files_of("slurm", recipe_job(), options)[slurm.FILE]
    assert [w for w in words if w not in text] == []
    assert "TODO runcast" not in text
    script = tmp_path / slurm.FILE
    script.write_text(text)
    subprocess.run(["bash", "-n", str(script)], check=True)  # its grammar


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"container": "docker", "container_image": "x"}, "'docker' is none of pyxis, apptainer"),
        ({"container_image": "x"}, "container .pyxis or apptainer. and container_image belong"),
        ({"container": "pyxis", "container_image": "x;rm"}, "a container looks like"),
        ({"container": "pyxis", "container_image": "x", "container_mounts": "/a"}, "a mount looks"),
        ({"modules": "$(x)"}, "modules '\\$.x.' is refused"),
        ({"cpus_per_node": "0"}, "cpus_per_node '0' is not a whole number from 1"),
        ({"partition_hours": "1.5"}, "partition_hours '1.5' is not a whole number"),
    ],
)
def test_software_that_cannot_be_written_is_a_sentence(options, says):
    with pytest.raises(RecipeError, match=says):
        files_of("slurm", recipe_job(), options)


@pytest.mark.parametrize(
    ("name", "options", "open_"),
    [
        ("slurm", {}, ["command", "partition_hours", "software"]),
        ("slurm", {"time_hours": "20", "venv": "/v", "command": "python t.py"}, []),
        ("skypilot", {}, ["command", "bucket", "image"]),
        ("skypilot", {"bucket": "s3://a/b", "image": "x", "command": "python t.py"}, []),
        ("k8s-job", {"command": "python t.py"}, ["image", "cpus_per_node", "memory_gib"]),
        ("k8s-trainjob", {"image": "x", "memory_gib": "900"}, ["command", "cpus_per_node"]),
    ],
)
def test_what_only_the_user_knows_stands_in_one_block(name, options, open_):
    (text,) = files_of(name, recipe_job(), options).values()
    _, _, block = text.partition("# --- fill in before starting ---\n")
    lines = block.partition("# ---\n")[0].splitlines()
    assert [re.match(r"# TODO runcast: (\w+) - \S", x)[1] for x in lines] == open_
    assert text.count("TODO runcast") == len(open_)


@pytest.mark.parametrize("name", ["k8s-job", "k8s-jobset", "k8s-pytorchjob", "k8s-trainjob"])
def test_pods_ask_for_cpus_and_memory_that_a_source_or_the_user_says(name):
    def asked(job, options):
        (text,) = files_of(name, job, options).values()
        found = re.findall(r"(?:cpu|memory): '?(\d+(?:Gi)?)'?\n", text)
        return text, found

    text, found = asked(recipe_job(vcpus=192, host_ram_gib=2048.0), {"queue": "research"})
    assert set(found) == {"172", "1843Gi"}
    assert "kueue.x-k8s.io/queue-name: research" in text
    text, found = asked(recipe_job(), {"memory_gib": "900"})
    assert set(found) == {"900Gi"}
    assert "cpus_per_node - the vCPUs of a pod, which is not requested: no source" in text
    assert "memory_gib - " not in text


def test_the_name_of_a_trainjob_begins_with_a_letter():
    with pytest.raises(RecipeError, match="begins with a letter"):
        files_of("k8s-trainjob", recipe_job(name="8b"), {})


def test_skypilot_gets_setup_image_disk_and_its_own_kinds_of_buckets():
    job = recipe_job(checkpoint_bytes=980 * 2**30)
    options = {"bucket": "nebius://mine/runs", "image": "registry/torch:1"}
    task = yaml.safe_load(files_of("skypilot", job, options)[skypilot.FILE])
    assert task["resources"]["disk_size"] == 256 + 980  # two checkpoints over two nodes
    assert task["resources"]["image_id"] == "docker:registry/torch:1"
    assert "import torch" in task["setup"]
    assert task["envs"]["CHECKPOINT_BUCKET"] == "nebius://mine"
    with pytest.raises(RecipeError, match="begins with one of s3, gs, https"):
        files_of("skypilot", job, {"bucket": "ftp://mine/runs"})


def test_an_elastic_run_keeps_its_batch():
    text = files_of("torchrun-elastic", recipe_job(), {"min_nodes": "1"})["torchrun_elastic.sh"]
    assert "--nnodes=1:2" in text
    odd = recipe_job(
        num_gpus=24, num_nodes=3, global_batch_size=36,
        layout=layout(tp=2, dp_shard=12, num_microbatches=3),
    )  # fmt: skip
    with pytest.raises(RecipeError, match="do not divide the global batch of 36"):
        files_of("torchrun-elastic", odd, {"min_nodes": "2"})


def test_spot_machines_are_asked_for_and_recovered():
    for purchase, spot in (("spot", True), ("on_demand", None)):
        text = files_of("skypilot", recipe_job(purchase=purchase), {})[skypilot.FILE]
        resources = yaml.safe_load(text)["resources"]
        assert resources.get("use_spot") is spot
        assert resources["job_recovery"]["strategy"] == "FAILOVER"
        assert resources["network_tier"] == "best"
        assert resources["accelerators"] == "H100:8"
    mega = recipe_job(provider="gcp", instance_type="a3-megagpu-8g", nccl_fabrics=("tcpxo",))
    assert skypilot.accelerator(mega) == "H100-MEGA"
    with pytest.raises(RecipeError, match="name of MI250X is not known"):
        files_of("skypilot", recipe_job(accelerator="MI250X", vendor="amd"), {})


def test_what_must_be_given_is_marked_and_cannot_be_overlooked():
    sky = yaml.safe_load(files_of("skypilot", recipe_job(), {})[skypilot.FILE])
    assert sky["envs"]["CHECKPOINT_BUCKET"] is None  # SkyPilot refuses it until it is given
    given = files_of("skypilot", recipe_job(), {"bucket": "s3://mine/runs"})[skypilot.FILE]
    # SkyPilot mounts whole buckets: it refuses s3://mine/runs when it starts the machines.
    assert yaml.safe_load(given)["envs"]["CHECKPOINT_BUCKET"] == "s3://mine"
    assert yaml.safe_load(given)["envs"]["CHECKPOINT_DIR"] == "/checkpoints/runs"
    k8s = files_of("k8s-job", recipe_job(), {})[kubernetes.JOB_FILE]
    assert kubernetes.NO_IMAGE in k8s
    assert not kubernetes.NO_IMAGE.islower()  # no image has capitals
    assert "SET-HOST-1 slots=8" in files_of("hostfile", recipe_job(), {})["hostfile"]
    assert launch.NO_COMMAND in files_of("torchrun", recipe_job(), {})["torchrun.sh"]


def test_hosts_must_be_as_many_as_the_nodes():
    with pytest.raises(RecipeError, match="hosts names 3, and the plan has 2 nodes"):
        files_of("hostfile", recipe_job(), {"hosts": "a,b,c"})
    found = files_of("hostfile", recipe_job(), {"hosts": "a,user@b"})["hostfile"]
    assert found.endswith("a slots=8\nb slots=8\n")


def test_amd_gpus_are_asked_for_by_their_own_name():
    job = recipe_job(accelerator="MI300X", vendor="amd")
    text = files_of("k8s-job", job, {})[kubernetes.JOB_FILE]
    assert "amd.com/gpu: 8" in text
    assert "nvidia.com/gpu" not in text


# --- several targets ---------------------------------------------------------------------------


def test_files_of_several_targets_share_what_is_the_same():
    found = exported(["ray-train", "ray-job", "slurm"], recipe_job(), {})
    assert found["ray-train"]["ray_train.py"] == found["ray-job"]["ray_train.py"]
    assert set(found) == {"ray-train", "ray-job", "slurm"}


def test_a_stack_that_is_exported_beside_a_launcher_is_what_it_starts(monkeypatch):
    stack = dataclasses.replace(target("nccl-env"), starts=lambda job, options: "python mine.py")
    monkeypatch.setitem(targets(), "nccl-env", stack)
    text = exported(["slurm", "nccl-env"], recipe_job(), {})["slurm"][slurm.FILE]
    assert text.rstrip().endswith('mine.py "$@"')
    given = exported(["slurm", "nccl-env"], recipe_job(), {"command": "python other.py"})
    assert given["slurm"][slurm.FILE].rstrip().endswith('other.py "$@"')


def test_unknown_names_are_sentences():
    with pytest.raises(RuncastError, match="Did you mean 'slurm'"):
        exported(["slrum"], recipe_job(), {})
    with pytest.raises(RuncastError, match="No target is named"):
        exported([], recipe_job(), {})
    with pytest.raises(RuncastError, match="Did you mean 'partition'"):
        exported(["slurm"], recipe_job(), {"partitions": "x"})
    with pytest.raises(RuncastError, match="belongs to none of slurm"):
        exported(["slurm"], recipe_job(), {"image": "x"})


def test_a_writer_that_disagrees_with_the_plan_writes_nothing(monkeypatch):
    wrong = dataclasses.replace(
        target("slurm"),
        write=lambda job, options: slurm.TARGETS[0].write(
            dataclasses.replace(job, num_nodes=1, gpus_per_node=16), options
        ),
    )
    monkeypatch.setitem(targets(), "slurm", wrong)
    with pytest.raises(RecipeError, match="would say nodes 1 for a plan of 2"):
        files_of("slurm", recipe_job(), {})
