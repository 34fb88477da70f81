"""What `runcast doctor` finds, what it says to do, and how it ends."""

import json
import re
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.operate import data as doctor_data
from app.operate import installed, settings, tools
from app.operate import prices as operate_prices
from app.operate.doctor import examined, summary, worst
from app.operate.finding import Finding
from app.scenario.version import commit
from pricing.disk import write_atomically
from pricing.source_state import SourceState, State, write_state
from pricing.store.opening import open_store
from tests.support.documented_keys import paths

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
DOCUMENT = (Path(__file__).parents[3] / "docs/operations.md").read_text(encoding="utf-8")
DOCUMENTED = set(re.findall(r"`([\w.\[\]]+)`", DOCUMENT))


@pytest.fixture(autouse=True)
def data(monkeypatch, tmp_path):
    """An installation that keeps nothing yet, and no tool that could answer slowly."""
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(tools, "TOOLS", tools.TOOLS[:1])
    return tmp_path / "data"


def named(found, name):
    return next(f for f in found if f.name == name)


def test_a_fresh_clone_is_not_broken():
    found = examined()
    assert worst(found) in ("note", "warning")
    assert {f.area for f in found} == {"installed", "store", "prices", "data", "settings", "tools"}
    assert not [f for f in found if f.state in ("warning", "broken") and not f.todo]
    assert not [f for f in found if f.state == "broken"]


def test_both_forms_say_the_same_and_every_key_is_documented(run, data):
    open_store()
    write_state(State(sources={"oci": SourceState(name="oci", attempted_at="x")}), data / "prices")
    status, out, err = run("doctor", "--json")
    said = json.loads(out)
    assert (status, err) == (0, "")
    assert {*paths(said)} <= DOCUMENTED
    status, out, _ = run("doctor")
    assert status == 0
    for finding in said["findings"]:
        assert finding["name"] in out
    assert "Nothing is broken" in out


def test_ready_is_asked_alone(run):
    status, out, _ = run("doctor", "--ready")
    assert status == 0
    assert [line.split(":")[0] for line in out.splitlines()] == [
        "ok  tables", "ok  prices", "ok  store",
    ]  # fmt: skip
    said = json.loads(run("doctor", "--ready", "--json")[1])
    assert said["status"] == "ready"
    assert {*paths(said)} <= DOCUMENTED


def test_a_broken_store_ends_with_two_and_says_what_to_do(run, data):
    write_atomically(data / "prices/store.sqlite", b"no database at all" * 100)
    status, out, err = run("doctor", "--json")
    assert (status, err) == (2, "")
    store = next(f for f in json.loads(out)["findings"] if f["area"] == "store")
    assert "file is not a database" in store["value"]
    status, out, err = run("doctor")
    assert (status, err) == (2, "")
    assert "restore a backup" in " ".join(out.split())
    assert "1 broken" in out
    status, out, _ = run("doctor", "--ready")
    assert (status, "NOT READY  store" in out) == (2, True)


def test_one_look_that_fails_does_not_keep_the_others_from_looking(data):
    write_atomically(data / "prices/state.json", b"{")
    found = examined()
    assert [f.area for f in found if f.state == "broken"] == ["prices"]
    assert found[-1].area == "tools"


# --- installed -----------------------------------------------------------------------------------


def test_a_package_that_is_not_at_its_pin_is_a_warning(monkeypatch):
    pins = installed.pinned(installed.PINS)
    monkeypatch.setattr(installed, "pinned", lambda path: {**pins, "numpy": "1.0.0"})
    found = named(installed.look(NOW), "numpy")
    assert found.state == "warning"
    assert found.value.endswith(", tested with 1.0.0")
    assert "pip install" in found.todo


def test_a_package_that_is_missing_is_broken(monkeypatch):
    monkeypatch.setattr(installed, "asked_for", lambda: ["no-such-package-of-runcast"])
    found = named(installed.look(NOW), "no-such-package-of-runcast")
    assert (found.state, found.value) == ("broken", "missing")


def test_every_package_that_is_asked_for_is_looked_at():
    names = {f.name for f in installed.look(NOW)}
    assert {"runcast", "python", "streamlit", "sqlalchemy", "numpy", "psycopg"} <= names


def test_the_commit_of_a_checkout_is_read_from_its_files(tmp_path):
    id = "0123456789" * 4
    assert commit(tmp_path) == ""
    write_atomically(tmp_path / ".git/HEAD", b"ref: refs/heads/main\n")
    write_atomically(tmp_path / ".git/packed-refs", f"# pack\n{id} refs/heads/main\n".encode())
    assert commit(tmp_path) == id
    write_atomically(tmp_path / ".git/refs/heads/main", b"a" * 40)
    assert commit(tmp_path) == "a" * 40
    write_atomically(tmp_path / ".git/HEAD", b"<script>\n")
    assert commit(tmp_path) == ""


# --- prices --------------------------------------------------------------------------------------


def at(**ago):
    return (NOW - timedelta(**ago)).isoformat()


def test_sources_that_fail_or_are_silent_are_warnings(data, monkeypatch):
    monkeypatch.delenv("LAMBDA_API_KEY", raising=False)
    sources = {
        "oci": SourceState(name="oci", attempted_at=at(hours=1), succeeded_at=at(hours=1), rows=7),
        "vast": SourceState(name="vast", attempted_at=at(hours=1), succeeded_at=at(days=40)),
        "verda": SourceState(name="verda", attempted_at=at(hours=1), sentence="It said 500."),
        "azure": SourceState(
            name="azure", attempted_at=at(hours=1), succeeded_at=at(hours=1), sentence="In part."
        ),
        "runpod": SourceState(name="runpod", attempted_at=at(), succeeded_at=at(days=-3)),
    }
    write_state(State(sources=sources), data / "prices")
    found = {f.name: f for f in operate_prices.look(NOW)}
    assert (found["oci"].state, found["oci"].value) == ("ok", "7 prices, answered 1 hours ago")
    assert found["vast"].todo.startswith("It has not answered since: `runcast refresh --source")
    assert found["verda"].todo == "It failed: It said 500."
    assert "In part." in found["azure"].todo
    assert found["runpod"].todo == "Set this machine's clock."
    assert (found["gpuhunt"].state, found["gpuhunt"].value) == ("note", "never answered")
    warned = {"vast", "verda", "azure", "runpod"}
    assert {n for n, f in found.items() if f.state == "warning"} - {"snapshot"} == warned


@pytest.mark.parametrize(
    ("years", "todo"), [(-10, "set this machine's clock"), (0, ""), (10, "runcast refresh")]
)
def test_prices_of_a_day_to_come_or_long_gone_are_warnings(years, todo):
    newest = datetime.fromisoformat(f"{operate_prices.snapshot().newest[:10]}T00:00:00+00:00")
    now = newest + timedelta(days=365 * years + 1)
    found = named(operate_prices.look(now), "snapshot")
    assert todo in found.todo
    assert (found.state == "warning") == bool(todo)


# --- data ----------------------------------------------------------------------------------------


def test_damaged_files_are_counted_and_named(data):
    write_atomically(data / "calibrations/0123456789abcdef.json", b"{}")
    write_atomically(data / "price_books/acme.json", b"{}")
    found = list(doctor_data.look_at_files(NOW))
    assert named(found, "calibrations").todo == "Damaged, add again: 0123456789abcdef."
    assert named(found, "price books").todo == "Damaged, add again: acme."


@pytest.mark.parametrize(
    ("free", "state"), [(10_000, "broken"), (500_000_000, "warning"), (5_000_000_000, "ok")]
)
def test_a_disk_that_fills_up_is_said_before_it_is_full(monkeypatch, free, state):
    usage = doctor_data.shutil.disk_usage("/")._replace(free=free)
    monkeypatch.setattr(doctor_data.shutil, "disk_usage", lambda path: usage)
    assert named(doctor_data.look_at_files(NOW), "folder").state == state


def test_the_store_says_what_is_in_it():
    open_store()
    (found,) = doctor_data.look_at_store(NOW)
    assert (found.state, found.numbers["saved_scenarios"]) == ("ok", 0)
    assert found.numbers["size_bytes"] > 0
    assert "integrity ok" in found.value


# --- settings ------------------------------------------------------------------------------------


@pytest.fixture
def options(monkeypatch):
    """Settings of Streamlit as given, the others as a server should have them."""
    sound = {
        "server.address": "127.0.0.1", "server.port": 8501, "server.allowedHosts": ["a"],
        "client.showErrorDetails": "none", "server.enableXsrfProtection": True,
        "server.enableCORS": True, "browser.gatherUsageStats": False, "secrets.files": [],
    }  # fmt: skip

    def given(**changed):
        asked = {**sound, **{k.replace("_", "."): v for k, v in changed.items()}}
        monkeypatch.setattr(settings, "_from_file", asked.__getitem__)
        return {f.name: f for f in settings.look(NOW) if f.name != "address"}

    for name in ("RUNCAST_USER_HEADER", "RUNCAST_PROXY_SECRET", "RUNCAST_LOG_LEVEL"):
        monkeypatch.delenv(name, raising=False)
    return given


def test_settings_as_they_should_be_are_no_risk(options):
    assert list(options()) == ["risks"]


@pytest.mark.parametrize(
    ("changed", "environ", "risk"),
    [
        ({"server_address": "0.0.0.0", "server_allowedHosts": []}, {}, "server.allowedHosts"),
        ({"server_address": None, "server_allowedHosts": []}, {}, "server.allowedHosts"),
        ({"client_showErrorDetails": "full"}, {}, "client.showErrorDetails"),
        ({"server_enableXsrfProtection": False}, {}, "server.enableXsrfProtection"),
        ({"server_enableCORS": False}, {}, "server.enableCORS"),
        ({"browser_gatherUsageStats": True}, {}, "browser.gatherUsageStats"),
        ({}, {"RUNCAST_LOG_LEVEL": "debug"}, "RUNCAST_LOG_LEVEL"),
        ({"server_allowedHosts": []}, {"STREAMLIT_SERVER_ADDRESS": "::"}, "server.allowedHosts"),
        ({}, {"STREAMLIT_SERVER_ENABLE_XSRF_PROTECTION": "0"}, "server.enableXsrfProtection"),
        ({}, {"STREAMLIT_CLIENT_SHOW_ERROR_DETAILS": "full"}, "client.showErrorDetails"),
        ({"server_address": "0.0.0.0"}, {"RUNCAST_USER_HEADER": "X-A"}, "RUNCAST_USER_HEADER"),
        (
            {},
            {"RUNCAST_USER_HEADER": "X-A", "RUNCAST_PROXY_SECRET": "short"},
            "RUNCAST_PROXY_SECRET",
        ),
    ],
)
def test_each_setting_that_a_server_should_not_have_is_a_warning(
    options, monkeypatch, changed, environ, risk
):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    found = options(**changed)
    assert list(found) == [risk]
    assert found[risk].state == "warning"
    assert found[risk].todo
    assert "short" not in found[risk].value


def test_secrets_that_others_may_read_are_a_warning(options, tmp_path):
    file = tmp_path / "secrets.toml"
    file.write_text("a = 1")
    file.chmod(0o600)
    assert list(options(secrets_files=[str(file)])) == ["risks"]
    file.chmod(0o600 | stat.S_IRGRP)
    assert list(options(secrets_files=[str(file)])) == ["secrets.toml"]


# --- tools ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("echo 'OpenSSH_9.2p1 Debian' >&2", "9.2p1"),
        ("echo nothing of use", "here, version unknown"),
        ("exit 3", "here, version unknown"),
        ("sleep 60", "here, version unknown"),
    ],
)
def test_a_tool_says_its_version_or_nothing(monkeypatch, tmp_path, script, value):
    tool = tmp_path / "ssh"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setattr(tools, "WAIT_S", 0.3)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = named(tools.look(NOW), "ssh")
    assert (found.state, found.value) == ("ok", value)


def test_a_tool_that_is_not_there_says_what_it_is_for(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = named(tools.look(NOW), "ssh")
    assert (found.state, found.value) == ("note", "not here: calibrating hosts over SSH")


def test_the_last_line_counts():
    some = [
        Finding(area="a", name=n, state=s, value="")
        for n, s in zip("abc", ("ok", "broken", "warning"), strict=True)
    ]
    assert summary(some) == "1 broken, 1 warning."
    assert worst(some) == "broken"
    assert worst([]) == "ok"
