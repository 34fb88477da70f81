"""Software of a SLURM job: modules, a virtual environment, a container.

NVIDIA pyxis (github.com/NVIDIA/pyxis, wiki Usage) adds --container-image, --container-mounts and
--container-workdir to srun; Apptainer's `exec` is a program that starts the task. Both see the
folder in which the job was submitted.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from core.errors import shown
from runners.launchers import quoting
from runners.launchers.quoting import LaunchError

CONTAINERS = ("pyxis", "apptainer")
_DRIVERS = {"nvidia": ["--nv"], "amd": ["--rocm"]}  # Apptainer's options, by vendor


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """What a job loads before its program starts; empty: what the nodes have."""

    modules: tuple[str, ...] = ()
    venv: str = ""
    container: str = ""  # one of CONTAINERS, or ''
    image: str = ""
    mounts: tuple[str, ...] = ()

    @property
    def is_given(self) -> bool:
        """Whether anything is named."""
        return bool(self.modules or self.venv or self.container)

    def lines(self) -> str:
        """Lines of the batch script; they stand before `set -u`, which modules may not survive."""
        lines = []
        if self.modules:
            lines.append("command -v module >/dev/null || . /etc/profile")
            lines.append(f"module load {shlex.join(self.modules)} || exit 1")
        if self.venv:
            lines.append(f". {quoting.shell_line([self.venv + '/bin/activate'])} || exit 1")
        return "".join(f"{line}\n" for line in lines)

    def of_srun(self) -> list[str]:
        """Options of srun, as words of a shell."""
        if self.container != "pyxis":
            return []
        mounts = ",".join(['"$PWD:$PWD"', *map(shlex.quote, self.mounts)])
        return [
            f"--container-image={shlex.quote(self.image)}",
            f"--container-mounts={mounts}",
            '--container-workdir="$PWD"',
        ]

    def around(self, vendor: str) -> list[str]:
        """Words of a shell that stand before the program of a task."""
        if self.container != "apptainer":
            return []
        binds = ",".join(['"$PWD:$PWD"', *map(shlex.quote, self.mounts)])
        return [
            "apptainer", "exec", *_DRIVERS.get(vendor, []), f"--bind={binds}", '--pwd="$PWD"',
            shlex.quote(self.image),
        ]  # fmt: skip


def software(
    *, modules: str = "", venv: str = "", container: str = "", image: str = "", mounts: str = "",
    option: str = "--{}",
) -> Software:  # fmt: skip
    """What was typed, checked; `option` is how a sentence names an option. LaunchError for what
    cannot be written into a batch script, or lacks its other half."""
    dash = "-" if option.startswith("--") else "_"
    names = {n: option.format(n) for n in ("modules", "venv", "container")}
    names |= {n: option.format(f"container{dash}{n}") for n in ("image", "mounts")}
    if container and container not in CONTAINERS:
        raise LaunchError(
            f"{names['container']} {shown(container)} is none of {', '.join(CONTAINERS)}."
        )
    if bool(container) is not bool(image) or (mounts and not container):
        raise LaunchError(
            f"{names['container']} (pyxis or apptainer) and {names['image']} belong together."
        )
    return Software(
        modules=tuple(quoting.path(m, names["modules"]) for m in modules.split(",") if m),
        venv=quoting.path(venv, names["venv"]).rstrip("/") if venv else "",
        container=container,
        image=quoting.container(image, names["image"]) if image else "",
        mounts=tuple(quoting.mount(m, names["mounts"]) for m in mounts.split(",") if m),
    )
