"""What docs/deploy.md installs, run as it says: from the lock, as a service of a real systemd with
its sandbox, and as the container file's command under a read-only root.

No container engine runs here. The container's steps are the same three installations, and its root
is this machine's, mounted read-only in a namespace.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers import nginx, systemd_machine
from tests.support.browsing import FEW, ROOT, is_healthy
from tests.support.processes import free_port

pytestmark = [pytest.mark.services, pytest.mark.slow, pytest.mark.timeout(900)]

PYTHON = "/usr/bin/python3"  # another user than root may run it, wherever root's own is
UNIT = ROOT / "deploy/systemd/runcast@.service"
LOGIN = ROOT / "deploy/systemd/login.conf"
CONTAINERFILE = ROOT / "deploy/container/Containerfile"
START_S = 60
OURS = ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "PYTHONPATH", "VIRTUAL_ENV")
SHELL = {name: value for name, value in os.environ.items() if name not in OURS}
REPORT = ("report --model llama3.1-8b --tokens 1e11 --seq-len 8k --global-batch-size 512 --gpu h100"
          " --num-gpus 64 --to html,pdf --out /var/lib/runcast/report")  # fmt: skip
# Every disk read-only, but for a folder of data and one of temporary files.
READ_ONLY = """
folder=$1; shift
mount -t tmpfs tmpfs "$folder/tmp"
chmod 1777 "$folder/tmp"
mount --bind "$folder/data" "$folder/data"
while read -r _ _ _ _ where _; do
  case "$where" in
    "$folder"/*|/proc*|/sys*|/dev*) ;;
    *) mount -o remount,bind,ro "$where" || true ;;
  esac
done < /proc/self/mountinfo
exec setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs \
  --bounding-set=-all --inh-caps=-all "$@"
"""


@pytest.fixture(scope="module")
def installed(project_files) -> Iterator[Path]:
    """`install-server` of deploy/Makefile where another user can read; no hash, no installation."""
    if os.geteuid() or subprocess.run([PYTHON, "-c", "import ensurepip, venv"]).returncode:
        pytest.skip("It takes root, and Debian's python3-venv.")
    folder = Path(tempfile.mkdtemp(prefix="runcast-tests-", dir="/opt"))
    try:
        folder.chmod(0o755)
        for file in project_files:
            if file.relative_to(ROOT).parts[0] not in ("tests", "docs"):
                target = folder / file.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, target)
        make = ["make", "-f", "deploy/Makefile", "install-server", f"PYTHON={PYTHON}"]
        subprocess.run(make, cwd=folder, env=SHELL, check=True, capture_output=True, timeout=600)
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def beside(installed) -> Iterator[Path]:
    """A folder of the tests' own files that systemd's empty /tmp does not hide."""
    folder = Path(tempfile.mkdtemp(prefix="runcast-tests-", dir="/opt"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def healthy_within(port: int, seconds: float) -> float:
    begin = time.monotonic()
    while not is_healthy(f"http://127.0.0.1:{port}"):
        assert time.monotonic() - begin < seconds, "the page does not answer"
        time.sleep(0.1)
    return time.monotonic() - begin


def first_page(port: int, folder: Path) -> int:
    """Bytes of a page with its answer, through a connection as a browser makes it."""
    with nginx.websocket(nginx.Proxy(port, folder), "") as line:
        return nginx.rerun(line, FEW)[1]


def test_what_is_installed_is_the_lock(installed):
    listed = subprocess.run(
        [installed / ".venv/bin/python", "-m", "pip", "list", "--format=json"],
        capture_output=True, check=True, env=SHELL,
    ).stdout  # fmt: skip
    found = {p["name"].lower().replace("_", "-"): p["version"] for p in json.loads(listed)}
    lock = dict(
        re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "deploy/requirements.lock").read_text(), re.M)
    )
    lock.pop("colorama")  # Windows
    assert {n: found.get(n) for n in lock} == lock
    assert set(found) - set(lock) == {"pip", "setuptools", "runcast"}


def test_a_file_whose_hash_is_another_is_not_installed(installed, tmp_path):
    lock = (ROOT / "deploy/build.lock").read_text()
    wrong = tmp_path / "wrong.lock"
    wrong.write_text(re.sub(r"sha256:\w{4}", "sha256:0000", lock))
    pip = [installed / ".venv/bin/python", "-m", "pip", "install", "--require-hashes"]
    done = subprocess.run(
        [*pip, "--force-reinstall", "--no-deps", "-r", wrong],
        capture_output=True, text=True, env=SHELL, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr


def test_the_service_serves_the_page_in_its_sandbox_and_comes_back(installed, beside, capsys):
    port = free_port()
    name = f"runcast@{port}.service"
    unit = UNIT.read_text().replace("/opt/runcast", str(installed))
    # No other service exists on that machine: nothing to wait for, nobody to log to.
    alone = f"[Unit]\nDefaultDependencies=no\n[Service]\nStandardOutput=file:{beside}/page.log\n"
    report = re.sub(r"ExecStart=.*", f"ExecStart={installed}/.venv/bin/runcast {REPORT}", unit)
    report = report.replace("Restart=on-failure", "Type=oneshot")
    units = {"runcast@.service": unit, "runcast@.service.d/tests.conf": alone,
             "report.service": report, "report.service.d/tests.conf": alone}  # fmt: skip
    with systemd_machine.booted(beside, units, "runcast") as machine:
        started = machine.systemctl("start", name)
        assert started.returncode == 0, started.stderr
        first = healthy_within(port, START_S)
        status = machine.inside(f"/proc/{machine.shown(name, 'MainPID')}/status").read_text()
        said = dict(re.findall(r"^(\w+):\t(\S+)", status, re.M))
        assert (said["Uid"], said["NoNewPrivs"], said["Seccomp"]) == ("10001", "1", "2")
        assert {said[c] for c in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
        assert first_page(port, beside) > 0
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=30) as ready:
            assert json.load(ready)["status"] == "ready"
        # A report computes, draws pictures and writes a PDF: all that the page can be asked for.
        done = machine.systemctl("start", "report.service")
        assert done.returncode == 0, (beside / "page.log").read_text()[-2000:]
        files = machine.inside("/var/lib/runcast")
        assert next(iter(files.rglob("*.pdf"))).read_bytes().startswith(b"%PDF")
        machine.systemctl("kill", "--signal", "KILL", name)
        until = time.monotonic() + START_S
        while machine.shown(name, "NRestarts") != "1":
            assert time.monotonic() < until
            time.sleep(0.1)
        again = healthy_within(port, START_S)
        assert first_page(port, beside) > 0
    with capsys.disabled():
        print(f"\nsystemd: healthy after {first:.1f} s, killed, healthy {again:.1f} s later")
    assert "Traceback" not in (beside / "page.log").read_text()


def test_the_secrets_of_a_login_are_a_credential_without_which_nothing_starts(installed, beside):
    port = free_port()
    name, secrets = f"runcast@{port}.service", beside / "secrets.toml"
    units = {
        "runcast@.service": UNIT.read_text().replace("/opt/runcast", str(installed)),
        "runcast@.service.d/tests.conf": "[Unit]\nDefaultDependencies=no\n",
        "runcast@.service.d/login.conf": LOGIN.read_text().replace(
            "/etc/runcast/secrets.toml", str(secrets)
        ),
    }
    with systemd_machine.booted(beside, units, "runcast") as machine:
        machine.systemctl("start", name)
        until = time.monotonic() + START_S
        while machine.shown(name, "Result") != "exit-code":
            assert time.monotonic() < until, machine.systemctl("status", name).stdout
            time.sleep(0.1)
        assert machine.shown(name, "ExecMainStatus") == "243"  # "CREDENTIALS", systemd.exec(5)
        machine.systemctl("stop", name)  # it would try again
        assert not is_healthy(f"http://127.0.0.1:{port}")
        secrets.write_text('[auth]\ncookie_secret = "canary-0123456789"\n')
        secrets.chmod(0o600)
        assert machine.systemctl("start", name).returncode == 0
        healthy_within(port, START_S)
        page = machine.inside(f"/proc/{machine.shown(name, 'MainPID')}")
        environ = (page / "environ").read_text().split("\0")
        (file,) = [e.partition("=")[2] for e in environ if e.startswith("STREAMLIT_SECRETS_FILES=")]
        given = machine.inside(file)
        assert given.read_text() == secrets.read_text()
        assert not given.stat().st_mode & 0o077
        assert "canary" not in " ".join(environ)
        machine.systemctl("stop", name)
        assert not given.exists()


def instruction(name: str) -> str:
    """The last instruction of its kind in the container file, on one line."""
    text = CONTAINERFILE.read_text().replace("\\\n", " ")
    return re.findall(rf"^{name}\s+(.+)$", text, re.M)[-1]


@contextmanager
def contained(installed: Path, folder: Path, port: int) -> Iterator[Callable[[], Path]]:
    """The container's command with its environment, its user and a read-only root; asks for its
    process under /proc."""
    for name in ("data", "tmp"):
        (folder / name).mkdir()
    os.chown(folder / "data", 10001, 10001)
    given = dict(part.split("=", 1) for part in shlex.split(instruction("ENV")))
    given = {k: v.replace("/opt/runcast", str(installed)) for k, v in given.items()}
    given["PATH"] = given["PATH"].replace("$PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
    given |= {"RUNCAST_DATA_DIR": f"{folder}/data", "HOME": f"{folder}/tmp",
              "TMPDIR": f"{folder}/tmp", "STREAMLIT_SERVER_PORT": str(port),
              "STREAMLIT_SERVER_ADDRESS": "127.0.0.1"}  # fmt: skip
    command = json.loads(instruction("CMD"))
    with (folder / "log").open("w") as log:
        running = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child",
             "--propagation", "private", "sh", "-euc", READ_ONLY, "sh", str(folder), *command],
            cwd=installed, env=given, stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT,
        )  # fmt: skip

    def process() -> Path:
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text()
        return Path("/proc", children.split()[0])

    try:
        yield process
    finally:
        os.kill(int(process().name), signal.SIGKILL)  # unshare ends with it
        running.wait(20)


def test_the_containers_command_serves_the_page_under_a_read_only_root(installed, beside):
    port, folder = free_port(), beside / "container"
    folder.mkdir(mode=0o755)
    with contained(installed, folder, port) as process:
        healthy_within(port, START_S)
        _, health = instruction("HEALTHCHECK").split("CMD", 1)
        check = [a.replace(":8501", f":{port}") for a in json.loads(health)]
        assert subprocess.run([PYTHON, *check[1:]]).returncode == 0
        assert first_page(port, folder) > 0
        page = process()
        assert re.search(r"^Uid:\t10001", (page / "status").read_text(), re.M)
        enter = ["nsenter", "--target", page.name, "--mount", "touch"]  # even root cannot
        for place in (f"{installed}/app/x", "/etc/x", "/usr/x"):
            done = subprocess.run([*enter, place], capture_output=True, text=True, check=False)
            assert "Read-only file system" in done.stderr, place
        assert subprocess.run([*enter, f"{folder}/data/x"]).returncode == 0
    assert "Traceback" not in (folder / "log").read_text()
    missing = subprocess.run([PYTHON, *check[1:]], capture_output=True)
    assert missing.returncode != 0  # the health check sees that it is gone
