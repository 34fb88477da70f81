"""Files that lie with a log: the signs that each kind of them gives."""

from __future__ import annotations

import json

import pytest

from runners.imports.text import ImportFileError
from runners.watch.beside import signs_of
from tests.support.logs import LOGS

DMON = "# gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk\n# Idx      W      C      C      %\n"
DCGM = "#Entity   GPUTL  POWER  SMCLK\nID\n"


def dmon(*rows: tuple[int, int, int, int]) -> str:
    """Rows of GPU, watts, load and clock."""
    return DMON + "".join(
        f"  {g}  {w}  60  -  {sm}  50  2619  {clock}\n" for g, w, sm, clock in rows
    )


def trace(communication_us: int, compute_us: int) -> str:
    """Two steps of 1,000 us; in each communication after computing."""
    events = []
    for n in (0, 1):
        start = 1000 * n
        spans = [(f"ProfilerStep#{n}", "user_annotation", start, 1000),
                 ("nvjet_tst", "kernel", start, compute_us),
                 ("ncclDevKernel", "kernel", start + compute_us, communication_us)]  # fmt: skip
        events += [{"ph": "X", "name": a, "cat": c, "ts": t, "dur": d} for a, c, t, d in spans]
    return json.dumps({"traceEvents": events})


FOUR = range(4)
STEADY = [(g, 650, 99, 1980) for _ in range(9) for g in FOUR]


@pytest.mark.parametrize(
    ("text", "seen", "not_seen"),
    [
        (dmon(*STEADY), "", "idle_gpus load_without_power throttled slow_gpu"),
        (dmon(*((g, 650, 99, 1980 - 300 * (g == 2)) for _ in range(9) for g in FOUR)), "slow_gpu",
         "throttled idle_gpus"),
        (dmon(*STEADY[:4], *((g, 500, 99, 1500) for _ in range(9) for g in FOUR)), "throttled",
         "slow_gpu"),
        (dmon(*STEADY, *((g, 130, 100, 1980) for _ in range(9) for g in FOUR)),
         "load_without_power", "idle_gpus"),
        (dmon(*((g, 300, 60, 1980) for _ in range(9) for g in FOUR)), "idle_gpus", "slow_gpu"),
        (DCGM + "GPU 0  99  650  1980\nGPU 1  99  650  1600\n" * 5, "slow_gpu", "idle_gpus"),
        (trace(200, 750), "exposed_communication", "idle_gpus"),
        (trace(50, 700), "idle_gpus", "exposed_communication"),
    ],
)  # fmt: skip
def test_each_sign_is_seen_or_looked_for_in_vain(tmp_path, text, seen, not_seen):
    path = tmp_path / "beside.txt"
    path.write_text(text)
    found = {s.name: s.is_seen for s in signs_of(path, network_gb_per_s=None)}
    assert {name for name, is_seen in found.items() if is_seen} == {*seen.split()}
    assert {*not_seen.split()} <= found.keys() - {*seen.split()}


def test_a_network_is_held_against_that_of_the_plan(tmp_path):
    path = LOGS / "all_reduce_two_nodes.txt"
    (slow,) = signs_of(path, network_gb_per_s=4000.0)
    (fast,) = signs_of(path, network_gb_per_s=1.0)
    assert (slow.is_seen, fast.is_seen) == (True, False)
    assert "all_reduce reaches" in slow.text


def test_what_is_no_such_file_is_a_sentence_and_in_a_folder_left_out(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("hello\n")
    with pytest.raises(ImportFileError, match="is neither `nvidia-smi dmon`"):
        signs_of(path, network_gb_per_s=None)
    (tmp_path / "x.bin").write_bytes(b"\0\1" * 500)
    assert signs_of(tmp_path, network_gb_per_s=None) == ()
    with pytest.raises(ImportFileError, match="is not there"):
        signs_of(tmp_path / "missing", network_gb_per_s=None)
