"""Price books: rows, mistakes, hostile files, storage, and what they do to list prices."""

import json
import math
from dataclasses import replace
from datetime import date
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.prices.book_file import read_book
from core.errors import FactError, RuncastError, ScenarioError
from core.money.owned import owned_usd_per_gpu_hour
from pricing.book.files import book_names, books_folder, has_book, load_book, remove_book, save_book
from pricing.book.offers import OWN, booked, is_booked, terms_of
from pricing.book.rows import COLUMNS, MAX_ROWS, PriceBookError
from pricing.disk import prices_folder
from tests.made_up import plans as made_up

TODAY = date(2026, 11, 21)
OWNED = {
    "kind": "owned", "name": "cellar", "accelerator": "H100-80GB-SXM", "num_gpus": "64",
    "gpus_per_node": "8", "capex_usd": "2,400,000", "depreciation_years": "5", "power_kw": "90",
    "pue": "1.3", "usd_per_kwh": "0.12", "staff_usd_per_year": "200k", "utilisation": "70%",
}  # fmt: skip
RATE = {"kind": "rate", "provider": "aws", "accelerator": "h100", "usd_per_gpu_hour": "2.40"}
LISTED = made_up.offer(observed_at="2026-08-01", source="AWS price list")
SPOT = replace(LISTED, purchase="spot", usd_per_hour=20.0)
ELSEWHERE = replace(LISTED, provider="gcp", instance_type="a3-highgpu-8g", region="us-central1")
ALL = [LISTED, SPOT, ELSEWHERE]


def csv_of(*rows):
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [",".join(columns)]
    lines += [",".join(f'"{row.get(c, "")}"' for c in columns) for row in rows]
    return ("\n".join(lines) + "\n").encode()


def yaml_of(*rows):
    return "".join(
        "".join(f"{'- ' if i == 0 else '  '}{k}: '{v}'\n" for i, (k, v) in enumerate(row.items()))
        for row in rows
    ).encode()


def book(*rows, name="acme", as_yaml=False):
    content = yaml_of(*rows) if as_yaml else csv_of(*rows)
    file_name = "book.yaml" if as_yaml else "book.csv"
    return read_book(content, file_name=file_name, name=name, today=TODAY)


def priced(*rows, offers=ALL, today=TODAY):
    """USD per hour by (provider, purchase), of what the book changed or made."""
    found = booked(book(*rows), offers, today)
    return {(o.provider, o.purchase): o.usd_per_hour for o in found.offers if is_booked(o)}


# --- what a row says -----------------------------------------------------------------------------


def test_a_rate_in_dollars_is_of_each_gpu_of_the_machines_it_names():
    assert priced(RATE) == {("aws", "on_demand"): pytest.approx(8 * 2.40)}


def test_a_discount_is_off_the_list_price_and_keeps_its_day():
    row = {"kind": "rate", "provider": "aws", "purchase": "*", "discount": "30%"}
    found = [o for o in booked(book(row), ALL, TODAY).offers if is_booked(o)]
    assert [o.usd_per_hour for o in found] == pytest.approx([0.7 * 55.04, 0.7 * 20])
    assert {o.observed_at for o in found} == {LISTED.observed_at}
    assert "30% off the on_demand list price of 55.04 USD/h (AWS price list)" in found[0].note


def test_what_no_row_is_about_stays_as_listed():
    found = booked(book(RATE), ALL, TODAY)
    assert found.offers[1:] == (SPOT, ELSEWHERE)


def test_a_rate_of_an_instance_on_no_list_becomes_an_offer_of_its_own():
    row = {
        "kind": "rate", "provider": "coreweave", "instance_type": "gd-8xh100", "gpu_count": "8",
        "accelerator": "H100-80GB-SXM", "usd_per_hour": "17.60", "scale_out_gbit_per_s": "3200",
    }  # fmt: skip
    [made] = [o for o in booked(book(row), ALL, TODAY).offers if is_booked(o)]
    assert (made.usd_per_hour, made.gpu_count, made.scale_out_gbit_per_s) == (17.60, 8, 3200)
    assert (made.source, made.observed_at) == ("price book acme", "2026-11-21")


def test_a_commitment_is_off_the_on_demand_list_price():
    row = {"kind": "commitment", "provider": "aws", "purchase": "reserved_1y", "discount": "0.4"}
    assert priced(row) == {("aws", "reserved_1y"): pytest.approx(0.6 * 55.04)}


def test_a_later_row_wins():
    assert priced(RATE, {**RATE, "usd_per_gpu_hour": "2.10"}) == {
        ("aws", "on_demand"): pytest.approx(16.8)
    }


def test_an_owned_gpu_hour_is_depreciation_power_and_staff_over_the_hours_used():
    # By hand: 480,000 + 90*1.3*0.12*8760 = 122,990.40 + 200,000 USD a year over 64*8760*0.7 h.
    by_hand = (480_000 + 122_990.4 + 200_000) / (64 * 8760 * 0.7)
    assert priced(OWNED) == {(OWN, "owned"): pytest.approx(8 * by_hand)}
    assert by_hand == pytest.approx(2.0461, abs=1e-4)


def test_an_idle_cluster_costs_as_much_a_year():
    given = {
        "num_gpus": 8.0, "capex_usd": 3e5, "residual_fraction": 0.1, "depreciation_years": 4.0,
        "power_kw": 10.0, "pue": 1.2, "usd_per_kwh": 0.1, "staff_usd_per_year": 1e4,
        "other_usd_per_year": 5e3,
    }  # fmt: skip
    half, full = (owned_usd_per_gpu_hour(**given, utilisation=u) for u in (0.5, 1.0))
    assert half == pytest.approx(2 * full)


def test_rows_count_on_their_days_alone():
    row = {**RATE, "valid_from": "2026-11-01", "valid_to": "2026-11-30"}
    days = (date(2026, 10, 31), date(2026, 11, 1), date(2026, 11, 30), date(2026, 12, 1))
    assert [bool(priced(row, today=d)) for d in days] == [False, True, True, False]


def test_a_row_that_is_about_nothing_is_told():
    assert booked(book({**RATE, "provider": "nobody"}, RATE), ALL, TODAY).idle_lines == (2,)


def test_storage_traffic_and_credits_add_up_and_stay_with_their_provider():
    rows = [
        {"kind": "storage", "provider": "aws", "usd_per_gb_month": "0.0365", "data_gb": "2000"},
        {"kind": "storage", "usd_per_gb_month": "0.073", "checkpoints": "4"},
        {"kind": "egress", "provider": "aws", "usd_per_gb": "0.09", "checkpoints": "2"},
        {"kind": "credit", "provider": "aws", "usd": "50k"},
        {"kind": "credit", "usd": "1000"},
    ]
    at_aws = terms_of(book(*rows), "aws", "us-east-1", TODAY, checkpoint_bytes=100e9)
    assert at_aws.checkpoint_usd_per_hour + at_aws.data_usd_per_hour == pytest.approx(
        (0.0365 * 2000 + 0.073 * 400) / 730
    )
    assert (at_aws.egress_usd, at_aws.credit_usd) == (pytest.approx(0.09 * 200), 51_000)
    at_gcp = terms_of(book(*rows), "gcp", "us-central1", TODAY, checkpoint_bytes=100e9)
    assert (at_gcp.egress_usd, at_gcp.credit_usd) == (0, 1000)
    assert terms_of(book(*rows), OWN, "*", TODAY, checkpoint_bytes=1.0).credit_usd == 0


def test_csv_and_yaml_say_the_same():
    rows = (RATE, OWNED, {"kind": "credit", "usd": "5"})
    as_csv, as_yaml = book(*rows).rows, book(*rows, as_yaml=True).rows
    assert [r.model_dump(exclude={"line"}) for r in as_csv] == [
        r.model_dump(exclude={"line"}) for r in as_yaml
    ]


# --- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"kind": "rates"}, "'rates' is not one of rate, commitment, owned"),
        ({**RATE, "usd_per_gpu_hour": "-2"}, "usd_per_gpu_hour '-2' is not a number"),
        ({**RATE, "usd_per_gpu_hour": "0"}, "should be greater than 0"),
        ({**RATE, "usd_per_gpu_hour": "NaN"}, "'NaN' is not a number"),
        ({**RATE, "usd_per_gpu_hour": "inf"}, "'inf' is not a number"),
        ({**RATE, "usd_per_gpu_hour": "1e999"}, "'1e999' is not a number"),
        ({**RATE, "usd_per_gpu_hour": "2,40"}, "'2,40' is not a number like 2.10"),
        ({**RATE, "usd_per_gpu_hour": "$2.40"}, "no currency sign"),
        ({**RATE, "usd_per_gpu_hour": "=1+1"}, "'=1+1' is not a number"),
        ({**RATE, "usd_per_gpu_hour": "1752"}, "not believable (0.74 to 36 are): a month"),
        ({**RATE, "accelerator": "h1000"}, "accelerator 'h1000'"),
        ({**RATE, "accelerator": "*"}, "names its accelerator"),
        ({**RATE, "provider": "=cmd()"}, "is not plain text"),
        ({**RATE, "provider": "a~b"}, "is not plain text"),
        ({**RATE, "provider": "../../etc"}, "is not plain text"),
        ({**RATE, "note": "=HYPERLINK(1)"}, "starts like a formula"),
        ({**RATE, "note": "x" * 300}, "at most 200"),
        ({**RATE, "currency": "EUR"}, "currency 'EUR': a price book is in USD"),
        ({**RATE, "valid_to": "1700000000"}, "is not a day like 2026-11-21"),
        ({**RATE, "valid_to": "2026-02-30"}, "valid_to '2026-02-30'"),
        ({**RATE, "valid_from": "2026-02-02", "valid_to": "2026-02-01"}, "lies after valid_to"),
        ({**RATE, "discount": "0.3"}, "one of discount, usd_per_gpu_hour and usd_per_hour"),
        ({**RATE, "purchase": "owned"}, "what is owned is a row 'owned'"),
        ({**RATE, "capex_usd": "5"}, "a row 'rate' has no column 'capex_usd'"),
        ({"kind": "rate", "provider": "aws", "discount": "130%"}, "should be less than 1"),
        ({"kind": "rate", "discount": "30%"}, "a row 'rate' needs provider"),
        ({"kind": "commitment", "provider": "aws", "purchase": "spot", "discount": "1%"},
         "purchase 'spot' should be 'reserved_1y'"),
        ({**OWNED, "utilisation": "0"}, "utilisation '0' should be greater than 0"),
        ({**OWNED, "pue": "0.8"}, "should be greater than or equal to 1"),
        ({**OWNED, "gpus_per_node": "7"}, "64 GPUs are no whole nodes of 7"),
        ({**OWNED, "num_gpus": "6.5"}, "num_gpus '6.5'"),
        ({**OWNED, "name": "*"}, "has a name"),
        ({k: v for k, v in OWNED.items() if k != "pue"}, "a row 'owned' needs pue"),
        ({"kind": "credit", "usd": "9e12"}, "should be less than or equal to"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("as_yaml", [False, True])
def test_a_bad_row_is_named_with_its_line_and_the_reason(row, says, as_yaml):
    with pytest.raises(PriceBookError) as e:
        book({"kind": "credit", "usd": "5"}, row, as_yaml=as_yaml)
    assert says in str(e.value)
    assert str(e.value).startswith("Line 3:")


def test_every_bad_row_is_named_and_none_is_kept():
    bad = {**RATE, "usd_per_gpu_hour": "x"}
    with pytest.raises(PriceBookError) as e:
        book(RATE, bad, RATE, bad)
    assert [m.split(":")[0] for m in e.value.mistakes] == ["Line 3", "Line 5"]
    assert book_names() == []


@pytest.mark.parametrize(
    ("content", "file_name", "says"),
    [
        (b"", "b.csv", "no column 'kind'"),
        (b"", "b.yaml", "has no rows"),
        (b"kind\n", "b.csv", "no rows"),
        (b"kind,pric\nrate,1\n", "b.csv", "'pric' is no column of a price book"),
        (b"kind,usd\ncredit,1,2\n", "b.csv", "Line 2: The row has 3 cells"),
        (b"kind,kind\na,b\n", "b.csv", "twice"),
        (b"x" * 70_000, "b.csv", "larger"),
        (b"- kind: " + b"x" * 70_000, "b.yaml", "larger"),
        (b"\xff\xfe\x00", "b.csv", "UTF-8"),
        (b"\xff\xfe\x00", "b.yaml", "not text"),
        (b"kind,usd\ncredit,5\n", "b.xlsx", "not one of .csv"),
        (b"kind: credit\n", "b.yaml", "not of the form"),
        (b"- [a, b]\n", "b.yaml", "not of the form"),
        (b"- kind: {a: b}\n", "b.yaml", "not of the form"),
        (b"- kind: credit\n  kind: rate\n", "b.yaml", "gives 'kind' twice"),
        (b"- kind: credit\n  line: 5\n  usd: 5\n", "b.yaml", "'line' is no column"),
        (b"just text", "b.yaml", "not of the form"),
        (b"- &a {kind: credit}\n- *a\n", "b.yaml", "anchor"),
        (b"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", "b.yaml", "not of the form"),
        (b"- !!python/object/apply:os.system {kind: credit}\n", "b.yaml", "tag"),
        (b"- kind: credit\n---\n- kind: credit\n", "b.yaml", "second document"),
        (b"- kind: [\n", "b.yaml", "not of the form"),
        (b"- kind: 'open\n", "b.yaml", "is not YAML"),
        (b"[" * 60_000, "b.yaml", "not of the form"),
        (b"- kind: credit\n" * (MAX_ROWS + 1), "b.yaml", "at most 500 rows"),
    ],
)
def test_a_hostile_file_is_one_sentence(content, file_name, says):
    with pytest.raises(RuncastError) as e:
        read_book(content, file_name=file_name, name="acme", today=TODAY)
    assert says in str(e.value)


@given(st.binary(max_size=300), st.sampled_from(["b.csv", "b.yaml"]))
def test_any_bytes_are_a_book_or_a_sentence(content, file_name):
    try:
        found = read_book(content, file_name=file_name, name="acme", today=TODAY)
    except RuncastError:
        found = None
    assert found is None or found.rows


@given(st.dictionaries(st.sampled_from(COLUMNS), st.text(max_size=30), max_size=8))
def test_any_row_is_finite_or_a_sentence(cells):
    row = {"kind": "credit", "usd": "5"} | {k: v for k, v in cells.items() if '"' not in v}
    try:
        found = book(row)
    except RuncastError:
        return
    prices = [o.usd_per_hour for o in booked(found, ALL, TODAY).offers]
    assert all(math.isfinite(p) and p > 0 for p in prices)


# --- kept on the server --------------------------------------------------------------------------


def test_a_book_is_read_back_as_it_was(tmp_path):
    kept = book(RATE, OWNED, {"kind": "rate", "provider": "aws", "discount": "33.3%"})
    save_book(kept, folder=tmp_path)
    found = load_book("acme", folder=tmp_path)
    assert (found, found.id) == (kept, kept.id)
    assert book_names(folder=tmp_path) == ["acme"]


def test_a_book_is_readable_by_its_owner_alone():
    save_book(book(RATE))
    path = books_folder() / "acme.json"
    assert path.stat().st_mode & 0o077 == 0
    assert books_folder() == prices_folder().parent / "price_books"
    remove_book("acme")
    assert not path.exists()


def test_adding_a_book_again_replaces_it_whole(tmp_path):
    for rows in ((RATE, OWNED), (OWNED,)):
        save_book(book(*rows), folder=tmp_path)
    assert len(load_book("acme", folder=tmp_path).rows) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["acme.json"]


def test_a_book_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    save_book(book(RATE), folder=tmp_path)
    full = OSError(28, "No space left on device")
    monkeypatch.setattr("pricing.disk.os.fsync", Mock(side_effect=full))
    with pytest.raises(OSError, match="No space"):
        save_book(book(OWNED), folder=tmp_path)
    assert load_book("acme", folder=tmp_path) == book(RATE)
    assert [p.name for p in tmp_path.iterdir()] == ["acme.json"]


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", "/etc/passwd", "a\0b", "A", "-a", "a-", "x" * 41, "é", "a.json",
     "a b"],
)  # fmt: skip
def test_a_name_leads_nowhere_else(name, tmp_path):
    assert not has_book(name, folder=tmp_path)
    for act in (load_book, remove_book):
        with pytest.raises(ScenarioError, match="is no name of a price book"):
            act(name, folder=tmp_path)
    with pytest.raises(ScenarioError, match="is no name of a price book"):
        book(RATE, name=name)
    with pytest.raises(ScenarioError, match="is no name of a price book"):
        save_book(replace(book(RATE), name=name), folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_book_is_a_sentence(tmp_path):
    with pytest.raises(ScenarioError, match="this server has none"):
        load_book("acme", folder=tmp_path)
    save_book(book(RATE), folder=tmp_path)
    with pytest.raises(ScenarioError, match="Did you mean 'acme'"):
        load_book("acne", folder=tmp_path)


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", "null", '{"added_on": "2026-11-21", "rows": [{"line": 2}]}', "\xff"]
)
def test_a_damaged_book_says_so_and_can_be_removed(tmp_path, content):
    (tmp_path / "acme.json").write_text(content)
    with pytest.raises(FactError, match="'acme' is damaged"):
        load_book("acme", folder=tmp_path)
    remove_book("acme", folder=tmp_path)
    assert book_names(folder=tmp_path) == []


def test_a_book_that_may_not_be_read_is_a_sentence(tmp_path, monkeypatch):
    save_book(book(RATE), folder=tmp_path)
    refused = PermissionError(13, "Permission denied")
    monkeypatch.setattr("pathlib.Path.open", Mock(side_effect=refused))
    with pytest.raises(FactError, match="'acme' cannot be read: Permission denied"):
        load_book("acme", folder=tmp_path)


def test_what_is_kept_is_what_was_said(tmp_path):
    save_book(book(RATE), folder=tmp_path)
    [row] = json.loads((tmp_path / "acme.json").read_text())["rows"]
    assert row == {
        "kind": "rate", "line": 2, "provider": "aws", "accelerator": "H100-80GB-SXM",
        "usd_per_gpu_hour": 2.4,
    }  # fmt: skip
