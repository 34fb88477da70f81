"""Kubernetes: an Indexed Job with a headless Service, a JobSet, a PyTorchJob, a TrainJob.

Kubernetes replaces $(NAME) in commands and values itself, before any shell, so a dollar sign before
a bracket is doubled, which Kubernetes undoes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml  # type: ignore[import-untyped, unused-ignore]

from runners.recipes import launch, quoting
from runners.recipes.header import commented, comments
from runners.recipes.job import RecipeError, RecipeJob, check_job
from runners.recipes.target import Recovered, Target, Tier
from runners.recipes.yaml_text import dumped

TOOL = "kubernetes-validate 1.37 (strict schema of Kubernetes 1.37)"
OUTER = (
    "the definition of {kind} in {source}, no unknown key allowed, and kubernetes-validate 1.37 "
    "for its pods; no server with it was at hand"
)
JOBSET_TOOL = OUTER.format(kind="JobSet", source="kubernetes-sigs/jobset@08dfbdfd")
PYTORCHJOB_TOOL = OUTER.format(kind="PyTorchJob", source="Training Operator 1.9.0")
JOB_FILE, JOBSET_FILE, PYTORCHJOB_FILE = "k8s_job.yaml", "k8s_jobset.yaml", "k8s_pytorchjob.yaml"
TRAINJOB_FILE = "k8s_trainjob.yaml"
RUNTIME = "torch-distributed"  # of Kubeflow Trainer's own manifests
KUEUE = "kueue.x-k8s.io/queue-name"
# Of a machine's CPUs and memory: the kubelet and the daemons of a node keep the rest; assumed.
ALLOCATABLE = 0.9
TRAINJOB_TOOL = (
    "the definition of TrainJob in kubeflow/trainer@8c0f5059, no unknown key allowed; no server "
    "with it was at hand"
)
NO_IMAGE = "SET-THE-IMAGE"  # capitals are not valid in an image: a cluster refuses it with an error
PULL_S = 900  # for pods to be placed and the image to be pulled


def escaped(text: str) -> str:
    """Text escaped so that Kubernetes uses it literally.

    >>> escaped("$(HOME) $HOME")
    '$$(HOME) $HOME'
    """
    return text.replace("$(", "$$(")


def _script(
    job: RecipeJob, options: Mapping[str, str], rank: str, address: str, port: str = ""
) -> str:
    own = [
        f"--nnodes={job.num_nodes}", f"--nproc-per-node={launch.per_node(job)}",
        f'--node-rank="{rank}"', f"--master-addr={address}",
        f"--master-port={port or launch.port(options)}",
    ]  # fmt: skip
    words = quoting.shell(launch.under_torchrun(launch.words_of(options)))
    return escaped(" \\\n  ".join(["exec torchrun", *own, words]) + "\n")


def _resources(job: RecipeJob, options: Mapping[str, str]) -> dict[str, Any]:
    """GPUs, CPUs and memory of a pod. What is requested is the limit, too, so that a node under
    pressure evicts other pods first; what neither a source nor the user says is left out."""
    asked: dict[str, Any] = {launch.gpu_resource(job): launch.per_node(job)}
    for name, given, machine, unit in (
        ("cpu", launch.cpus(options), job.vcpus, ""),
        ("memory", launch.memory_gib(options), job.host_ram_gib, "Gi"),
    ):
        count = given or (int(ALLOCATABLE * machine) if machine else None)
        if count:
            asked[name] = f"{count}{unit}"
    return {"requests": asked, "limits": asked}


def _pod(
    job: RecipeJob, options: Mapping[str, str], script: str, *, container: str, never: str = "Never"
) -> dict[str, Any]:
    """The pod of one node: its GPUs, its variables, shared memory for the data loader."""
    image = quoting.image(options["image"], "image") if "image" in options else NO_IMAGE
    env = [{"name": v.name, "value": escaped(v.value)} for v in launch.variables(job, options)]
    return {
        "restartPolicy": never,
        "containers": [
            {
                "name": container,
                "image": image,
                "command": ["bash", "-c", script],
                "env": env,
                "resources": _resources(job, options),
                "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
            }
        ],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
    }


def _apart(job: RecipeJob, pod: dict[str, Any]) -> dict[str, Any]:
    """Each pod on a node of its own."""
    if job.num_nodes == 1:
        return pod
    term = {
        "labelSelector": {"matchLabels": {"app": job.name}},
        "topologyKey": "kubernetes.io/hostname",
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {**pod, "affinity": {"podAntiAffinity": required}}


def _indexed(job: RecipeJob, options: Mapping[str, str], pod: dict[str, Any]) -> dict[str, Any]:
    """The spec of an Indexed Job: pod i is node i."""
    return {
        "completions": job.num_nodes,
        "parallelism": job.num_nodes,
        "completionMode": "Indexed",
        "backoffLimit": launch.RESTARTS * job.num_nodes,
        "activeDeadlineSeconds": launch.limit_s(job, options) + PULL_S,
        "template": {"metadata": {"labels": {"app": job.name}}, "spec": _apart(job, pod)},
    }


def _meta(job: RecipeJob, options: Mapping[str, str]) -> dict[str, Any]:
    space = {"namespace": quoting.name(options["namespace"], "namespace")} if (
        "namespace" in options
    ) else {}  # fmt: skip
    queue = {KUEUE: quoting.name(options["queue"], "queue")} if "queue" in options else {}
    return {"name": job.name, **space, "labels": {"app": job.name, **queue}}


def _job(job: RecipeJob, options: Mapping[str, str]) -> list[dict[str, Any]]:
    meta = _meta(job, options)
    address = "127.0.0.1" if job.num_nodes == 1 else f"{job.name}-0.{job.name}"
    pod = _pod(job, options, _script(job, options, "$JOB_COMPLETION_INDEX", address),
               container="train")  # fmt: skip
    service = {
        "clusterIP": "None", "selector": {"app": job.name}, "publishNotReadyAddresses": True
    }  # fmt: skip
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": service},
        {
            "apiVersion": "batch/v1", "kind": "Job", "metadata": meta,
            "spec": _indexed(job, options, {**pod, "subdomain": job.name}),
        },
    ]  # fmt: skip


def _jobset(job: RecipeJob, options: Mapping[str, str]) -> list[dict[str, Any]]:
    address = f"{job.name}-node-0-0.{job.name}"
    pod = _pod(job, options, _script(job, options, "$JOB_COMPLETION_INDEX", address),
               container="train")  # fmt: skip
    spec = _indexed(job, options, pod)
    spec["backoffLimit"] = 0  # a pod that fails ends the set, which restarts as a whole
    return [
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": _meta(job, options),
            "spec": {
                "failurePolicy": {"maxRestarts": launch.RESTARTS},
                "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
                "replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": spec}}],
            },
        }
    ]


def _pytorchjob(job: RecipeJob, options: Mapping[str, str]) -> list[dict[str, Any]]:
    # The operator sets RANK to the number of the pod and MASTER_ADDR to the first one.
    script = _script(job, options, "$RANK", '"$MASTER_ADDR"')
    pod = _apart(job, _pod(job, options, script, container="pytorch", never="OnFailure"))
    del pod["restartPolicy"]  # the operator's own, below
    template = {"metadata": {"labels": {"app": job.name}}, "spec": pod}

    def replicas(count: int) -> dict[str, Any]:
        return {"replicas": count, "restartPolicy": "OnFailure", "template": template}

    kinds = {"Master": replicas(1)}
    if job.num_nodes > 1:
        kinds["Worker"] = replicas(job.num_nodes - 1)
    return [
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": _meta(job, options),
            "spec": {
                "nprocPerNode": str(launch.per_node(job)),
                "runPolicy": {
                    "backoffLimit": launch.RESTARTS,
                    "activeDeadlineSeconds": launch.limit_s(job, options) + PULL_S,
                    "cleanPodPolicy": "Running",
                },
                "pytorchReplicaSpecs": kinds,
            },
        }
    ]


def _trainjob(job: RecipeJob, options: Mapping[str, str]) -> list[dict[str, Any]]:
    # The runtime's torch policy sets these variables, from which torchrun could start alone.
    script = _script(job, options, "$PET_NODE_RANK", '"$PET_MASTER_ADDR"', '"$PET_MASTER_PORT"')
    container = _pod(job, options, script, container="node")["containers"][0]
    return [
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": _meta(job, options),
            "spec": {
                "runtimeRef": {"name": quoting.name(options.get("runtime", RUNTIME), "runtime")},
                "trainer": {
                    "image": container["image"],
                    "command": container["command"],
                    "env": container["env"],
                    "numNodes": job.num_nodes,
                    "numProcPerNode": launch.per_node(job),
                    "resourcesPerNode": container["resources"],
                },
            },
        }
    ]


def _refuses_trainjob(job: RecipeJob) -> str:
    """Why there is no TrainJob; its names begin with a letter (RFC 1035)."""
    return _refuses(job) or (
        "" if job.name[0].isalpha() else "the name of a TrainJob begins with a letter"
    )


def _refuses(job: RecipeJob) -> str:
    if why := launch.is_torch(job):
        return why
    return (
        ""
        if launch.gpu_resource(job)
        else f"what Kubernetes calls a {job.accelerator} is not known here"
    )


def _written(
    job: RecipeJob, options: Mapping[str, str], file: str, objects: list[dict[str, Any]],
    tool: str, tier: Tier, more: tuple[str, ...] = (),
) -> dict[str, str]:  # fmt: skip
    if why := _refuses(job):
        raise RecipeError(f"{why[0].upper()}{why[1:]}.")
    notes = [f"Start with: kubectl apply -f {file}", *more]
    todos = launch.no_command(options)
    if "image" not in options:
        todos["image"] = f"yours, with torch and your script, for {NO_IMAGE}"
    notes += _host_notes(job, options)
    todos |= _unknown_requests(job, options)
    if {"efa", "infiniband", "infiniband_sharp", "roce"} & {*launch.fabrics(job, options)}:
        notes.append(
            "The pods need your cluster's resource of the fast network (vpc.amazonaws.com/efa, "
            "rdma/...) in `limits`: its name and number are your cluster's."
        )
    notes += [f"{v.name}: {v.reason}" for v in launch.variables(job, options)]
    body = dumped(objects)
    head = commented(job.header, tool=tool, tier=tier) + comments(notes) + launch.fill_in(todos)
    return {file: head + body}


def _host_notes(job: RecipeJob, options: Mapping[str, str]) -> list[str]:
    """Where the requests for CPUs and memory are from."""
    return [
        f"{name}: {ALLOCATABLE:.0%} of the {machine:g} {unit} of {job.instance_type}; the node "
        f"itself keeps the rest (assumed); {option}=N asks for another number."
        for option, name, machine, unit in _hosts(job)
        if machine and option not in options
    ]


def _unknown_requests(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    """Requests that neither a source nor the user gives: without them a pod with GPUs may share
    a node's CPUs with any other, and is among the first to be evicted."""
    return {
        option: f"the {unit} of a pod, which is not requested: no source says what the machine has"
        for option, _, machine, unit in _hosts(job)
        if not machine and option not in options
    }


def _hosts(job: RecipeJob) -> tuple[tuple[str, str, float | None, str], ...]:
    """Option, resource, what the machine has, and its unit."""
    return (
        ("cpus_per_node", "cpu", job.vcpus, "vCPUs"),
        ("memory_gib", "memory", job.host_ram_gib, "GiB"),
    )


def _write_job(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    check_job(job)
    return _written(job, options, JOB_FILE, _job(job, options), TOOL, "validated")


def _write_jobset(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    check_job(job)
    objects = _jobset(job, options)
    return _written(job, options, JOBSET_FILE, objects, JOBSET_TOOL, "validated")


def _write_pytorchjob(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    check_job(job)
    objects = _pytorchjob(job, options)
    return _written(job, options, PYTORCHJOB_FILE, objects, PYTORCHJOB_TOOL, "validated")


_OF_RUNTIME = (
    "The runtime decides the rest: give its pods a memory volume at /dev/shm for the data loader. "
    "Trainer 2.0 and 2.1 have no time limit for a TrainJob.",
)


def _write_trainjob(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    check_job(job)
    if why := _refuses_trainjob(job):
        raise RecipeError(f"{why[0].upper()}{why[1:]}.")
    objects = _trainjob(job, options)
    return _written(
        job, options, TRAINJOB_FILE, objects, TRAINJOB_TOOL, "validated", more=_OF_RUNTIME
    )


def _read(files: Mapping[str, str]) -> Recovered:
    """Read the pods of one manifest and the GPUs of each, which must match those of torchrun."""
    if len(files) != 1:
        raise RecipeError("One manifest is read.")
    objects = [o for o in yaml.safe_load_all(next(iter(files.values()))) if isinstance(o, dict)]
    try:
        nodes, pod = _nodes(objects)
        container = pod["containers"][0]
        (count,) = (n for x, n in container["resources"]["limits"].items() if x.endswith("/gpu"))
        script = container["command"][2].replace("$$(", "$(")
    except (KeyError, IndexError, TypeError, ValueError):
        raise RecipeError("The manifest has no job of ours.") from None
    called = launch.flags(script, "torchrun")
    if (launch.number(called, "nnodes"), launch.number(called, "nproc-per-node")) != (nodes, count):
        raise RecipeError("The manifest has other pods or GPUs than torchrun starts.")
    return launch.recovered(nodes, count, image=container["image"])


def _nodes(objects: list[dict[str, Any]]) -> tuple[int, dict[str, Any]]:
    kinds_read = ("Job", "JobSet", "PyTorchJob", "TrainJob")
    (found,) = [o for o in objects if o["kind"] in kinds_read] or [{}]
    spec: dict[str, Any] = found["spec"]
    if found["kind"] == "TrainJob":
        train = spec["trainer"]
        return train["numNodes"], {
            "containers": [{**train, "resources": train["resourcesPerNode"]}]
        }
    if found["kind"] == "PyTorchJob":
        kinds = spec["pytorchReplicaSpecs"]
        return sum(k["replicas"] for k in kinds.values()), kinds["Master"]["template"]["spec"]
    if found["kind"] == "JobSet":
        spec = spec["replicatedJobs"][0]["template"]["spec"]
    if spec["completions"] != spec["parallelism"]:
        raise RecipeError("The pods of the job would not run together.")
    return spec["completions"], spec["template"]["spec"]


_OPTIONS = (
    "command", "env", "fabric", "port", "image", "namespace", "time_hours", "cpus_per_node",
    "memory_gib", "queue",
)  # fmt: skip
TARGETS = (
    Target(
        name="k8s-job", title="Kubernetes Job", kind="launcher", tier="validated", tool=TOOL,
        write=_write_job, read=_read, options=_OPTIONS, refuses=_refuses,
    ),
    Target(
        name="k8s-jobset", title="Kubernetes JobSet", kind="launcher", tier="validated",
        tool=JOBSET_TOOL, write=_write_jobset, read=_read, options=_OPTIONS,
        refuses=_refuses,
    ),
    Target(
        name="k8s-pytorchjob", title="Kubernetes PyTorchJob (Kubeflow)", kind="launcher",
        tier="validated", tool=PYTORCHJOB_TOOL, write=_write_pytorchjob,
        read=_read, options=_OPTIONS, refuses=_refuses,
    ),
    Target(
        name="k8s-trainjob", title="Kubernetes TrainJob (Kubeflow Trainer 2)", kind="launcher",
        tier="validated", tool=TRAINJOB_TOOL, write=_write_trainjob, read=_read,
        options=(*(o for o in _OPTIONS if o not in ("port", "time_hours")), "runtime"),
        refuses=_refuses_trainjob,
    ),
)  # fmt: skip
