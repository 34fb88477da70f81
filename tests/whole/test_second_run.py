"""Which tests run again when they fail, how often, and what the run prints about it at its end;
which files begin first, and which are not read at all."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support import longest_first, marked_files

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]

HANGING = """
import time, pytest
tries = []

def hang(failures):
    tries.append(1)
    if len(tries) <= failures:
        time.sleep(30)
    tries.clear()

@pytest.mark.services
def test_once():
    hang(1)

@pytest.mark.browser
def test_always():
    hang(9)

@pytest.mark.slow
def test_quick():
    assert False
"""


def test_a_browser_or_service_test_runs_once_more_within_its_limit_and_is_named(
    pytester, monkeypatch
):
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    pytester.makeini("[pytest]\nmarkers = browser\n services\n slow\ntimeout = 0.3")
    pytester.makepyfile(HANGING)
    run = pytester.runpytest_subprocess("-p", "tests.support.second_run", "-p", "no:cacheprovider")
    assert run.parseoutcomes() == {"passed": 1, "failed": 2, "rerun": 2}
    named = run.outlines[next(i for i, line in enumerate(run.outlines) if "a second run" in line) :]
    assert [line.split("::")[1] for line in named if "(call)" in line] == [
        f"{name} (call): Failed: Timeout (>0.3s) from pytest-timeout."
        for name in ("test_once", "test_always")
    ]


def test_the_longest_files_begin_first_where_pytest_xdist_keeps_their_order():
    assert [name for name in longest_first.SECONDS if not (ROOT / name).is_file()] == []
    names = ["tests/core/test_units.py", *reversed(longest_first.SECONDS)]
    items = [SimpleNamespace(path=ROOT / name) for name in names]
    for reorders, first in ((True, names[0]), (False, next(iter(longest_first.SECONDS)))):
        config = SimpleNamespace(getoption=lambda *_, r=reorders, **__: r)
        longest_first.pytest_collection_modifyitems(config, items)
        assert items[0].path == ROOT / first
    assert items[-1].path == ROOT / names[0]


@pytest.mark.parametrize(
    ("asked", "spelled", "may"),
    [
        ("not browser and not slow", "browser", True),  # a test of the file may have no mark
        ("not (not browser and not slow) and not serial", "", False),
        ("not (not browser and not slow) and not serial", "slow serial", True),
        ("not (not browser and not slow) and serial", "slow", False),
        ("not (not browser and not slow) and serial", "slow serial", True),
    ],
)
def test_a_file_is_read_where_one_of_its_tests_may_be_asked_for(asked, spelled, may):
    assert marked_files.may_hold(asked, frozenset(spelled.split())) is may


def test_a_mark_that_its_file_does_not_spell_ends_the_run(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    pytester.makeini("[pytest]\nmarkers = slow")
    pytester.makepyfile(
        test_open="import pytest\n@pytest.mark.slow\ndef test_one(): pass\n",
        test_hidden="import pytest\n@getattr(pytest.mark, 'slow')\ndef test_two(): pass\n",
    )
    plugins = ("-p", "tests.support.marked_files", "-p", "no:cacheprovider")
    run = pytester.runpytest_subprocess(*plugins)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    assert "test_two has marks that its file does not spell" in run.stderr.str()
    run = pytester.runpytest_subprocess(*plugins, "-m", "slow")
    assert run.parseoutcomes() == {"passed": 1}
