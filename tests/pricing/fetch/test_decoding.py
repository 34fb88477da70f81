"""Bytes of a feed into text, rows and values, in whatever pieces they arrive."""

import gzip
import json
from itertools import pairwise
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import FactError
from hardware.outside.packed import PIECE_BYTES
from pricing import offers as snapshots
from pricing.disk import prices_folder
from pricing.fetch.addresses import bare, http_date, own_place, parts_of
from pricing.fetch.decoding import csv_rows, inflated, lines, strict_json, zip_member
from pricing.fetch.network import SourceError
from tests.feeds.shapes import gpuhunt_zip


def pieces(data, cuts):
    """The bytes, cut at these places."""
    places = [0, *sorted(c % (len(data) + 1) for c in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(places)]


CUTS = st.lists(st.integers(0, 10_000), max_size=6)


@given(st.lists(st.binary(max_size=3000), min_size=1, max_size=3), CUTS)
def test_gzip_comes_out_as_it_went_in_member_after_member(members, cuts):
    packed = b"".join(map(gzip.compress, members))
    assert b"".join(inflated(pieces(packed, cuts), "gzip", 10_000)) == b"".join(members)


@given(st.integers(0, 200_000), st.integers(0, 100_000))
def test_no_more_than_the_cap_comes_out(size, cap):
    packed = gzip.compress(b"\0" * size)
    out = 0
    try:
        for piece in inflated([packed], "gzip", cap):
            out += len(piece)
    except SourceError:
        assert size > cap
    else:
        assert out == size <= cap
    assert out <= cap


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"))), CUTS)
def test_lines_are_the_same_however_they_arrive(wanted, cuts):
    whole = [line for line in wanted if not line.startswith("\ufeff")]
    data = "".join(line + "\n" for line in whole).encode()
    assert list(lines(pieces(data, cuts))) == whole


def test_a_line_without_end_is_refused():
    with pytest.raises(SourceError, match="longer than 1 MB"):
        list(lines([b"x" * 500_000] * 3))


@given(st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
))  # fmt: skip
def test_plain_json_is_read_as_python_reads_it(value):
    if isinstance(value, str) and value.lstrip().lower().startswith("<"):
        value = ""
    assert strict_json(json.dumps(value).encode()) == value


@given(st.binary(max_size=200))
def test_whatever_the_bytes_json_is_a_value_or_a_sentence(data):
    said = "."
    try:
        strict_json(data)
    except SourceError as e:
        said = str(e)
    assert said.endswith(".")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b\n1\n", "Line 2 of the CSV has 1 cells"),
        ("a,b,b\n1,2,3\n", "the column 'b' twice"),
        ("a,c\n1,2\n", "has no column b"),
        ('a,b\n1,"2\n', "unexpected end of data"),
        ("", "has no column a"),
    ],
)
def test_a_table_that_is_none_is_refused(text, says):
    with pytest.raises(SourceError, match=says):
        list(csv_rows(text.splitlines(keepends=True), ("a", "b")))


def test_a_zip_of_other_things_is_refused():
    good = gpuhunt_zip("aws", [])
    assert zip_member(good, "aws.csv", 1000).startswith(b"instance_name")
    for data, suffix, cap, says in (
        (good, "gcp.csv", 1000, "with 0 files"),
        (good, "aws.csv", 10, "larger than"),
        (good[:-30], "aws.csv", 1000, "is a damaged zip"),
        (b"", "aws.csv", 1000, "is a damaged zip"),
    ):
        with pytest.raises(SourceError, match=says):
            zip_member(data, suffix, cap)


def test_an_address_is_shown_without_what_may_be_a_key():
    assert bare("https://me:s3cret@host.example/a?key=s3cret#s3cret") == "https://host.example/a"
    assert own_place("http://mirror.example") == {("mirror.example", 80)}
    assert own_place("") == frozenset()
    with pytest.raises(SourceError, match="is not an address"):
        parts_of("http://host:99999999/")


@pytest.mark.parametrize("text", [None, "", "soon", "Sat, 99 Nov 2026 20:29:48 GMT"])
def test_a_date_that_is_none_is_none(text):
    assert http_date(text) is None


def test_a_date_without_a_zone_is_utc():
    assert http_date("Sat, 21 Nov 2026 20:29:48 -0000").isoformat() == "2026-11-21T20:29:48+00:00"


def test_the_folder_of_prices_is_where_the_variable_says(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))
    assert prices_folder() == tmp_path / "prices"
    monkeypatch.setenv("RUNCAST_DATA_DIR", " ")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert prices_folder() == tmp_path / "data/runcast/prices"


def test_a_folder_that_cannot_be_is_a_sentence(monkeypatch):
    monkeypatch.setenv("RUNCAST_DATA_DIR", "~nobody-of-that-name/x")
    with pytest.raises(FactError, match="RUNCAST_DATA_DIR is '~nobody"):
        prices_folder()


def test_a_data_folder_that_may_not_be_seen_leaves_the_bundled_prices(monkeypatch, tmp_path):
    bundled = snapshots.installed_id(folder=snapshots.SNAPSHOTS)
    (tmp_path / "prices").write_text("a file where a folder should be")
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))
    assert snapshots.installed_id() == snapshots.snapshot().id == bundled
    refused = PermissionError(13, "Permission denied")
    monkeypatch.setattr("os.stat", Mock(side_effect=refused))
    assert snapshots._is_file(tmp_path) is False


def test_pieces_are_bounded():
    packed = gzip.compress(b"\0" * 5_000_000)
    assert max(map(len, inflated([packed], "gzip", 10**9))) <= PIECE_BYTES
