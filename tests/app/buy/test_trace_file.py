"""A user's trace of spot capacity: its forms, and a sentence for what is none of them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.buy.trace_file import MAX_BYTES, MAX_SPELLS, read_trace, read_trace_file
from core.failures.availability import Trace, TraceError

TWO = ([0.0, 7200.0], [5400.0, 90000.0])


def spells(trace):
    return trace.starts_s.tolist(), trace.ends_s.tolist()


def read(text, name="mine.csv"):
    return read_trace(text.encode() if isinstance(text, str) else text, name=name)


def read_json(**document):
    return read(json.dumps(document), "mine.json")


# --- what is read --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "start_s,end_s\n0,5400\n7200,90000\n",
        "start_hours,end_hours\n0,1.5\n2,25\n",
        "start,end\n2026-03-01T00:00Z,2026-03-01T01:30Z\n2026-03-01T02:00Z,2026-03-02T01:00Z\n",
        "start,end\n2026-03-01,2026-03-01 01:30\n2026-03-01T02:00:00,2026-03-02T01:00\n",
        "start,end\n2026-03-01T00:00Z,2026-03-01T02:30+01:00\n"
        "2026-03-01T03:00+01:00,2026-03-02T02:00+01:00\n",
        "\ufeffzone,end_s,start_s\r\na,5400,0\r\n\r\na,90000,7200\r\n",
        "state,start_s,end_s\nup,0,5400\ndown,5400,7200\nUP,7200,90000\n",
    ],
)
def test_a_table_in_any_of_its_units(text):
    trace = read(text)
    assert isinstance(trace, Trace)
    assert spells(trace) == TWO
    assert trace.length_s == 90000


def test_an_outage_at_the_end_is_part_of_the_trace():
    trace = read("start_s,end_s,state\n10,20,down\n20,50,up\n60,95.5,down\n")
    assert spells(trace) == ([20.0], [50.0])
    assert trace.length_s == 95.5


def test_capacity_that_is_there_again_at_once_is_a_preemption():
    assert spells(read("start_s,end_s\n0,50\n50,60\n")) == ([0.0, 50.0], [50.0, 60.0])


def test_a_list_of_intervals():
    trace = read_json(up=[[0, 5400], [7200, 90000]], length_s=100000)
    assert spells(trace) == TWO
    assert trace.length_s == 100000


def test_a_series_counts_what_is_available():
    """As skypilot-org/spot-traces says of its files: a tick is the number that is available."""
    series = {"metadata": {"gap_seconds": 300}, "data": [0, 1, 1, 0, 0, 1]}
    trace = read_json(**series)
    assert spells(trace) == ([300.0, 1500.0], [900.0, 1800.0])
    assert trace.length_s == 1800
    assert spells(read_json(gap_seconds=300, data=series["data"])) == spells(trace)
    turned = read_json(**series, data_means="preempted")
    assert spells(turned) == ([0.0, 900.0], [300.0, 1500.0])
    fleet = read_json(gap_seconds=60, data=[0, 4, 16, 15, 16], num_instances=16)
    assert spells(fleet) == ([120.0, 240.0], [180.0, 300.0])


def test_a_file_is_read_by_its_content(tmp_path):
    path = tmp_path / "trace.txt"
    path.write_text("start_s,end_s\n0,5400\n7200,90000\n")
    assert spells(read_trace_file(path)) == TWO
    path.write_text("\ufeff \n" + json.dumps({"up": [[0, 5400], [7200, 90000]], "length_s": 9e4}))
    assert spells(read_trace_file(path)) == TWO
    for wrong in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(TraceError, match="is not a file"):
            read_trace_file(wrong)


# --- what is not ---------------------------------------------------------------------------------

S = "start_s,end_s\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "'mine.csv' is empty: a trace is CSV with"),
        (" \n\n", "is empty"),
        (S, "has a header and no rows"),
        ("begin,end\n0,1\n", "is no trace, which is CSV with the columns start_s,end_s"),
        ("start_secs,end_s\n0,1\n", "Did you mean its column 'start_secs'?"),
        ("start_s,end_hours\n0,1\n", "is no trace"),
        (S + "0,10\n5,20\n", "Line 3 of 'mine.csv' starts at 5 s, before the one above it ends"),
        (S + "0,10\n\n30,20\n", "Line 4 of 'mine.csv' ends at 20 s, not after its start, 30 s"),
        (S + "40,50\n0,10\n", "Line 3 of 'mine.csv' starts at 0 s, before the one above"),
        (S + "10,10\n", "Line 2 of 'mine.csv' ends at 10 s, not after its start"),
        (S + "-5,10\n", "Line 2 of 'mine.csv' starts at -5 s, before the trace does"),
        (S + "0,nan\n", "Line 2 has nan, which is not a finite number"),
        (S + "0,inf\n", "Line 2 has inf"),
        (S + "0,1e400\n", "Line 2 has inf"),
        (S + "0,2e9\n", "longer than 1e+09 s, 30 years"),
        (S + "0,ten\n", "Line 2 has 'ten', which is not a number"),
        (S + "0,\n", "Line 2 has '', which is not a number"),
        (S + "0\n", "Line 2: The row has 1 cells where the header has 2."),
        ("start,end\n0,10\n", "Line 2 has '0', which is no time like 2026-03-01T12:30Z"),
        ("start,end\n2026-03-01T00:00Z,2026-03-01T01:00\n", "with and without a time zone"),
        ("start,end\n2026-03-02,2026-03-01\n", "Line 2 of 'mine.csv' ends at -86400 s"),
        ("start_s,end_s,state\n0,10,maybe\n", "Line 2 has the state 'maybe'"),
        ("start_s,end_s,state\n0,10,down\n", "is never up"),
        ("start_s,end_s,start_s\n0,1,2\n", "has the column 'start_s' twice"),
        (b"\xff\xfe\x00", "not a text file in UTF-8"),
        (S + "0,1\n" * (MAX_SPELLS + 1), "more than 10,000 rows"),
        (" " * (MAX_BYTES + 1), "is larger than 5 MB"),
    ],
)
def test_a_table_that_is_none(text, says):
    with pytest.raises(TraceError) as e:
        read(text)
    assert says in str(e.value)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({}, 'has neither "up" nor "data"'),
        ({"up": [[0, 10]]}, 'gives no "length_s"'),
        ({"up": [[0, 10]], "length_s": True}, 'gives no "length_s"'),
        ({"up": [[0, 10]], "length_s": 5}, "is 5, before its last interval ends"),
        ({"up": [], "length_s": 5}, "is never up"),
        ({"up": {"0": 10}, "length_s": 5}, "is not a list of [start, end]"),
        ({"up": [[0, 10], [20]], "length_s": 50}, "Interval 2 of 'mine.json' is not [start, end]"),
        ({"up": [[0, "10"]], "length_s": 50}, "Interval 1"),
        ({"up": [[0, None]], "length_s": 50}, "Interval 1"),
        ({"up": [[0, 10], [5, 20]], "length_s": 50}, "Interval 2 of 'mine.json' starts at 5 s"),
        ({"up": [[-1, 10]], "length_s": 50}, "before the trace does"),
        ({"up": [[0, 1e999]], "length_s": 50}, "'Infinity' where a finite number"),
        ({"up": [[0, 10]], "length_s": 10**400}, "not a finite number"),
        ({"up": [[0, 1]] * (MAX_SPELLS + 1), "length_s": 5}, "more than 10,000 spells"),
        ({"data": [1, 0]}, 'gives no "gap_seconds"'),
        ({"data": [1, 0], "gap_seconds": 0}, 'gives no "gap_seconds"'),
        ({"data": [1, 0], "metadata": [300]}, 'gives no "gap_seconds"'),
        ({"data": [], "gap_seconds": 60}, "is not a list of ticks"),
        ({"data": "0110", "gap_seconds": 60}, "is not a list of ticks"),
        ({"data": [1, "0"], "gap_seconds": 60}, "Tick 2 of 'mine.json' is '0'"),
        ({"data": [1, 0.5], "gap_seconds": 60}, "Tick 2 of 'mine.json' is '0.5'"),
        ({"data": [1, -1], "gap_seconds": 60}, "Tick 2"),
        ({"data": [1, True], "gap_seconds": 60}, "Tick 2"),
        ({"data": [1, [0]], "gap_seconds": 60}, "Tick 2"),
        ({"data": [1, 10**30], "gap_seconds": 60}, "Tick 2"),
        ({"data": [0, 0], "gap_seconds": 60}, "is never up"),
        ({"data": [4, 0], "gap_seconds": 60}, 'counts up to 4 instances: "num_instances" says'),
        ({"data": [4, 0], "gap_seconds": 60, "num_instances": 0}, "not a number from 1 up"),
        ({"data": [4, 0], "gap_seconds": 60, "num_instances": 16}, "is never up"),
        ({"data": [1, 0], "gap_seconds": 60, "data_means": "up"}, "is not one of available"),
        (
            {"data": [1, 0], "gap_seconds": 60, "data_means": "preempted", "num_instances": 1},
            "needs counts of instances available",
        ),
        ({"data": [0, 1] * (MAX_SPELLS + 1), "gap_seconds": 1}, "more than 10,000 spells"),
        ({"data": [1], "gap_seconds": 1e9 + 1}, 'gives no "gap_seconds"'),
        ({"data": [1, 1], "gap_seconds": 9e8}, "30 years"),
    ],
)
def test_a_document_that_is_none(document, says):
    with pytest.raises(TraceError) as e:
        read_json(**document)
    assert says in str(e.value)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1, 0, 1]", "is a JSON list"),
        ('{"up": [[0, NaN]], "length_s": 5}', "'NaN' where a finite number"),
        ('{"up": [[0, 1]], "up": [], "length_s": 5}', "the key 'up' twice"),
        ('{"up": [[0, 1]], ', "is no trace: it is not JSON"),
        ("[" * 10_000, "is no trace: it is nested too deeply"),
        ('{"data": [' + "9" * 5000 + '], "gap_seconds": 1}', "is no trace"),
        (b'{"up": "\xff"}', "is no trace"),
        ('{"up": [[0, 1e999]], "length_s": 5}', "'1e999' where a finite number"),
        ('{"data": [1e999], "gap_seconds": 1}', "'1e999' where a finite number"),
        ('{"data": [2], "gap_seconds": 1, "num_instances": 1e999}', "'1e999' where"),
    ],
)
def test_json_that_is_none(text, says):
    with pytest.raises(TraceError) as e:
        read(text, "mine.json")
    assert says in str(e.value)


def sentence_or_trace(read_it):
    """What reading came to; anything but a trace or a sentence is raised."""
    try:
        trace = read_it()
    except TraceError as e:
        return str(e)
    return "" if trace.length_s > 0 and (trace.ends_s > trace.starts_s).all() else "no trace"


@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_no_bytes_are_more_than_a_sentence(content):
    for start in (b"", b"start_s,end_s\n", b"start,end\n", b'{"up": ', b'{"data": [1,'):
        said = sentence_or_trace(lambda start=start: read_trace(start + content, name="any"))
        assert said.endswith((".", "?")) or not said


numbers = st.one_of(st.integers(), st.floats(), st.none(), st.booleans(), st.text(max_size=3))


@given(
    up=st.lists(st.lists(numbers, max_size=3), max_size=4),
    length=numbers,
    data=st.lists(numbers, max_size=5),
    gap=numbers,
)
def test_no_document_is_more_than_a_sentence(up, length, data, gap):
    for document in ({"up": up, "length_s": length}, {"data": data, "gap_seconds": gap}):
        said = sentence_or_trace(lambda document=document: read_json(**document))
        assert said.endswith((".", "?")) or not said
