"""`runcast completion`: the script with which a shell completes commands and options."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import completion as shells

from app.document.echo import echo
from core.errors import unknown_name

VARIABLE = "_RUNCAST_COMPLETE"  # set by the script when it asks what fits
SHELLS = ("bash", "zsh", "fish", "powershell")


def completion(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help=f"{', '.join(SHELLS)}.")],
) -> None:
    """Print the script that completes commands in a shell.

    For bash, in ~/.bashrc: eval "$(runcast completion bash)"
    """
    if shell not in SHELLS:
        raise unknown_name("shell", shell, SHELLS)
    named = {"prog_name": "runcast", "complete_var": VARIABLE, "shell": shell}
    echo(shells.get_completion_script(**named))  # type: ignore[attr-defined]


def register() -> None:
    """Let Typer answer the script, which it does for apps that offer to install it."""
    shells.get_completion_inspect_parameters()
