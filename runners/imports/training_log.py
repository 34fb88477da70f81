"""Training logs of all supported formats: the steady state, and the format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from runners.imports.log_lines import (
    ColossalAiLog,
    DeepSpeedLog,
    LevanterLog,
    LitGptLog,
    MegatronBridgeLog,
    MegatronLog,
    MetricBlocksLog,
    PaxLog,
    PlainLog,
    TorchTitanLog,
)
from runners.imports.log_records import CsvLog, DlloggerLog, LlamaFactoryLog, SwiftLog, TrainerLog
from runners.imports.loss import last_loss
from runners.imports.steps import Facts, Log, Steady, can_be_used, steady
from runners.imports.text import ImportFileError

# Order of preference if a log has several formats: a stack also prints lines of its components, and
# lines that only look like tokens per second come last.
FORMATS: tuple[type[Log], ...] = (
    TorchTitanLog, MegatronLog, MegatronBridgeLog, LlamaFactoryLog, DlloggerLog, MetricBlocksLog,
    SwiftLog, CsvLog, DeepSpeedLog, TrainerLog, LevanterLog, PaxLog, LitGptLog, ColossalAiLog,
    PlainLog,
)  # fmt: skip
EXAMPLES = {kind.format: kind.example for kind in FORMATS if kind.example}
CONTRADICTS = 0.1  # between two formats of one log; chosen


class NoFigureError(ImportFileError):
    """A log in which no format finds anything."""


def logs_of(lines: Sequence[str], *, per_gpu: bool | None = None) -> Iterator[Log]:
    """The log as each format that has steps in it, the most trustworthy first, read lazily."""
    for kind in FORMATS:
        log = PlainLog(per_gpu) if kind is PlainLog else kind()
        if log.read(lines):
            yield log


def is_training_log(lines: Sequence[str]) -> bool:
    """Whether the lines have a figure of a training run."""
    return any(logs_of(lines))


def steady_state(lines: Sequence[str], user: Facts, *, per_gpu: bool | None = None) -> Steady:
    """The steady state of a log, from the first format that gives one. ImportFileError names the
    options that are needed, or the formats that were tried."""
    others: list[Log] = []
    logs = logs_of(lines, per_gpu=per_gpu)
    for log in logs:
        if can_be_used(log, user):
            checked = _checked(steady(log, user), [*others, *logs], user)
            return replace(checked, loss=last_loss(lines))
        others.append(log)
    if not others:
        looked = "; ".join(f"{name} prints {text}" for name, text in EXAMPLES.items())
        raise NoFigureError(
            f"No line of the log says how fast the training was. Looked for: {looked}."
        )
    return steady(others[0], user)  # raises the error that names what is missing


def _checked(chosen: Steady, others: Sequence[Log], user: Facts) -> Steady:
    """The steady state, with a note for every other format in the log that contradicts it."""
    notes = []
    for log in others:
        if log.is_mean or log.format in (chosen.format, PlainLog.format):
            continue
        if not can_be_used(log, user):
            continue
        other = steady(log, user).tokens_per_s_per_gpu
        if abs(other / chosen.tokens_per_s_per_gpu - 1) > CONTRADICTS:
            notes.append(
                f"Its lines of {log.format} ({log.unit}) give {other:,.0f} tokens/s per GPU: those "
                f"of {chosen.format} are taken."
            )
    return replace(chosen, notes=(*chosen.notes, *notes))
