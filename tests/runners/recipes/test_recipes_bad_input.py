"""Hostile words in launch files: escaped, which bash and the parsers confirm, or refused."""

from __future__ import annotations

import ast
import dataclasses
import json
import shlex
import subprocess

import pytest
import yaml

from core.errors import RuncastError
from runners.recipes import launch
from runners.recipes.job import RecipeError
from runners.recipes.registry import exported, files_of, target
from tests.made_up.recipes import HEADER, one_gpu, recipe_job

WORDS = (
    "; touch CANARY;", "$(touch CANARY)", "`touch CANARY`", "&& touch CANARY", "| touch CANARY",
    "'; touch CANARY; '", '"; touch CANARY; "', "'\"'\"'; touch CANARY #", "$HOME", "${IFS}", "$$",
    "$(HOME)", "$$(HOME)", "a b", "*", "~", "-rf", "--rm", "\\", "a\\'b", "#x", "!x", "> CANARY",
    "%s", "%j", "{}", "@PY@", "é", "x" * 1500, "{{x}}", "${CHECKPOINT_BUCKET}", "=", "a=b",
)  # fmt: skip
COMMAND = shlex.join(["python", "train.py", *WORDS])
# No file can hold these safely, or no tool takes them.
BAD_NAMES = (
    "", "a b", "a'b", 'a"b', "a\nb", "a;b", "$(x)", "`x`", "-a", "a-", "--rm", "a\u2028b",
    "a\u0085b", "a/b", "..", "A", "a_b", "é", "x" * 10_000, "a\x00b", "a\n#SBATCH --x",
)  # fmt: skip
BREAKS = ("\n", "\r", "\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x00", "\x1b[31m")
# What scripts call, here: each writes its name and words, ended by NUL, to $SAID.
PROGRAM = '#!/bin/bash\n{ printf "%s\\0" "${0##*/}" "$@"; printf "\\1\\0"; } >> "$SAID"\n'
SCONTROL = (
    '#!/bin/bash\ncase "$2" in hostnames) echo n1 ;; *) echo "x NodeAddr=10.0.0.1 y" ;; esac\n'
)
SHELLS = ("torchrun", "torchrun-elastic", "slurm", "accelerate-launch", "ray-job", "nccl-env")


@pytest.fixture
def bash(tmp_path):
    """Run a script where every launcher writes down what it was given; no canary may appear."""
    programs, home, said = tmp_path / "bin", tmp_path / "home", tmp_path / "said"
    programs.mkdir()
    home.mkdir()
    for name in ("torchrun", "accelerate", "ray", "srun"):
        (programs / name).write_text(PROGRAM)
    (programs / "scontrol").write_text(SCONTROL)
    for program in programs.iterdir():
        program.chmod(0o755)

    def _bash(text):
        said.write_bytes(b"")
        done = subprocess.run(
            ["bash", "-c", text], cwd=home, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False, timeout=30,
            env={"PATH": f"{programs}:/usr/bin:/bin", "HOME": "/nowhere", "SAID": str(said),
                 "HEAD": "h", "NODE_RANK": "0", "RAY_STORAGE": "/s", "SLURM_JOB_ID": "7",
                 "SLURM_JOB_NODELIST": "n1", "SLURM_CPUS_ON_NODE": "16", "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert list(home.iterdir()) == [], "the canary"
        calls = said.read_text(encoding="utf-8").split("\1\0")
        return [call.split("\0")[:-1] for call in calls if call]

    return _bash


def scripts(name, job, options):
    files = files_of(name, job, options)
    return next(t for p, t in files.items() if p.endswith((".sh", ".sbatch")))


# --- the command -------------------------------------------------------------------------------


@pytest.mark.parametrize("job", [recipe_job(), one_gpu()], ids=["nodes", "one"])
@pytest.mark.parametrize("name", ["torchrun", "torchrun-elastic", "slurm", "accelerate-launch"])
def test_every_word_of_a_command_arrives_as_it_is(bash, name, job):
    (call,) = bash(scripts(name, job, {"command": COMMAND}))
    assert call[-len(WORDS) - 1 :] == ["train.py", *WORDS]


@pytest.mark.parametrize("name", ["k8s-job", "k8s-jobset", "k8s-pytorchjob"])
def test_a_command_survives_kubernetes_and_its_shell(bash, name):
    (text,) = files_of(name, recipe_job(), {"command": COMMAND}).values()
    (script,) = set(commands_of(list(yaml.safe_load_all(text))))
    (call,) = bash(expanded(script, {"HOME": "REPLACED", "JOB_COMPLETION_INDEX": "1"}))
    assert call[-len(WORDS) - 1 :] == ["train.py", *WORDS]


def commands_of(objects):
    """The script of every container of a manifest."""
    if isinstance(objects, dict):
        if "command" in objects:
            yield objects["command"][2]
        objects = list(objects.values())
    if isinstance(objects, list):
        for inner in objects:
            yield from commands_of(inner)


def expanded(text, values):
    """As a kubelet does it: $(NAME) of a known name, $$ for a dollar sign before a bracket."""
    out, i = "", 0
    while i < len(text):
        if text.startswith("$$(", i):
            out, i = out + "$(", i + 3
        elif text.startswith("$(", i) and ")" in text[i:]:
            name = text[i + 2 : text.index(")", i)]
            out += values.get(name, f"$({name})")
            i += len(name) + 3
        else:
            out, i = out + text[i], i + 1
    return out


def test_a_command_survives_skypilot_and_its_shell(bash):
    (text,) = files_of("skypilot", recipe_job(), {"command": COMMAND}).values()
    run = yaml.safe_load(text)["run"]
    (call,) = bash(f"SKYPILOT_NODE_IPS=h SKYPILOT_NODE_RANK=0; {run}")
    assert call[-len(WORDS) - 1 :] == ["train.py", *WORDS]


def test_a_command_survives_ray(bash):
    files = files_of("ray-job", recipe_job(), {"command": COMMAND, "env:X": "$(touch CANARY)'"})
    tree = ast.parse(files["ray_train.py"])
    said = {n.targets[0].id: n.value for n in tree.body if isinstance(n, ast.Assign)}
    assert ast.literal_eval(said["COMMAND"]) == ["train.py", *WORDS]
    (call,) = bash(files["ray_job.sh"])
    (runtime,) = [w for w in call if w.startswith("--runtime-env-json=")]
    assert json.loads(runtime.partition("=")[2])["env_vars"]["X"] == "$(touch CANARY)'"


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("", "--command is empty"), ("  ", "--command is empty"),
        ("python 'train.py", "a quote that is not closed"),
        ("--rm x", "does not begin with a program"),
        ("python", "needs a script or `-m module`"), ("python -c x", "needs a script"),
        ("x" * 10_000, "10,000 characters; 2,000 are allowed"),
        *((f"python train.py a{b}b", "unprintable") for b in BREAKS),
    ],
)  # fmt: skip
def test_commands_that_are_refused(command, says):
    with pytest.raises(RecipeError, match=says):
        files_of("slurm", recipe_job(), {"command": command})


# --- names and options ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_of_jobs_that_are_refused(name):
    for one in ("slurm", "k8s-job", "skypilot", "ray-job", "torchrun"):
        with pytest.raises(RecipeError, match="is no name of a job"):
            files_of(one, recipe_job(name=name), {})


@pytest.mark.parametrize(
    ("one", "option"),
    [
        ("slurm", "partition"), ("slurm", "account"), ("slurm", "qos"), ("slurm", "port"),
        ("slurm", "time_hours"), ("k8s-job", "namespace"), ("k8s-job", "image"),
        ("skypilot", "bucket"), ("hostfile", "hosts"), ("torchrun", "hosts"),
        ("torchrun-elastic", "min_nodes"), ("ray-job", "address"),
        ("accelerate-launch", "config_file"), ("slurm", "modules"), ("slurm", "venv"),
        ("slurm", "cpus_per_node"), ("k8s-trainjob", "queue"), ("k8s-trainjob", "runtime"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "value",
    ["", " ", "a b", "a'b", 'a"b', "a;b", "$(x)", "`x`", "-x", "--rm", "é", "x" * 10_000, "a$b",
     *(f"a{b}b" for b in BREAKS)],
)  # fmt: skip
def test_options_that_are_refused(one, option, value):
    with pytest.raises(RuncastError) as e:
        files_of(one, recipe_job(), {option: value})
    assert "\n" not in str(e.value)
    assert len(str(e.value)) < 400


# --- variables -----------------------------------------------------------------------------------


def test_values_of_variables_arrive_as_they_are(bash):
    given = {f"env:V{i}": word for i, word in enumerate(WORDS)}
    wanted = {k.removeprefix("env:"): v for k, v in given.items()}
    job = recipe_job()
    for name in ("torchrun", "slurm", "accelerate-launch", "nccl-env"):
        text = scripts(name, job, given).replace("exec ", "").replace("srun", ":", 1)
        text = text.replace("torchrun", ":").replace("accelerate", ":")
        show = "\n".join(f'torchrun V{i} "$V{i}"' for i in range(len(WORDS)))
        calls = bash(f"{text}\n{show}")
        assert {c[1]: c[2] for c in calls if c[0] == "torchrun"} == wanted
    (sky,) = files_of("skypilot", job, given).values()
    assert wanted.items() <= yaml.safe_load(sky)["envs"].items()
    (text,) = files_of("k8s-job", job, given).values()
    (container,) = list(yaml.safe_load_all(text))[1]["spec"]["template"]["spec"]["containers"]
    known = {"HOME": "REPLACED"}
    assert (
        wanted.items() <= {e["name"]: expanded(e["value"], known) for e in container["env"]}.items()
    )


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("a b", "x", "no NAME=VALUE"), ("$(x)", "x", "no NAME=VALUE"), ("1A", "x", "no NAME=VALUE"),
        ("x" * 10_000, "x", "no NAME=VALUE"), ("A", "x" * 10_000, "2,000 are allowed"),
        ("HF_TOKEN", "x", "looks like a secret"), ("AWS_SECRET_ACCESS", "x", "looks like a secret"),
        *(("A", f"a{b}b", "cannot be printed") for b in BREAKS),
    ],
)  # fmt: skip
def test_variables_that_are_refused(name, value, says):
    with pytest.raises(RecipeError, match=says):
        files_of("slurm", recipe_job(), {f"env:{name}": value})


# --- the header ----------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", [*BREAKS, " "])
@pytest.mark.parametrize("name", [*SHELLS, "skypilot", "k8s-job", "hostfile", "ray-train"])
def test_foreign_text_never_leaves_the_comment(bash, name, broken):
    """Labels of models, clouds and links come from files and feeds of other people."""
    evil = f"x{broken}touch CANARY{broken}#SBATCH --wrap=x{broken}'; touch CANARY; '{broken}- a: b"
    header = dataclasses.replace(
        HEADER,
        product=evil,
        link=f"?{evil}",
        prices=evil,
        forecast=(evil, "y" * 10_000),
        assumptions=(evil, "\u2028" * 50),
    )
    plain, job = recipe_job(), recipe_job(header=header, model_label=evil)
    files, clean = files_of(name, job, {}), files_of(name, plain, {})
    for path, text in files.items():
        assert not {*"\r\x0b\x0c\x00\x1b\x85\u2028\u2029"} & {*text}
        code = [line for line in text.splitlines() if not line.startswith("#")]
        assert code == [x for x in clean[path].splitlines() if not x.startswith("#")]
        directives = [x for x in text.splitlines() if x.startswith("#SBATCH")]
        assert directives == [x for x in clean[path].splitlines() if x.startswith("#SBATCH")]
        assert target(name).read(files) == target(name).read(clean)
        if path.endswith((".sh", ".sbatch")):
            bash(text)


def test_places_of_a_price_feed_are_values_and_nothing_else(bash):
    evil = "us-east-1\nuse_spot: true\n'; touch CANARY"
    job = recipe_job(region=evil, instance_type=evil, provider="aws")
    (text,) = files_of("skypilot", job, {}).values()
    found = yaml.safe_load(text)
    assert found["resources"]["infra"] == f"aws/{evil}"
    assert "use_spot" not in found["resources"]
    bash(scripts("slurm", job, {}))


def test_every_target_with_every_word_at_once(bash):
    """Nothing that one target escapes is undone by another one beside it."""
    options = {"command": COMMAND, "env:X": WORDS[0]}
    names = [n for n in SHELLS if n != "nccl-env"]
    for files in exported(names, recipe_job(), options).values():
        for path, text in files.items():
            if path.endswith((".sh", ".sbatch")):
                assert bash(text)


def test_the_placeholder_is_the_command_of_the_documents():
    assert launch.words_of({}) == ["python", "train.py"]
