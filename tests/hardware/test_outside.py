"""The reader of outside bytes takes what the standard library takes, within its bounds."""

from __future__ import annotations

import contextlib
import gzip
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardware.outside.json_text import Bounds, OutsideError, json_value
from hardware.outside.packed import unpacked
from hardware.outside.text import control_in, escaped_json, plain

WIDE = Bounds(num_bytes=10**6, values=10**5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)  # fmt: skip


@given(VALUES)
def test_a_json_value_is_the_one_of_the_standard_library(value):
    assert json_value(json.dumps(value), WIDE) == value
    assert json_value(json.dumps(value, ensure_ascii=False).encode("utf-8", "ignore"), WIDE) == (
        json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "ignore"))
    )


@given(st.text() | st.binary())
def test_any_text_is_a_value_or_a_sentence(content):
    bounds = Bounds(num_bytes=100, values=10, keys=3, depth=4, digits=20)
    with contextlib.suppress(OutsideError):
        value = json_value(content, bounds)
        assert not isinstance(value, float) or math.isfinite(value)
        return
    with pytest.raises(OutsideError, match=r"^The text .*\.$"):
        json_value(content, bounds)


@given(st.text())
def test_plain_text_commands_nothing_and_json_keeps_its_value(text):
    assert all(control_in(line.replace("\t", "")) == "" for line in plain(text).split("\n"))
    assert plain(plain(text)) == plain(text)
    assert len(plain(text)) == len(text.replace("\r\n", "\n"))
    written = escaped_json(json.dumps(text, ensure_ascii=False))
    assert json.loads(written) == text
    assert control_in(written) == ""


@pytest.mark.parametrize(
    ("text", "bounds", "says"),
    [
        ("[1,2,3]", {"values": 2}, "holds more than 2 values"),
        ("[[],[],[]]", {"lists": 3}, "holds 4 lists and objects"),
        ('{"a":1,"b":2}', {"keys": 1}, "an object of 2 keys, more than 1"),
        ("[[[1]]]", {"depth": 2}, "nests more than 2 levels deep"),
        ("[" + "1" * 30 + "]", {"digits": 20}, "a number of 30 digits"),
        ('"a\\u202eb"', {"is_printable": True}, "U+202E"),
        ('{"\\u001b": 1}', {"is_printable": True}, "U+001B"),
    ],
)
def test_each_bound_is_held(text, bounds, says):
    with pytest.raises(OutsideError) as e:
        json_value(text, Bounds(**{"num_bytes": 1_000, "values": 100, **bounds}))
    assert says in str(e.value)
    assert json_value(text, WIDE) == json.loads(text)


def test_what_is_packed_is_unpacked_to_the_bound():
    text = b"step 1\n" * 1_000
    assert unpacked(gzip.compress(text) + gzip.compress(b"end"), 10_000) == text + b"end"
    assert unpacked(text, 10) == text  # not packed
    with pytest.raises(OutsideError, match="ends too early"):
        unpacked(gzip.compress(text)[:-9], 10_000)
