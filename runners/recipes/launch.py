"""Parts of all launcher files: the command, its processes, its variables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.errors import unknown_sentence
from hardware.nccl_env import FABRICS, settings_of
from runners.recipes import quoting
from runners.recipes.header import comments
from runners.recipes.job import RecipeError, RecipeJob
from runners.recipes.target import Recovered

PORT = 29500  # of the rendezvous, torchrun's own default
RESTARTS = 3  # restarts of a whole job by its launcher, if the launcher counts them
PLACEHOLDER = ("python", "train.py")
NO_COMMAND = "--command was not given: train.py stands for your training script."
_PYTHON = re.compile(r"(?:.*/)?python(?:3(?:\.\d+)?)?")
_OF_GPUS = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu"}


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of the job's environment, with the reason."""

    name: str
    value: str
    reason: str


def per_node(job: RecipeJob) -> int:
    """Processes per node, one per GPU; RecipeError if nodes would have unequal numbers."""
    if job.num_gpus % job.num_nodes:
        raise RecipeError(
            f"{job.num_gpus} GPUs are not spread evenly over {job.num_nodes} nodes: launchers "
            "start the same number of processes on each."
        )
    return job.num_gpus // job.num_nodes


def is_torch(job: RecipeJob) -> str:
    """Why torchrun cannot start the job; '' if it can."""
    if job.vendor in ("nvidia", "amd", "custom"):
        return ""
    return f"{job.accelerator} is not driven by CUDA or ROCm: its own tools start a job there"


def gpu_resource(job: RecipeJob) -> str:
    """The resource name of the GPUs in Kubernetes; '' if not known."""
    return _OF_GPUS.get(job.vendor, "")


def words_of(options: Mapping[str, str]) -> list[str]:
    """The training command as an argument list; a placeholder if none is given."""
    return quoting.command_words(options["command"]) if "command" in options else [*PLACEHOLDER]


def under_torchrun(words: Sequence[str]) -> list[str]:
    """The words after torchrun's own options: it starts python itself.

    >>> under_torchrun(["python", "-m", "pkg.train", "--x", "1"])
    ['-m', 'pkg.train', '--x', '1']
    >>> under_torchrun(["./run.sh"])
    ['--no-python', './run.sh']
    """
    if _PYTHON.fullmatch(words[0]):
        if len(words) < 2 or (words[1].startswith("-") and words[1] != "-m"):
            raise RecipeError("--command needs a script or `-m module` after python.")
        return list(words[1:])
    return list(words) if words[0].endswith(".py") else ["--no-python", *words]


def fabrics(job: RecipeJob, options: Mapping[str, str]) -> tuple[str, ...]:
    """The networks between the nodes, as given or from the plan's offer; empty on one node."""
    if "fabric" not in options:
        return job.nccl_fabrics if job.num_nodes > 1 else ()
    given = tuple(options["fabric"].split(","))
    known = [f for f in FABRICS if f != "any"]
    if wrong := [f for f in given if f not in known]:
        raise RecipeError(unknown_sentence("fabric", wrong[0], known))
    return given


def variables(job: RecipeJob, options: Mapping[str, str]) -> tuple[Variable, ...]:
    """NCCL's settings for the job's fabric, overridden by variables of the user."""
    found = {
        s.variable: Variable(s.variable, s.value, s.reason + (f" ({s.note})" if s.note else ""))
        for s in settings_of(fabrics(job, options))
    }
    for name, value in quoting.variables(options).items():
        found[name] = Variable(name, value, "as given")
    return tuple(found.values())


def exports(job: RecipeJob, options: Mapping[str, str]) -> str:
    """The variables as lines of a shell, each with its reason before it."""
    lines = []
    for v in variables(job, options):
        lines += [comments([v.reason]), f"export {v.name}={shlex.quote(v.value)}\n"]
    return "".join(lines)


def port(options: Mapping[str, str]) -> int:
    """The port of the rendezvous."""
    return quoting.whole(options.get("port", str(PORT)), "port", 1024, 65535)


def limit_s(job: RecipeJob, options: Mapping[str, str]) -> int:
    """Time limit of a job in seconds: its P90 with failures in whole hours, or the given limit."""
    if "time_hours" in options:
        return 3600 * quoting.whole(options["time_hours"], "time_hours", 1, 24 * 365)
    if job.limit_hours is None:
        raise RecipeError(
            "With these failures the run is not expected to end: give the limit as time_hours=N."
        )
    return 3600 * max(1, -(-int(job.limit_hours * 3600) // 3600))


def cpus(options: Mapping[str, str]) -> int | None:
    """The CPUs of a node that the user asks for; None: all that it has."""
    given = options.get("cpus_per_node")
    return None if given is None else quoting.whole(given, "cpus_per_node", 1, 4096)


def memory_gib(options: Mapping[str, str]) -> int | None:
    """The memory of a node that the user asks for; None: all that it has."""
    given = options.get("memory_gib")
    return None if given is None else quoting.whole(given, "memory_gib", 1, 100_000)


def no_command(options: Mapping[str, str]) -> dict[str, str]:
    """The training script as a value to fill in, where no command was given."""
    return {} if "command" in options else {"command": "your training script for train.py"}


def fill_in(todos: Mapping[str, str]) -> str:
    """A block of comments with the values that only the user knows, which the pre-flight check
    refuses while they stand; '' without any.

    >>> print(fill_in({"data": "the folder of the data set"}), end="")
    # --- fill in before starting ---
    # TODO runcast: data - the folder of the data set
    # ---
    """
    if not todos:
        return ""
    lines = [f"# TODO runcast: {name} - {what}\n" for name, what in todos.items()]
    return "".join(["# --- fill in before starting ---\n", *lines, "# ---\n"])


def recovered(nodes: int, per_node: int, **more: object) -> Recovered:
    """The content of a launcher file, read back."""
    return Recovered(world_size=nodes * per_node, nodes=nodes, gpus_per_node=per_node, more=more)


def flags(text: str, program: str) -> dict[str, str]:
    """The `--flag=value` words of one program in one of our scripts; RecipeError if it is missing.

    Comments are left out and continued lines joined, as in the shell.
    """
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        try:
            words = shlex.split(line)
        except ValueError:
            continue
        if program in words:
            after = words[words.index(program) + 1 :]
            return dict(w[2:].split("=", 1) for w in after if w.startswith("--") and "=" in w)
    raise RecipeError(f"The file does not call {program}.")


def number(found: Mapping[str, str], flag: str) -> int:
    """The whole number of a flag; RecipeError if there is none."""
    text = found.get(flag, "")
    if not (text.isascii() and text.isdigit()):
        raise RecipeError(f"The file has no --{flag} with a number.")
    return int(text)
