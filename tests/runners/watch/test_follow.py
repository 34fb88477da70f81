"""Growing logs: cut, rotated and replaced files, long lines, clocks that jump, several files."""

from __future__ import annotations

import math
import os
import random
import time
import tracemalloc
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from core.watch.records import StepRecord
from runners.imports.text import MAX_LINE
from runners.watch.clock import Clock, time_of
from runners.watch.follow import Tail
from runners.watch.job import JobLogs
from runners.watch.signs import sign_of
from runners.watch.sources import MOST_FILES, sources_of
from runners.watch.trackers import EventFile
from tests.made_up.watched import Faults, megatron, moments
from tests.support.logs import LOGS

TRACKERS = Path(__file__).parents[2] / "golden/trackers"
TITAN = {"seq_len": 4096, "global_batch_size": 64, "num_gpus": 8}


def titan(n: int, *, at: str = "2026-02-11 09:00:00", tps: float = 1000.0) -> str:
    return f"{at} INFO step: {n}  loss: 2.5  memory: 40.10GiB(50.7%)  tps: {tps:,.0f}  mfu: 40.1%\n"


def steps_in(logs, *, is_last=True):
    return [x for x in logs.found(is_last=is_last) if isinstance(x, StepRecord)]


@pytest.fixture
def opened():
    """A function that enters a context until the end of the test."""
    with ExitStack() as stack:
        yield stack.enter_context


@pytest.fixture
def followed(opened):
    return lambda path: opened(JobLogs(path, TITAN))


def test_lines_come_once_and_whole(tmp_path, opened):
    path = tmp_path / "train.log"
    tail = opened(Tail(path=path))
    assert list(tail.lines()) == []  # it never started
    path.write_text("one\ntw")
    assert list(tail.lines()) == ["one"]
    with path.open("a") as file:
        file.write("o\rthree\r\n\n\x1b[31mfour\x1b[0m\x07\n")
    assert list(tail.lines()) == ["two", "three", "four?"]
    assert list(tail.lines(is_last=True)) == []


def test_a_rotated_log_is_read_to_its_end_and_goes_on_in_the_new_one(tmp_path, opened):
    path = tmp_path / "train.log"
    path.write_text("1\n")
    tail = opened(Tail(path=path))
    assert list(tail.lines()) == ["1"]
    with path.open("a") as file:
        file.write("2\n")
    path.rename(tmp_path / "train.log.1")
    path.write_text("3\n")
    assert list(tail.lines()) == ["2", "3"]
    assert tail.num_rotations == 1


def test_a_log_that_is_cut_goes_on_behind_the_nul_bytes_of_its_writer(tmp_path, opened):
    path = tmp_path / "train.log"
    with path.open("wb", buffering=0) as writer:
        writer.write(b"1\n" * 1000)
        tail = opened(Tail(path=path))
        assert len(list(tail.lines())) == 1000
        os.truncate(path, 0)
        assert list(tail.lines()) == []
        writer.write(b"2\n")
    assert list(tail.lines()) == ["2"]
    assert tail.num_cuts == 1


def test_a_line_of_ten_megabytes_and_a_sparse_file_take_the_memory_of_a_chunk(tmp_path, opened):
    path = tmp_path / "train.log"
    with path.open("wb") as file:
        file.write(b"a" * 10_000_000 + b"\nshort\n")
        file.seek(100_000_000, 1)
        file.write(b"\nlast\n")
    tail = opened(Tail(path=path))
    tracemalloc.start()
    try:
        found = list(tail.lines())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [len(found[0]), *found[1:]] == [MAX_LINE, "short", "last"]
    assert peak < 4_000_000
    assert tail.num_long == 1


@pytest.mark.parametrize(
    ("name", "count", "format_"),
    [
        ("torchtitan.txt", 50, "torchtitan"), ("megatron.txt", 40, "megatron"),
        ("megatron_deepspeed.txt", 30, "megatron"), ("nemo_bar.txt", 66, "megatron"),
        ("deepspeed.txt", 30, "deepspeed"), ("hf_tokens.txt", 19, "hf-trainer"),
        ("trainer_state.json", 29, "hf-trainer"), ("llama_factory.jsonl", 39, "llama-factory"),
        ("ms_swift.jsonl", 39, "ms-swift"), ("lightning.csv", 40, "csv"),
        ("olmo_core.txt", 40, "metric-blocks"), ("dllogger.json", 40, "dllogger"),
        ("levanter.txt", 40, "step-times"), ("torchtune.txt", 40, "plain"),
    ],
)  # fmt: skip
def test_each_format_is_read_by_its_own_reader_line_by_line(
    tmp_path, followed, name, count, format_
):
    path = tmp_path / name
    path.write_bytes((LOGS / name).read_bytes())
    logs = followed(path)
    steps = steps_in(logs)
    assert ([x.reader.format for x in logs.logs], len(steps)) == ([format_], count)
    assert steps[-1].tokens > steps[0].tokens
    assert all(a.at_s <= b.at_s for a, b in pairwise(steps))


def test_a_log_read_while_it_grows_gives_what_it_gives_at_once(tmp_path, followed):
    text = (LOGS / "torchtitan.txt").read_text()
    path = tmp_path / "run.log"
    path.write_text(text)
    at_once = list(followed(path).found(is_last=True))
    path.write_text("")
    growing, found = followed(path), []
    for start in range(0, len(text), 777):
        with path.open("a") as file:
            file.write(text[start : start + 777])
        found += list(growing.found())
    found += list(growing.found(is_last=True))
    assert found == at_once


def test_ranks_in_files_of_a_folder_are_merged_by_their_time(tmp_path, followed):
    for rank in (0, 1):
        folder = tmp_path / f"attempt_0/{rank}"
        folder.mkdir(parents=True)
        lines = [titan(n, at=f"2026-02-11 09:{n:02d}:0{rank}") for n in range(1, 6)]
        (folder / "stdout.log").write_text("".join(lines))
    (tmp_path / "events.out.tfevents.1").write_bytes(b"\0\1")
    logs = followed(tmp_path)
    found = [(step.number, step.rank) for step in steps_in(logs)]
    assert found == [(n, rank) for n in range(1, 6) for rank in ("0", "1")]
    assert any("files of a tracker" in note for note in logs.sentences)


def mlflow(folder, count=20):
    metrics = folder / "mlruns/0/1f/metrics/train"
    metrics.mkdir(parents=True)
    lines = [f"{(1_772_323_200 + 3 * n) * 1000} {3 - n / 100} {n}\n" for n in range(1, count)]
    (metrics / "loss").write_text("".join(lines) + f"{1_772_323_300_000} nan {count}\n")
    return metrics / "loss"


@pytest.mark.parametrize(
    ("name", "count", "seconds", "loss"),
    [("events.out.tfevents.1", 39, 3.0, 2.6), ("offline.wandb", 29, 0.06, 2.7),
     ("mlflow", 19, 3.0, math.nan)],
)  # fmt: skip
def test_files_of_a_tracker_are_followed_as_its_steps(
    tmp_path, followed, name, count, seconds, loss
):
    """The first two are as TensorBoard 2.21 and wandb 0.31 wrote them, of the latter the history;
    a folder is given, and the file grows by 777 bytes a look."""
    whole = mlflow(tmp_path) if name == "mlflow" else TRACKERS / name
    path, content = whole if name == "mlflow" else tmp_path / name, whole.read_bytes()
    path.write_bytes(content[:777])
    logs, found = followed(tmp_path), []
    for end in range(777, len(content) + 777, 777):
        path.write_bytes(content[:end])
        found += steps_in(logs, is_last=False)
    found += steps_in(logs)
    assert len(found) == count
    taken = [step.step_s for step in found]
    assert taken[5] == pytest.approx(seconds, rel=0.4)
    assert found[-1].loss == pytest.approx(loss, nan_ok=True)
    assert all(b.at_s > a.at_s for a, b in pairwise(found))


def test_a_broken_file_of_a_tracker_ends_without_an_error(tmp_path):
    draw = random.Random(1)
    for name in ("events.out.tfevents.1", "offline.wandb"):
        content = (TRACKERS / name).read_bytes()
        for _ in range(60):
            broken = bytearray(content)
            for _ in range(20):
                broken[draw.randrange(len(broken))] = draw.randrange(256)
            path = tmp_path / name
            path.write_bytes(broken)
            assert len(list(EventFile(path=path).lines(is_last=True))) <= 40


def test_two_jobs_in_one_file_are_noticed_by_their_facts(tmp_path, followed):
    text = "".join(map(megatron, moments(Faults(restarts=(0.5,)), days=0.5)))
    path = tmp_path / "x.log"
    first, start, second = text.partition("\nusing world size: 64")
    path.write_text(first + start + second)
    assert "another job" not in " ".join(list_of(followed(path)).sentences)
    second = second.replace("seq_length ...................... 4096", "  seq_length ... 8192")
    path.write_text(f"{first}\nusing world size: 128{second}")
    said = " ".join(list_of(followed(path)).sentences)
    assert "goes on with another job: num_gpus is 64, then 128" in said
    assert "seq_len is 4,096, then 8,192" in said


def list_of(logs):
    """The job, read to its end."""
    assert len(steps_in(logs)) > 100
    return logs


def test_of_a_folder_of_a_hundred_thousand_files_the_newest_logs_are_followed(tmp_path):
    for n in range(100_000):
        os.mknod(tmp_path / f"{n}.{'log' if n % 2 else 'pt'}")
    os.utime(tmp_path / "77.log", (4e9, 4e9))
    began = time.process_time()
    found = sources_of(tmp_path)
    assert time.process_time() - began < 5
    assert len(found.files) == MOST_FILES
    assert tmp_path / "77.log" in found.files
    assert "has 50,000 logs: the newest 256 are followed" in found.notes[0]


def test_a_clock_that_jumps_never_goes_back():
    clock = Clock()
    times = []
    for at in (100.0, 110.0, 50.0, 60.0, 60.0 + 90 * 86_400, 70.0 + 90 * 86_400):
        clock.line(at)
        times.append(clock.now)
    assert times == [100, 110, 110, 120, 120, 130]
    assert (clock.num_back, clock.num_leaps) == (1, 1)


def test_without_times_a_step_lasts_as_long_as_its_rate_says(tmp_path, followed):
    path = tmp_path / "x.log"
    path.write_text("".join(f"step: {n}  loss: 2.5  tps: 1,024  mfu: 40%\n" for n in range(1, 12)))
    logs = followed(path)
    found = steps_in(logs)
    assert found[-1].at_s - found[0].at_s == pytest.approx(10 * 64 * 4096 / 1024 / 8)
    assert "No line prints a time" in " ".join(logs.sentences)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "out_of_memory"),
        ("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)", "collective"),
        ("NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus", "device"),
        ("slurmstepd: error: *** JOB 7 CANCELLED AT 2026-01-01 DUE TO PREEMPTION ***", "preempted"),
        ("  exitcode  : -9 (pid: 31)", "killed"),
        ("saving checkpoint at iteration 500 to ckpt in torch_dist format", "checkpoint"),
        ("***** Running training *****", "start"),
        ("step: 10 loss: 2.5 checkpointing is on", None),
    ],
)
def test_a_line_is_the_sign_that_its_program_means(line, kind):
    found = sign_of(line)
    assert (None if found is None else found.kind) == kind


def test_a_date_that_is_none_is_no_time():
    assert time_of("2026-13-45 10:00:00 step") is None
    assert time_of("02/11/2026 09:00:00 - INFO - x") == time_of(
        "2026-02-11T09:00:00".replace("T", " ")
    )
