"""Sweep files: values keep their line, a scenario file is a sweep too, no text does harm."""

from __future__ import annotations

import time

import pytest
from hypothesis import given

from app.scenario.file import write_scenario
from app.scenario.yaml import MAX_BYTES
from app.sweep.cells import Written, read_sweep, read_sweep_file
from core.errors import ScenarioError
from core.scenario import Scenario
from tests.app.scenario.test_scenario_file import scenarios


def texts(content):
    return {name: [w.text for w in values] for name, values in read_sweep(content).items()}


def refusal(content):
    started = time.monotonic()
    with pytest.raises(ScenarioError) as error:
        read_sweep(content)
    assert time.monotonic() - started < 5
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("content", "values"),
    [
        (b"seq_len: 4k", {"seq_len": ["4k"]}),
        (b"seq_len: [4k, 8k]", {"seq_len": ["4k", "8k"]}),
        (b"seq_len:\n- 4k\n- 8k", {"seq_len": ["4k", "8k"]}),
        (b"tp: [null, ~, 2, '']", {"tp": [None, None, "2", ""]}),
        (b"gpu: H100", {"gpu": ["H100"]}),
        (b"gpu: [A, B]", {"gpu": [["A", "B"]]}),
        (b"gpu: [[A, B], [A], []]", {"gpu": [["A", "B"], ["A"], []]}),
        (b"gpu: [null, [A]]", {"gpu": [None, ["A"]]}),
        (b"v: 1\nmodel: [on, no, 12:30]", {"model": ["on", "no", "12:30"]}),
        (b"num_gpus: [[8], [16]]\nseq_len: [1, 2]",
         {"num_gpus": [["8"], ["16"]], "seq_len": ["1", "2"]}),
    ],
)  # fmt: skip
def test_fields_hold_one_value_or_several(content, values):
    assert texts(content) == values


def test_every_value_keeps_its_line():
    found = read_sweep(b"# a sweep\nseq_len:\n  - 4k\n  - 8k\ngpu: [\n  [A],\n  [B]]\n")
    assert found["seq_len"] == [Written(text="4k", line=3), Written(text="8k", line=4)]
    assert [w.line for w in found["gpu"]] == [6, 7]


@given(scenarios())
def test_a_scenario_file_is_a_sweep_of_one_cell(scenario):
    if scenario == Scenario():  # a file without a field
        return
    found = read_sweep(write_scenario(scenario).encode())
    assert all(len(values) == 1 for values in found.values())
    written = {name: v[0].text for name, v in found.items() if v[0].text is not None}
    assert Scenario.parse(written) == scenario


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "gives no field"),
        (b"v: 1", "gives no field"),
        (b"hello", "is the text 'hello'"),
        (b"- a\n- b", "Line 1 of the sweep file is not of the form"),
        (b"modle: a", "Line 1 of the sweep file: 'modle' is not a field of a scenario. Did you "
                      "mean 'model'?"),
        (b"\nseq_len: []", "Line 2 of the sweep file gives seq_len an empty list"),
        (b"gpu: []", "gives gpu an empty list"),
        (b"seq_len: [[4k], [8k]]", "Line 1 of the sweep file gives seq_len a list of lists"),
        (b"gpu: [\n [A],\n B]", "Line 3 of the sweep file mixes values and lists in gpu"),
        (b"gpu: [[[A]]]", "is not of the form"),
        (b"seq_len: {a: b}", "is not of the form"),
        (b"seq_len: [{a: b}]", "is not of the form"),
        (b"? [a]\n: b", "is not of the form"),
        (b"seq_len: 4k\nseq_len: 8k", "Line 2 of the sweep file gives 'seq_len' again"),
        (b"seq_len: &a [4k]\ntp: *a", "Line 1 of the sweep file has an anchor or alias"),
        (b"seq_len: *a", "has an anchor or alias"),
        (b"model: !!python/name:os.system x", "has the tag"),
        (b"seq_len: 4k\n---\nseq_len: 8k", "A second document starts at line 2"),
        (b"v: 2\nseq_len: 4k", "Line 1 of the sweep file says v='2'"),
        (b"seq_len: [4k", "The sweep file is not YAML"),
        (b"seq_len: 4k\n gpu: a", "The sweep file is not YAML"),
        (b"%PDF-1.7\n\x00\x01", "The sweep file is not YAML"),
        (b"\xff\xfe\x00", "is not text (UTF-8)"),
        (b"seq_len: 4k\n" + b"#" * MAX_BYTES, "is larger than 65,536 bytes"),
        (b"[" * 60_000, "is not of the form"),
        (b"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]".replace(b"a:", b"gpu:", 1),
         "has an anchor or alias"),
    ],
)  # fmt: skip
def test_what_is_no_sweep_is_refused_with_its_line(content, said):
    assert said in refusal(content)


def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path):
    for path in (tmp_path / "none.yaml", tmp_path, tmp_path / ("x" * 300), tmp_path / "a\0b"):
        with pytest.raises(ScenarioError):
            read_sweep_file(path)
