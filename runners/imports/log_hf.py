"""Logs of the Hugging Face Trainer: one dictionary per line, and a summary at the end.

trainer_state.json (TrainerState.save_to_json) has the same dictionaries in its `log_history`, a
figure per line.

transformers, trainer.py (`log`, `num_tokens`) and trainer_utils.py (`speed_metrics`): with
include_num_input_tokens_seen each line has the tokens of the whole job so far and, in newer
versions, the seconds (train_runtime); their differences are the rate. Without it, only the summary
is left: samples/s of the job over the whole run. Its train_tokens_per_second is documented as per
device and has been computed in several ways: it is read only if there is nothing else. Values may
be quoted. TRL counts `num_tokens`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from runners.imports.steps import Log, Step
from runners.imports.text import ImportFileError, positive, whose

NAME = "hf-trainer"
TOKENS = ("num_input_tokens_seen", "num_tokens")
PER_GPU = ("tokens_per_second_per_gpu", "tokens/train_per_sec_per_gpu")  # axolotl
SUMMARY = "train_samples_per_second"
HISTORY = '"log_history": ['
MOST_FIGURES = 100  # of one dictionary of trainer_state.json
_PAIR = re.compile(r"['\"]([\w/]{1,40})['\"]: ['\"]?(\d{1,15}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?)")
_BATCH = re.compile(
    r"Total train batch size \(w\. parallel[^)]{0,60}\) = (\d{1,3}(?:,\d{3})+|\d{1,9})"
)
_METRIC = re.compile(r"^\s*(train_\w{3,30})\s{1,40}=\s{1,40}(\d[\d,]{0,14}(?:\.\d{1,10})?)\s*$")


def read(lines: Sequence[str]) -> Log | None:
    """The steps of a log; None if it has no line of this format."""
    seen: list[tuple[str, float, float]] = []  # rank, seconds, tokens of the job
    direct: list[Step] = []
    summary: dict[str, float] = {}
    facts: dict[str, int] = {}
    is_state = is_trainer_state(lines)
    for whole in dictionaries(lines) if is_state else lines:
        rank, line = whose(whole)
        if match := _BATCH.search(line):
            facts["global_batch_size"] = int(match[1].replace(",", ""))
        elif match := _METRIC.match(line):
            summary[match[1]] = positive(match[2]) or 0.0
        elif "{" in line and (found := _values(line)):
            if SUMMARY in found:
                summary |= found
                continue
            tokens = next((found[n] for n in TOKENS if n in found), None)
            if tokens is not None and "train_runtime" in found:
                seen.append((rank, found["train_runtime"], tokens))
            per_gpu = next((found[n] for n in PER_GPU if n in found), None)
            if per_gpu is not None:
                direct.append(Step(rank=rank, tokens_per_s_per_gpu=per_gpu))
    log = _of_steps(direct, seen, facts) or _of_summary(summary, facts)
    if log is None and is_state:
        raise ImportFileError(
            "This trainer_state.json has no times, because it was saved before the end of the run: "
            "give the one that the Trainer saved at the end, or train with "
            "include_num_input_tokens_seen."
        )
    return log


def is_trainer_state(lines: Sequence[str]) -> bool:
    """Whether these are the lines of a trainer_state.json."""
    return bool(lines) and lines[0].strip() == "{" and any(HISTORY in x for x in lines)


def dictionaries(lines: Sequence[str]) -> Iterator[str]:
    """The innermost dictionaries of trainer_state.json, each on one line."""
    open_: list[str] = []
    for line in map(str.strip, lines):
        if line.endswith("{"):
            open_ = [line]
        elif open_ and len(open_) <= MOST_FIGURES:
            open_.append(line)
            if line.startswith("}"):
                yield " ".join(open_)
                open_ = []


def _values(line: str) -> dict[str, float]:
    """The positive numbers of a printed dictionary, even if the line is cut off."""
    return {
        m[1]: value
        for m in _PAIR.finditer(line)
        if (value := positive(m[2])) is not None and m.end() < len(line)
    }


def _of_steps(
    direct: list[Step], seen: list[tuple[str, float, float]], facts: dict[str, int]
) -> Log | None:
    if direct:
        unit = "tokens/s per GPU"
        return Log(format=NAME, steps=tuple(direct), unit=unit, facts=facts)
    steps = [
        Step(
            rank=rank,
            tokens_per_s=(tokens - tokens_before) / (seconds - before),
            elapsed_s=seconds,
            tokens=tokens,
        )
        for (rank_before, before, tokens_before), (rank, seconds, tokens) in pairwise(seen)
        if rank == rank_before and seconds > before and tokens > tokens_before
    ]
    if not steps:
        return None
    unit = "tokens of the job so far (num_input_tokens_seen)"
    return Log(format=NAME, steps=tuple(steps), unit=unit, facts=facts)


def _of_summary(summary: dict[str, float], facts: dict[str, int]) -> Log | None:
    """The figure of the summary: samples, else tokens, which are per device."""
    mean = "It is the mean of the whole run, with start-up, evaluation and checkpoints."
    if samples := summary.get(SUMMARY):
        step = Step(samples_per_s=samples)
        padded = "Every sample is taken as one full sequence."
        unit = "samples/s of the job over the whole run (train_samples_per_second)"
        notes = (mean, padded)
    elif tokens := summary.get("train_tokens_per_second"):
        step = Step(tokens_per_s_per_gpu=tokens)
        unit = "tokens/s of a device over the whole run (train_tokens_per_second)"
        notes = (mean, "The Trainer has computed it in several ways; it may be of the whole job.")
    else:
        return None
    return Log(format=NAME, steps=(step,), unit=unit, facts=facts, is_mean=True, notes=notes)
