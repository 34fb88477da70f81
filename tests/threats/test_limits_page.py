"""docs/limits.md lists every bound with the figure that the code has, and misses none."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT
from tests.threats.limits import bounding, dotted, value_of, written

PAGE = (ROOT / "docs/limits.md").read_text(encoding="utf-8")
PACKAGES = ("app", "core", "hardware", "pricing", "runners")

# Found by their names, and no bound on what comes from outside.
INTERNAL = {
    "a figure of a machine, a model or a market": """
        app.accuracy.runs.features.ADAMW_BF16_STATE_BYTES app.accuracy.runs.features.DTYPE_BYTES
        app.accuracy.read_columns.KEPT
        app.forecast.anchor.ANY_MEMORY_BYTES app.accuracy.fit_kernels.INPUT_BYTES
        app.forecast.machines.ONE_MACHINE_BYTES_PER_S app.forecast.costs.LEAST_OUTAGE_S
        app.explain.words.LEAST_S core.evidence.accuracy.FITS_AT_MOST
        core.evidence.accuracy.TIGHT_AT_MOST
        core.evidence.own_runs.HIGHEST_MFU core.layout.routing.LARGEST_OF
        core.layout.routing.MAX_VIO core.layout.routing.MAX_VIO_OF_BIAS
        core.explain.bottleneck.MOST
        core.money.purchase.LONGEST_BLOCK_DAYS
        core.money.purchase.TERM_HOURS core.failures.spot.MOST_PER_S
        core.evidence.uncertainty.LARGEST_RUN
        hardware.spot.ADVISOR_PERIOD_S pricing.history.LONGEST_BUNDLED_GAP
        pricing.history.LONGEST_GAP pricing.whole_source.FEW_ROWS app.operate.prices.SKEW
        app.operate.data.LOW_BYTES app.operate.data.FULL_BYTES
        app.accuracy.runs.written.INT8_BYTES core.model.adapter_passes._DROPOUT_KEPT
        core.model.adapter_passes._KEPT_IN""",
    "how good a measurement must be": """
        runners.calibration.validity.MAX_DRIFT runners.calibration.validity.MAX_ERROR
        runners.calibration.validity.MAX_SPREAD
        core.evidence.residual.MOST
        runners.calibration.validity.POWER_CAP runners.probes.groups.LEAST_S
        runners.probes.timing.CPU_SAMPLE_S runners.probes.timing.WARM_UP_S""",
    "a word, a colour, a column or a pattern": """
        app.document.chart_parts.LIMIT app.options.change.SHOWN
        app.options.document.LIMITS app.options.document.SHOWN
        app.document.pdf.SHOWN
        app.plan.document.LIMITS app.plan.chart_tables.BUDGET app.plan.chart_tables.DEADLINE
        app.plan.part_charts.LIMITS
        core.explain.sensitivity.AT_MOST_ONE
        runners.imports.log_dllogger.STEP_S runners.imports.log_dllogger.TOKENS_PER_S
        runners.imports.log_dllogger.SAMPLES_PER_S
        runners.probes.anonymous._ENV_KEPT app.web.link._KEPT hardware.habits.remat.KEPT""",
    "how long a text of ours is, or how it is laid out": """
        app.audit.published.WIDEST app.calibration.document.MOST_HOSTS
        app.forecast.calibrations.ID_CHARS
        app.document.chart_files.ARROW_BYTES app.document.chart_files.ENDS_DIGITS
        app.document.chart_files.WORTH_BYTES
        app.imports.row.ID_CHARS app.operate.data.SHOWN
        app.document.format.MOST_DIGITS app.document.glossary.MOST app.provenance.hints.MOST
        app.document.terminal.WIDEST
        app.options.compare_section.MOST_TERMS app.guides.page.MOST_TERMS app.launch.page.MOST_TERMS
        app.method.page.MOST_TERMS pricing.lease.RECORD_BYTES pricing.store.condition.WRONG_SHOWN
        app.log.redaction.LEAST_CHARS""",
    "a pause or a pace, and nobody is refused by it": """
        app.web.answers.LOOK_S runners.launchers.launcher.LOOK_S
        runners.launchers.launcher.CHUNK_BYTES app.web.searches.LOOK_S app.web.searches.FIRST_S
        app.web.first_look.WAIT_S app.web.first_look.RANKED_S app.sweep.results.CHUNK_ROWS
        pricing.backup.make.LOOK_S
        app.sweep.run.SAY_EVERY_S""",
    "another name of one that is listed": """
        app.accuracy.upload_section.UPLOAD_MB""",
}


def rows() -> list[tuple[str, list[str]]]:
    """The value and the names of each row."""
    found = []
    for line in PAGE.splitlines():
        if line.startswith("| ") and not line.startswith("| what is bounded"):
            _, value, names, _, said = (c.strip() for c in line.strip("|").split("|"))
            assert said, line
            found.append((value, re.findall(r"`([^`]+)`", names)))
    return found


def listed() -> set[str]:
    return {name for _, names in rows() for name in names}


@pytest.fixture(scope="module")
def constants(project_files) -> set[str]:
    shipped = {p.relative_to(ROOT).as_posix(): p for p in project_files if p.suffix == ".py"}
    sources = {n: p.read_text() for n, p in shipped.items() if n.split("/")[0] in PACKAGES}
    return {dotted(path, name) for path, name in bounding(sources)}


def test_the_page_has_rows():
    assert len(rows()) > 120
    assert len(listed()) > 150


def test_every_figure_on_the_page_is_the_one_of_the_code():
    """A row of one value names every constant that has it; of several values, one constant each."""
    wrong = []
    for value, names in rows():
        each = [written(value_of(name)) for name in names]
        whole = ", ".join(each)
        same = each[0] if len(set(each)) == 1 else whole
        if not any(re.match(rf"{re.escape(w)}(?![\d,.]*\d)", value) for w in (whole, same)):
            wrong.append(f"{names}: the page says {value!r}, the code {whole}")
    assert wrong == []


def test_every_bound_of_the_code_is_on_the_page_or_is_none(constants):
    known = {name for names in INTERNAL.values() for name in names.split()}
    missing = constants - listed() - known
    assert missing == set(), "add them to docs/limits.md, or to INTERNAL with the reason"


def test_no_exception_is_left_of_a_constant_that_is_gone(constants):
    known = {name for names in INTERNAL.values() for name in names.split()}
    assert known - constants == set()
    assert known & listed() == set()


def test_a_bound_is_found_by_its_name():
    source = "MAX_BYTES = 3\nA, MOST_B = 1, 2\nLIMIT: int = 4\nx = 5\nPART_S = 2.0\nSMAXED = 1\n"
    found = {name for _, name in bounding({"app/x.py": source})}
    assert found == {"MAX_BYTES", "MOST_B", "LIMIT", "PART_S"}
    assert {n for _, n in bounding({"core/x.py": source})} == {"MAX_BYTES", "MOST_B", "LIMIT"}


def test_a_wrong_figure_would_be_found():
    assert written(1_000_000) == "1,000,000"
    assert not re.match(r"1,000(?![\d,.]*\d)", "1,000,000 bytes")
    assert value_of("pricing.sources.aws_on_demand.deadline_s") == 1200
    assert value_of("server.maxUploadSize") == 2
