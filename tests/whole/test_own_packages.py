"""`import runcast` in a folder that has modules of our packages' names."""

import os
import subprocess
import sys

import pytest

from tests.support.browsing import ROOT


def python(folder, program):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=env, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["app", "core", "hardware"])
def test_a_module_of_the_folder_is_not_taken_for_ours(tmp_path, name):
    (tmp_path / f"{name}.py").write_text("raise SystemExit('foreign')\n")
    done = python(tmp_path, "import runcast; print('llama3.1-8b' in runcast.models())")
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_one_that_is_imported_already_is_named(tmp_path):
    (tmp_path / "app.py").write_text("")
    done = python(tmp_path, "import app\nimport runcast")
    assert f"A module 'app' of another origin is imported already ({tmp_path / 'app.py'})" in (
        done.stderr
    )


def test_importing_it_takes_no_time(tmp_path):
    program = "import sys; old = {*sys.modules}; import runcast; print(*{*sys.modules} - old)"
    loaded = {*python(tmp_path, program).stdout.split()}
    assert "runcast" in loaded
    assert loaded & {"numpy", "pandas", "pydantic", "runcast.api"} == set()
