"""Energy of a run."""

import pytest

from core.money.energy import building_kwh, carbon_kg, rated_watts_per_gpu


def test_the_building_adds_its_share():
    assert 700e3 + building_kwh(drawn_kwh=700e3, pue=1.25) == pytest.approx(875e3)


def test_a_node_of_eight_h100_draws_what_was_measured():
    """10.2 kW rated, 76% of it drawn: 7.75 kW (arXiv:2506.14551)."""
    rated = rated_watts_per_gpu(gpu_watts=700.0, full_gpu_watts=700.0, host_over_gpu=0.821)
    assert 8 * rated == pytest.approx(10_200, rel=1e-3)
    assert 8e-3 * rated * 0.76 == pytest.approx(7.75, abs=0.01)


def test_a_published_footprint():
    """Llama 3.1 405B's model card: 30.84M GPU-hours at 700 W, location-based 8,930 t of CO2e:
    414 g a kWh of the GPUs alone."""
    assert carbon_kg(kwh=30.84e6 * 0.7, g_co2e_per_kwh=413.7) == pytest.approx(8_930e3, rel=1e-3)
