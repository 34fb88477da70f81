"""What a list of offers must satisfy before it becomes a snapshot."""

from dataclasses import replace
from datetime import date

import pytest

from core.errors import FactError
from pricing import integrity
from pricing.integrity import BANDS_CSV, check, price_bands
from tests.made_up import plans as made_up

TODAY = date(2026, 11, 21)
BANDS = {("H100-80GB-SXM", "committed"): (0.7, 36.0), ("H100-80GB-SXM", "spot"): (0.4, 14.0)}
GOOD = made_up.offer(source="page")


def findings(*offers, severity=None):
    found = check(offers, bands=BANDS, today=TODAY)
    return [f for f in found if severity in (None, f.severity)]


def test_a_good_offer_has_no_finding():
    assert findings(GOOD, replace(GOOD, purchase="spot", usd_per_hour=20.0)) == []


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"usd_per_hour": None}, "price"),
        ({"usd_per_hour": 0.0}, "price"),
        ({"usd_per_hour": -1.0}, "price"),
        ({"usd_per_hour": float("nan")}, "price"),
        ({"usd_per_hour": float("inf")}, "price"),
        ({"usd_per_hour": 55.04 * 730}, "band"),  # a month for an hour
        ({"usd_per_hour": 5504.0}, "band"),  # cents for dollars
        ({"usd_per_hour": 55.04 / 12}, "band"),
        ({"gpu_count": 1}, "band"),  # a whole instance for a GPU
        ({"gpu_count": 0}, "gpu_count"),
        ({"purchase": "preemptible"}, "purchase"),
        ({"quality": "good"}, "quality"),
        ({"accelerator": "H100-80G-SXM"}, "accelerator"),
        ({"observed_at": "2026-11-22"}, "date"),
        ({"observed_at": "2026-12"}, "date"),
        ({"observed_at": "2027"}, "date"),
        ({"observed_at": "last week"}, "date"),
        ({"scale_out_gbit_per_s": 0.0}, "network"),
        ({"scale_out_gbit_per_s": float("nan")}, "network"),
        ({"source": ""}, "blank"),
        ({"region": " "}, "blank"),
    ],
)
def test_a_row_that_cannot_be_right_is_refused_and_named(change, rule):
    found = findings(replace(GOOD, **change))
    assert [(f.severity, f.rule) for f in found] == [("refuse", rule)]
    assert "p5.48xlarge" in found[0].sentence


@pytest.mark.parametrize("observed_at", ["2026-11-21", "2026-11", "2026"])
def test_today_its_month_and_its_year_are_not_the_future(observed_at):
    assert findings(replace(GOOD, observed_at=observed_at)) == []


def test_an_unknown_accelerator_gets_the_nearest_name():
    (found,) = findings(replace(GOOD, accelerator="H100-80G-SXM"))
    assert "Did you mean 'H100-80GB-SXM'?" in found.sentence


def test_spot_above_on_demand_is_refused_on_one_date_and_a_warning_between_two():
    spot = replace(GOOD, purchase="spot", usd_per_hour=60.0)
    assert [(f.severity, f.rule) for f in findings(GOOD, spot)] == [("refuse", "spot")]
    later = replace(spot, observed_at="2026-08-01")
    assert [(f.severity, f.rule) for f in findings(GOOD, later)] == [("warn", "spot")]
    assert findings(GOOD, replace(spot, region="us-west-2")) == []


def test_a_listed_exception_is_no_finding(monkeypatch):
    place = ("aws", "p5.48xlarge", "us-east-1")
    monkeypatch.setattr(integrity, "SPOT_ABOVE_ON_DEMAND", frozenset({place}))
    assert findings(GOOD, replace(GOOD, purchase="spot", usd_per_hour=60.0)) == []


@pytest.mark.parametrize("usd", [55.04, 5.504])
def test_the_floor_that_aws_prints_without_a_spot_market_is_refused(usd):
    spot = replace(GOOD, purchase="spot", usd_per_hour=usd)
    rules = {(f.severity, f.rule) for f in findings(GOOD, spot)}
    assert ("refuse", "spot") in rules
    elsewhere = [
        replace(o, provider="verda", usd_per_hour=8 * p) for o, p in ((GOOD, 2), (spot, 2))
    ]
    assert findings(*elsewhere) == []  # half or equal is a price list elsewhere


def test_duplicates_of_one_source_are_refused_and_of_two_are_warned_of():
    assert [f.severity for f in findings(GOOD, GOOD)] == ["refuse"]
    second = replace(GOOD, source="another page", usd_per_hour=56.0)
    assert [f.severity for f in findings(GOOD, second)] == ["warn"]


def test_a_price_far_from_what_other_providers_ask_is_a_warning():
    market = [replace(GOOD, provider=p, usd_per_hour=24.0) for p in "abcde"]
    odd = replace(GOOD, provider="odd", usd_per_hour=8 * 24.0)
    regions = [replace(odd, region=f"r{i}") for i in range(20)]  # many regions are one provider
    found = findings(*market, *regions)
    assert {(f.severity, f.rule, f.offer.provider) for f in found} == {("warn", "outlier", "odd")}
    assert len(found) == 20
    assert findings(*market[:3], odd) == []  # too few providers to say


def test_refusals_come_first():
    market = [replace(GOOD, provider=p, usd_per_hour=24.0) for p in "abcde"]
    odd = replace(GOOD, provider="odd", usd_per_hour=8 * 24.0)
    severities = [f.severity for f in findings(odd, *market, replace(GOOD, gpu_count=0))]
    assert severities == ["refuse", "warn"]


@pytest.mark.parametrize(
    ("left_out", "says"),
    [
        ("RTXA6000,", "RTXA6000 has no band of spot and committed prices"),
        ("RTXA6000,spot,", "RTXA6000 has no band of spot prices"),
        ("Trn3,unpriced,", "Trn3 has no band of spot and committed prices"),
    ],
)
def test_an_accelerator_without_a_band_stops_the_load(tmp_path, left_out, says):
    table = tmp_path / "price_bands.csv"
    rows = BANDS_CSV.read_text(encoding="utf-8").splitlines(keepends=True)
    table.write_text("".join(r for r in rows if not r.startswith(left_out)), encoding="utf-8")
    with pytest.raises(FactError, match=says):
        price_bands(table)


def test_a_band_is_wider_than_a_market():
    assert all(low * 3 < high for low, high in price_bands().values())


@pytest.mark.parametrize(
    "row",
    [
        "L4,spot,1,2,USD/h,page,2026-01-01",
        "L4,spot,1,2,USD/GPU-hour,,2026-01-01",
        "L4,spot,1,2,USD/GPU-hour,page,",
        "L4,sometimes,1,2,USD/GPU-hour,page,2026-01-01",
        "L4,spot,2,1,USD/GPU-hour,page,2026-01-01",
        "L4,spot,0,1,USD/GPU-hour,page,2026-01-01",
        "L4,spot,1,nan,USD/GPU-hour,page,2026-01-01",
        "L4,spot,one,2,USD/GPU-hour,page,2026-01-01",
        "L4,spot,1,2,USD/GPU-hour,page,2026-01-01\nL4,spot,1,2,USD/GPU-hour,page,2026-01-01",
    ],
)
def test_a_band_that_cannot_be_trusted_stops_the_load(tmp_path, row):
    table = tmp_path / "price_bands.csv"
    table.write_text(BANDS_CSV.read_text().splitlines()[0] + "\n" + row + "\n")
    with pytest.raises(FactError, match=r"price_bands\.csv:"):
        price_bands(table)
