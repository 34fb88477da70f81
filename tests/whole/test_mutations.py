"""Errors planted in the formulas of core are caught by the tests of the module they are in."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.mutations.copies import ROOT, Copy, path_of
from tests.mutations.planted import PLANTED, Planted
from tests.mutations.random_errors import errors_of

# Formulas that make up a forecast: each has an error planted in it.
MODULES = (
    "activations", "attention", "checkpoint", "collectives", "cost", "distribution", "energy",
    "failures", "gemm", "goodput", "inference", "memory", "memory_phases", "offload", "overlap",
    "pipeline", "run_cost", "sharding", "spot", "state_space", "step", "traffic", "training",
    "transformer", "uncertainty",
)  # fmt: skip


def test_thirty_errors_or_more_stand_in_every_module_of_the_forecast():
    assert len(PLANTED) >= 30
    planted = Counter(p.module for p in PLANTED)
    assert [m for m in MODULES if not planted[m]] == []
    assert len({p.kind for p in PLANTED}) >= 10


@pytest.mark.parametrize("error", PLANTED, ids=lambda e: f"{e.module}-{e.kind}")
def test_the_original_stands_there_once_and_the_error_is_python(error: Planted):
    text = (ROOT / path_of(error.module)).read_text(encoding="utf-8")
    assert text.count(error.original) == 1
    ast.parse(text.replace(error.original, error.planted))
    assert error.caught_by.partition("::")[0] in error.files


def test_random_errors_are_other_programs_of_the_same_shape():
    text = (ROOT / "core/time/collectives.py").read_text(encoding="utf-8")
    found = list(errors_of(text))
    assert len(found) > 60
    assert len({e.text for e in found}) == len(found)
    for error in found:
        assert ast.dump(ast.parse(error.text)) != ast.dump(ast.parse(text)), error.says
        assert len(error.text.splitlines()) == len(text.splitlines())


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    with Copy(tmp_path_factory.mktemp("planted")) as made:
        # What is tested there is what stands there, not the installed checkout.
        place = made.folder / "tests/test_place.py"
        place.write_text(
            "import app, core\n\ndef test_place():\n"
            f"    assert app.__file__.startswith({str(made.folder)!r})\n"
            f"    assert core.__file__.startswith({str(made.folder)!r})\n"
        )
        status, said = made.run(("tests/test_place.py",))
        assert status == 0, said
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("error", PLANTED, ids=lambda e: f"{e.module}-{e.kind}")
def test_a_planted_error_is_caught(error: Planted, copy):
    text = copy.source(error.module).read_text(encoding="utf-8")
    caught, said = copy.caught(
        error.module, text.replace(error.original, error.planted), (error.caught_by,)
    )
    assert caught, (
        f"{error.planted!r} in {path_of(error.module)} survives {error.caught_by}; does another "
        f"test catch it (python -m tests.mutations --name)?\n{said[-1500:]}"
    )


@pytest.mark.slow
def test_an_answer_that_nobody_waited_for_is_not_the_next_ones(copy, monkeypatch):
    """As where the time limit of a test ends its wait."""
    waited = copy._tester.stdout
    monkeypatch.setattr(copy._tester, "stdout", None)
    with pytest.raises(AttributeError):
        copy.run(("tests/there_is_none.py",))
    monkeypatch.setattr(copy._tester, "stdout", waited)
    status, said = copy.run(("tests/test_place.py",))
    assert (status, " passed" in said) == (0, True)


@pytest.mark.slow
def test_without_an_error_nothing_is_caught(copy):
    """The control: the same tests, in the same copy, with the module as it is."""
    text = copy.source("collectives").read_text(encoding="utf-8")
    caught, said = copy.caught("collectives", text, ("tests/core/time/test_collectives.py",))
    assert not caught, said
    assert " passed" in said
