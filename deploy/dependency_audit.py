"""Known vulnerabilities of what a server installs: pip-audit over its lock, with nothing skipped.

pip-audit ends with "No known vulnerabilities found" and status 0 where it found no package in its
database at all, as behind a mirror of an index. Here that is a failure: every package of the lock
must have been looked up, at its locked version.

    python deploy/dependency_audit.py              # against the index's own advisories
    python deploy/dependency_audit.py --service osv [--osv-url URL]

Exit status: 0 nothing known against any package; 1 something is known; 2 the audit is not whole.
Needs pip-audit in the environment of the interpreter (`make -f deploy/Makefile audit` makes one).
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

LOCK = Path(__file__).with_name("requirements.lock")
CLEAN, VULNERABLE, NOT_WHOLE = 0, 1, 2
LONGEST_S = 900
SHOWN = 5  # of packages in a sentence
AGAIN = "run `make -f deploy/Makefile lock`."


class AuditError(Exception):
    """Why an audit says nothing."""


def normal(name: str) -> str:
    """The name of a distribution as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(text: str) -> dict[str, str]:
    """Name -> version of what a lock installs on this kind of machine.

    Raises AuditError where a line is no exact version with a sha256 of 64 digits.
    """
    found: dict[str, str] = {}
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        wanted, *hashes = line.split("--hash=")
        if not hashes or not all(re.fullmatch(r"sha256:[0-9a-f]{64}\s*", h) for h in hashes):
            raise AuditError(f"{wanted.strip()!r} has no sha256 of its files: {AGAIN}")
        requirement = Requirement(wanted.strip())
        exact = re.fullmatch(r"==([\w.+!]+)", str(requirement.specifier))
        if not exact:
            raise AuditError(f"{wanted.strip()!r} is no exact version: {AGAIN}")
        if requirement.marker is None or requirement.marker.evaluate():
            found[normal(requirement.name)] = exact[1]
    if not found:
        raise AuditError(f"The lock names no package: {AGAIN}")
    return found


def reported(said: str, status: int) -> dict[str, dict[str, Any]]:
    """Name -> what pip-audit said of it, from its JSON.

    Raises AuditError where it said nothing that can be read, as without its database.
    """
    try:
        rows = json.loads(said)["dependencies"]
        found = {normal(row["name"]): row for row in rows}
    except (ValueError, KeyError, TypeError):
        why = f"pip-audit ended with {status} and no report: is its database within reach?"
        raise AuditError(why) from None
    if status not in (0, 1):
        raise AuditError(f"pip-audit ended with {status}, which it does where it could not finish.")
    return found


def known(report: dict[str, dict[str, Any]]) -> list[str]:
    """A line for each vulnerability that is known."""
    lines = []
    for name, row in sorted(report.items()):
        for flaw in row.get("vulns", []):
            called = ", ".join([flaw["id"], *flaw.get("aliases", [])])
            fixed = ", ".join(flaw.get("fix_versions", [])) or "no version yet"
            lines.append(f"{name} {row.get('version')}: {called}; fixed in {fixed}")
    return lines


def gaps(report: dict[str, dict[str, Any]], lock: dict[str, str]) -> list[str]:
    """A line for each reason why packages of the lock count as not audited."""
    skipped: dict[str, list[str]] = {}
    for name, row in report.items():
        if "skip_reason" in row:
            # The reason names the package: without that, those that share one are one line.
            reason = re.split(r":\s", str(row["skip_reason"]), maxsplit=1)[0]
            skipped.setdefault(f"skipped ({reason})", []).append(name)
    for name, version in lock.items():
        said = report.get(name, {})
        if "skip_reason" in said:
            continue
        if "vulns" not in said:
            skipped.setdefault("not in the report", []).append(name)
        elif said.get("version") != version:
            skipped.setdefault("looked up at another version", []).append(name)
    return [
        f"{len(names)} of {len(lock)} packages {why}: {', '.join(sorted(names)[:SHOWN])}"
        + (" ..." if len(names) > SHOWN else "")
        for why, names in skipped.items()
    ]


def judged(said: str, status: int, lock: dict[str, str]) -> tuple[int, list[str]]:
    """The exit status and the lines of an audit, from what pip-audit printed and ended with."""
    report = reported(said, status)
    flaws, holes = known(report), gaps(report, lock)
    if status == 1 and not flaws:
        holes.append("pip-audit ended with 1 and names no vulnerability")
    if flaws:
        return VULNERABLE, flaws + holes
    if holes:
        return NOT_WHOLE, [*holes, "This audit proves nothing."]
    return CLEAN, [f"{len(lock)} packages audited, none skipped: no vulnerability is known."]


def asked(arguments: list[str], lock: Path) -> tuple[str, int, str]:
    """pip-audit over a lock: its output, its status, and the last line of its errors."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(lock), "--disable-pip",
               "--require-hashes", "--format", "json", "--progress-spinner", "off"]  # fmt: skip
    try:
        done = subprocess.run(
            [*command, *arguments],
            capture_output=True, text=True, timeout=LONGEST_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise AuditError(f"pip-audit did not end within {LONGEST_S} s.") from None
    return done.stdout, done.returncode, (done.stderr.strip().splitlines() or [""])[-1]


def main(argv: list[str] | None = None) -> int:
    """Audit a lock and print what was found."""
    parser = argparse.ArgumentParser(description="Audit the lock; fail when anything was skipped.")
    parser.add_argument("lock", nargs="?", type=Path, default=LOCK)
    parser.add_argument("--service", choices=("pypi", "osv"), default="pypi")
    parser.add_argument("--osv-url", help="an OSV service of your own")
    given = parser.parse_args(argv)
    service = ["--vulnerability-service", given.service]
    if given.osv_url:
        service += ["--osv-url", given.osv_url]
    try:
        lock = locked(given.lock.read_text())
        said, ended, error = asked(service, given.lock)
        try:
            status, lines = judged(said, ended, lock)
        except AuditError as e:
            raise AuditError(f"{e} {error}".strip()) from None
    except (AuditError, OSError) as e:
        status, lines = NOT_WHOLE, [str(e), "This audit proves nothing."]
    print(*lines, sep="\n", file=sys.stdout if status == CLEAN else sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
