"""Traces of the torch profiler: steps, kernels by kind, communication that nothing hides."""

from __future__ import annotations

import gzip
import json

import pytest

from runners.imports import profiler
from runners.imports.text import ImportFileError
from tests.support.logs import trace


def test_the_steps_and_what_runs_in_them():
    found = profiler.parse(trace(), "t.json")
    assert found.step_s == pytest.approx(1e-3)
    assert found.num_steps == 3  # the first is the profiler's
    assert found.shares == pytest.approx(
        {"communication": 0.4, "attention": 0.2, "matmul": 0.5, "other": 0.0}
    )
    assert found.exposed == pytest.approx(0.1)  # 300 of 400 us are beside the matmuls
    assert found.idle == pytest.approx(0.2)
    assert (found.world_size, found.device) == (8, "NVIDIA H100 80GB HBM3")
    assert profiler.parse(gzip.compress(trace()), "t.json.gz") == found


def test_a_single_step_is_all_there_is():
    assert profiler.parse(trace(steps=1), "t.json").num_steps == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"hello": 1}', "no traceEvents"),
        (b'{"traceEvents": []}', "no step that lasts"),
        (b'{"traceEvents": {"a": 1}}', "no traceEvents"),
        (b'{"traceEvents": [1, null, "x", {"ph": "X"}]}', "no step that lasts"),
        (trace()[:-40], "is not JSON"),
    ],
)
def test_what_is_no_trace(content, said):
    with pytest.raises(ImportFileError, match=said):
        profiler.parse(content, "t.json")


@pytest.mark.parametrize("value", [-1, "NaN", 1e300, True, None, [1]])
def test_times_that_are_none_are_counted_and_left_out(value):
    found = json.loads(trace())
    bad = {"ph": "X", "cat": "kernel", "name": "nccl", "ts": 1e9 + 1500, "dur": value}
    found["traceEvents"].append(bad)
    read = profiler.parse(json.dumps(found).encode(), "t.json")
    assert read.num_left_out == 1
    assert read.exposed == pytest.approx(0.1)
