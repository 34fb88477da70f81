"""Output of mamf-finder, of the method before and after its third version."""

from __future__ import annotations

import numpy as np
import pytest

from core.time import measured_shapes
from hardware import facts
from hardware.efficiency import GENERIC, efficiency
from runners.imports import mamf
from runners.imports.constants import MOST_SHAPES, fitted
from runners.imports.result import ImportResult, of_mamf
from runners.imports.text import ImportFileError
from tests.support.logs import lines

H100 = "H100-80GB-SXM"


def document(found: mamf.Mamf) -> ImportResult:
    return of_mamf(found, sha256="0" * 64, num_bytes=1, accelerator=H100, date=None)


def test_a_line_a_shape():
    found = mamf.parse(lines("mamf_v2.txt"))
    assert (found.dtype, found.device, found.started) == (
        "bf16", "NVIDIA H100 80GB HBM3", "2025-06-02",
    )  # fmt: skip
    assert found.software == {"torch": "2.7.0+cu126", "cuda": "12.6"}
    assert found.version == "2"
    assert len(found.shapes) == 12
    first = found.shapes[0]
    assert (first.m, first.n, first.k, first.kind) == (4096, 4096, 4096, "median")
    named = dict(found.best)
    assert named["median"].flops_per_s == max(x.flops_per_s for x in found.shapes)
    assert named["max"].flops_per_s > named["median"].flops_per_s > named["mean"].flops_per_s
    assert found.usable == found.shapes


def test_the_headlines_of_the_newer_method():
    found = mamf.parse(lines("mamf_v4.txt"))
    named = dict(found.best)
    assert (named["mamf"].flops_per_s, named["mamf"].kind) == (756e12, "boost")
    assert (named["msmf"].flops_per_s, named["msmf"].kind) == (668e12, "sustained")
    assert [x.flops_per_s / 1e12 for x in found.shapes] == [702.0, 731.6, 689.3, 712.7]


def test_without_a_line_a_shape_the_sustained_rate_counts():
    headlines = [x for x in lines("mamf_v4.txt") if "3072x2816" not in x or "MSMF" in x]
    headlines = [x for x in headlines if "3072x4096" not in x]
    (only,) = mamf.parse(headlines).usable
    assert only.kind == "sustained"


def test_the_constant_follows_the_shapes():
    chip, eff = facts.accelerator(H100), efficiency(GENERIC)
    (usual,) = fitted(document(mamf.parse(lines("mamf_v2.txt"))), chip, eff).constants
    assert usual.name == "matmul"
    assert usual.num_measured == 12
    found = document(mamf.parse(lines("mamf_v2.txt")))
    slower = [x.model_copy(update={"flops_per_s": x.flops_per_s * 0.8}) for x in found.matmuls]
    (low,) = fitted(found.model_copy(update={"matmuls": slower}), chip, eff).constants
    # The prior holds some of it back, the shapes take some more.
    assert 0.8 < low.factor / usual.factor < 0.95
    assert usual.low < usual.factor < usual.high


def test_a_measured_shape_is_forecast_as_it_was_measured():
    chip, eff = facts.accelerator(H100), efficiency(GENERIC)
    made = fitted(document(mamf.parse(lines("mamf_v2.txt"))), chip, eff)
    factors = made.factors
    assert len(factors.matmul_at) == len(factors.matmul_weights) == 12
    at, weights = np.array(factors.matmul_at), np.array(factors.matmul_weights)
    moved = measured_shapes.log_factor(at, weights, m=4096.0, n=4096.0, k=4096.0)
    far = measured_shapes.log_factor(at, weights, m=16.0, n=16.0, k=16.0)
    assert abs(float(far)) < 1e-6 < abs(float(moved)) < 0.15
    assert factors.matmul == made.constants[0].factor


def test_a_sweep_of_thousands_of_shapes_keeps_those_that_are_far_apart():
    grid = [
        f"{i:>6} |  600.0(mean)  601.0(median)  610.0(max) @ {m}x{n}x4096  | best:"
        for i, (m, n) in enumerate((m, n) for m in range(256, 12801, 256) for n in (1024, 8192))
    ]
    found = mamf.parse([*lines("mamf_v2.txt"), *grid])
    assert len(found.shapes) > 100
    factors = fitted(document(found), facts.accelerator(H100), efficiency(GENERIC)).factors
    assert len(factors.matmul_at) == MOST_SHAPES
    assert min(m for m, _, _ in factors.matmul_at) == pytest.approx(np.log(256))


def test_faster_than_the_datasheet_is_refused():
    fast = [x.replace("745.4", "1745.4") for x in lines("mamf_v2.txt")]
    made = document(mamf.parse(fast))
    with pytest.raises(ImportFileError, match="above the 989 that the datasheet"):
        fitted(made, facts.accelerator(H100), efficiency(GENERIC))


@pytest.mark.parametrize("said", ["torch.float32", "mxfp8"])
def test_other_number_formats_are_named(said):
    found = mamf.parse([x.replace("torch.bfloat16", said) for x in lines("mamf_v2.txt")])
    with pytest.raises(ImportFileError, match="those of bfloat16, float16 and float8 are used"):
        document(found)


def test_fp8_is_a_speed_up():
    fp8 = [x.replace("torch.bfloat16", "torch.float8_e4m3fn") for x in lines("mamf_v2.txt")]
    (found,) = fitted(
        document(mamf.parse(fp8)), facts.accelerator(H100), efficiency(GENERIC)
    ).constants
    assert found.name == "matmul_fp8"


def test_runs_of_two_formats_are_not_mixed():
    both = [*lines("mamf_v2.txt"), "** Dtype: torch.float8_e4m3fn"]
    with pytest.raises(ImportFileError, match="import each on its own"):
        mamf.parse(both)
