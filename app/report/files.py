"""Reads the options of `runcast report` and writes the files of the report."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from app.command.given import Given
from app.command.values import plan_scenario
from app.document.blocks import Report
from app.forecast.answer import answer
from app.forecast.failure_inputs import given_numbers
from app.forecast.resolve import resolve_strict
from app.report.report import WRITERS, file_name, report_of
from core.errors import ScenarioError, shown, unknown_name
from core.scenario import Scenario
from pricing.disk import write_all_or_none

TOP = 50  # plans among which the report looks for plans to compare, as on the page
EPOCH = "SOURCE_DATE_EPOCH"  # https://reproducible-builds.org/specs/source-date-epoch/


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The requested output, checked before the search."""

    kinds: tuple[str, ...]
    folder: Path | None  # None: the only format goes to standard output
    date: dt.date
    address: str


def wanted(*, to: str | None, out: str | None, date: str | None, address: str | None) -> Wanted:
    """The requested output from these options; a ScenarioError says which one is wrong."""
    given = [t.strip().lower() for t in (to or ",".join(WRITERS)).split(",") if t.strip()]
    if unknown := [t for t in given if t not in WRITERS]:
        raise unknown_name("kind of report (--to)", unknown[0], WRITERS)
    kinds = tuple(dict.fromkeys(given))
    if not kinds:
        raise ScenarioError(f"--to without a value: {', '.join(WRITERS)}.")
    if out is None and (len(kinds) > 1 or kinds == ("pdf",)):
        raise ScenarioError(
            f"--out DIR takes the files ({', '.join(kinds)}); one of md and html alone is printed."
        )
    if address is not None and not _is_web(address):
        raise ScenarioError(f"--address {shown(address)} is no address like https://host/.")
    return Wanted(
        kinds=kinds,
        folder=None if out is None else Path(out),
        date=_date(date),
        address=address or "",
    )


def _is_web(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return (
        parts.scheme in ("http", "https")
        and bool(parts.hostname)
        and "@" not in parts.netloc
        and address.isascii()
        and address.isprintable()
        and not {*' "<>\\^`{|}'} & {*address}
    )


def _date(text: str | None) -> dt.date:
    """The given day, else the day from the environment, else today in UTC."""
    if text is not None:
        try:
            return dt.datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=dt.UTC).date()
        except ValueError:
            raise ScenarioError(f"--date {shown(text)} is no day like 2026-05-24.") from None
    epoch = os.environ.get(EPOCH, "").strip()
    if not epoch:
        return dt.datetime.now(dt.UTC).date()
    try:
        return dt.datetime.fromtimestamp(int(epoch), dt.UTC).date()
    except (ValueError, OverflowError, OSError):
        raise ScenarioError(f"{EPOCH}={shown(epoch)} is no number of seconds since 1970.") from None


def report_of_options(given: Given, asked: Wanted, *, name: str) -> tuple[Report, list[str]]:
    """The report for the scenario of options, a link or a file, and notes for the user."""
    scenario, notes = plan_scenario(given)
    scenario = resolve_strict(scenario)
    given_numbers(scenario)  # reports mistakes before the search
    found = answer(scenario, top=TOP, with_frontier=True)
    notes = [*notes, *_gone(scenario, {p.id for p in found.plans})]
    made = report_of(scenario, found, date=asked.date, address=asked.address, name=name)
    return made, notes


def _gone(scenario: Scenario, listed: set[str]) -> list[str]:
    """Notes on pinned plans that are not in the answer; ScenarioError if the plan itself is not."""
    if scenario.plan and scenario.plan not in listed:
        raise ScenarioError(
            f"The plan {shown(scenario.plan)} is not among the ranked plans: `runcast plan --json` "
            "names them."
        )
    gone = ", ".join(shown(p) for p in scenario.pinned if p not in listed)
    return [f"Not among the ranked plans, so not compared: {gone}."] if gone else []


def single(report: Report, asked: Wanted) -> str:
    """The text of the only requested format."""
    return WRITERS[asked.kinds[0]](report).decode("utf-8")


def write(report: Report, asked: Wanted, *, force: bool) -> list[str]:
    """Write the files and print their paths. Existing files are replaced only if asked for."""
    folder = asked.folder or Path()
    paths = {kind: folder / file_name(kind) for kind in asked.kinds}
    there = [p for p in paths.values() if p.exists() or p.is_symlink()]
    if there and not force:
        raise ScenarioError(f"{shown(str(there[0]))} is there already: --force replaces it.")
    write_all_or_none({path: WRITERS[kind](report) for kind, path in paths.items()})
    return [str(p) for p in paths.values()]
