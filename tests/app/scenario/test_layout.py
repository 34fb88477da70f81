"""A layout as text: what is read is what was written, and every mistake is a sentence."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.forecast.fixed_layout import fixed_fields
from app.scenario.layout import CHOICES, DEGREES, OPTIONAL, layout_text, parse_layout
from core.errors import ScenarioError
from core.scenario import Scenario
from core.search.plan import Layout
from tests.made_up import plans as made_up

VALUES = {
    f.name: st.sampled_from(CHOICES[f.name]) if f.name in CHOICES else st.integers(1, 131_072)
    for f in dataclasses.fields(Layout)
} | {"reshard_after_forward": st.booleans()}


def said(values):
    """What the text of a layout says: no default, no method of what the layout lacks."""
    kept = {k: v for k, v in values.items() if k not in OPTIONAL}
    if values["pp"] > 1 and values["schedule"] != "interleaved":
        kept["schedule"] = values["schedule"]
    if values["cp"] > 1 and values["context_parallel"] != "ring":
        kept["context_parallel"] = values["context_parallel"]
    if not values["reshard_after_forward"]:
        kept["reshard_after_forward"] = "0"
    for what in ("offload_optimizer", "offload_params"):
        if values[what] != "none":
            kept[what] = values[what]
    return kept


@given(st.fixed_dictionaries(VALUES))
def test_a_layout_is_read_as_it_was_written(values):
    text = layout_text(Layout(**values))
    assert parse_layout(text) == said(values)
    # It fits the field of the scenario that holds the measured one, and its link.
    assert Scenario.parse({"anchor_layout": text}).anchor_layout == text


def test_how_people_write_one():
    text = " tp=8, pp=4 ,cp=1,ep=1,etp=1,dp_shard=16,sharding=zero1,virtual_stages=2,"
    assert parse_layout(text + "micro_batch_size=1,recompute=selective,") == {
        "tp": 8,
        "pp": 4,
        "cp": 1,
        "ep": 1,
        "etp": 1,
        "dp_shard": 16,
        "sharding": "zero1",
        "virtual_stages": 2,
        "micro_batch_size": 1,
        "recompute": "selective",
    }


def test_every_key_of_a_layout_is_known():
    assert {f.name for f in dataclasses.fields(Layout)} <= {*DEGREES, *CHOICES}
    text = layout_text(made_up.layout())
    assert text.startswith("tp=8,pp=1,virtual_stages=1,")
    assert text.endswith("sharding=fsdp2,recompute=selective")


def test_the_methods_of_a_layout_are_the_fields_of_a_scenario():
    text = "pp=4,cp=2,schedule=zero_bubble,context_parallel=ulysses,reshard_after_forward=0"
    scenario = Scenario.parse(fixed_fields(parse_layout(text)))
    assert (scenario.schedule, scenario.context_parallel) == ("zero_bubble", "ulysses")
    assert scenario.reshard_after_forward is False


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "The layout is empty"),
        (" , ", "The layout is empty"),
        ("tp", "'tp' in a layout is no KEY=VALUE"),
        ("tpp=8", "Did you mean 'tp'?"),
        ("microbatch_size=8", "Did you mean 'micro_batch_size'?"),
        ("tp=8,tp=4", "gives tp twice: 8 and '4'"),
        ("tp=eight", "tp='eight' in a layout is not a whole number"),
        ("tp=", "tp='' in a layout is not a whole number"),
        ("tp=1.5", "tp='1.5' in a layout is not a whole number"),
        ("tp=-8", "tp='-8'"),
        ("tp=0", "tp=0 in a layout is not a whole number from 1"),
        ("tp=٣", "is not a whole number"),
        ("tp=²", "is not a whole number"),
        ("tp=131073", "from 1 to 131,072"),
        ("tp=" + "9" * 300, "is not a whole number"),
        ("tp=8=8", "tp='8=8'"),
        ("sharding=zero9", "Did you mean 'zero3'?"),
        ("recompute=some", "not one of none, selective, norm_act, mlp, full"),
        ("schedule=zerobubble", "Did you mean 'zero_bubble'?"),
        ("reshard_after_forward=2", "not one of 1, 0"),
        ("x" * 10_000, "at most 600 characters"),
        ("\x00\n=\x1b", "is no key of a layout"),
    ],
)
def test_a_mistake_is_one_sentence(text, says):
    with pytest.raises(ScenarioError) as e:
        parse_layout(text)
    assert says in str(e.value)
    assert len(str(e.value)) < 300
    assert str(e.value).isprintable()


@given(st.text(max_size=500))
def test_any_text_is_read_or_refused(text):
    try:
        found = parse_layout(text)
    except ScenarioError as e:
        found = {"refused": str(e)}
    assert found
    assert str(found.get("refused", "")).isprintable()
