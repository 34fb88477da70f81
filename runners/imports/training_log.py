"""A training log of any format that is read: the steady state, and what wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from runners.imports import log_deepspeed, log_hf, log_megatron, log_plain, log_torchtitan
from runners.imports.steps import Log, Steady, Told, can_be_used, steady
from runners.imports.text import ImportFileError

# The order in which they are believed where a log has several: a stack prints what it is made of,
# too, and nothing is known of what only looks like tokens per second.
READERS: dict[str, Callable[[Sequence[str]], Log | None]] = {
    log_torchtitan.NAME: log_torchtitan.read,
    log_megatron.NAME: log_megatron.read,
    log_deepspeed.NAME: log_deepspeed.read,
    log_hf.NAME: log_hf.read,
    log_plain.NAME: log_plain.read,
}
LOOKED_FOR = {
    log_torchtitan.NAME: "`step: N ... tps: N`",
    log_megatron.NAME: "`elapsed time per iteration (ms): N`",
    log_deepspeed.NAME: "`CurrSamplesPerSec=N`",
    log_hf.NAME: "`'train_samples_per_second': N`",
    log_plain.NAME: "`N tokens/s`",
}


class NoFigureError(ImportFileError):
    """A log in which no format finds anything."""


def logs_of(lines: Sequence[str], *, per_gpu: bool | None = None) -> Iterator[Log]:
    """What every format finds, the most trustworthy first; each is looked for when it is asked
    for."""
    for name, read in READERS.items():
        log = log_plain.read(lines, per_gpu=per_gpu) if name == log_plain.NAME else read(lines)
        if log is not None:
            yield log


def is_one(lines: Sequence[str]) -> bool:
    """Whether a figure of some training is in the lines."""
    return any(read(lines) is not None for read in READERS.values())


def steady_state(lines: Sequence[str], told: Told, *, per_gpu: bool | None = None) -> Steady:
    """The steady state of a log, of the first format that it follows from. ImportFileError says
    which options are needed for it, or what was looked for."""
    others: list[Log] = []
    for log in logs_of(lines, per_gpu=per_gpu):
        if can_be_used(log, told):
            return steady(log, told)
        others.append(log)
    if not others:
        looked = "; ".join(f"{name} prints {text}" for name, text in LOOKED_FOR.items())
        raise NoFigureError(
            f"No line of the log says how fast the training was. Looked for: {looked}."
        )
    return steady(others[0], told)  # refuses it, and says what is missing
