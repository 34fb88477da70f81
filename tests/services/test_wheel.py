"""The wheel in an environment of its own, in a folder whose app.py has the name of our package."""

import json
import os
import subprocess
import sys
import sysconfig
import time
import urllib.request
import venv
import zipfile

import pytest

from tests.support.browsing import ROOT, START_S, is_healthy
from tests.support.processes import free_port

pytestmark = [pytest.mark.services, pytest.mark.slow]
FOREIGN = "raise SystemExit('the app.py of this folder was imported')\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory, project_files):
    """The wheel of this tree, built where nothing else is."""
    folder = tmp_path_factory.mktemp("wheel")
    for file in project_files:
        target = folder / "source" / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", str(folder), "."]
    subprocess.run(build, cwd=folder / "source", check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of an environment with the wheel, and what it needs from ours."""
    env = tmp_path_factory.mktemp("env")
    venv.create(env, with_pip=False, symlinks=True)
    (site,) = (env / "lib").glob("python*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    install = [sys.executable, "-m", "pip", "--python", str(env / "bin/python"), "install"]
    subprocess.run([*install, "--no-deps", str(wheel)], check=True, capture_output=True)
    return env / "bin/python"


@pytest.mark.serial  # seconds
def test_the_base_installation_is_small_and_quick(wheel, tmp_path):
    """Without the packages that venv brings, and with the compiled modules that pip makes."""
    venv.create(tmp_path / "env", with_pip=True)
    (site,) = (tmp_path / "env/lib").glob("python*/site-packages")
    before = size_mb(site)
    pip = [tmp_path / "env/bin/python", "-m", "pip", "--disable-pip-version-check", "install"]
    started = time.monotonic()
    subprocess.run(
        [*pip, "--no-cache-dir", "-c", ROOT / "requirements.txt", wheel],
        check=True, capture_output=True,
    )  # fmt: skip
    assert time.monotonic() - started < 25
    assert size_mb(site) - before < 250


def size_mb(folder):
    return sum(p.lstat().st_blocks for p in folder.rglob("*")) * 512 / 2**20


@pytest.fixture
def shell(tmp_path):
    """A folder with an app.py, and what a shell there has set."""
    (tmp_path / "app.py").write_text(FOREIGN)
    ours = ("PYTHONPATH", "VIRTUAL_ENV", "RUNCAST_TODAY")
    env = {name: value for name, value in os.environ.items() if name not in ours}
    return {"cwd": tmp_path, "env": {**env, "RUNCAST_DATA_DIR": str(tmp_path / "data")}}


def test_the_wheel_has_the_settings_of_the_page(wheel):
    assert "app/.streamlit/config.toml" in zipfile.ZipFile(wheel).namelist()


@pytest.mark.parametrize(
    "command", [["-m", "runcast"], ["-c", "import runcast.__main__ as m; m.main()"]]
)
def test_the_command_and_the_module_work_beside_an_app_of_the_user(python, shell, command):
    done = subprocess.run(
        [python, *command, "models", "--json"], **shell, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


def test_it_serves_the_page_from_any_folder(python, shell, tmp_path):
    port = free_port()
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [python.with_name("runcast"), "serve", "--no-browser", "--port", str(port)],
            **shell, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        url = f"http://127.0.0.1:{port}"
        until = time.monotonic() + START_S
        while time.monotonic() < until and process.poll() is None and not is_healthy(url):
            time.sleep(0.1)
        assert process.poll() is None, (tmp_path / "log").read_text()
        with urllib.request.urlopen(f"{url}/readyz", timeout=30) as answer:
            assert json.load(answer)["status"] == "ready"
        with urllib.request.urlopen(f"{url}/_stcore/host-config", timeout=30) as answer:
            assert json.load(answer)["allowedOrigins"] == []  # of our settings, not Streamlit's
    finally:
        process.terminate()
        process.wait(20)
