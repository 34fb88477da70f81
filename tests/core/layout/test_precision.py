"""Number formats: which peak a recipe reaches."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.errors import ScenarioError
from core.layout.precision import PRECISIONS, matmul_speedup, precision

NAN = float("nan")


def speedup(bits, fp8=2.0, fp4=4.0, reach8=0.9, reach4=0.6):
    return float(
        matmul_speedup(
            matmul_bits=bits, fp8_ratio=fp8, fp4_ratio=fp4, fp8_fraction=reach8,
            fp4_fraction=reach4,
        )
    )  # fmt: skip


def test_sixteen_bits_run_at_the_16_bit_rate_whatever_the_device_lacks():
    assert speedup(16, NAN, NAN) == 1.0


@pytest.mark.parametrize(("bits", "fp8", "fp4"), [(8, NAN, 4.0), (4, 2.0, NAN)])
def test_a_format_that_the_device_lacks_is_no_number(bits, fp8, fp4):
    assert np.isnan(speedup(bits, fp8, fp4))
    assert np.isfinite(speedup(12 - bits, fp8, fp4))


@example(bits=8, ratio=1.0, reach=0.9)  # TPU v5p: 459 TFLOP/s in either format
@given(bits=st.sampled_from([4, 8]), ratio=st.floats(1, 8), reach=st.floats(0, 1))
def test_never_above_the_ratio_of_the_peaks_and_never_below_16_bits(bits, ratio, reach):
    got = speedup(bits, ratio, ratio, reach, reach)
    assert 1.0 <= got <= ratio
    assert got == pytest.approx(max(1.0, ratio * reach))


@pytest.mark.parametrize("recipe", PRECISIONS.values(), ids=lambda p: p.name)
def test_only_low_precision_pays_for_casts(recipe):
    assert recipe.matmul_bits in (4, 8, 16)
    assert (recipe.quantised_bytes > 0) == (recipe.matmul_bits < 16)


def test_an_unknown_recipe_is_never_guessed():
    with pytest.raises(ScenarioError, match="Did you mean 'fp8'"):
        precision("fp88")
    assert precision("bf16").matmul_bits == 16
