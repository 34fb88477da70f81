"""A type checker of a user sees the types of what is installed (PEP 561)."""

import subprocess
import sys
import sysconfig
import tomllib
import venv
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
SHIPPED = [
    p.parent
    for p in ROOT.glob("*/__init__.py")
    if any(
        fnmatch(p.parent.name, included) for included in SETUPTOOLS["packages"]["find"]["include"]
    )
]
# What a user writes, and what the checker answers about the line.
PROGRAM = {
    "import runcast": "",
    'answer = runcast.plan(model="llama3.1-8b", num_tokens="1T", gpu=["h100"])': "",
    "reveal_type(answer)": '"runcast.api.Answer"',
    "reveal_type(answer.best.layout.tp)": '"int"',
    "reveal_type(answer.to_pandas())": '"pandas.core.frame.DataFrame"',
    "answer.best.dollars": '"Plan" has no attribute "dollars"',
    "runcast.open_link(3)": 'incompatible type "int"; expected "str"',
}


def test_every_package_that_is_installed_says_that_it_has_types():
    assert {"app", "core", "hardware", "pricing", "runcast", "runners"} == {
        p.name for p in SHIPPED if (p / "py.typed").is_file()
    }
    assert len(SHIPPED) == 6
    assert "py.typed" in SETUPTOOLS["package-data"]["*"]


@pytest.mark.slow
def test_a_program_elsewhere_is_checked_against_them(tmp_path):
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    python = tmp_path / "env/bin/python"
    (site,) = (tmp_path / "env/lib").glob("python*/site-packages")
    # Ours as an installation has it, not as a path of sources: those need no marker.
    (site / "runcast.pth").write_text(f"{ROOT}\n")
    (site / "others.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    (tmp_path / "program.py").write_text("\n".join(PROGRAM) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "program.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = {int(line.split(":")[1]): line for line in done.stdout.splitlines() if ".py:" in line}
    for number, expected in enumerate(PROGRAM.values(), start=1):
        assert expected in said.get(number, ""), done.stdout
        assert expected or number not in said, done.stdout
