"""The audit of dependencies: what pip-audit 2.10.1 printed, and what became of it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
LOCK = {"h11": "0.16.0", "idna": "3.20", "tenacity": "9.2.1"}
# As pip-audit printed them: of an OSV service that knows nothing, of one that knows a made-up flaw,
# and of an index whose packages have no advisories.
CLEAN = """{"dependencies": [{"name": "h11", "version": "0.16.0", "vulns": []}, {"name": "idna",
"version": "3.20", "vulns": []}, {"name": "tenacity", "version": "9.2.1", "vulns": []}],
"fixes": []}"""
VULNERABLE = """{"dependencies": [{"name": "h11", "version": "0.16.0", "vulns": [{"id":
"CVE-2099-0001", "fix_versions": ["0.17.0"], "aliases": ["GHSA-test"], "description":
"A made-up advisory of a test"}]}, {"name": "idna", "version": "3.20", "vulns": []}, {"name":
"tenacity", "version": "9.2.1", "vulns": []}], "fixes": []}"""
SKIPPED = """{"dependencies": [{"name": "h11", "skip_reason": "Dependency not found on PyPI and
 could not be audited: h11 (0.16.0)"}, {"name": "idna", "skip_reason": "Dependency not found on PyPI
 and could not be audited: idna (3.20)"}, {"name": "tenacity", "skip_reason": "Dependency not found
 on PyPI and could not be audited: tenacity (9.2.1)"}], "fixes": []}""".replace("\n", "")


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    """The tool, which is a file of its own."""
    spec = importlib.util.spec_from_file_location("audit", ROOT / "deploy/dependency_audit.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_whole_audit_without_a_finding_is_clean(audit):
    status, lines = audit.judged(CLEAN, 0, LOCK)
    assert (status, len(lines)) == (0, 1)
    assert lines[0].startswith("3 packages audited, none skipped")


def test_a_known_vulnerability_is_named_with_its_fix(audit):
    status, lines = audit.judged(VULNERABLE, 1, LOCK)
    assert status == 1
    assert lines == ["h11 0.16.0: CVE-2099-0001, GHSA-test; fixed in 0.17.0"]


def test_what_pip_audit_calls_no_vulnerability_fails_where_all_was_skipped(audit):
    status, lines = audit.judged(SKIPPED, 0, LOCK)
    assert status == 2
    assert lines[0].startswith("3 of 3 packages skipped (Dependency not found on PyPI")
    assert lines[-1] == "This audit proves nothing."


def test_one_skipped_package_is_enough(audit):
    rows = json.loads(CLEAN)
    rows["dependencies"][1] = json.loads(SKIPPED)["dependencies"][1]
    status, lines = audit.judged(json.dumps(rows), 0, LOCK)
    assert (status, "1 of 3" in lines[0], "idna" in lines[0]) == (2, True, True)
    rows["dependencies"][0] = json.loads(VULNERABLE)["dependencies"][0]
    status, lines = audit.judged(json.dumps(rows), 1, LOCK)
    assert (status, len(lines)) == (1, 2)  # the finding, and the hole beside it


def test_a_package_that_the_report_leaves_out_or_has_at_another_version_counts_as_skipped(audit):
    rows = json.loads(CLEAN)
    del rows["dependencies"][2]
    rows["dependencies"][0]["version"] = "0.15.0"
    status, lines = audit.judged(json.dumps(rows), 0, LOCK)
    assert status == 2
    assert "h11" in next(line for line in lines if "another version" in line)
    assert "tenacity" in next(line for line in lines if "not in the report" in line)


@pytest.mark.parametrize(
    ("said", "status"),
    [("", 1), ("Traceback", 1), ("[]", 0), ('{"dependencies": [1]}', 0), (CLEAN, 2), (CLEAN, -9)],
)
def test_no_report_or_an_odd_end_is_no_audit(audit, said, status):
    with pytest.raises(audit.AuditError):
        audit.judged(said, status, LOCK)


def test_an_end_with_1_and_no_finding_is_not_clean(audit):
    assert audit.judged(CLEAN, 1, LOCK)[0] == 2


@pytest.mark.parametrize(
    "line",
    ["h11==0.16.0", "h11>=0.16 --hash=sha256:" + "0" * 64, "h11==0.16.0 --hash=sha256:0", "# none"],
)
def test_what_is_no_lock_is_refused(audit, line):
    with pytest.raises(audit.AuditError, match="deploy/Makefile lock"):
        audit.locked(line)


def test_without_pip_audit_or_a_lock_it_fails_and_says_so(audit, tmp_path, capsys):
    """pip-audit is no dependency of the tests: here it ends at once."""
    assert audit.main([str(tmp_path / "missing")]) == 2
    assert "missing" in capsys.readouterr().err
    if importlib.util.find_spec("pip_audit") is None:
        assert audit.main([]) == 2
        assert "No module named pip_audit" in capsys.readouterr().err
