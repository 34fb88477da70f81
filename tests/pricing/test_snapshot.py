"""The bundled snapshot, and the builder that made it.

tests/golden/price_sources.csv counts the 1,100 rows and 1,584 prices of the table of
observed prices that the snapshot was built from, by the source each row names.
"""

import csv
from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from core.errors import FactError
from pricing import bundle as builder
from pricing import offers
from pricing.bundle import PRICE_COLUMNS, SOURCE_COLUMNS, build, bundle, decisions, source_rows
from pricing.integrity import check, price_bands
from pricing.offers import SNAPSHOTS
from tests.made_up.plans import SUMMER_2026

BUILT = date(2026, 11, 23)
GOLDEN = Path(__file__).parent.parent / "golden/price_sources.csv"


@pytest.fixture(scope="module")
def all_offers():
    return offers.snapshot().offers


@pytest.fixture(scope="module")
def left_out():
    with (SNAPSHOTS / "left_out.csv").open(encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def priced(all_offers, **wanted):
    return [
        (o.region, o.usd_per_hour)
        for o in all_offers
        if all(getattr(o, name) == value for name, value in wanted.items())
    ]


# --- every observed price is accounted for ---


def test_every_source_row_and_price_is_an_offer_or_left_out_with_a_reason(all_offers, left_out):
    assert (len(all_offers), len(left_out)) == (1203, 381)
    with GOLDEN.open(encoding="utf-8", newline="") as f:
        expected = {r["source"]: int(r["prices"]) for r in csv.DictReader(f)}
    found = Counter(o.source for o in all_offers) + Counter(r["source"] for r in left_out)
    assert found == expected
    assert sum(expected.values()) == 1584

    def row(o, purchase, count):
        """What tells two source rows apart; a capacity block is a row of its own."""
        block = purchase == "capacity_block"
        return (*(o[f] for f in fields), int(count), block)

    fields = ("provider", "instance_type", "accelerator", "region", "observed_at")
    rows = {row({f: getattr(o, f) for f in fields}, o.purchase, o.gpu_count) for o in all_offers}
    rows |= {row(r, r["purchase"], r["gpu_count"]) for r in left_out}
    assert len(rows) == 1100
    assert all(r["reason"] and r["snapshot"] == offers.installed_id() for r in left_out)


def test_the_snapshot_that_older_links_name_stays():
    assert len(offers.snapshot(SUMMER_2026).offers) == 1225


def test_the_snapshot_is_small_opens_and_hashes_to_its_name(all_offers):
    path = SNAPSHOTS / f"{offers.installed_id()}.parquet"
    assert path.stat().st_size < 100_000
    assert offers.content_id(offers.read_rows(path)) == path.stem
    assert offers.snapshot() is offers.snapshot(path.stem)
    assert (offers.snapshot().oldest, offers.snapshot().newest) == ("2024-12", "2026-11-09")
    assert len({o.provider for o in all_offers}) == 43


def test_the_bundled_prices_pass_their_own_checks(all_offers):
    found = check(all_offers, bands=price_bands(), today=BUILT)
    assert [f.sentence for f in found if f.severity == "refuse"] == []
    # Looked at one by one: spot V100s of Verda and an L4 of a marketplace host.
    assert Counter((f.rule, f.offer.accelerator) for f in found) == {
        ("outlier", "V100-16GB"): 1,
        ("outlier", "L4"): 1,
    }


# --- known prices, read off the sources ---


def test_known_prices(all_offers):
    p5 = priced(
        all_offers, provider="aws", instance_type="p5.48xlarge", purchase="on_demand",
        observed_at="2026-07-20",
    )  # fmt: skip
    assert p5 == [("us-east-1", 55.04)]
    lambda_8x = priced(all_offers, provider="lambda", instance_type="gpu_8x_h100_sxm5")
    assert lambda_8x == [("*", 31.92)]
    a3 = {
        o.purchase: o.usd_per_hour
        for o in all_offers
        if (o.instance_type, o.region) == ("a3-megagpu-8g", "us-east4")
    }
    assert a3 == {
        "on_demand": 92.9376,
        "spot": 23.2752,
        "reserved_1y": 63.9434,
        "reserved_3y": 40.4867,
    }


def test_capacity_blocks_are_a_way_to_buy_from_aws(all_offers):
    assert not [o for o in all_offers if "block" in o.provider]
    blocks = [o for o in all_offers if o.purchase == "capacity_block"]
    assert {o.provider for o in blocks} == {"aws"}
    assert sorted((o.instance_type, o.region, o.usd_per_hour) for o in blocks) == [
        ("p4d.24xlarge", "us-east-2", 14.75),
        ("p4d.24xlarge", "us-west-2", 14.75),
        ("p5.48xlarge", "us-east-1", 39.33),
        ("p5.48xlarge", "us-east-2", 39.33),
        ("p5e.48xlarge", "us-east-2", 43.26),
        ("trn1.32xlarge", "ap-southeast-4", 15.49),
    ]


# --- the builder ---

BLANK = dict.fromkeys(SOURCE_COLUMNS, "")
P5 = BLANK | {
    "provider": "aws", "instance_type": "p5.48xlarge", "accelerator": "H100-80GB-SXM",
    "gpu_count": "8", "region": "us-east-1", "interconnect_gbps": "3200.0",
    "price_usd_per_hour_instance": "55.04", "as_of": "2026-07-20", "source": "page",
    "notes": "list price", "quality": "high",
}  # fmt: skip


def table(*rows):
    lines = [",".join(SOURCE_COLUMNS), *(",".join(r[c] for c in SOURCE_COLUMNS) for r in rows)]
    return "\n".join(lines) + "\n"


def test_a_row_with_four_prices_is_four_offers():
    four = P5 | {c: str(40 + i) for i, c in enumerate(PRICE_COLUMNS)}
    found = bundle(source_rows(table(four))).offers
    assert {o.purchase: o.usd_per_hour for o in found} == {
        "on_demand": 40.0,
        "spot": 41.0,
        "reserved_1y": 42.0,
        "reserved_3y": 43.0,
    }
    assert {(o.scale_out_gbit_per_s, o.note, o.gpu_count) for o in found} == {
        (3200.0, "list price", 8)
    }


def test_the_order_of_the_source_rows_does_not_change_the_snapshot():
    rows = source_rows(table(P5, P5 | {"region": "us-west-2"}))
    assert bundle(rows).rows == bundle(rows[::-1]).rows


def test_a_row_without_a_price_and_a_bid_are_left_out():
    rows = [P5 | {"price_usd_per_hour_instance": ""}, P5 | {"notes": "min_bid of the machine"}]
    built = bundle(source_rows(table(*rows)))
    assert built.rows == ()
    assert [(x.source_row, x.purchase) for x in built.left_out] == [(2, ""), (3, "on_demand")]


def test_a_capacity_block_is_a_purchase_and_has_one_price():
    block = P5 | {"provider": "aws-capacity-block"}
    (found,) = bundle(source_rows(table(block))).offers
    assert (found.provider, found.purchase) == ("aws", "capacity_block")
    with pytest.raises(FactError, match="one price"):
        bundle(source_rows(table(block | {"spot_usd_per_hour_instance": "20"})))


def test_the_cheapest_us_region_is_one_word_and_blanks_are_unknown():
    row = P5 | {"region": "(cheapest US unless said)", "interconnect_gbps": ""}
    (found,) = bundle(source_rows(table(row))).offers
    assert (found.region, found.scale_out_gbit_per_s) == ("us-cheapest", None)


def test_azure_names_are_the_ones_its_price_lists_print():
    row = P5 | {"provider": "azure", "instance_type": "ND96amsr A100 v4"}
    assert bundle(source_rows(table(row))).offers[0].instance_type == "Standard_ND96amsr_A100_v4"


DECISION = ",".join(builder.DECISION_COLUMNS) + "\n"


@pytest.mark.parametrize(
    ("decision", "accelerator", "note"),
    [
        ("aws,p5.*,*,*,*,*,accelerator,L4,because", "L4", "because"),
        ("aws,p5.*,*,*,on_demand,2026-*,note,RAM on top,page", "H100-80GB-SXM", "RAM on top"),
    ],
)
def test_a_decision_changes_the_offer_and_says_so(decision, accelerator, note):
    (found,) = bundle(source_rows(table(P5)), decisions(DECISION + decision)).offers
    assert found.accelerator == accelerator
    assert found.note.startswith("list price; ")
    assert note in found.note


def test_a_decision_about_one_price_leaves_the_others():
    both = P5 | {"spot_usd_per_hour_instance": "20"}
    built = bundle(
        source_rows(table(both)), decisions(DECISION + "aws,*,*,*,spot,*,leave_out,,because")
    )
    assert [o.purchase for o in built.offers] == ["on_demand"]
    assert [(x.purchase, x.usd_per_hour, x.reason) for x in built.left_out] == [
        ("spot", "20", "because")
    ]


def test_a_decision_about_nothing_is_an_error():
    with pytest.raises(FactError, match="not there: gcp"):
        bundle(source_rows(table(P5)), decisions(DECISION + "gcp,*,*,*,*,*,leave_out,,because"))


@pytest.mark.parametrize(
    "decision",
    ["a,*,*,*,*,*,delete,,why", "a,*,*,*,*,*,leave_out,,", "a,*,*,*,*,*,note,,why", "a,b"],
)
def test_a_decision_that_cannot_be_read_is_refused(decision):
    with pytest.raises(FactError, match=r"row_decisions\.csv:2"):
        decisions(DECISION + decision)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the columns must be"),
        ("a,b\n1,2\n", "the columns must be"),
        (table(P5) + "aws,short\n", ":3: not 17 cells"),
        (table(P5 | {"notes": '"unclosed'}), "unexpected end of data"),
        (table(P5 | {"notes": '"two\nlines"'}), ":2: not 17 cells"),
    ],
)
def test_a_table_that_is_none_is_refused(text, says):
    with pytest.raises(FactError, match=says):
        source_rows(text)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("price_usd_per_hour_instance", "cheap"),
        ("price_usd_per_hour_instance", "nan"),
        ("gpu_count", "1.5"),
        ("gpu_count", ""),
        ("gpu_count", "9" * 400),
        ("interconnect_gbps", "fast"),
        ("vcpus", "20-26"),
    ],
)
def test_a_cell_that_is_no_number_names_line_and_column(column, value):
    with pytest.raises(FactError, match=r"Line 2 of the prices"):
        bundle(source_rows(table(P5 | {column: value})))


def test_a_refused_price_stops_the_build_and_writes_nothing(tmp_path, monkeypatch):
    empty = tmp_path / "row_decisions.csv"
    empty.write_text(DECISION)
    monkeypatch.setattr(builder, "DECISIONS_CSV", empty)
    prices = tmp_path / "prices.csv"
    prices.write_text(table(P5 | {"price_usd_per_hour_instance": "40179.2"}))  # a month
    out = tmp_path / "snapshots"
    with pytest.raises(FactError, match=r"p5\.48xlarge.*outside"):
        build(prices, out, today=BUILT)
    assert not out.exists()
    prices.write_text(table(P5))
    snapshot_id, _, found = build(prices, out, today=BUILT)
    assert offers.snapshot(folder=out).id == snapshot_id
    assert found == []


def test_the_command_line_says_what_is_wrong(tmp_path, capsys):
    assert builder.main([str(tmp_path / "none.csv"), "--out", str(tmp_path)]) == 2
    (tmp_path / "bad.csv").write_text("a,b\n")
    assert builder.main([str(tmp_path / "bad.csv"), "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "none.csv" in said
    assert "the columns must be" in said
    assert "Traceback" not in said
