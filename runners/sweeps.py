"""Workers for sweeps: processes of this machine, or a Ray cluster.

Both take a function that can be imported by name and numbered tasks, keep one task in flight per
worker, and yield results as they come, in any order. The caller (app/sweep/run.py) passes the
function, because runners may not import app.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import re
import signal
import socket
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from core.errors import RuncastError, ScenarioError, shown

# Cells run in parallel, so the libraries under numpy must not start threads of their own.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
TRIES = 2  # a task whose worker was killed gets a fresh worker once
REACH_S = 5.0  # for a Ray cluster to answer

Task = Mapping[str, str]
Result = dict[str, Any]
Compute = Callable[[Task], Result]
Numbered = tuple[int, Task]
Finished = list[tuple[int, Result]]
Results = Generator[Finished, None, None]  # closing it ends the workers

_HTTP2_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_RAY_ADDRESS = re.compile(r"auto|(?:ray://)?([\w.\-]+|\[[0-9A-Fa-f:]+\]):(\d{1,5})", re.ASCII)


class WorkerError(RuncastError):
    """A worker was lost; `number` is its task, None if that is not known."""

    def __init__(self, reason: str, number: int | None = None) -> None:
        super().__init__(reason)
        self.number = number


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    task: Numbered


def on_processes(compute: Compute, tasks: Iterable[Numbered], *, workers: int) -> Results:
    """Results of tasks, computed by processes of this machine.

    A worker holds only its own end of one pipe, so that it ends after its present task when this
    process is killed.
    """
    waiting = iter(tasks)
    crew: dict[Connection, _Worker] = {}
    tries: dict[int, int] = {}
    try:
        for task in islice(waiting, workers):
            _hire(crew, compute, task)
        while crew:
            finished: Finished = []
            for pipe in wait(list(crew)):
                if not isinstance(pipe, Connection):
                    continue
                worker = crew[pipe]
                try:
                    result = pipe.recv()
                except (EOFError, ConnectionResetError):
                    _dismiss(crew, pipe)
                    number = worker.task[0]
                    tries[number] = tries.get(number, 0) + 1
                    _check_loss(worker.process.exitcode, number, tries[number])
                    _hire(crew, compute, worker.task)
                    continue
                finished.append((worker.task[0], result))
                if (another := next(waiting, None)) is None:
                    _dismiss(crew, pipe)
                else:
                    _give(worker, pipe, another)
            if finished:
                yield finished
    finally:
        for worker in crew.values():
            worker.process.kill()
        for worker in crew.values():
            worker.process.join()


def _hire(crew: dict[Connection, _Worker], compute: Compute, task: Numbered) -> None:
    ours, worker_end = multiprocessing.Pipe()
    # Fresh interpreters: a fork would copy the threads and locks of this one.
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_serve, args=(worker_end, compute), daemon=True)
    with _environment(ONE_THREAD):
        process.start()
    worker_end.close()
    crew[ours] = _Worker(process=process, task=task)
    _give(crew[ours], ours, task)


def _give(worker: _Worker, pipe: Connection, task: Numbered) -> None:
    worker.task = task
    with suppress(BrokenPipeError):  # it just died: the next wait finds its pipe closed
        pipe.send(task[1])


def _dismiss(crew: dict[Connection, _Worker], pipe: Connection) -> None:
    worker = crew.pop(pipe)
    pipe.close()
    worker.process.join()


def _check_loss(exitcode: int | None, number: int, tries: int) -> None:
    """WorkerError unless the task may have another worker."""
    if exitcode is not None and exitcode >= 0:
        raise WorkerError("a worker ended with an error, which is printed above", number)
    if tries >= TRIES:
        name = signal.Signals(-exitcode).name if exitcode else "no exit status"
        raise WorkerError(
            f"a worker was killed {tries} times ({name}), perhaps for want of memory: fewer "
            "--workers need less",
            number,
        )


def _serve(pipe: Connection, compute: Compute) -> None:
    """Loop of a worker: one task after the other, until its pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    try:
        while True:
            pipe.send(compute(pipe.recv()))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set these variables for processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def on_ray(
    compute: Compute, tasks: Iterable[Numbered], *, address: str, workers: int | None
) -> Results:
    """Results of tasks, computed by an existing Ray cluster, each on one CPU of it.

    Runcast must be installed on every node. Ray keeps its worker processes, so their caches stay; a
    task whose node is lost is given to another. None uses all CPUs.
    """
    ray = _joined_ray(address)
    try:
        cpus = int(ray.cluster_resources().get("CPU", 0))
        if cpus < 1:
            raise ScenarioError(f"The Ray cluster at {shown(address)} has no CPU to compute on.")
        remote = ray.remote(num_cpus=1, max_retries=TRIES - 1)(compute)
        waiting = iter(tasks)
        flying: dict[Any, int] = {}
        while True:
            for number, task in islice(waiting, (workers or cpus) - len(flying)):
                flying[remote.remote(task)] = number
            if not flying:
                return
            done, rest = ray.wait(list(flying), num_returns=1)
            more = ray.wait(rest, num_returns=len(rest), timeout=0)[0] if rest else []
            yield [(flying.pop(ref), _fetched(ray, ref)) for ref in [*done, *more]]
    finally:
        ray.shutdown()


def _fetched(ray: Any, ref: Any) -> Result:
    try:
        return ray.get(ref)
    except ray.exceptions.RayTaskError as e:
        # Ray wraps import errors of workers, which show only in its text.
        errors = [line for line in str(e).splitlines() if "ModuleNotFoundError" in line]
        if errors:
            raise WorkerError(
                f"a node of the Ray cluster cannot import Runcast ({errors[-1].strip()}): install "
                "the same version on every node"
            ) from None
        raise
    except ray.exceptions.RayError as e:
        first = next(iter(str(e).splitlines()), type(e).__name__)
        raise WorkerError(f"the Ray cluster lost a worker ({first})") from None


def _joined_ray(address: str) -> Any:
    """The ray module, joined to the cluster, or a sentence."""
    try:
        ray = importlib.import_module("ray")  # optional, and 240 MB: an extra
    except ModuleNotFoundError:
        raise ScenarioError(
            "--ray needs the package ray, which is not installed here: pip install "
            "'runcast[ray]', in the version of the cluster. Without --ray a sweep runs on this "
            "machine."
        ) from None
    _check_reachable(address)
    try:
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level="ERROR",
            runtime_env={"env_vars": ONE_THREAD},
        )
    except (RuntimeError, OSError, ValueError, ImportError) as e:
        first = next(iter(str(e).splitlines()), type(e).__name__)
        raise ScenarioError(f"Cannot join the Ray cluster at {shown(address)}: {first}") from None
    return ray


def _check_reachable(address: str) -> None:
    match = _RAY_ADDRESS.fullmatch(address)
    if match is None or (match[2] and int(match[2]) > 65_535):
        raise ScenarioError(
            f"--ray {shown(address)} is no address of a Ray cluster: give auto, HOST:PORT or "
            "ray://HOST:PORT."
        )
    if match[1] is None:
        return
    # Ray itself tries for minutes. Its servers speak HTTP/2: the reply's 4th byte says "settings".
    try:
        place = (match[1].strip("[]"), int(match[2]))
        with socket.create_connection(place, timeout=REACH_S) as peer:
            if os.environ.get("RAY_USE_TLS", "0") != "0":
                return
            peer.sendall(_HTTP2_HELLO)
            reason = "" if peer.recv(9)[3:4] == b"\x04" else "something else answers there"
    except OSError as e:
        reason = (e.strerror or str(e)).lower()
    if reason:
        raise ScenarioError(
            f"No Ray cluster answers at {shown(address)}: {reason}; `ray start --head` starts one "
            "and prints its address."
        )
