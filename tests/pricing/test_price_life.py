"""How long a price is believed, and which prices are weak at any age."""

import pytest

from core.errors import FactError
from pricing import price_life
from pricing.offers import snapshot
from pricing.price_life import life_days, log_sd, weak_mark


@pytest.mark.parametrize(
    ("provider", "purchase", "days"),
    [
        ("aws", "on_demand", 365), ("gcp", "reserved_3y", 365), ("aws", "capacity_block", 365),
        ("azure", "spot", 45), ("lambda", "on_demand", 90), ("nobody-knows", "on_demand", 90),
        ("nobody-knows", "spot", 45), ("vast", "on_demand", 45),
    ],
)  # fmt: skip
def test_a_price_lives_as_long_as_those_of_its_seller(provider, purchase, days):
    assert life_days(provider, purchase) == days


@pytest.mark.parametrize(
    ("provider", "instance_type", "note", "mark"),
    [
        ("verda", "(mean of listed prices)", "MEAN of 5 listed prices", "mean"),
        ("akash", "H100", 'marketplace floor, "starting at"', "floor"),
        ("spheron", "H100", "marketplace resale; with disk", "resold"),
        ("packet-ai", "packet-ai-b200-nvl-on-demand", "on-demand", "shared card"),
        ("packet-ai", "B200 bare metal", "banner of the seller", ""),
        ("aws", "p5.48xlarge", "list price", ""),
    ],
)
def test_a_mean_a_floor_a_resale_and_a_share_of_a_card_are_marked(
    provider, instance_type, note, mark
):
    assert weak_mark(provider, instance_type, note) == mark


def test_every_provider_of_a_row_has_bundled_prices_or_is_a_marketplace():
    kinds = price_life.seller_kinds()
    assert {p for p, kind in kinds.items() if kind == "hyperscaler"} <= set(snapshot().providers)
    assert set(kinds.values()) == {"hyperscaler", "marketplace"}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("365,days,255", "365,months,255", "is not a number of days"),
        ("marketplace,spot", "marketplace,committed", "is there twice"),
        ("marketplace,spot", "broker,spot", "unknown or missing: broker spot, marketplace spot"),
        ("places,2026-11-22", "places,", "names its source and its date"),
        ("kind,purchase", "kind,bought", "columns are not"),
    ],
)
def test_a_row_without_a_unit_a_pair_or_a_source_is_refused(tmp_path, old, new, says):
    table = tmp_path / "price_lives.csv"
    table.write_text(price_life.LIVES_CSV.read_text().replace(old, new, 1))
    with pytest.raises(FactError, match=says):
        price_life.lives(table)


def test_a_price_moves_with_the_root_of_its_age_and_most_at_marketplaces():
    assert log_sd("aws", "on_demand", 0) == 0
    assert log_sd("aws", "on_demand", 365.25) == pytest.approx(0.13)
    assert log_sd("lambda", "spot", 730.5) == pytest.approx(
        log_sd("lambda", "spot", 365.25) * 2**0.5
    )
    assert log_sd("vast", "on_demand", 90) > log_sd("lambda", "on_demand", 90)


def test_a_table_of_moves_without_a_kind_is_refused(tmp_path):
    table = tmp_path / "price_moves.csv"
    lines = price_life.MOVES_CSV.read_text().splitlines(keepends=True)
    table.write_text("".join(lines[:-1]))
    with pytest.raises(FactError, match="a kind is unknown or missing"):
        price_life.moves(table)
