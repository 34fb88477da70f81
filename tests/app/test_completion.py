"""Completion in a real bash, by the script that the command prints."""

import shlex
import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("words", "fits"),
    [
        (["pr"], ["programme", "prices"]),
        (["plan", "--num-g"], ["--num-gpus"]),
        (["prices", "bo"], ["book"]),
    ],
)
def test_bash_completes_commands_and_options(words, fits, tmp_path):
    command = tmp_path / "runcast"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m runcast "$@"\n')
    command.chmod(0o755)
    script = (
        f'PATH={shlex.quote(str(tmp_path))}:$PATH; eval "$(runcast completion bash)"; '
        f"COMP_WORDS=(runcast {shlex.join(words)}); COMP_CWORD={len(words)}; "
        '_runcast_completion runcast; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stdout.split(), done.stderr) == (fits, "")


def test_a_shell_that_is_not_known_is_one_sentence(run):
    status, _, err = run("completion", "tcsh")
    assert status == 2
    assert err == (
        "runcast: Unknown shell 'tcsh'. Did you mean 'zsh'? Known: bash, fish, powershell, zsh.\n"
    )
