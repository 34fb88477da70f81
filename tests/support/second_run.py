"""A browser or service test that failed runs once more, and the run ends with the names of those
that needed it. No other test does: what fails without a browser or a server fails every time."""

from __future__ import annotations

import pytest

TIERS = ("browser", "services")
LIMIT = pytest.StashKey[object]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.get_closest_marker(tier) for tier in TIERS):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: object) -> None:
    """Keep the limit of the first run: pytest-timeout forgets it when a test has failed."""
    item.stash[LIMIT] = settings


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """The second run has the limit of the first."""
    if getattr(item, "execution_count", 1) > 1 and LIMIT in item.stash:
        item.config.hook.pytest_timeout_set_timer(item=item, settings=item.stash[LIMIT])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Each test that needed a second run, and why its first one failed."""
    failed = terminalreporter.getreports("rerun")
    if failed:
        terminalreporter.section("needed a second run")
    for report in failed:
        reason = getattr(getattr(report.longrepr, "reprcrash", None), "message", "")
        terminalreporter.write_line(f"{report.nodeid} ({report.when}): {reason}".partition("\n")[0])
