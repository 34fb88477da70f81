"""Workers: every task is answered once, in parallel, and a lost worker is replaced or named."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import closing
from pathlib import Path

import pytest

from core.errors import ScenarioError
from runners.sweeps import ONE_THREAD, WorkerError, on_processes, on_ray
from tests.support.processes import children, gone, is_alive

pytestmark = pytest.mark.usefixtures("plain_main")

ROOT = Path(__file__).parents[2]


# What workers run: importable by name, as a cell of a sweep is.
def told(task):
    return {"said": task["text"], "pid": os.getpid()}


def environment(task):
    return {name: os.environ.get(name) for name in ONE_THREAD}


def dies_once(task):
    flag = Path(task["flag"])
    if task["text"] == "2" and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return told(task)


def dies(task):
    os.kill(os.getpid(), signal.SIGKILL)


def fails(task):
    raise KeyError(task["text"])


def slow(task):
    time.sleep(60)


def numbered(count, **more):
    return [(n, {"text": str(n), **more}) for n in range(count)]


def results(compute, tasks, workers):
    return [one for batch in on_processes(compute, tasks, workers=workers) for one in batch]


@pytest.mark.parametrize("workers", [1, 3])
def test_every_task_is_answered_once_by_as_many_processes(workers):
    found = results(told, numbered(30), workers)
    assert sorted((n, r["said"]) for n, r in found) == sorted((n, str(n)) for n in range(30))
    assert len({r["pid"] for _, r in found}) == workers
    assert os.getpid() not in {r["pid"] for _, r in found}


def test_tasks_are_taken_as_workers_get_free():
    """So that a sweep of 10^5 cells is never held in memory, and few are lost with a kill."""
    taken = []

    def tasks():
        for n, task in numbered(20):
            taken.append(n)
            yield n, task

    with closing(on_processes(told, tasks(), workers=1)) as batches:
        next(batches)
        assert len(taken) <= 2


def test_no_task_is_no_worker():
    assert results(told, [], 2) == []


def test_a_worker_has_one_thread_and_this_process_keeps_its_own_settings(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    assert results(environment, numbered(1), 1) == [(0, ONE_THREAD)]
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def test_a_killed_worker_is_replaced(tmp_path):
    found = results(dies_once, numbered(4, flag=str(tmp_path / "died")), 1)
    assert [(n, r["said"]) for n, r in found] == [(n, str(n)) for n in range(4)]
    assert len({r["pid"] for _, r in found}) == 2


def test_a_task_that_kills_its_workers_is_named():
    with pytest.raises(WorkerError, match=r"killed 2 times \(SIGKILL\)") as error:
        results(dies, numbered(1), 1)
    assert error.value.number == 0


def test_an_error_in_a_task_is_not_tried_again(capfd):
    with pytest.raises(WorkerError, match="ended with an error") as error:
        results(fails, numbered(1), 1)
    assert error.value.number == 0
    assert capfd.readouterr().err.count("KeyError: '0'") == 1


def test_closing_the_results_ends_the_workers():
    before = set(children(os.getpid()))
    batches = on_processes(told, ((n, {"text": "x"}) for n in range(10**6)), workers=2)
    with closing(batches):
        next(batches)
        workers = [p for p in children(os.getpid()) if p not in before]
        assert len(workers) >= 2
    left = [p for p in children(os.getpid()) if p not in before and is_alive(p)]
    assert len(left) <= 1  # the standard library's tracker of shared memory


def test_workers_end_by_themselves_when_their_parent_is_killed():
    program = textwrap.dedent("""
        from runners.sweeps import on_processes
        from tests.runners.test_sweeps import told
        if __name__ == "__main__":
            for batch in on_processes(told, ((n, {"text": "x"}) for n in range(10**9)), workers=2):
                for _, result in batch:
                    print(result["pid"], flush=True)
    """)
    parent = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    pids: set[int] = set()
    while len(pids) < 2:
        pids.add(int(parent.stdout.readline()))
    assert all(map(is_alive, pids))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert gone(pids, within_s=10)


NOWHERE = ("local", "here", "http://a:1", "a:99999", "", "a:1 b:2")


@pytest.mark.parametrize(
    ("ray", "address", "says"),
    [
        *((object(), address, "is no address of a Ray cluster") for address in NOWHERE),
        (object(), "127.0.0.1:1", r"No Ray cluster answers at '127.0.0.1:1'"),
        (None, "auto", "needs the package ray, which is not installed"),
    ],
)
def test_a_ray_cluster_that_cannot_be_used_is_a_sentence(ray, address, says, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", ray)
    with pytest.raises(ScenarioError, match=says):
        list(on_ray(told, [], address=address, workers=1))
