"""Work that libraries repeat in a test process, with one outcome each time: done once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import cache

import pytest
import typer.main
from streamlit.components.v2 import manifest_scanner


@pytest.fixture(scope="session", autouse=True)
def _done_once() -> Iterator[None]:
    """The tree of commands is built at each run of the command line (60 ms), and every installed
    distribution is searched for components of Streamlit at each AppTest (95 ms)."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in (
            (typer.main, "get_command"),
            (manifest_scanner, "scan_component_manifests"),
        ):
            patch.setattr(module, name, cache(getattr(module, name)))
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """What was imported and collected stays to the end: the garbage collector need not walk it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
