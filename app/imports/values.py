"""The options given with an imported file, checked."""

from __future__ import annotations

from collections.abc import Mapping

from core.errors import ScenarioError, shown
from core.scenario import Scenario
from runners.imports.steps import OPTIONS, RunFacts


def facts_of(typed: Mapping[str, str]) -> RunFacts:
    """The facts of a run that the options give; numbers may be written 8k. One of several numbers
    of GPUs is not known.

    >>> facts_of({"seq_len": "8k", "num_gpus": "64"})
    RunFacts(seq_len=8192, global_batch_size=None, num_gpus=64)
    """
    read = Scenario.parse({n: typed[n] for n in OPTIONS if n in typed})
    return RunFacts(
        seq_len=read.seq_len if "seq_len" in typed else None,
        global_batch_size=read.global_batch_size if "global_batch_size" in typed else None,
        num_gpus=read.num_gpus[0] if len(read.num_gpus) == 1 else None,
    )


def whose(text: str | None) -> bool | None:
    """`--tokens-of` as a flag: whether the figures are per GPU; None leaves it to the log."""
    if text not in (None, "gpu", "job"):
        raise ScenarioError(f"--tokens-of {shown(text)} is neither gpu nor job.")
    return None if text is None else text == "gpu"


def count(option: str, text: str | None) -> int | None:
    """The whole number given as an option."""
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 7 and int(text) > 0):
        raise ScenarioError(f"{option} {shown(text)} is no whole number from 1 to 999,999.")
    return int(text)
