"""Training logs of all supported formats: the steady state, and the format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from runners.imports import (
    log_blocks,
    log_csv,
    log_deepspeed,
    log_dllogger,
    log_hf,
    log_llama,
    log_megatron,
    log_plain,
    log_swift,
    log_times,
    log_torchtitan,
)
from runners.imports.loss import last_loss
from runners.imports.steps import Log, RunFacts, Steady, can_be_used, steady
from runners.imports.text import ImportFileError

# Order of preference if a log has several formats: a stack also prints lines of its components, and
# lines that only look like tokens per second come last.
READERS: dict[str, Callable[[Sequence[str]], Log | None]] = {
    log_torchtitan.NAME: log_torchtitan.read,
    log_megatron.NAME: log_megatron.read,
    log_llama.NAME: log_llama.read,
    log_dllogger.NAME: log_dllogger.read,
    log_blocks.NAME: log_blocks.read,
    log_swift.NAME: log_swift.read,
    log_csv.NAME: log_csv.read,
    log_deepspeed.NAME: log_deepspeed.read,
    log_hf.NAME: log_hf.read,
    log_times.NAME: log_times.read,
    log_plain.NAME: log_plain.read,
}
CONTRADICTS = 0.1  # between two formats of one log; chosen
LOOKED_FOR = {
    log_torchtitan.NAME: "`step: N ... tps: N`",
    log_megatron.NAME: "`elapsed time per iteration (ms): N`",
    log_llama.NAME: '`"current_steps": N, "total_tokens": N`',
    log_dllogger.NAME: "`DLLL {...}`",
    log_blocks.NAME: "`throughput/device/TPS=N`",
    log_swift.NAME: "`'train_speed(s/it)': N`",
    log_csv.NAME: "a column `device/items_per_sec`",
    log_deepspeed.NAME: "`CurrSamplesPerSec=N`",
    log_hf.NAME: "`'train_samples_per_second': N`",
    log_times.NAME: "`iter time: N ms`, `train_step() took N seconds` or `rate:Ns/it`",
    log_plain.NAME: "`N tokens/s`",
}


class NoFigureError(ImportFileError):
    """A log in which no format finds anything."""


def logs_of(lines: Sequence[str], *, per_gpu: bool | None = None) -> Iterator[Log]:
    """The findings of every format, the most trustworthy first, computed lazily."""
    for name, read in READERS.items():
        log = log_plain.read(lines, per_gpu=per_gpu) if name == log_plain.NAME else read(lines)
        if log is not None:
            yield log


def is_one(lines: Sequence[str]) -> bool:
    """Whether the lines have a figure of a training run."""
    return any(read(lines) is not None for read in READERS.values())


def steady_state(lines: Sequence[str], user: RunFacts, *, per_gpu: bool | None = None) -> Steady:
    """The steady state of a log, from the first format that gives one. ImportFileError names the
    options that are needed, or the formats that were tried."""
    others: list[Log] = []
    found = logs_of(lines, per_gpu=per_gpu)
    for log in found:
        if can_be_used(log, user):
            checked = _checked(steady(log, user), [*others, *found], user)
            return replace(checked, loss=last_loss(lines))
        others.append(log)
    if not others:
        looked = "; ".join(f"{name} prints {text}" for name, text in LOOKED_FOR.items())
        raise NoFigureError(
            f"No line of the log says how fast the training was. Looked for: {looked}."
        )
    return steady(others[0], user)  # raises the error that names what is missing


def _checked(chosen: Steady, others: Sequence[Log], user: RunFacts) -> Steady:
    """The steady state, with a note for every other format in the log that contradicts it."""
    notes = []
    for log in others:
        if log.is_mean or log.format == log_plain.NAME or not can_be_used(log, user):
            continue
        other = steady(log, user).tokens_per_s_per_gpu
        if abs(other / chosen.tokens_per_s_per_gpu - 1) > CONTRADICTS:
            notes.append(
                f"Its lines of {log.format} ({log.unit}) give {other:,.0f} tokens/s per GPU: those "
                f"of {chosen.format} are taken."
            )
    return replace(chosen, notes=(*chosen.notes, *notes))
