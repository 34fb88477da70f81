"""Target: one kind of launch file, with its writer and its reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from runners.recipes.job import RecipeJob

Tier = Literal["validated", "not_validated"]
NOT_VALIDATED = "not validated with the tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """Values of a file that is read back; None: this kind of file does not have it."""

    world_size: int | None = None
    nodes: int | None = None
    gpus_per_node: int | None = None
    tp: int | None = None
    pp: int | None = None
    cp: int | None = None
    dp: int | None = None
    micro_batch_size: int | None = None
    num_microbatches: int | None = None
    global_batch_size: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A kind of file. `write` gives path -> text; `read` parses these texts back."""

    name: str  # of `--to`
    title: str
    kind: Literal["launcher", "stack", "check"]
    tier: Tier
    tool: str  # the real tool and the version it was validated with
    write: Callable[[RecipeJob, Mapping[str, str]], dict[str, str]]
    read: Callable[[Mapping[str, str]], Recovered]
    options: tuple[str, ...] = ()  # names of options in addition to the plan
    # The command that starts this stack in one process, for `--command` of a launcher
    # ("python train.py --x 1"); '' for launchers and checks.
    starts: Callable[[RecipeJob, Mapping[str, str]], str] = lambda job, options: ""
    begins: bool = False  # its file names the weights of a stage before that it begins with
    refuses: Callable[[RecipeJob], str] = lambda job: (
        ""
    )  # why this stack cannot run a job; '' if it can
