"""Prices that guides print, beside the bundled offers: each with its date and source."""

from types import SimpleNamespace

import pytest

from app.document import format as fmt
from app.guides import claims as guides_claims
from app.guides import prices as guides_prices
from hardware.claims import claims as published
from tests.made_up.plans import offer

# Spheron, 29 Apr 2026: accelerator -> dollars an hour on demand and spot.
SPHERON = {"h100": (2.90, 0.80), "h200": (3.69, 1.19), "b200": (7.43, 1.71), "a100": (1.64, 0.45)}
BANDS = ("h100_band", "b200_band", "mi300x_band")


def row(name):
    return next(c for c in published() if c.id == name)


@pytest.fixture
def only(monkeypatch):
    """Bundle these offers and no others."""

    def bundle(*offers):
        monkeypatch.setattr(
            guides_prices.prices, "snapshot", lambda _: SimpleNamespace(id="0", offers=offers)
        )

    return bundle


@pytest.mark.parametrize("short", SPHERON)
@pytest.mark.parametrize("purchase", ["on_demand", "spot"])
def test_spheron_s_list_is_held_with_its_day(short, purchase):
    claim = row(f"spheron_{short}_{purchase}")
    assert (claim.low, claim.high) == (SPHERON[short][purchase == "spot"],) * 2
    assert claim.source_date == "2026-04-29"
    assert "spheron" in claim.source


@pytest.mark.parametrize("short", SPHERON)
@pytest.mark.parametrize("purchase", ["on_demand", "spot"])
def test_an_observation_of_ours_says_when_and_where_and_no_observation_says_so(short, purchase):
    found = guides_claims.checked(row(f"spheron_{short}_{purchase}"))
    if found.verdict == "input":
        assert found.ours_text == fmt.MISSING
        assert "0 bundled offers" in found.ours.arithmetic
    else:
        assert "observed 20" in found.ours.arithmetic
        assert "spheron" in found.ours.arithmetic


@pytest.mark.parametrize("name", BANDS)
def test_a_band_is_of_its_month(name):
    claim = row(name)
    assert claim.source_date == "2026-05"
    assert "observed in 2026-05" in guides_claims.checked(claim).ours.arithmetic


def test_a_band_counts_each_provider_once_at_its_lowest_and_only_that_month(only):
    mi300x = {"accelerator": "MI300X", "gpu_count": 8, "observed_at": "2026-05-24"}
    only(
        offer(**mi300x, provider="a", usd_per_hour=16.0),
        offer(**mi300x, provider="a", usd_per_hour=80.0),
        offer(**mi300x, provider="b", usd_per_hour=32.0),
        offer(**{**mi300x, "observed_at": "2026-06-01"}, provider="c", usd_per_hour=800.0),
        offer(**mi300x, provider="d", usd_per_hour=8.0, purchase="spot"),
    )
    found = guides_claims.checked(row("mi300x_band"))
    assert (found.ours.low, found.ours.high) == pytest.approx((2.5, 3.5))
    assert found.verdict == "reproduced"


def test_without_offers_of_that_month_the_band_says_so_and_without_any_there_is_none(only):
    later = {"accelerator": "MI300X", "gpu_count": 1, "observed_at": "2026-09-01"}
    only(offer(**later, usd_per_hour=6.0))
    found = guides_claims.checked(row("mi300x_band"))
    assert "any month" in found.ours.arithmetic
    assert found.verdict == "refuted"
    only()
    assert guides_claims.checked(row("mi300x_band")).ours_text == fmt.MISSING


def test_gaudi_3_is_compared_once_somebody_offers_one(only):
    day = {"observed_at": "2026-05-24", "gpu_count": 8}
    only(
        offer(**day, accelerator="Gaudi3", usd_per_hour=13.0),
        offer(**day, accelerator="H100-80GB-SXM", usd_per_hour=20.0),
    )
    assert guides_claims.checked(row("gaudi3_price")).ours.low == pytest.approx(0.35)
