"""hardware/spot.csv: every figure with its unit, source and date; a range for what is in use."""

import statistics

import pytest

from core.failures.spot import band_hazards_per_s
from hardware.instances import instances
from hardware.spot import (
    ADVISOR_PERIOD_S,
    COLUMNS,
    advisor_bands,
    load_spot,
    spot,
    used,
)
from tests.support.csv_tables import refusal

HEAD = ",".join(COLUMNS) + "\n"
GOOD = "outage_hours,published,aws,p3,V100-16GB,us-east-1,a week,,1.5,,h,,,,a log,2023,\n"
BAND = (
    "interrupted_fraction,published,aws,p5,H100,us-east-1,a month,0.05,,0.1,fraction,,,,x,2025,\n"
)
TRACES = [f for f in spot() if f.quantity == "preemptions_per_day" and f.low is None]
IN_USE = "outage_hours,default,aws,p3,V100-16GB,us-east-1,a week,1,1.5,2,h,,,,a log,2023,\n"


def test_every_figure_in_use_has_a_range():
    in_use = [f for f in spot() if f.role != "published"]
    assert [f.quantity for f in in_use] == [
        "preemptions_per_day", "outage_hours", "up_cv", "common_fraction",
    ]  # fmt: skip
    for fact in in_use:
        assert fact.low < fact.value < fact.high
        assert used(fact.quantity) is fact
    assert used("up_cv").value == 2.0


def test_what_is_in_use_comes_from_the_rows_beside_it():
    """The range of preemptions: 5% of capacity a month, and the median of the public traces of
    single machines; the figure is the newest GPU that has a trace."""
    single = [f for f in TRACES if f.outage_hours is not None]
    assert (len(TRACES), len(single)) == (31, 21)
    rate = used("preemptions_per_day")
    assert rate.high == pytest.approx(statistics.median(f.value for f in single))
    _, _, five_percent = band_hazards_per_s(
        low_fraction=0, high_fraction=0.05, period_s=ADVISOR_PERIOD_S
    )
    assert rate.low == pytest.approx(five_percent * 86400, rel=0.01)
    assert rate.value in [f.value for f in TRACES if f.accelerator == "A100-40GB-SXM"]
    assert rate.high > 1000 * rate.low
    outages = [f.outage_hours for f in single]
    outage = used("outage_hours")
    found = (min(outages), statistics.median(outages), max(outages))
    assert (outage.low, outage.value, outage.high) == pytest.approx(found)


def test_availability_preemptions_and_outages_of_a_trace_belong_together():
    """A share of time up follows from the mean uptime and outage, as printed to a few digits."""
    checked = 0
    for fact in TRACES:
        if fact.outage_hours is None:
            continue
        up_hours = 24 / fact.value
        share = up_hours / (up_hours + fact.outage_hours)
        assert share == pytest.approx(fact.available_fraction, abs=0.035), fact.source
        checked += 1
    assert checked == 21


def test_bands_of_whole_machines_by_accelerator_and_region():
    bands = advisor_bands("H100-80GB-SXM")
    assert len(bands) == 12
    assert {b.instance_type for b in bands} == {"p5.48xlarge"}
    (one,) = advisor_bands("H100-80GB-SXM", "aws", "us-east-1")
    assert (one.low, one.high, one.value, one.savings) == (0.2, 1.0, None, 0.52)
    assert not advisor_bands("H100-80GB-SXM", "gcp")
    assert not advisor_bands("MI300X")
    for band in (f for f in spot() if f.quantity == "interrupted_fraction"):
        assert (band.low, band.high) in {(0, 0.05), (0.05, 0.1), (0.1, 0.15), (0.15, 0.2), (0.2, 1)}
        machine = next(m for m in instances() if m.instance_type == band.instance_type)
        assert (machine.provider, machine.accelerator) == (band.provider, band.accelerator)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (GOOD.replace("outage_hours", "outages"), "'outages' is not one of"),
        (GOOD.replace(",h,", ",days,"), "unknown unit 'days'"),
        (GOOD.replace("published", "guess"), "as role"),
        (GOOD.replace("a log", ""), "has no source"),
        (GOOD.replace("2023", "spring"), "source date 'spring'"),
        (GOOD.replace("1.5", "often"), "could not convert"),
        (GOOD.replace("1.5", "nan"), "not a finite number"),
        (GOOD.replace("1.5", "-1"), "not in order from a low end of at least 0"),
        (GOOD.replace("1.5", ""), "needs a value, or a low and a high end"),
        (GOOD.replace("published", "default"), "lacks a value or its range"),
        (IN_USE.replace("default", "assumed"), "does not say what"),
        (IN_USE * 2, "already has a value"),
        (IN_USE.replace(",1,1.5,2,", ",3,1.5,2,"), "not in order"),
        (BAND.replace("0.05,,0.1", "0.05,,"), "needs a value, or a low and a high end"),
        (BAND.replace("0.05,,0.1", "5,,10"), "at most 1"),
        (BAND.replace("fraction,,,,x", "fraction,67,,,x"), "below 1, not a percentage"),
        (BAND.replace("fraction,,,,x", "fraction,,1.2,,x"), "between 0 and 1"),
    ],
)
def test_a_figure_that_cannot_be_trusted_is_refused(tmp_path, line, says):
    path = tmp_path / "spot.csv"
    said = refusal(load_spot, path, HEAD + GOOD + line)
    assert "spot.csv:" in said
    assert says in said
    path.write_text(HEAD + GOOD + BAND + IN_USE)
    assert len(load_spot(path)) == 3
