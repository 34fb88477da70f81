"""Kernels measured alone: the table, and forecasts of them with the shipped fractions."""

from dataclasses import replace

import numpy as np
import pytest

from app.accuracy import fit_kernels
from core.errors import FactError
from hardware import facts
from hardware.efficiency import GENERIC, load_efficiencies
from hardware.measured_kernels import KERNELS, KERNELS_CSV, measured_kernels

ROWS = measured_kernels()
EFF = load_efficiencies()[GENERIC]
LINES = KERNELS_CSV.read_text().splitlines()


def errors(chosen=slice(None), eff=EFF):
    """|predicted / measured - 1| of every row that has a forecast."""
    return np.abs(np.exp(fit_kernels.log_predicted(eff) - fit_kernels.log_measured()) - 1)[chosen]


@pytest.mark.parametrize("kernel", KERNELS)
def test_half_of_the_forecasts_of_a_kernel_are_within_15_percent(kernel):
    mine = ROWS.kernel == kernel
    assert mine.sum() >= 10
    assert np.median(errors(mine)) < 0.15
    assert np.quantile(errors(mine), 0.9) < 0.5


@pytest.mark.parametrize("name", sorted(set(ROWS.accelerator.tolist())))
def test_no_accelerator_is_far_off(name):
    assert np.median(errors(ROWS.accelerator == name)) < 0.25


@pytest.mark.parametrize(
    "without",
    [
        {"matmul_unhidden": 0.0, "kernel_s": 0.0},
        {"attention_half_tokens": 0.0},
        {"attention_half_head_dim": 0.0},
        {"flash2": 1.0},
    ],
    ids=lambda w: next(iter(w)),
)
def test_every_part_of_the_shape_earns_its_place(without):
    """Rates that did not depend on the shape would forecast worse. What narrow heads cost is
    settled by runs: on these kernels alone it makes no difference."""
    least = -0.005 if "attention_half_head_dim" in without else 0.0
    assert errors(eff=replace(EFF, **without)).mean() > errors().mean() + least


def test_no_kernel_beats_its_peak():
    for i in range(len(ROWS)):
        chip = facts.accelerator(str(ROWS.accelerator[i]))
        peak = chip.bf16_flops_per_s
        if ROWS.precision[i] == "fp8":
            peak = chip.fp8_flops_per_s
        assert 0 < ROWS.flops_per_s[i] <= peak * 1.02, i


def test_every_row_has_the_shape_of_its_kernel():
    matmul = ROWS.kernel == "matmul"
    for name in ("m", "n", "k"):
        assert np.all(np.isfinite(getattr(ROWS, name)) == matmul)
    for name in ("seq_len", "head_dim"):
        assert np.all(np.isfinite(getattr(ROWS, name)) == ~matmul)
    assert set(ROWS.precision.tolist()) <= set(fit_kernels.INPUT_BYTES)


@pytest.mark.parametrize(
    ("old", "new"), [("matmul", "matrix"), ("undated", ""), ("Azure/AI-benchmarking-guide", "")]
)
def test_a_row_that_cannot_be_trusted_stops_the_load_with_its_line(tmp_path, old, new):
    path = tmp_path / "kernels.csv"
    broken = LINES[1].split(",")
    broken = [new if old in cell else cell for cell in broken]
    path.write_text("\n".join([LINES[0], LINES[2], ",".join(broken)]) + "\n")
    with pytest.raises(FactError, match=r"kernels\.csv:3"):
        measured_kernels(path)


def test_numbers_are_converted_once():
    row = dict(zip(LINES[0].split(","), LINES[1].split(","), strict=False))
    assert ROWS.flops_per_s[0] == pytest.approx(float(row["tflops"]) * 1e12)
    assert (ROWS.m[0], ROWS.n[0], ROWS.k[0]) == tuple(float(row[x]) for x in "mnk")
