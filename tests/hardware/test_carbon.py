"""Carbon and PUE of regions, and what machines draw: the shipped tables, and what they refuse."""

from __future__ import annotations

import pytest

from core.errors import FactError
from hardware import carbon, power, role_facts
from hardware.carbon import COLUMNS, load_carbon, region_of
from hardware.power import load_power

GOOD = ("aws", "somewhere", "Some Where", "2024", "100", "", "", "1.2", "a file", "2024", "")


def table(tmp_path, *rows, columns=COLUMNS):
    path = tmp_path / "facts.csv"
    path.write_text("\n".join(",".join(r) for r in (columns, *rows)) + "\n", encoding="utf-8")
    return path


def test_a_published_region_is_read_with_its_source():
    found = region_of("aws", "us-east-1")
    grid, pue = found.grid_g_co2e_per_kwh, found.pue
    assert (grid.value, grid.year, pue.value) == (396.25, "2024", 1.15)
    assert grid.source.startswith("Green-Software-Foundation/real-time-cloud@")
    assert region_of("gcp", "us-central1").carbon_free_fraction.value == 0.95
    # The older table of Azure names regions as they are displayed.
    assert region_of("azure", "uksouth").grid_g_co2e_per_kwh.value == 228.0


def test_every_region_of_the_shipped_table_is_plausible():
    found = load_carbon()
    assert len(found) > 110
    assert {provider for provider, _ in found} == {"aws", "azure", "gcp"}
    grids = [r.grid_g_co2e_per_kwh.value for r in found.values() if r.grid_g_co2e_per_kwh]
    assert 1 < min(grids) < 30
    assert 700 < max(grids) < 1000  # the rows that were a factor of a million off are left out


def test_a_region_is_matched_exactly_and_no_neighbour_is_taken():
    assert region_of("aws", "us-east-9") is None
    assert region_of("aws", "us-cheapest") is None
    assert region_of("oci", "us-east-1") is None
    assert region_of("aws", "*") is None  # a mean of the seller's buildings is no region
    assert carbon.fleet_pue("gcp").value == 1.1
    assert carbon.fleet_pue("lambda") is None


def test_the_newest_year_of_a_region_counts(tmp_path):
    old = (*GOOD[:3], "2022", "300", "", "", "1.5", "an older file", "2022", "")
    found = load_carbon(table(tmp_path, old, GOOD, (*old[:3], "", "9", *old[5:8], "b", "2020", "")))
    region = found["aws", "somewhere"]
    assert (region.grid_g_co2e_per_kwh.value, region.pue.value) == (100.0, 1.2)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({4: "77000000.0"}, "is not between 0 and 2000"),
        ({7: "0.9"}, "pue 0.9 is not between 1 and 3"),
        ({4: "n/a"}, "could not convert"),
        ({4: "nan"}, "is not between"),
        ({4: "", 7: ""}, "has no figure"),
        ({8: ""}, "has no source"),
        ({9: "lately"}, "has the source date"),
        ({1: ""}, "a seller and a region"),
    ],
)
def test_a_bad_row_is_named_with_its_line(tmp_path, change, says):
    row = tuple(change.get(n, cell) for n, cell in enumerate(GOOD))
    with pytest.raises(FactError, match=r"facts\.csv:2.*") as error:
        load_carbon(table(tmp_path, row))
    assert says in str(error.value)


def test_one_source_prints_a_region_once(tmp_path):
    with pytest.raises(FactError, match=r"facts\.csv:3"):
        load_carbon(table(tmp_path, GOOD, GOOD))


def test_what_machines_draw_has_one_used_figure_each():
    for name in power.QUANTITIES:
        assert power.used(name).source
    draws = [f.value for f in power.published("training_draw")]
    assert power.used("training_draw").value == min(draws) == 0.76
    assert power.used("host_over_gpu").value == pytest.approx(10.2 / 5.6 - 1, abs=1e-3)
    shares = [f.value for f in power.published("experiment_share")]
    assert power.used("experiment_share").value == 0
    assert shares == [0.5, pytest.approx(0.822 / 0.178, abs=0.01)]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (("watts", "1", "fraction", "default", "all", "a", "2024", ""), "is not one of"),
        (("pue", "1", "W", "default", "all", "a", "2024", ""), "unknown unit"),
    ],
)
def test_a_bad_row_of_power_is_named(tmp_path, row, says):
    """Its own quantities and units; tests/hardware/test_reliability_facts.py has the other rows."""
    with pytest.raises(FactError, match=r"facts\.csv:2.*") as error:
        load_power(table(tmp_path, row, columns=role_facts.COLUMNS))
    assert says in str(error.value)
