"""No text and no bytes make a reader do anything but read or refuse."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.errors import RuncastError
from runners.imports import mamf, nccl_tests, profiler, training_log
from runners.imports.result import parse_import
from runners.imports.text import text_of
from tests.support.logs import LOGS, trace

GOLDEN = [line for path in sorted(LOGS.iterdir()) for line in path.read_text().splitlines()[:60]]
# A header whose last algbw gets another name, and a line below it.
RENAMED = (
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong"
    "     time   algbw   busbw  #wrong ",
    "           8             2     float     sum      -1    38.04    0.00    0.00       0"
    "    37.67    0.00    0.00       0",
)
READERS: tuple[Callable[[Sequence[str]], object], ...] = (
    lambda x: nccl_tests.tables(x, op="all_reduce", ranks=8, nodes=1),
    mamf.parse,
    lambda x: training_log.steady_state(x, {"seq_len": 8, "global_batch_size": 4, "num_gpus": 2}),
    nccl_tests.is_one,
    mamf.is_one,
    training_log.is_training_log,
)


def refusal(reader: Callable[[], object]) -> str:
    """What a reader says that it cannot use, '' where it reads; any other error is a failure."""
    try:
        reader()
    except RuncastError as e:
        return str(e)
    return ""


def refusals(content: bytes) -> list[str]:
    """What every reader says of one content."""
    try:
        lines = text_of(content, "x").lines
    except RuncastError:
        lines = ()
    return [refusal(partial(reader, lines)) for reader in READERS]


def are_sentences(said: list[str]) -> bool:
    return all("\n" not in one and (not one or one.endswith(".")) for one in said)


@given(st.binary(max_size=400))
@settings(max_examples=100, deadline=None)
def test_bytes(content):
    assert are_sentences(refusals(content))


@given(
    st.lists(st.sampled_from(GOLDEN), min_size=1, max_size=8),
    st.integers(0, 200),
    st.text(max_size=6) | st.sampled_from(["nan", "-1", "9" * 400, "1e999", "\x00", "٣", "²"]),
)
@settings(max_examples=150, deadline=None)
@example(list(RENAMED), 95, "00")
def test_golden_lines_with_something_in_them(some, at, put):
    changed = [line[:at] + put + line[at + len(put) :] for line in some]
    assert are_sentences(refusals("\n".join(changed).encode("utf-8", errors="replace")))


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["traceEvents", "ph", "ts", "dur", "cat", "name", "schema"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
@settings(max_examples=100, deadline=None)
def test_json(value):
    content = json.dumps(value).encode()
    assert "\n" not in refusal(lambda: profiler.parse(content, "x"))
    assert "\n" not in refusal(lambda: parse_import(content))


@given(st.integers(0, 1200))
@settings(max_examples=30, deadline=None)
def test_a_trace_cut_off_anywhere(at):
    assert refusal(lambda: profiler.parse(trace(steps=2)[:at], "x"))


@pytest.mark.parametrize("value", ["1e299", "1e-299", "9" * 3000, "[" * 1500, "NaN", "-1", '"x"'])
@pytest.mark.parametrize(
    "line",
    [
        '{"current_steps": 1, "total_steps": 9, "loss": 1, "elapsed_time": "0:00:09", '
        '"throughput": 5.0, "total_tokens": %s}',
        '{"current_steps": 2, "total_steps": 9, "loss": 1, "elapsed_time": "0:00:10", '
        '"throughput": %s, "total_tokens": 90}',
        'DLLL {"type": "LOG", "step": %s, "data": {"train_step_timing in s": 2.0}}',
        'DLLL {"type": "LOG", "step": 1, "data": {"train_step_timing in s": %s}}',
        "Epoch 0: 1/9 [global_step=1.00, consumed_samples=%s, train_step_timing in s=3.1]",
        '{\n"log_history": [\n{\n"num_input_tokens_seen": %s,\n"train_runtime": 1.5\n},',
    ],
)
def test_a_figure_that_is_none_in_a_line_of_json(line, value):
    """Among good lines of the same kind, so that a rate follows: it stays one of a machine."""
    good = line % "70"
    text = "\n".join([good, line % value, good.replace("1", "3"), line % value])
    lines = text_of(text.encode(), "x").lines
    assert are_sentences(refusals(text.encode()))
    try:
        found = training_log.steady_state(
            lines, {"seq_len": 8, "global_batch_size": 4, "num_gpus": 2}
        )
    except RuncastError:
        return
    assert 0 < found.tokens_per_s_per_gpu < 1e12
