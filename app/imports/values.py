"""The options given with an imported file, checked."""

from __future__ import annotations

from core.errors import ScenarioError, shown
from core.scenario import Scenario
from runners.imports.steps import RunFacts


def told_of(seq_len: str | None, global_batch_size: str | None, num_gpus: str | None) -> RunFacts:
    """The facts of a run that the options give; numbers may be written 8k.

    >>> told_of("8k", None, "64")
    RunFacts(seq_len=8192, global_batch_size=None, num_gpus=64)
    """
    typed = {"seq_len": seq_len, "global_batch_size": global_batch_size, "num_gpus": num_gpus}
    given = {name: value for name, value in typed.items() if value is not None}
    found = Scenario.parse(given)
    if len(found.num_gpus) > 1:
        raise ScenarioError(f"--num-gpus {shown(num_gpus)} is several: a log is of one job.")
    return RunFacts(
        seq_len=found.seq_len if "seq_len" in given else None,
        global_batch_size=found.global_batch_size if "global_batch_size" in given else None,
        num_gpus=found.num_gpus[0] if found.num_gpus else None,
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
