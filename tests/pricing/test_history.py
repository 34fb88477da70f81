"""The history of a price: the bundled table, the store, and both of them together."""

import csv
import subprocess
import sys
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from core.errors import FactError
from hardware.names import canonical
from pricing import history as module
from pricing.fetch.network import SourceError
from pricing.history import (
    HISTORY_CSV,
    cost_on,
    history,
    known_skus,
    price_on,
)
from pricing.history_fill import fill_history
from pricing.integrity import price_bands
from pricing.series import Sku, sku_of
from pricing.store.opening import open_store
from tests.conftest import ROOT
from tests.feeds import shapes
from tests.feeds.server import Feed, as_text, serving
from tests.support.recorded import NOW, found, offer, write

P5 = Sku("aws", "p5.48xlarge", "H100-80GB-SXM", 8, "us-east-1", "on_demand")


@pytest.fixture
def store(tmp_path):
    return open_store(folder=tmp_path, environ={})


def hours(n):
    return NOW + timedelta(hours=n)


# --- what is bundled -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows():
    with HISTORY_CSV.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_bundled_prices_are_plausible_dated_and_have_a_source(rows):
    bands = price_bands()
    assert len(rows) > 2500
    for row in rows:
        assert canonical(row["accelerator"]) == row["accelerator"]
        kind = "spot" if row["purchase"] == "spot" else "committed"
        low, high = bands[row["accelerator"], kind]
        assert low <= float(row["usd_per_hour"]) / int(row["gpu_count"]) <= high, row
        assert date(2022, 1, 1) <= date.fromisoformat(row["observed_at"]) <= date(2026, 11, 21)
        assert row["source"]
    keys = [(*(row[c] for c in Sku._fields), row["observed_at"], row["source"]) for row in rows]
    assert len(set(keys)) == len(keys)


def test_no_bundled_spot_price_is_above_on_demand_of_its_day(rows):
    prices = defaultdict(dict)
    for row in rows:
        key = (row["provider"], row["instance_type"], row["region"], row["observed_at"],
               row["source"])  # fmt: skip
        prices[key][row["purchase"]] = float(row["usd_per_hour"])
    both = [p for p in prices.values() if {"spot", "on_demand"} <= p.keys()]
    assert len(both) > 100
    assert all(p["spot"] <= p["on_demand"] for p in both)


def test_the_cut_of_aws_p5_in_june_2025_is_in_it():
    told = history(P5)
    aws = [s for s in told.spells if s.source == "aws/karpenter-provider-aws"]
    assert [s.usd_per_hour for s in aws] == [98.32, 55.04]
    assert aws[0].until.date() == aws[1].first_at.date() == date(2025, 6, 23)
    assert told.gaps == ()
    assert [s.usd_per_hour for s in history(P5, since=date(2025, 7, 1)).spells] == [55.04, 55.04]


@pytest.mark.parametrize(
    "row",
    [
        "aws,x,H100-80GB-SXM,8,r,on_demand,nan,2026-01-01,s",
        "aws,x,H100-80GB-SXM,8,r,on_demand,-1,2026-01-01,s",
        "aws,x,H100-80GB-SXM,0,r,on_demand,1,2026-01-01,s",
        "aws,x,H100-80GB-SXM,8,r,rented,1,2026-01-01,s",
        "aws,x,H100-80GB-SXM,8,r,on_demand,1,1 June,s",
        "aws,x,H100-80GB-SXM,8,r,on_demand,1,2026-01-01,",
        "aws,x",
    ],
)
def test_a_wrong_row_is_refused_with_its_line(tmp_path, row):
    path = tmp_path / "history.csv"
    path.write_text(",".join(module.COLUMNS) + "\n" + row + "\n")
    with pytest.raises(FactError, match=r"^history\.csv:2: "):
        module._bundled(path)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "columns are not"),
        (b"\xff", "is not UTF-8"),
        (",".join(module.COLUMNS).encode() + b'\n"aws,x\n', "is not a CSV file"),
        (",".join(module.COLUMNS).encode() + b"\n" + b"a," * 5_000, "has 5,001 cells"),
    ],
)
def test_a_file_that_is_no_history_is_a_sentence(tmp_path, content, sentence):
    path = tmp_path / "history.csv"
    path.write_bytes(content)
    with pytest.raises(FactError, match=sentence):
        module._bundled(path)


HISTORY = """
import sys
from pathlib import Path
from core.errors import FactError
from pricing import history
from pricing.process_limit import limit
limit(60, int(sys.argv[2]))
try:
    found = history._bundled(Path(sys.argv[1]))
    print(sum(map(len, found.values())), end="")
except FactError as e:
    print(e, end="")
"""
MOST_MEMORY = 48 * 2**20  # of the longest history; 27 MiB measured


@pytest.mark.parametrize(
    ("num_rows", "padding", "said"),
    [
        (200_000, "", "200000"),
        (200_001, "", "history.csv has more than 200,000 rows"),
        (700_000, "x" * 50, "history.csv is larger than 32 MB: no price history"),  # 100 MB
    ],
)
def test_a_history_of_any_length_is_read_or_refused_in_little_memory(
    tmp_path, num_rows, padding, said
):
    path = tmp_path / "history.csv"
    days = [f"2026-{1 + d % 12:02}-{1 + d % 28:02}" for d in range(336)]
    with path.open("w") as file:
        file.write(",".join(module.COLUMNS) + "\n")
        for n in range(num_rows):
            file.write(f"aws,m{n % 9_000},H100-80GB-SXM,8,r{n % 50},spot,{9 + n % 900 / 100},"
                       f"{days[n % 336]},github.com/a/b/c.csv@{n:020x}{padding}\n")  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", HISTORY, path, str(MOST_MEMORY)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (said, "")


# --- a day ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("day", "usd", "exact"),
    [
        (date(2024, 5, 1), 98.32, True),
        (date(2025, 6, 23), 55.04, True),
        (date(2025, 6, 1), 98.32, False),  # last seen in April: it may have changed since
        (date(2026, 8, 20), 55.04, False),
    ],
)
def test_the_price_of_a_day(day, usd, exact):
    price = price_on(P5, day)
    assert (price.usd_per_hour, price.exact) == (usd, exact)


@pytest.mark.parametrize("day", [date(2021, 1, 1), date(2026, 11, 20)])
def test_a_day_long_before_or_after_has_no_price(day):
    assert price_on(P5, day) is None


def test_a_place_without_a_history_has_that_of_the_cheapest_in_the_us():
    nowhere = Sku("aws", "g5.48xlarge", "A10G", 8, "mars-1", "on_demand")
    price = price_on(nowhere, date(2024, 2, 27))
    assert (price.usd_per_hour, price.sku.region) == (16.29, "us-cheapest")


def test_what_a_plan_would_have_cost():
    now = replace(offer(55.04), region="us-east-1")
    then = cost_on(now, date(2024, 5, 1), num_machines=4, hours=10)
    assert then.usd == pytest.approx(98.32 * 40)
    assert then.usd_now == pytest.approx(55.04 * 40)
    assert then.ratio == pytest.approx(98.32 / 55.04)
    unknown = cost_on(now, date(2020, 1, 1), num_machines=4, hours=10)
    assert (unknown.usd, unknown.ratio, unknown.price) == (None, None, None)


# --- the store -----------------------------------------------------------------------------------


def test_the_heartbeats_of_a_source_join_what_changed_and_its_failures_are_gaps(store):
    here = replace(offer(), region="made-1")
    prices = {0: 50.0, 6: 50.0, 12: 48.0, 18: None, 24: 48.0}
    for n, usd in prices.items():
        told = found("oci", [] if usd is None else [replace(here, usd_per_hour=usd)])
        write(store, told if usd else replace(told, status="failed"), at=hours(n))
    told = history(sku_of(here), store=store)
    assert [(s.usd_per_hour, s.first_at, s.last_at, s.until) for s in told.spells] == [
        (50.0, hours(0), hours(6), hours(12)),
        (48.0, hours(12), hours(12), hours(12)),
        (48.0, hours(24), hours(24), hours(24)),
    ]
    assert [(g.begins, g.ends, g.why) for g in told.gaps] == [(hours(12), hours(24), "it failed")]
    rows = told.chart_rows()
    assert [(r["usd_per_hour"], r["piece"]) for r in rows] == [
        (50.0, 1), (50.0, 1), (48.0, 1), (48.0, 2),
    ]  # fmt: skip
    assert rows[0]["usd_per_gpu_hour"] == 6.25


def test_a_pause_of_days_and_a_machine_that_was_not_listed_are_gaps(store):
    here = replace(offer(), region="made-1")
    write(store, found("oci", [here]), at=hours(0))
    write(store, found("oci", [here]), at=hours(72))
    write(store, found("oci", []), at=hours(78))
    write(store, found("oci", [], kept=[here]), at=hours(84))
    told = history(sku_of(here), store=store)
    assert [(g.why, g.ends) for g in told.gaps] == [
        ("no refresh", hours(72)),
        ("not listed", None),
    ]


def test_what_was_seen_here_goes_before_what_is_bundled(store):
    day = datetime(2026, 7, 20, 6, tzinfo=UTC)
    seen = replace(offer(54.0), region="us-east-1")
    write(store, found("aws_on_demand", [seen]), at=day)
    assert price_on(P5, day.date(), store=store).usd_per_hour == 54.0
    assert price_on(P5, day.date()).usd_per_hour == 55.04
    assert price_on(P5, date(2024, 5, 1), store=store).usd_per_hour == 98.32
    assert set(history(P5, store=store).sources) == {
        "aws/karpenter-provider-aws", "skypilot-catalog", "aws_on_demand",
    }  # fmt: skip


def test_known_skus_are_of_both(store):
    here = replace(offer(), region="made-1")
    write(store, found("oci", [here]), at=NOW)
    known = known_skus(accelerator="H100-80GB-SXM", purchase="on_demand", store=store)
    assert {P5, sku_of(here)} <= set(known)
    assert {(s.accelerator, s.purchase) for s in known} == {("H100-80GB-SXM", "on_demand")}
    assert sku_of(here) not in known_skus()


# --- archived pages ------------------------------------------------------------------------------


@pytest.fixture
def fill(monkeypatch, tmp_path):
    """Fill the history of a folder of its own from an archive of these rows."""
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))

    def _fill(rows=shapes.ARCHIVE):
        with serving(Feed({shapes.ARCHIVE_PATH: as_text(shapes.archive(rows))})) as base:
            return fill_history(environ={"RUNCAST_PRICE_URL_GPU_PRICE_INDEX": base})

    return _fill


def test_archived_pages_fill_the_history_and_what_they_cannot_tell_is_left_out(fill, store):
    told = fill()
    assert (told.observations, told.prices, told.first, told.last) == (
        8, 6, "2023-08-24", "2026-07-12",
    )  # fmt: skip
    assert told.left_out == {
        "the GPU alone, without its host": 1,
        "a seller that is not read: 'fluidstack'": 1,
        "no price in dollars of a known kind": 1,
        "the form of the GPU is not stated": 1,
        "outside the band of believable prices": 1,
        "two prices of one place on one day": 1,
        "it has no believable shape": 1,
    }
    assert told.sentence == (
        "8 observations of 6 prices from 2023-08-24 to 2026-07-12 are in the history; 7 rows of "
        "the archive were left out."
    )
    nebius = Sku("nebius", "1x H100 SXM", "H100-80GB-SXM", 1, "*", "on_demand")
    spells = history(nebius, store=store).spells
    assert [(s.usd_per_hour, s.first_at.date().isoformat()) for s in spells] == [
        (2.95, "2026-04-02"),
        (3.85, "2026-07-12"),
    ]  # more than 92 days apart: a gap between them
    assert history(nebius).spells == ()  # without a store: what is bundled
    verda = next(s for s in known_skus(store=store) if s.instance_type == "8H100.80S.176V")
    assert (verda.provider, verda.gpu_count) == ("verda", 8)
    price = price_on(nebius, date(2026, 4, 20), store=store)
    assert (price.usd_per_hour, price.exact) == (2.95, False)


def test_the_next_fill_replaces_the_first_and_one_that_fails_replaces_nothing(fill, store):
    fill()
    before = set(known_skus(store=store, limit=10_000))
    with pytest.raises(SourceError, match="no price that can be used"):
        fill(shapes.ARCHIVE[:1])
    assert set(known_skus(store=store, limit=10_000)) == before
    assert fill(shapes.ARCHIVE[2:4]).observations == 2
    assert len(set(known_skus(store=store, limit=10_000))) < len(before)
