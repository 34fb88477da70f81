"""A sweep is the cross product of its values: every combination once, in the order of loops."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.sweep.cells import MAX_CELLS, Sweep, read_sweep, sweep_of
from core.errors import ScenarioError
from core.scenario import Scenario

LISTS = {
    "model": st.sampled_from(["llama3.1-8b", "llama3.1-70b", "mixtral-8x7b", "custom"]),
    "num_tokens": st.integers(1, 10**15),
    "seq_len": st.integers(16, 65_536),
    "precision": st.sampled_from(["bf16", "fp8", "fp16", "mxfp8"]),
    "compile": st.sampled_from(["true", "false"]),
    "tp": st.sampled_from(["null", "1", "2", "4"]),
    "gpu": st.sampled_from(["[]", "[A100-80GB-SXM]", "[H100-80GB-SXM, custom]"]),
    "num_gpus": st.sampled_from(["[8]", "[16, 8]", "[64]"]),
}


@st.composite
def files(draw):
    """Field -> texts of distinct values, in the order of the file."""
    names = draw(st.lists(st.sampled_from(list(LISTS)), min_size=1, max_size=5, unique=True))
    return {n: draw(st.lists(LISTS[n], min_size=1, max_size=4, unique=True)) for n in names}


def file_of(values):
    return "".join(f"{n}: [{', '.join(map(str, v))}]\n" for n, v in values.items()).encode()


def one(name, text):
    """One value as a scenario holds it, asked for without any of our code for sweeps."""
    if text == "null":
        return Scenario.model_fields[name].default
    is_list = isinstance(text, str) and text.startswith("[")
    return getattr(Scenario.parse({name: text.strip("[]") if is_list else text}), name)


def sweep(text, **limits):
    return sweep_of(read_sweep(text.encode()), **limits)


def refusal(text, **limits):
    with pytest.raises(ScenarioError) as error:
        sweep(text, **limits)
    assert "\n" not in str(error.value)
    return str(error.value)


@given(files())
def test_cells_are_the_cross_product_in_the_order_of_nested_loops(values):
    found = sweep_of(read_sweep(file_of(values)))
    expected = [
        dict(zip(values, (one(n, t) for n, t in zip(values, texts, strict=True)), strict=True))
        for texts in itertools.product(*values.values())
    ]
    assert len(found) == len(expected) == math.prod(map(len, values.values()))
    assert [found.values(n) for n in range(len(found))] == expected
    scenarios = [found.scenario(n) for n in range(len(found))]
    assert len(set(scenarios)) == len(scenarios)
    for scenario, cell in zip(scenarios, expected, strict=True):
        assert {name: getattr(scenario, name) for name in cell} == cell
        others = set(Scenario.model_fields) - set(cell)
        assert all(getattr(scenario, n) == getattr(Scenario(), n) for n in others)


@given(files(), files())
def test_the_content_id_is_that_of_the_values(first, second):
    a, b = (sweep_of(read_sweep(file_of(f))) for f in (first, second))
    cells = [[s.values(n) for n in range(len(s))] for s in (a, b)]
    same = list(a.fields.items()) == list(b.fields.items())
    assert (a.content_id() == b.content_id()) == same
    assert not same or cells[0] == cells[1]


def test_the_content_id_does_not_depend_on_how_the_file_is_written():
    plain = sweep("seq_len: [4k, 8k]\ngpu: [[H100-80GB-SXM]]")
    other = sweep("# why\nseq_len:\n- 4096\n- '8192'\ngpu: [[h100]]  # an alias")
    assert plain.content_id() == other.content_id()
    assert sweep("seq_len: [8k, 4k]\ngpu: [[h100]]").content_id() != plain.content_id()


def test_the_shape_names_what_varies():
    found = sweep("model: llama3.1-8b\nseq_len: [4k, 8k]\nnum_gpus: [[8], [16], [32]]")
    assert found.shape() == "6 cells: 2 seq_len x 3 num_gpus"
    assert found.described(5) == "cell 5 (seq_len=8192, num_gpus=32)"
    assert sweep("seq_len: 4k").shape() == "1 cell"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seq_len: [4k, 4]", "should be at least 16"),
        ("seq_len:\n- 4k\n- x", "Line 3 of the sweep file: seq_len"),
        ("precision: [bf16,\n fp9]", "Line 2 of the sweep file: precision='fp9' is not one of "
                                     "fp16, bf16, fp8"),
        ("gpu: [[h1000]]", "Unknown accelerator 'h1000'. Did you mean"),
        ("cloud: [[nowhere]]", "Unknown cloud 'nowhere'"),
        ("model: [custom, llama9]", "Unknown model 'llama9'"),
        ("stack: [megatorn]", "Unknown stack"),
        ("prices: [abc]", "Unknown price snapshot 'abc'"),
        ("seq_len: [8k,\n 8192]", "Line 2 of the sweep file gives seq_len the value '8192', which "
                                  "is the same as '8k' at line 1"),
        ("seq_len: [null, 8k]", "the same as null (the default)"),
        ("gpu: [[h100], [H100-80GB-SXM]]", "the same as '[h100]'"),
    ],
)  # fmt: skip
def test_values_that_no_scenario_takes_are_refused_with_their_line(text, said):
    assert said in refusal(text)


def test_too_many_cells_are_refused_before_any_value_is_looked_at():
    thousand = ", ".join(map(str, range(16, 1016)))
    huge = f"num_tokens: [{thousand}]\nseq_len: [{thousand}]\nglobal_batch_size: [{thousand}]"
    said = refusal(huge)
    assert "1,000,000,000 cells (1,000 num_tokens x 1,000 seq_len x 1,000" in said
    assert f"the limit is {MAX_CELLS:,} (--max-cells)" in said
    assert "makes 3 cells" in refusal("seq_len: [1k, 2k, 4k]", max_cells=2)
    assert len(sweep("seq_len: [1k, 2k, 4k]", max_cells=3)) == 3


def test_a_long_list_is_read_quickly():
    found = Sweep(fields=sweep(f"num_tokens: {list(range(1, 9_001))}").fields)
    assert len(found) == 9_000
    assert found.scenario(8_999).num_tokens == 9_000
