"""A real PostgreSQL that the tests start themselves, in a folder and on a port of its own.

Without one the tests that need it are skipped, and where CI is set they fail: see `make postgres`.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.support.processes import free_port

PASSWORD = "canary-passw0rd"  # that no sentence may repeat
START_S = 30


@dataclass
class Server:
    """A running server, and the account that it runs as (root may not be one)."""

    programs: Path
    folder: Path
    port: int
    account: str | None

    def run(self, program: str, *arguments: str) -> None:
        """Run one of its own programs."""
        with (self.folder / "log").open("a") as log:
            subprocess.run(
                [self.programs / program, *arguments],
                cwd=self.folder,
                user=self.account,
                group=self.account and pwd.getpwnam(self.account).pw_gid,
                extra_groups=self.account and [],
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=START_S * 2,
                check=True,
            )

    def start(self) -> None:
        settings = (
            f"-c port={self.port} -c listen_addresses=127.0.0.1 "
            f"-c unix_socket_directories={self.folder} -c fsync=off -c max_connections=40"
        )
        data = str(self.folder / "data")
        log = str(self.folder / "server.log")
        self.run("pg_ctl", "start", "-w", "-t", str(START_S), "-D", data, "-l", log, "-o", settings)

    def stop(self) -> None:
        data = str(self.folder / "data")
        self.run("pg_ctl", "stop", "-w", "-t", str(START_S), "-m", "fast", "-D", data)

    def url(self, database: str = "runcast", password: str = PASSWORD) -> str:
        return f"postgresql://runcast:{password}@127.0.0.1:{self.port}/{database}"


def programs() -> Path | None:
    """Where initdb and pg_ctl of the newest installed server are."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return installed[-1].parent if installed else None


def _account() -> str | None:
    """Another account than root, which the server refuses."""
    if os.geteuid() != 0:
        return None
    known = {user.pw_name for user in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """One server for all tests of this process; stopped by its own pg_ctl."""
    found = programs()
    if found is None:
        missing = "There is no PostgreSQL (initdb, pg_ctl): apt-get install postgresql."
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    folder = Path(tempfile.mkdtemp(prefix="runcast-pg-"))  # short: a socket's path is bounded
    account = _account()
    if account:
        shutil.chown(folder, account)
    port = free_port()
    server = Server(programs=found, folder=folder, port=port, account=account)
    try:
        secret = folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        server.run(
            "initdb", "-D", str(folder / "data"), "-U", "runcast", "-A", "scram-sha-256",
            f"--pwfile={secret}", "-E", "UTF8", "--no-sync",
        )  # fmt: skip
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_server: Server) -> Iterator[str]:
    """The address of an empty database, dropped afterwards."""
    name = f"runcast_{secrets.token_hex(4)}"
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield postgres_server.url(name)
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def store_environ(request: pytest.FixtureRequest) -> Callable[[str], dict[str, str]]:
    """The environment of a store: nothing for SQLite, an empty database for PostgreSQL."""

    def environ(kind: str) -> dict[str, str]:
        if kind == "sqlite":
            return {}
        return {"RUNCAST_DATABASE_URL": request.getfixturevalue("postgres_url")}

    return environ
