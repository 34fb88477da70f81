"""A restore that is killed is ended by the same command."""

import os
import signal
import subprocess
import sys
import zipfile

import pytest

from pricing.backup.make import backup, kept_files
from pricing.backup.restore import restore
from pricing.disk import write_atomically
from pricing.store.opening import open_store
from pricing.store.saved import save_scenario, saved_scenarios
from tests.support.browsing import ROOT

pytestmark = pytest.mark.services
# Dies as a process does that loses its power, at the nth step of putting things in their place.
KILLED = """
import os, shutil, sys
from pathlib import Path
from pricing.backup import restore as r
left = [int(sys.argv[2])]
def dying(call):
    def called(*args):
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), 9)
        return call(*args)
    return called
r.shutil.move, r.load_sqlite = dying(shutil.move), dying(r.load_sqlite)
r.restore(Path(sys.argv[1]), replace=True)
"""


def fill(folder, monkeypatch, *names):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(folder))
    for name in names:
        write_atomically(folder / f"price_books/{name}.json", name.encode())
        write_atomically(folder / f"calibrations/{name}.json", name.encode())
        save_scenario(open_store(), owner="local", name=name, query="model=llama3.1-8b")


@pytest.mark.parametrize("step", [1, 3, 5])
def test_a_killed_restore_loses_nothing_and_is_ended_by_another(tmp_path, monkeypatch, step):
    fill(tmp_path / "first", monkeypatch, "one", "two")
    backup(tmp_path / "b.zip", version="0.1.0")
    here = tmp_path / "second"
    fill(here, monkeypatch, "mine")
    done = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path / "b.zip", str(step)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    everywhere = {p.name for p in here.rglob("*.json")}
    assert "mine.json" in everywhere  # aside, or still in its place
    (aside,) = here.glob("before-restore-*")
    aside.rename(here / "before-restore-killed")  # the next one may begin in the same second
    restore(tmp_path / "b.zip", replace=True)
    assert sorted(s.name for s in saved_scenarios(open_store(), owner="local")) == ["one", "two"]
    with zipfile.ZipFile(tmp_path / "b.zip") as file:
        wanted = {n for n in file.namelist() if n not in ("manifest.json", "store.sqlite")}
    assert set(kept_files(here)) == wanted
    assert not list(here.glob(".restore-*"))
