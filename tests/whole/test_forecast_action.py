"""deploy/github-actions/forecast.yml: its steps, run on a real git repository."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest
import yaml

from tests.conftest import ROOT

ACTION = yaml.safe_load((ROOT / "deploy/github-actions/forecast.yml").read_text())
STEPS = {s["name"]: s["run"] for s in ACTION["jobs"]["forecast"]["steps"] if "name" in s}
JOB = "v: 1\nmodel: llama3.1-8b\nnum_tokens: 1T\nseq_len: 8k\ngpu: h100\nnum_gpus: 64\n"
PROGRAMS = {
    "runcast": f'exec {shlex.quote(sys.executable)} -m runcast "$@"',
    # Nothing to edit the first time, as for a new pull request.
    "gh": 'case "$*" in *--edit-last) exit 1;; esac; echo "$*" > asked; cat "$5" > commented',
}


class Repository:
    def __init__(self, folder):
        self.folder, self.bin = folder / "repository", folder / "bin"
        for made in (self.folder / "scenarios", self.bin):
            made.mkdir(parents=True)
        for name, line in PROGRAMS.items():
            (self.bin / name).write_text(f"#!/bin/sh\n{line}\n")
            (self.bin / name).chmod(0o755)
        self.env = {
            **os.environ, **{n: str(v) for n, v in ACTION["env"].items()},
            "PATH": f"{self.bin}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "NUMBER": "7",
            "RUNNER_TEMP": str(folder), "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        }  # fmt: skip
        self.out = folder
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words):
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        done = subprocess.run(
            ["git", *who, *words], cwd=self.folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, **files):
        for stem, text in files.items():
            path = self.folder / "scenarios" / f"{stem}.yaml"
            path.unlink() if text is None else path.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "change")
        return self.git("rev-parse", "HEAD")

    def step(self, name, **env):
        return subprocess.run(
            ["bash", "-c", STEPS[name]], cwd=self.folder, env={**self.env, **env},
            capture_output=True, text=True, check=False,
        )  # fmt: skip


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


def test_a_change_is_forecast_and_commented(repository):
    base = repository.commit(changed=JOB, gone=JOB, same=JOB)
    repository.commit(changed=JOB.replace("h100", "h200"), gone=None, new=JOB)
    done = repository.step("Forecast", BASE=base)
    assert (done.returncode, done.stderr) == (0, "")
    assert (repository.out / "output").read_text() == "status=0\n"
    done = repository.step("Comment")
    assert done.returncode == 0, done.stderr
    comment = (repository.folder / "commented").read_text()
    assert (repository.folder / "asked").read_text().startswith("pr comment 7 --body-file")
    assert "**scenarios/changed.yaml: expected cost" in comment
    assert "| GPUs | H100-80GB-SXM | H200-141GB-SXM |" in comment
    assert "**scenarios/gone.yaml: removed.**" in comment
    assert "**scenarios/new.yaml: new.**" in comment
    assert "same.yaml" not in comment
    assert (repository.out / "summary").read_text() == comment


@pytest.mark.parametrize(
    ("file", "env", "status", "said"),
    [
        (JOB, {"FAIL_ABOVE_USD": "1k"}, "1", "Guardrail: It is expected to cost"),
        (JOB + "deadline_days: 0.5\n", {}, "1", "Guardrail: It misses the deadline of 12 h."),
        ("- no\n- scenario\n", {}, "2", "runcast: 'scenarios/a.yaml': Line 1 of the scenario"),
    ],
)
def test_a_guardrail_or_a_mistake_is_the_status(repository, file, env, status, said):
    base = repository.commit(a=JOB.replace("64", "128"))
    repository.commit(a=file)
    repository.step("Forecast", BASE=base, **env)
    assert (repository.out / "output").read_text() == f"status={status}\n"
    assert said in (repository.out / "comment.md").read_text()
    assert repository.step("Guardrails", STATUS=status).returncode == int(status)
