"""The base installation: what works without the packages of the extras, and what is said."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from app.document.on_use import EXTRAS

JOB = ["--model", "llama3.1-8b", "--tokens", "1T", "--seq-len", "8k", "--global-batch-size", "512",
       "--gpu", "h100", "--num-gpus", "64"]  # fmt: skip
WITHOUT = f"import sys; sys.modules.update(dict.fromkeys({[*EXTRAS]}))\n"
MAIN = "from runcast.__main__ import main; main()"


def run(program, *words, folder):
    env = {**os.environ, "RUNCAST_DATA_DIR": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + program, *words],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_commands_work_without_any_extra(tmp_path):
    commands = [
        ["plan", *JOB], ["plan", *JOB, "--json"], ["explain", *JOB], ["risk", *JOB], ["buy", *JOB],
        ["bill", *JOB], ["scale", *JOB], ["where", *JOB], ["offers"], ["models"], ["advice"],
        ["calibrations", "list"], ["prices", "history"],
    ]  # fmt: skip
    program = (
        "import runcast\nfrom app.cli import main\n"
        f"for words in {commands}:\n"
        "    try:\n        main(words)\n"
        "    except SystemExit as e:\n        print('ended', words[0], e.code)\n"
    )
    done = run(program, folder=tmp_path)
    assert done.stderr == ""
    ended = [line for line in done.stdout.splitlines() if line.startswith("ended")]
    assert ended == [f"ended {words[0]} 0" for words in commands]


def test_doctor_goes_on_without_the_page(tmp_path):
    done = run(MAIN, "doctor", folder=tmp_path)
    assert "runcast[ui]" in " ".join(done.stdout.split())
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["serve", "--no-browser"], "ui"),
        (["report", *JOB, "--out", "x.md"], "report"),
        (["mcp"], "mcp"),
        (["scenarios", "list"], "postgres"),
    ],
)
def test_a_missing_extra_is_one_sentence(words, extra, tmp_path, monkeypatch):
    if extra == "postgres":
        monkeypatch.setenv("RUNCAST_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    done = run(MAIN, *words, folder=tmp_path)
    assert done.returncode == 2
    (sentence,) = done.stderr.splitlines()
    assert sentence.endswith(f"is not installed: pip install 'runcast[{extra}]'.")


def test_a_data_frame_names_its_extra(tmp_path):
    program = (
        "import runcast\na = runcast.plan(model='llama3.1-8b', num_tokens=1e12, seq_len=8192, "
        "global_batch_size=512, gpu='h100', num_gpus=64)\nassert '<table' in a._repr_html_()\n"
        "try:\n    a.to_pandas()\nexcept runcast.RuncastError as e:\n    print(e)"
    )
    done = run(program, folder=tmp_path)
    assert done.stdout == "The package pandas is not installed: pip install 'runcast[report]'.\n"
