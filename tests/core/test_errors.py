"""Sentences of errors: what was given, what was meant, what exists."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import (
    LISTED,
    SHOWN,
    FactError,
    ModelError,
    RuncastError,
    RunsError,
    ScenarioError,
    nearest,
    shown,
    unknown_name,
    unknown_sentence,
)

KNOWN = ("H100-80GB-SXM", "A100-80GB-SXM", "B200-180GB")


@pytest.mark.parametrize("error", [ScenarioError, ModelError, FactError, RunsError])
def test_one_tree(error):
    assert issubclass(error, RuncastError)
    assert issubclass(error, ValueError)


def test_an_unknown_name_gets_the_nearest_and_the_list():
    error = unknown_name("accelerator", "h100-80g-sxm", KNOWN)
    assert isinstance(error, ScenarioError)
    assert str(error) == (
        "Unknown accelerator 'h100-80g-sxm'. Did you mean 'H100-80GB-SXM'? "
        "Known: A100-80GB-SXM, B200-180GB, H100-80GB-SXM."
    )


def test_nothing_near_is_not_guessed():
    assert "Did you mean" not in unknown_sentence("accelerator", "zzz", KNOWN)
    assert nearest("zzz", KNOWN) is None
    assert nearest("", ()) is None


def test_long_lists_are_counted():
    names = [f"name-{i:03d}" for i in range(50)]
    sentence = unknown_sentence("name", "zzz", names)
    assert sentence.endswith(f"and {50 - LISTED} more.")
    assert "name-012" not in sentence


@given(value=st.one_of(st.text(max_size=500), st.floats(), st.lists(st.integers()), st.none()))
def test_a_foreign_value_is_one_short_printable_line(value):
    text = shown(value)
    assert text.isprintable()
    assert len(text) <= 2 * SHOWN + 10  # escapes of quotes and backslashes
    assert text[0] == text[-1] in "'\""


@given(name=st.text(max_size=300))
def test_any_name_gives_a_sentence(name):
    sentence = unknown_sentence("accelerator", name, KNOWN)
    assert sentence.startswith("Unknown accelerator ")
    assert sentence.isprintable()


def test_a_name_of_a_megabyte_is_answered_at_once():
    assert len(unknown_sentence("accelerator", "H" * 1_000_000, KNOWN)) < 300
