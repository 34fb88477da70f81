"""Units and written numbers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.units import DAY_S, GIB, HOUR_S, TO_SI, to_si, written_number


@pytest.mark.parametrize(
    ("value", "unit", "si"),
    [
        (989, "TFLOP/s", 9.89e14),
        (2.5, "PFLOP/s", 2.5e15),
        (80, "GB", 80e9),
        (80, "GiB", 85_899_345_920),
        (3.35, "TB/s", 3.35e12),
        (400, "Gbit/s", 50e9),
        (3.2, "Tbit/s", 400e9),
        (100, "Mbit/s", 12.5e6),
        (5, "us", 5e-6),
    ],
)
def test_printed_figures(value, unit, si):
    assert to_si(value, unit) == pytest.approx(si)


def test_a_gigabyte_is_not_a_gibibyte():
    assert to_si(80, "GiB") / to_si(80, "GB") == pytest.approx(1.0737, abs=1e-4)
    assert GIB == 1024**3
    assert DAY_S == 24 * HOUR_S == 86_400


@pytest.mark.parametrize("unit", ["gb", "Gb/s", "TFLOPS", "", "GHz"])
def test_an_unknown_unit_is_no_number(unit):
    with pytest.raises(ValueError, match="is not one of"):
        to_si(1.0, unit)
    assert unit not in TO_SI


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e12", 1e12),
        ("15T", 15e12),
        ("15t", 15e12),
        ("500B", 5e11),
        ("70b", 70e9),
        ("8k", 8e3),
        ("2,000", 2000),
        ("1_000", 1000),
        ("1.5e3", 1500),
        (".5", 0.5),
        ("5.", 5),
        (" 8192 ", 8192),
        ("2 M", 2e6),
        ("-1", -1),
        ("+3", 3),
        ("0", 0),
        ("1e-3", 1e-3),
        ("1.5T", 1.5e12),
    ],
)
def test_numbers_as_people_write_them(text, value):
    assert written_number(text) == pytest.approx(value)


@pytest.mark.parametrize(("text", "value"), [("8k", 8192), ("1M", 1 << 20), ("8192", 8192)])
def test_lengths_are_counted_in_1024s(text, value):
    assert written_number(text, binary=True) == value


@pytest.mark.parametrize(
    "text",
    ["", " ", "nan", "NaN", "inf", "-inf", "Infinity", "1e999", "-1e999", "9" * 400 + "T",
     "1e", "1e12x", "8kk", "0x10", "1 000 000", "1..2", "--1", "one", "1e1e1", "8k8", "∞", "½",
     "1" * 65, "9e307T", "\x00", "1\n2", "T", "e5", "1e9999"],
)  # fmt: skip
def test_what_is_no_number_is_refused_and_shown_short(text):
    with pytest.raises(ValueError, match="number") as e:
        written_number(text)
    assert len(str(e.value)) < 150


def test_a_length_in_billions_is_refused():
    with pytest.raises(ValueError, match="is not a number"):
        written_number("8T", binary=True)


@given(text=st.text(max_size=70))
def test_any_text_is_a_finite_number_or_refused(text):
    try:
        value = written_number(text)
    except ValueError as e:
        value = 0.0
        said = str(e)
    else:
        said = "a number"
    assert math.isfinite(value)
    assert "number" in said


@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_that_python_writes_reads_back(value):
    assert written_number(repr(value)) == value
