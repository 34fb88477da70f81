"""Cells of a measured run: units that can become tokens/s per GPU, and those that cannot."""

import math

import pytest

from hardware.foreign_csv import Row
from hardware.measured_cells import CONVERTED, OTHER_METRICS, degrees_reason, throughput

NUMBERS = {"num_gpus": 8.0, "seq_len": 4096.0, "global_batch": 64.0}
DEGREES = dict.fromkeys(("tp", "pp", "cp", "ep", "etp"), math.nan)


def row(**cells):
    return Row(line=2, cells=cells, width_reason="")


@pytest.mark.parametrize(
    ("metric", "value", "expected"),
    [
        ("tokens/s/gpu", "1000", 1000),
        ("tokens/s", "8000", 1000),
        ("step_s", "32.768", 1000),  # 64 x 4096 tokens on 8 GPUs
        ("sequences/s", "1.953125", 1000),
        ("Samples/s", "1.953125", 1000),
    ],
)
def test_a_printed_unit_becomes_tokens_per_second_and_gpu(metric, value, expected):
    found, why = throughput(row(metric=metric, value=value), NUMBERS)
    assert (found, why) == (pytest.approx(expected), "")


def test_the_ready_column_counts_before_the_printed_one():
    cells = row(tokens_per_s_per_gpu="500", metric="tokens/s", value="8000")
    assert throughput(cells, NUMBERS) == (500, "")


@pytest.mark.parametrize("metric", OTHER_METRICS)
def test_what_a_source_counts_in_its_own_way_is_no_throughput_and_no_mistake(metric):
    found, why = throughput(row(metric=metric, value="400"), NUMBERS)
    assert math.isnan(found)
    assert why == ""


@pytest.mark.parametrize("metric", ["furlongs", "tokens/min", "tok/s", "s"])
def test_an_unknown_unit_is_named_with_the_known_ones(metric):
    found, why = throughput(row(metric=metric, value="400"), NUMBERS)
    assert math.isnan(found)
    assert repr(metric) in why
    assert all(unit in why for unit in CONVERTED)


def test_seconds_of_a_step_need_the_batch():
    found, why = throughput(
        row(metric="step_s", value="2"), {**NUMBERS, "global_batch": math.nan}
    )  # fmt: skip
    assert math.isnan(found)
    assert "needs global_batch" in why


def test_degrees_that_are_not_said_are_no_mistake():
    assert degrees_reason({**DEGREES, "num_gpus": 7.0}) == ""
    assert degrees_reason({**DEGREES, "num_gpus": 12.0, "tp": 4.0, "cp": 3.0}) == ""
    assert "does not divide" in degrees_reason({**DEGREES, "num_gpus": 12.0, "tp": 8.0})
