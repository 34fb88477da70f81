"""Launcher for Ray's job server, over HTTP and without Ray's package.

The files are sent as a package, like `ray job submit --working-dir` sends them. On one node the
supervisor is the job's entrypoint; on several that is on_ray.py, which places one on each node.
"""

from __future__ import annotations

import hashlib
import io
import os
import shlex
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from core.errors import shown
from runners.launchers import on_ray
from runners.launchers.job import SUPERVISOR, Job
from runners.launchers.launcher import Launch, Launcher, Progress, why_ended, write_files
from runners.launchers.quoting import LaunchError, UnreachableError

CALL_S = 20.0
MOST_TRIES = 20
DRIVER = "on_ray.py"
LOG_BYTES = 64 * 2**20
_QUEUED, _GOING, _ENDED_BADLY = {"PENDING"}, {"RUNNING"}, {"FAILED", "STOPPED"}


@dataclass
class RayJobs(Launcher):
    """One job; its submission id is the name of the run, so that it cannot exist twice."""

    address: str  # of the dashboard, http://HOST:8265
    gpus_per_node: int | None = None
    poll_s: float = 1.5
    _read: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        url = httpx.URL(self.address) if self.address.isprintable() else httpx.URL()
        if url.scheme not in ("http", "https") or not url.host or url.userinfo or url.query:
            raise LaunchError(
                f"--address {shown(self.address)} is no address of a Ray dashboard: give "
                "http://HOST:8265, without a name or a password in it."
            )

    @property
    def where(self) -> str:
        return f"Ray at {self.address}"

    def package(self, job: Job) -> tuple[str, bytes]:
        """The files as a reproducible ZIP, and the name for it that Ray expects."""
        held = io.BytesIO()
        with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as out:
            for name, content in sorted(self._files(job).items()):
                out.writestr(zipfile.ZipInfo(name), content)
        digest = hashlib.sha1(held.getvalue(), usedforsecurity=False).hexdigest()[:16]
        return f"_ray_pkg_{digest}.zip", held.getvalue()

    def body(self, job: Job) -> dict[str, Any]:
        """The body of the submission."""
        if job.num_nodes == 1:
            entrypoint = shlex.join([job.python, SUPERVISOR, "run", ".", "0"])
        else:
            gpus = str(self.gpus_per_node or 0)
            entrypoint = shlex.join(["python3", DRIVER, job.python, str(job.num_nodes), gpus])
        return {
            "entrypoint": entrypoint,
            "submission_id": job.name,
            "runtime_env": {"working_dir": f"gcs://{self.package(job)[0]}"},
            "entrypoint_num_cpus": 1 if job.num_nodes == 1 else 0,
            "entrypoint_num_gpus": (self.gpus_per_node or 0) if job.num_nodes == 1 else 0,
        }

    def plan(self, job: Job) -> Launch:
        package, _ = self.package(job)
        files = {str(job.folder / n): c for n, c in self._files(job).items()}
        return Launch(
            files,
            (
                ("PUT", f"{self._base}/api/packages/gcs/{package}"),
                (
                    "POST",
                    f"{self._base}/api/jobs/",
                    *(f"{k}={v}" for k, v in self.body(job).items()),
                ),
            ),
        )

    def submit(self, job: Job) -> str:
        """Find the job, or submit it."""
        write_files(job.folder, self._files(job))
        handle, known = self._latest(job)
        if known is None:
            name, content = self.package(job)
            self._ask("PUT", f"/api/packages/gcs/{name}", content=content)
            self._ask("POST", "/api/jobs/", json={**self.body(job), "submission_id": handle})
        return handle

    def find(self, job: Job) -> str:
        handle, known = self._latest(job)
        return "" if known is None else handle

    def poll(self, job: Job, handle: str) -> Progress:
        found = self._ask("GET", f"/api/jobs/{handle}", missing_ok=True)
        if found is None:
            return Progress("failed", f"Ray does not know the job {handle} any more")
        status, message = str(found.get("status")), str(found.get("message") or "")
        log = self._new_log(handle)
        if status == "SUCCEEDED":
            return Progress("done", "", log)
        if status in _ENDED_BADLY:
            last = [line for line in (log or message).splitlines() if line.strip()]
            why = (why_ended(log) or (last or [""])[-1].strip())[:200]
            return Progress("failed", f"the Ray job ended: {status}. {why}".rstrip(". "), log)
        if status in _GOING:
            return Progress("running", "", log)
        if status in _QUEUED:
            return Progress("queued", (message.splitlines() or [""])[0], log)
        raise LaunchError(f"The Ray job has the unknown status {shown(status)}.")

    def cancel(self, job: Job, handle: str) -> None:
        self._ask("POST", f"/api/jobs/{handle}/stop", missing_ok=True)

    def collect(self, job: Job, handle: str) -> str:
        return self._logs(handle)

    # --- HTTP ------------------------------------------------------------------------------------

    def _latest(self, job: Job) -> tuple[str, dict[str, Any] | None]:
        """The newest attempt that has not failed, or the name of the next one: Ray keeps the
        supervisor of a failed attempt under its id."""
        for handle in [job.name, *(f"{job.name}-{n}" for n in range(2, MOST_TRIES + 1))]:
            known = self._ask("GET", f"/api/jobs/{handle}", missing_ok=True)
            if known is None or known.get("status") not in _ENDED_BADLY:
                return handle, known
        raise LaunchError(f"{self.where} has seen this run fail {MOST_TRIES} times: start anew.")

    @property
    def _base(self) -> str:
        return self.address.rstrip("/")

    def _files(self, job: Job) -> Mapping[str, bytes]:
        files = job.files(master_addr="127.0.0.1" if job.num_nodes == 1 else "")
        if job.num_nodes > 1:
            files[DRIVER] = Path(on_ray.__file__).read_bytes()
        return files

    def _logs(self, handle: str) -> str:
        found = self._ask("GET", f"/api/jobs/{handle}/logs", missing_ok=True)
        return str((found or {}).get("logs") or "")

    def _new_log(self, handle: str) -> str:
        text = self._logs(handle)
        at = self._read.get(handle, 0)
        self._read[handle] = len(text)
        return text[at:]

    def _ask(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        content: bytes | None = None,
        missing_ok: bool = False,
    ) -> dict[str, Any] | None:
        """Send one request; None for a missing object that may be missing."""
        token = os.environ.get("RAY_AUTH_TOKEN", "")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            with httpx.Client(timeout=CALL_S, headers=headers) as client:
                request = client.build_request(
                    method, self._base + path, json=json, content=content
                )
                answer = client.send(request, stream=True)
                held = bytearray()
                for chunk in answer.iter_bytes():
                    held += chunk
                    if len(held) > LOG_BYTES:
                        raise LaunchError(f"{self.where} answers with more than 64 MiB.")
                answer.close()
        except (httpx.HTTPError, httpx.InvalidURL) as e:
            raise UnreachableError(
                f"{self.where} does not answer: {str(e) or type(e).__name__}."
            ) from None
        if answer.status_code == 404 and missing_ok:
            return None
        if answer.status_code >= 400:
            lines = bytes(held).decode("utf-8", "replace").strip().splitlines()
            kind = UnreachableError if answer.status_code >= 502 else LaunchError
            why = shown(lines[-1]) if lines else f"HTTP {answer.status_code}"
            raise kind(f"{self.where} refused {method} {path.split('/')[2]}: {why}.")
        try:
            found = httpx.Response(200, content=bytes(held)).json() if held else {}
        except ValueError:
            found = {}
        return found if isinstance(found, dict) else {}
