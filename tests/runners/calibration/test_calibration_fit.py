"""A fit finds the rates that a made-up machine has, and says how far off it may be."""

from __future__ import annotations

import numpy as np
import pytest

from core.errors import FactError
from core.machine.calibration import applied
from hardware.facts import accelerator
from runners.calibration.fit import fitted
from runners.calibration.fit_compute import standalone_s
from tests.made_up.results import EFF, H100, machine, noisy, result, without

TRUE = {
    "matmul": 0.9, "matmul_fp8": 0.93, "attention": 1.2, "memory": 0.94, "elementwise": 1.3,
    "host_link": 0.85, "scale_up": 0.8, "scale_out": 0.7,
}  # fmt: skip


def fit(found):
    return fitted(found, accelerator(H100), EFF)


def test_every_planted_rate_is_found():
    found = fit(result(machine(**TRUE)))
    constants = {c.name: c for c in found.constants}
    shapes = TRUE["matmul"], constants.pop("matmul").factor
    assert shapes[0] < shapes[1] < 1  # far from every measured shape less is believed
    for name, factor in TRUE.items():
        if name not in constants:
            continue
        assert constants[name].factor == pytest.approx(factor, rel=0.05), name
        assert 0.98 * constants[name].low < factor < 1.02 * constants[name].high, name
        assert constants[name].measured / constants[name].assumed == pytest.approx(factor, rel=0.06)
    assert found.missing == ()
    assert found.checkpoint_bytes_per_s == pytest.approx(8e9)


def test_a_measured_shape_is_forecast_as_it_was_measured():
    true = result(machine(**TRUE))
    known = applied(machine(), fit(true).factors)
    for row in true.rows("matmul"):
        if row.dtype == "bf16":
            assert standalone_s(row, known, EFF) == pytest.approx(row.t_med_s, rel=0.01)


def test_the_held_out_step_is_forecast_within_five_percent():
    found = fit(result(machine(**TRUE))).held_out
    assert found.num_layers == 4
    assert abs(found.before - 1) > 0.05
    assert abs(found.after - 1) < 0.02
    worst = [
        abs(fit(noisy(result(machine(**TRUE)), 0.01, seed)).held_out.after - 1) for seed in range(5)
    ]
    assert max(worst) < 0.05


def test_a_machine_as_assumed_is_left_as_it_is():
    found = fit(result(machine()))
    for constant in found.constants:
        if not constant.name.endswith("_hop"):
            assert constant.factor == pytest.approx(1.0, abs=0.01), constant.name
    assert found.held_out.before == pytest.approx(found.held_out.after, rel=0.01)


def test_what_was_not_measured_stays_as_assumed():
    found = fit(without(result(machine(**TRUE)), "collectives", "attention", "holdout"))
    assert found.factors.attention == found.factors.scale_up == found.factors.scale_out == 1.0
    assert {"attention", "scale_up", "scale_out"} <= set(found.missing)
    assert found.held_out is None
    assert found.links == ()


def test_the_held_out_step_is_in_no_constant():
    whole = result(machine(**TRUE))
    wrong = whole.model_copy(
        update={
            "results": [
                r.model_copy(update={n: getattr(r, n) * 3 for n in
                                     ("t_med_s", "t_p10_s", "t_p90_s", "t_min_s")})
                if r.probe == "holdout" else r
                for r in whole.results
            ]
        }
    )  # fmt: skip
    assert fit(wrong).factors == fit(whole).factors
    assert fit(wrong).held_out.after == pytest.approx(fit(whole).held_out.after / 3)


def test_noise_widens_what_is_said():
    def width(found):
        return {c.name: np.log(c.high / c.low) for c in fit(found).constants}

    calm = result(machine(**TRUE))
    rough = calm.model_copy(
        update={"results": [r.model_copy(update={"rel_iqr": 0.2}) for r in calm.results]}
    )
    narrow, wide = width(calm), width(rough)
    assert all(wide[n] > narrow[n] for n in ("matmul", "memory", "attention", "elementwise"))


def test_a_disturbed_session_moves_less():
    calm = result(machine(matmul=0.8))
    shaken = [c.model_copy(update={"t_med_s": 1e-3 * (1 + 0.2 * (n % 2))})
              for n, c in enumerate(calm.control)]  # fmt: skip
    moved = {c.name: c for c in fit(calm.model_copy(update={"control": shaken})).constants}
    still = {c.name: c for c in fit(calm).constants}
    assert still["matmul"].factor < moved["matmul"].factor < 1.0


def test_another_machine_is_refused():
    with pytest.raises(FactError, match="another machine"):
        fit(result(machine(memory=0.01)))


def test_leaving_shapes_out_tells_how_well_the_others_say_them():
    smooth = {c.name: c for c in fit(result(machine())).constants}["matmul"]
    rough = {c.name: c for c in fit(noisy(result(machine()), 0.1, 1)).constants}["matmul"]
    assert smooth.left_out_error < 0.01 < rough.left_out_error
