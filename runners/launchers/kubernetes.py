"""Kubernetes: a Job whose pods are the nodes, through the user's own `kubectl`.

The files are a ConfigMap, so the image needs only Python with torch. Several pods
find the first one through a headless Service.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import yaml  # type: ignore[import-untyped, unused-ignore]

from hardware.outside.json_text import Bounds, OutsideError, json_value
from runners.launchers.job import SUPERVISOR, Job
from runners.launchers.launcher import (
    Command,
    Done,
    Launch,
    Launcher,
    Progress,
    called,
    why_ended,
    write_files,
)
from runners.launchers.quoting import LaunchError, UnreachableError

JOB = Bounds(num_bytes=16_000_000, values=500_000, depth=64)  # an object of Kubernetes
CALL_S = 60.0
MANIFEST = "job.yaml"
KEPT_S = 3600  # of a job that has ended
SCHEDULE_S = 900.0  # for pods to be placed and the image to be pulled
_MOUNT, _WORK = "/runcast", "/tmp/runcast"
_LOST = (
    "Unable to connect", "connection refused", "was refused", "timed out", "timeout", "no route",
    "EOF",
)  # fmt: skip


@dataclass
class Kubernetes(Launcher):
    """One Indexed Job: pod i is node i."""

    image: str
    namespace: str = "default"
    context: str = ""  # of kubectl; '': the current one
    gpus_per_node: int | None = None
    gpu_resource: str = "nvidia.com/gpu"
    poll_s: float = 5.0
    _read: dict[str, int] = field(default_factory=dict)

    @property
    def where(self) -> str:
        context = f"context {self.context}, " if self.context else ""
        return f"Kubernetes, {context}namespace {self.namespace}"

    def objects(self, job: Job) -> list[dict[str, Any]]:
        """ConfigMap, Service and Job."""
        meta = {"name": job.name, "namespace": self.namespace, "labels": {"app": job.name}}
        texts = {name: content.decode() for name, content in job.files().items()}
        one = job.num_nodes == 1
        script = (
            f"mkdir -p {_WORK} && cp {_MOUNT}/* {_WORK}/ && "
            f'exec "$0" {_WORK}/{SUPERVISOR} run {_WORK} "${{JOB_COMPLETION_INDEX}}"'
        )
        container: dict[str, Any] = {
            "name": "probe",
            "image": self.image,
            "command": ["sh", "-c", script, job.python],
            "env": [
                {"name": "MASTER_ADDR", "value": "127.0.0.1" if one else f"{job.name}-0.{job.name}"}
            ],
            "volumeMounts": [
                {"name": "files", "mountPath": _MOUNT, "readOnly": True},
                {"name": "shm", "mountPath": "/dev/shm"},
            ],
        }
        if self.gpus_per_node:
            container["resources"] = {"limits": {self.gpu_resource: self.gpus_per_node}}
        pod: dict[str, Any] = {
            "restartPolicy": "Never",
            "subdomain": job.name,
            "containers": [container],
            "volumes": [
                {"name": "files", "configMap": {"name": job.name}},
                {"name": "shm", "emptyDir": {"medium": "Memory"}},
            ],
        }
        if not one:  # each pod on a node of its own
            term = {"labelSelector": {"matchLabels": {"app": job.name}}}
            apart = [{**term, "topologyKey": "kubernetes.io/hostname"}]
            pod["affinity"] = {
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart}
            }
        spec = {
            "completions": job.num_nodes,
            "parallelism": job.num_nodes,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "activeDeadlineSeconds": math.ceil(job.limit_s + SCHEDULE_S),
            "ttlSecondsAfterFinished": KEPT_S,
            "template": {"metadata": {"labels": {"app": job.name}}, "spec": pod},
        }
        service = {"clusterIP": "None", "selector": {"app": job.name}}
        return [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": texts},
            {
                "apiVersion": "v1", "kind": "Service", "metadata": meta,
                "spec": {**service, "publishNotReadyAddresses": True},
            },
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec},
        ]  # fmt: skip

    def plan(self, job: Job) -> Launch:
        return Launch(
            {str(job.folder / MANIFEST): self._manifest(job)},
            (self._kubectl("apply", "--filename", str(job.folder / MANIFEST)),),
        )

    def submit(self, job: Job) -> str:
        """Apply the objects; existing ones stay. A failed job is removed first."""
        found = self._found(job)
        if found is not None and _failed(found):
            self._delete(job)
            found = None
        if found is None:
            self._read.pop(job.run_id, None)
            write_files(job.folder, {MANIFEST: self._manifest(job)})
            self._must(*self.plan(job).commands[0])
        return job.name

    def find(self, job: Job) -> str:
        return job.name

    def poll(self, job: Job, handle: str) -> Progress:
        found = self._found(job)
        if found is None:
            return Progress("failed", f"the Job {handle} is not there any more")
        status = found.get("status") or {}
        log = self._new_log(job)
        if why := _failed(found):
            return Progress("failed", f"the Job failed: {why_ended(log) or why}", log)
        if int(status.get("succeeded") or 0) >= job.num_nodes:
            return Progress("done", "", log)
        ready = int(status.get("ready") or 0)
        if ready < job.num_nodes and not log:
            return Progress("queued", f"{ready} of {job.num_nodes} pods are ready")
        return Progress("running", "", log)

    def cancel(self, job: Job, handle: str) -> None:
        self._delete(job)

    def collect(self, job: Job, handle: str) -> str:
        return self._log(job)

    def close(self, job: Job, handle: str) -> None:
        self._delete(job)

    # --- kubectl ---------------------------------------------------------------------------------

    def _manifest(self, job: Job) -> bytes:
        return yaml.safe_dump_all(self.objects(job), sort_keys=False, width=100).encode()

    def _kubectl(self, *words: str) -> Command:
        context = (f"--context={self.context}",) if self.context else ()
        return ("kubectl", *context, f"--namespace={self.namespace}", *words)

    def _call(self, *words: str) -> Done:
        return called(self._kubectl(*words), timeout_s=CALL_S)

    def _must(self, *command: str) -> Done:
        done = called(command, timeout_s=CALL_S)
        if done.status:
            raise _refused(done)
        return done

    def _found(self, job: Job) -> dict[str, Any] | None:
        done = self._call("get", "job", job.name, "--ignore-not-found", "--output=json")
        if done.status:
            raise _refused(done)
        if not done.out.strip():
            return None
        try:
            found = json_value(done.out, JOB)
        except OutsideError as e:
            raise LaunchError(f"The answer of kubectl {e.clause}.") from None
        if not _is_job(found):
            raise LaunchError("kubectl answered something else than a Job.")
        return dict(found)

    def _log(self, job: Job) -> str:
        """The output of pod 0; '' before it begins."""
        chosen = f"--selector=app={job.name},batch.kubernetes.io/job-completion-index=0"
        return self._call("logs", chosen, "--tail=-1").out

    def _new_log(self, job: Job) -> str:
        text = self._log(job)
        at = self._read.get(job.run_id, 0)
        self._read[job.run_id] = len(text)
        return text[at:]

    def _delete(self, job: Job) -> None:
        named = ("job", "service", "configmap")
        self._must(
            *self._kubectl(
                "delete", ",".join(named), f"--selector=app={job.name}", "--ignore-not-found",
                "--wait=true", "--timeout=45s",
            )
        )  # fmt: skip


def _is_job(found: Any) -> bool:
    """Whether an answer has the shape of what is read of a Job."""
    status = found.get("status", {}) if isinstance(found, dict) else None
    if not isinstance(status, dict):
        return False
    conditions = status.get("conditions", [])
    return (
        isinstance(conditions, list)
        and all(isinstance(c, dict) for c in conditions)
        and all(type(status.get(n, 0)) is int for n in ("succeeded", "ready"))
    )


def _failed(found: dict[str, Any]) -> str:
    """Why a Job has failed; '' if it has not."""
    for condition in (found.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "Failed" and condition.get("status") == "True":
            return str(condition.get("message") or condition.get("reason") or "Failed")
    return ""


def _refused(done: Done) -> LaunchError:
    lost = any(words in done.err for words in _LOST)
    return (UnreachableError if lost else LaunchError)(f"kubectl: {done.last_line}.")
