"""`runcast export`: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest
import yaml

from runners.recipes.registry import targets
from tests.support.documented_keys import keys

JOB = ["--model", "llama3.1-8b", "--tokens", "1e12", "--seq-len", "8k"]
JOB += ["--global-batch-size", "512", "--gpu", "h100", "--num-gpus", "64", "--cloud", "aws"]
EXPORT = ["export", *JOB]
DOCUMENT = Path(__file__).parents[3] / "docs/launch.md"


@pytest.fixture
def refused(run):
    def _refused(*arguments):
        status, out, err = run(*arguments)
        assert (status, out) == (2, "")
        assert err.startswith("runcast: ")
        assert err.count("\n") == 1
        return err

    return _refused


def test_one_file_is_printed(run):
    status, out, err = run(*EXPORT, "--to", "slurm", "--command", "python pre.py --lr 3e-4")
    assert (status, err) == (0, "")
    assert out.startswith("#!/bin/bash\n# Written by Runcast ")
    for line in ("#SBATCH --nodes=8", "#SBATCH --gpus-per-node=8", "#SBATCH --requeue"):
        assert line in out.splitlines()
    assert out.rstrip().endswith('pre.py --lr 3e-4 "$@"')
    head = " ".join(x.removeprefix("#").strip() for x in out.splitlines() if x.startswith("#"))
    assert re.search(r"tokens/s in all, P10 to P90 \S+ tokens/s to", head)
    assert re.search(r"s a step, P10 to P90", head)
    assert re.search(r"GiB of \S+ GiB at the peak of the fullest GPU", head)
    assert re.search(r"Prices: snapshot [0-9a-f]{12}\.", head)
    assert "Uncalibrated" in head


def test_the_link_of_a_header_reopens_the_plan(run):
    _, out, _ = run(*EXPORT, "--to", "slurm", "--rank", "2")
    (link,) = re.findall(r"--link '([^']+)'", out)
    status, again, err = run("export", "--link", link, "--to", "slurm")
    assert (status, err) == (0, "")
    assert again == out
    _, first, _ = run(*EXPORT, "--to", "slurm")
    assert first != out


def test_files_are_written_and_never_replaced_unasked(run, refused, tmp_path):
    out = tmp_path / "run"
    words = (*EXPORT, "--to", "slurm,preflight,torchrun", "--name", "mine", "--out", str(out))
    status, said, err = run(*words)
    assert (status, err) == (0, "")
    assert said.splitlines() == [
        str(out / n) for n in ("job.sbatch", "preflight.sh", "torchrun.sh")
    ]
    assert "--job-name=mine" in (out / "job.sbatch").read_text()
    assert (out / "torchrun.sh").stat().st_mode & stat.S_IXUSR
    (out / "job.sbatch").write_text("mine")
    (out / "preflight.sh").unlink()
    assert "is there already: --force replaces it" in refused(*words)
    assert (out / "job.sbatch").read_text() == "mine"
    assert not (out / "preflight.sh").exists()  # all or nothing
    status, _, _ = run(*words, "--force")
    assert status == 0
    assert (out / "job.sbatch").read_text() != "mine"


def test_a_link_in_the_folder_is_not_followed(run, refused, tmp_path):
    other = tmp_path / "other"
    other.write_text("somebody's")
    out = tmp_path / "run"
    out.mkdir()
    (out / "job.sbatch").symlink_to(other)
    words = (*EXPORT, "--to", "slurm", "--out", str(out))
    assert "is there already" in refused(*words)
    assert run(*words, "--force")[0] == 0
    assert other.read_text() == "somebody's"
    assert not (out / "job.sbatch").is_symlink()


def test_a_stack_beside_a_launcher_is_started_by_it(run, tmp_path):
    words = ("--to", "fsdp2,torchrun", "--sharding", "fsdp2", "--out", str(tmp_path / "run"))
    status, said, err = run(*EXPORT, *words)
    assert (status, err) == (0, "")
    script = (tmp_path / "run/torchrun.sh").read_text()
    started = script.rstrip().splitlines()[-1].strip().removesuffix(' "$@"')
    assert str(tmp_path / "run" / started) in said.splitlines()


def test_what_the_forecast_assumes_is_a_flag_of_the_file(run):
    words = (*EXPORT, "--stack", "megatron-lm", "--sharding", "zero1", "--tp", "2")
    _, out, err = run(*words, "--to", "megatron", "--async-tp", "on")
    assert err == ""
    for flag in ("--overlap-grad-reduce", "--overlap-param-gather", "--tp-comm-overlap"):
        assert f"\n  {flag} \\\n" in out
    for asked in ((), ("--async-tp", "off")):  # off unless asked, as in Megatron-LM itself
        _, waits, _ = run(*words, "--to", "megatron", *asked)
        assert "\n  --tp-comm-overlap" not in waits


def test_the_file_of_the_stack_that_the_plan_has_needs_no_name(run):
    _, megatron, _ = run(*EXPORT, "--to", "megatron", "--stack", "megatron-lm")
    status, out, err = run(*EXPORT, "--stack", "megatron-lm")
    assert (status, err) == (0, "")
    assert out == megatron


def test_a_file_of_a_stack_is_of_a_plan_for_that_stack(run):
    status, out, err = run(*EXPORT, "--to", "megatron")
    assert (status, err) == (
        0, "Planned for megatron-lm, whose file is asked for; --stack names another.\n"
    )  # fmt: skip
    assert run(*EXPORT, "--to", "megatron", "--stack", "megatron-lm") == (0, out, "")
    _, _, err = run(*EXPORT, "--to", "torchtune")
    assert err.splitlines()[-1].startswith("runcast: torchtune 0.6.1 has no task pretrain: ")


def test_checkpoints_are_saved_as_often_as_the_scenario_has_it(run):
    words = (*EXPORT, "--stack", "torchtitan", "--to", "torchtitan", "--interval-seconds")
    steps = [
        int(re.findall(r"--checkpoint.interval (\d+)", run(*words, seconds)[1])[0])
        for seconds in ("600", "1200", "1e9")
    ]
    assert steps[1] == pytest.approx(2 * steps[0], abs=1)
    assert steps[2] == 238419  # at the end of 1e12 tokens


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--stack", "generic"), "Missing --to: `runcast export --list`"),
        (("--to", ","), "Missing --to"),
        (("--to", "slrum"), "Did you mean 'slurm'"),
        (("--to", "slurm,torchrun"), "These are 2 files, job.sbatch, torchrun.sh: --out DIR"),
        (("--to", "slurm", "--name", "$(x)"), "'$(x)' is no name of a job"),
        (("--to", "slurm", "--name", "a" * 10_000), "is no name of a job"),
        (("--to", "slurm", "--option", "partitions=x"), "with one of image, bucket"),
        (("--to", "slurm", "--option", "partition=a;b"), "partition 'a;b' is refused"),
        (("--to", "slurm", "--option", "image=x"), "The option image belongs to none of slurm"),
        (("--to", "slurm", "--option", "port=1", "--option", "port=2"), "gives port twice"),
        (("--to", "slurm", "--env", "X"), "is no NAME=VALUE"),
        (("--to", "slurm", "--env", "X=1", "--env", "X=2"), "--env gives 'X' twice"),
        (("--to", "slurm", "--env", "HF_TOKEN=x"), "looks like a secret"),
        (("--to", "slurm", "--command", "python 'x"), "a quote that is not closed"),
        (("--to", "slurm", "--rank", "0"), "--rank '0' is not a whole number"),
        (("--to", "slurm", "--rank", "999"), "--rank 999: there are"),
        (("--to", "slurm", "--budget-usd", "many"), "--budget-usd 'many'"),
    ],
)
def test_mistakes_are_sentences(refused, words, says):
    assert says in refused(*EXPORT, *words)


def test_without_a_plan_it_says_why(refused):
    words = ("--model", "llama3.1-405b", "--num-gpus", "1", "--to", "slurm")
    said = refused("export", *JOB[2:], *words)
    assert "Llama 3.1 405B" in said
    assert "GiB" in said


def test_the_json_has_every_file_and_every_documented_key(run):
    status, out, err = run(*EXPORT, "--to", "skypilot,preflight", "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert [f["path"] for f in found["files"]] == ["sky.yaml", "preflight.sh"]
    assert yaml.safe_load(found["files"][0]["text"])["num_nodes"] == found["plan"]["num_nodes"] == 8
    status, out, _ = run("export", "--list", "--json")
    assert status == 0
    listed = json.loads(out)
    assert [t["name"] for t in listed["targets"]] == list(targets())
    written = {*keys(found), *keys(listed)}
    text = DOCUMENT.read_text().partition("## Keys of `--json`")[2]
    assert written == set(re.findall(r"`([a-z_]+)`", text))
