"""The real pip-audit, of deploy/Makefile, over this lock: against a service of known flaws on the
loopback, one that is not there, and this machine's own index."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.browsing import ROOT
from tests.support.processes import free_port

pytestmark = pytest.mark.services

PYTHON = os.environ.get("RUNCAST_AUDIT_PYTHON") or Path(sys.prefix, "audit/bin/python")
LOCK = ROOT / "deploy/requirements.lock"
FLAW = {
    "id": "GHSA-0000-0000-0000", "aliases": ["CVE-2099-0001"], "summary": "Made up by a test",
    "published": "2026-01-01T00:00:00Z", "modified": "2026-01-01T00:00:00Z",
    "affected": [{
        "package": {"name": "h11", "ecosystem": "PyPI"}, "versions": ["0.16.0"],
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "0.17.0"}]}],
    }],
}  # fmt: skip


@contextmanager
def osv(flawed: str | None) -> Iterator[tuple[str, list[str]]]:
    """An OSV service that knows a flaw of one package; its address, and whom it was asked about."""
    asked: list[str] = []

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(query["package"]["name"])
            body = json.dumps({"vulns": [FLAW]} if asked[-1] == flawed else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing on the terminal of the tests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1/query", asked
        server.shutdown()
        thread.join()


def audited(*arguments: str) -> subprocess.CompletedProcess[str]:
    if not Path(PYTHON).exists():
        pytest.skip("pip-audit is not installed: make -f deploy/Makefile audit")
    return subprocess.run(
        [PYTHON, ROOT / "deploy/dependency_audit.py", *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_every_package_of_the_lock_is_asked_about_and_found_clean():
    with osv(None) as (url, asked):
        done = audited("--service", "osv", "--osv-url", url)
    assert done.returncode == 0, done.stderr
    names = set(re.findall(r"^([\w.-]+)==", LOCK.read_text(), re.M)) - {"colorama"}  # Windows
    assert set(asked) == names
    assert done.stdout.startswith(f"{len(names)} packages audited, none skipped")


def test_a_known_flaw_fails_the_audit():
    with osv("h11") as (url, _):
        done = audited("--service", "osv", "--osv-url", url)
    assert done.returncode == 1
    assert re.search(r"h11 0\.16\.0: .*CVE-2099-0001.*; fixed in 0\.17\.0", done.stderr)


def test_a_database_out_of_reach_fails_the_audit():
    done = audited("--service", "osv", "--osv-url", f"http://127.0.0.1:{free_port()}/v1/query")
    assert done.returncode == 2
    assert done.stderr.endswith("This audit proves nothing.\n")


def test_the_index_of_this_machine_gives_a_whole_audit_or_a_failure():
    """Behind a mirror pip-audit finds no package, and calls that no vulnerability."""
    done = audited()
    assert done.returncode in (0, 1, 2)
    assert (done.returncode == 0) == ("none skipped" in done.stdout)
    assert (done.returncode == 2) == ("This audit proves nothing." in done.stderr)
