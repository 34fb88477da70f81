"""The loader of price snapshots: names by content, dates, and the newest price of a place."""

import shutil
from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import FactError, ScenarioError
from core.machine.offer import Offer
from pricing import offers
from pricing.bundle import Bundle, write
from pricing.offers import ANY_REGION, CHEAPEST_US, age_days, content_id, newest_per_place
from pricing.publish import write_snapshot

ROW = (
    "aws", "p5.48xlarge", "H100-80GB-SXM", 8, "us-east-1", "on_demand", 55.04, 3200.0,
    "2026-07-20", "a page", "high", "", 80.0, 192.0, None,
)  # fmt: skip
OTHER = ("gcp", *ROW[1:7], None, *ROW[8:])
OFFER = offers.make_offer(ROW)


@pytest.fixture
def folder(tmp_path):
    write(Bundle(rows=(ROW, OTHER), left_out=()), tmp_path)
    return tmp_path


def test_the_id_is_of_the_content_and_not_of_its_order():
    assert content_id([ROW, OTHER]) == content_id([OTHER, ROW])
    assert len(content_id([ROW])) == 12


@pytest.mark.parametrize("column", range(len(ROW)))
def test_a_change_of_any_value_is_another_id(column):
    changed = list(ROW)
    changed[column] = {str: "x", int: 7}.get(type(ROW[column]), 7.5)
    assert content_id([tuple(changed), OTHER]) != content_id([ROW, OTHER])


def test_a_row_more_or_twice_is_another_id():
    assert len({content_id([ROW]), content_id([ROW, ROW]), content_id([ROW, OTHER])}) == 3


def test_the_id_is_the_same_on_every_machine_and_version():
    """Written down: a change of the serialisation would orphan every link that names a price."""
    assert content_id([ROW, OTHER]) == "0e5a704cc0bf"


@pytest.mark.parametrize(
    ("column", "value"), [(6, 55), (3, 8.0), (3, True), (7, 3200), (6, None), (8, None), (0, 1)]
)
def test_a_value_that_a_file_would_give_back_as_another_one_is_not_written(tmp_path, column, value):
    """55 is read back as 55.0, whose text is another one: the file would not be of its name."""
    row = (*ROW[:column], value, *ROW[column + 1 :])
    name = list(offers.COLUMNS)[column]
    with pytest.raises(FactError, match=f"{name} is .*, not an? (str|int|float)"):
        write_snapshot([OTHER, row], tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_was_written_is_read_back(folder):
    snapshot = offers.snapshot(folder=folder)
    assert snapshot.id == content_id([ROW, OTHER]) == offers.installed_id(folder=folder)
    assert set(snapshot.offers) == {OFFER, offers.make_offer(OTHER)}
    assert snapshot.newest == snapshot.oldest == "2026-07-20"
    assert offers.snapshot("", folder=folder) is offers.snapshot(snapshot.id, folder=folder)


def test_another_price_is_another_snapshot_and_the_old_one_stays(folder):
    old = offers.installed_id(folder=folder)
    new = write(Bundle(rows=(ROW, (*OTHER[:6], 56.0, *OTHER[7:])), left_out=()), folder)
    assert offers.snapshot_ids(folder=folder) == sorted([old, new])
    assert offers.snapshot(folder=folder).id == new
    assert {o.usd_per_hour for o in offers.snapshot(old, folder=folder).offers} == {55.04}


def test_a_file_whose_content_is_not_its_name_is_refused(folder):
    """The prices of one snapshot under the name of another: readable, and wrong."""
    true = offers.installed_id(folder=folder)
    false = write(Bundle(rows=(ROW,), left_out=()), folder)
    for end in ("parquet", "sha256"):
        shutil.copy(folder / f"{true}.{end}", folder / f"{false}.{end}")
    with pytest.raises(FactError, match=rf"{false}\.parquet was changed.*{true}"):
        offers.snapshot(false, folder=folder)


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"not parquet at all" * 100])
def test_a_broken_file_is_a_sentence(folder, damage):
    broken = folder / f"{offers.installed_id(folder=folder)}.parquet"
    broken.write_bytes(damage)
    with pytest.raises(FactError, match=broken.name):
        offers.snapshot(folder=folder)


def test_every_truncation_is_refused(folder):
    path = folder / f"{offers.installed_id(folder=folder)}.parquet"
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(FactError):
            offers.read_rows(path)


def test_damage_within_a_file_is_a_sentence_and_nothing_on_the_terminal(folder, capfd):
    """Rust would panic over most of these bytes, and end the process over some."""
    path = folder / f"{offers.installed_id(folder=folder)}.parquet"
    whole = path.read_bytes()
    for at in range(4, len(whole) - 4, 41):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with pytest.raises(FactError, match="cannot be read, it is not what was written"):
            offers.read_rows(path)
    assert capfd.readouterr() == ("", "")


def test_a_snapshot_of_an_older_version_has_no_hash_and_is_read(folder):
    path = folder / f"{offers.installed_id(folder=folder)}.parquet"
    path.with_suffix(".sha256").unlink()
    assert len(offers.read_rows(path)) == 2


def test_a_table_of_something_else_is_refused(folder):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "0123456789ab.parquet"
    pq.write_table(pa.table({"price": [1.0]}), path)
    with pytest.raises(FactError, match="columns"):
        offers.snapshot("0123456789ab", folder=folder)


@pytest.mark.parametrize("unknown", ["000000000000", "../core/offer", "current", "A" * 64])
def test_an_unknown_id_names_what_exists(folder, unknown):
    with pytest.raises(ScenarioError) as e:
        offers.snapshot(unknown, folder=folder)
    assert offers.installed_id(folder=folder) in str(e.value)


def test_without_snapshots_the_sentence_says_so(tmp_path):
    with pytest.raises(ScenarioError, match="none is installed"):
        offers.snapshot("000000000000", folder=tmp_path)
    with pytest.raises(FactError, match="current"):
        offers.snapshot(folder=tmp_path)


@pytest.mark.parametrize("text", ["000000000000", "", "../../etc/passwd", "\xff"])
def test_a_wrong_current_file_is_refused(folder, text):
    (folder / "current").write_bytes(text.encode("latin-1"))
    with pytest.raises(FactError, match="current"):
        offers.installed_id(folder=folder)


@pytest.mark.parametrize(
    ("observed_at", "today", "days"),
    [
        ("2026-05-24", date(2026, 5, 31), 7),
        ("2026-05-24", date(2026, 5, 24), 0),
        ("2026-05-24", date(2026, 5, 1), 0),  # a clock that is behind
        ("2026-04", date(2026, 5, 31), 60),  # from 1 April
        ("2026-05", date(2026, 5, 20), 19),  # the month is not over
        ("2024-02", date(2024, 3, 1), 29),  # leap year
        ("2025", date(2026, 1, 31), 395),
        ("2026", date(2026, 11, 21), 324),  # not of today
    ],
)
def test_age(observed_at, today, days):
    assert age_days(observed_at, today) == days


@pytest.mark.parametrize(
    "text", ["", "May 2026", "2026-13", "2026-02-30", "2026-5-1", "20260524", "0000", "2026-05-24 "]
)
def test_an_age_of_no_date_is_refused(text):
    with pytest.raises(FactError, match="not an ISO day"):
        age_days(text, date(2026, 5, 31))


days = st.dates(date(2000, 1, 1), date(2100, 1, 1))


@given(seen=days, later=st.integers(0, 5000), more=st.integers(0, 5000))
def test_ages_grow_with_the_day_and_a_vaguer_date_is_never_newer(seen, later, more):
    today = seen + timedelta(days=later)
    day = age_days(seen.isoformat(), today)
    month = age_days(seen.strftime("%Y-%m"), today)
    year = age_days(seen.strftime("%Y"), today)
    assert year >= month >= day == later
    assert age_days(seen.isoformat(), today + timedelta(days=more)) == later + more


def test_the_newest_of_a_place_is_kept():
    old = replace(OFFER, observed_at="2025-10", usd_per_hour=1.0)
    assert newest_per_place([OFFER, old]) == (OFFER,)
    assert newest_per_place([old, OFFER]) == (OFFER,)


def test_another_region_purchase_or_machine_is_another_place():
    others = [
        replace(OFFER, observed_at="2025-10", **change)
        for change in (
            {"region": "us-west-2"}, {"purchase": "spot"}, {"provider": "gcp"},
            {"instance_type": "p5.4xlarge"}, {"gpu_count": 1}, {"accelerator": "L4"},
        )
    ]  # fmt: skip
    assert newest_per_place([OFFER, *others]) == (OFFER, *others)


def test_a_year_does_not_beat_a_day_of_it():
    vague = replace(OFFER, observed_at="2026")
    assert newest_per_place([OFFER, vague]) == (OFFER,)


def test_of_one_day_the_better_quality_wins_then_the_later_row():
    low = replace(OFFER, quality="low", usd_per_hour=1.0)
    again = replace(OFFER, usd_per_hour=99.0)
    assert newest_per_place([OFFER, low]) == (OFFER,)
    assert newest_per_place([OFFER, again]) == (again,)


@pytest.mark.parametrize("vague", [ANY_REGION, CHEAPEST_US])
def test_a_vague_region_gives_way_to_a_newer_named_one_only(vague):
    old = replace(OFFER, region=vague, observed_at="2025-03-07")
    new = replace(OFFER, region=vague, observed_at="2026-08-01")
    assert newest_per_place([old, OFFER]) == (OFFER,)
    assert newest_per_place([new, OFFER]) == (new, OFFER)
    assert newest_per_place([old, replace(OFFER, purchase="spot")])[0] == old


offer = st.builds(
    Offer,
    provider=st.sampled_from(["aws", "gcp"]),
    instance_type=st.sampled_from(["a", "b"]),
    accelerator=st.just("L4"),
    gpu_count=st.sampled_from([1, 8]),
    region=st.sampled_from(["us-east-1", "eu-west-1", ANY_REGION, CHEAPEST_US]),
    purchase=st.sampled_from(["on_demand", "spot"]),
    usd_per_hour=st.sampled_from([1.0, 2.0]),
    scale_out_gbit_per_s=st.none(),
    observed_at=st.sampled_from(["2025", "2025-10", "2025-10-31", "2026-01-01", "2026"]),
    source=st.just("page"),
    quality=st.sampled_from(offers.QUALITIES),
)


def place(o: Offer) -> tuple[object, ...]:
    return (o.provider, o.instance_type, o.accelerator, o.gpu_count, o.region, o.purchase)


@given(st.lists(offer, max_size=30))
def test_newest_per_place_keeps_one_of_each_place_and_loses_no_machine(found):
    kept = newest_per_place(found)
    assert len({place(o) for o in kept}) == len(kept)
    assert newest_per_place(kept) == kept
    rest = iter(found)
    assert all(o in rest for o in kept)  # in the given order
    named = {place(o) for o in found if o.region not in offers.VAGUE_REGIONS}
    assert named <= {place(o) for o in kept}
    machines = {(*place(o)[:4], o.purchase) for o in found}
    assert {(*place(o)[:4], o.purchase) for o in kept} == machines
    for o in found:
        for k in kept:
            if place(k) == place(o):
                assert offers.first_day(k.observed_at) >= offers.first_day(o.observed_at)


@given(st.lists(offer, max_size=12, unique_by=lambda o: (place(o), o.observed_at)), st.randoms())
def test_without_ties_the_order_of_the_rows_does_not_matter(found, random):
    one_day = {(place(o), offers.first_day(o.observed_at)) for o in found}
    if len(one_day) == len(found):
        shuffled = random.sample(found, len(found))
        assert set(newest_per_place(shuffled)) == set(newest_per_place(found))
