"""What every test file shares: how properties are searched, the project's files, the browser."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

pytest_plugins = [
    "tests.servers.postgres", "tests.support.browsing", "tests.support.done_once",
    "tests.support.longest_first", "tests.support.marked_files", "tests.support.second_run",
]  # fmt: skip

ROOT = Path(__file__).parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# The same examples on every run of CI; new ones on a developer's machine.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
# Ages of prices are counted against the newest day of the bundled snapshot, whenever tests run; for
# subprocesses, too.
os.environ["RUNCAST_TODAY"] = "2026-11-09"
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(autouse=True)
def _own_data(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A developer's refreshed prices stay out of the tests."""
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path_factory.getbasetemp() / "data"))
    monkeypatch.delenv("RUNCAST_DATABASE_URL", raising=False)


@pytest.fixture(scope="module")
def plain_main() -> Iterator[None]:
    """Spawned processes import `__main__` again. Streamlit's AppTest, run before in the same
    process, leaves the whole dashboard there; a command line has its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "__main__", ModuleType("__main__"))
        yield


@pytest.fixture
def run(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[object, str, str]]:
    """Run the console entry in this process: exit status, standard output, standard error."""
    from app import cli

    monkeypatch.setenv("COLUMNS", "100")  # parallel test runs set a narrow one

    def _run(*arguments: object) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as end:
            cli.main([str(a) for a in arguments])
        out, err = capfd.readouterr()
        return end.value.code, out, err

    return _run


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the real browser. Without one a test is skipped, but never where CI is set."""
    names = [n for n in (os.environ.get("CHROMIUM"), *BROWSERS) if n]
    if path := next(filter(None, map(shutil.which, names)), None):
        return path
    missing = f"None of {', '.join(names)} is installed: apt-get install chromium."
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.fixture(scope="session")
def project_files() -> tuple[Path, ...]:
    """Every file that is, or would be, committed; without git, all but what tools leave."""
    git = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(git, cwd=ROOT, capture_output=True, check=True).stdout.decode()
        paths = [ROOT / name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        left = re.compile(r"\.venv|\.git|\.hypothesis|build|dist|__pycache__|.*_cache|.*\.egg-info")
        paths = [
            p for p in ROOT.rglob("*") if not any(map(left.fullmatch, p.relative_to(ROOT).parts))
        ]
    return tuple(sorted(p for p in paths if p.is_file()))
