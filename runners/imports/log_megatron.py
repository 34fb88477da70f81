"""Logs of Megatron-LM and its relatives (Megatron-DeepSpeed, NeMo, Megatron-Bridge, Primus,
GPT-NeoX, nanotron).

megatron/training/training.py (training_log) and arguments.py of Megatron-LM: a line per interval
with `iteration 10/ 100 |`, `elapsed time per iteration (ms): 450.2 |` and `global batch size: 32`,
and once a dump of all arguments (`seq_length ........ 4096`). Megatron-DeepSpeed adds `tokens per
gpu per second (tgs)`; Argonne's prints every figure as `name=value`; nanotron prints
`tokens_per_sec_per_gpu: 14.8K`, GPT-NeoX `samples/sec: 51.2` instead of the batch. NeMo prints
`train_step_timing in s`, in lines with `global_batch_size` or in a progress bar, where the batch is
the growth of `consumed_samples`. Megatron-Bridge (train_utils.py) prints `Step Time : 2.51s` on the
first rank and the line of the interval on the last; the former is read where a log lacks the
latter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from runners.imports.steps import Log, Step
from runners.imports.text import positive, whose

NAME = "megatron"
_FIGURE = r"(\d{1,12}(?:\.\d{1,12})?(?:[eE][+-]?\d{1,3})?)"
_ITERATION = re.compile(r"\biteration[\s=:]{0,12}(\d{1,9})\s{0,12}/\s{0,12}(?:\d{1,9}|infinity)")
_ELAPSED = re.compile(
    rf"elapsed[ _]time[ _]per[ _]iteration(?: \(ms\):|_ms=)\s{{0,8}}{_FIGURE}(?=[\s/|])"
)
_BATCH = re.compile(r"\bglobal[ _]batch[ _]size[:=]?\s{0,8}(\d{1,9})(?![\w.])")
_TGS = re.compile(
    rf"tokens[ _]per[ _]gpu[ _]per[ _]second(?: \(tgs\):|_tgs=)\s{{0,8}}{_FIGURE}(?=[\s/|])|"
    rf"tokens/s/GPU[^\d|]{{0,12}}{_FIGURE}(?=[\s/|])",
    re.IGNORECASE,
)
# nanotron writes 14.8K; GPT-NeoX prints the samples/s of the job instead of the batch.
_SHORT = re.compile(r"\btokens_per_sec_per_gpu: (\d{1,9}(?:\.\d{1,6})?)([KM]?)(?=[\s|])")
_SAMPLES = re.compile(rf"\bsamples/sec: {_FIGURE}(?=[\s|])")
_NEMO = re.compile(rf"train_step_timing in s[:=]\s{{0,8}}{_FIGURE}")
_NEMO_STEP = re.compile(r"\bglobal_step[:=]\s{0,8}(\d{1,9})")
_CONSUMED = re.compile(r"\bconsumed_samples=\s{0,8}(\d{1,15})(?:\.0{1,3})?(?=[,\]])")
_BRIDGE = re.compile(rf"\bStep Time : {_FIGURE}s GPU utilization")
_ARGUMENT = re.compile(r"^\s*(\w{3,50}) \.{3,60} (\d{1,9})\s*$")
_WORLD = re.compile(r"using world size: (\d{1,7}), data-parallel")
INTERVALS = ("elapsed time per iteration", "elapsed_time_per_iteration", "train_step_timing")
ARGUMENTS = {
    "seq_length": "seq_len",
    "world_size": "num_gpus",
    "tensor_model_parallel_size": "tp",
    "pipeline_model_parallel_size": "pp",
    "context_parallel_size": "cp",
    "expert_model_parallel_size": "ep",
    "micro_batch_size": "micro_batch_size",
}


def read(lines: Sequence[str]) -> Log | None:
    """The steps of a log; None if it has no line of this format."""
    steps: list[Step] = []
    bridge: list[Step] = []
    facts: dict[str, int] = {}
    consumed: dict[str, tuple[int, float]] = {}  # rank -> step and samples of its last bar
    for whole in lines:
        rank, line = whose(whole)
        if any(words in line for words in INTERVALS):
            if (step := _step(line, rank)) is not None:
                steps.append(_with_growth(step, line, consumed))
        elif match := _BRIDGE.search(line):
            if (seconds := positive(match[1])) is not None:
                bridge.append(Step(rank=rank, step_s=seconds))
        elif " ..." in line and (match := _ARGUMENT.match(line)) and match[1] in ARGUMENTS:
            facts[ARGUMENTS[match[1]]] = int(match[2])
        elif match := _WORLD.search(line):
            facts["num_gpus"] = int(match[1])
    steps = steps or bridge
    if not steps:
        return None
    direct = any(s.tokens_per_s_per_gpu is not None for s in steps)
    batches = [s.batch for s in steps if s.batch is not None]
    grew = len(batches) > 1 and median(batches) != batches[-1]
    return Log(
        format=NAME,
        steps=tuple(steps),
        unit="tokens/s per GPU (tgs)" if direct else "seconds of an iteration",
        facts={name: n for name, n in facts.items() if n > 0},
        notes=("The global batch grows in this log.",) if grew else (),
    )


def _step(line: str, rank: str) -> Step | None:
    """The step of one line; None if its time is missing or cut off."""
    elapsed, nemo, tgs = _ELAPSED.search(line), _NEMO.search(line), _TGS.search(line)
    at = _ITERATION.search(line) or _NEMO_STEP.search(line)
    batch = _BATCH.search(line)
    millis = positive(elapsed[1]) if elapsed else None
    seconds = positive(nemo[1]) if nemo else None if millis is None else millis * 1e-3
    per_gpu = None if tgs is None else positive(tgs[1] or tgs[2])
    short, samples = _SHORT.search(line), _SAMPLES.search(line)
    if short is not None and (figure := positive(short[1])) is not None:
        per_gpu = figure * {"": 1.0, "K": 1e3, "M": 1e6}[short[2]]
    if seconds is None and per_gpu is None:
        return None
    return Step(
        number=None if at is None else int(at[1]),
        rank=rank,
        step_s=seconds,
        tokens_per_s_per_gpu=per_gpu,
        samples_per_s=positive(samples[1]) if samples and not batch else None,
        batch=positive(batch[1]) if batch else None,
    )


def _with_growth(step: Step, line: str, last: dict[str, tuple[int, float]]) -> Step:
    """The step with the batch by which the samples of a progress bar grew since its last step."""
    match = _CONSUMED.search(line)
    if match is None or step.number is None or step.batch is not None:
        return step
    number, samples = last.get(step.rank, (step.number, 0.0))
    last[step.rank] = step.number, float(match[1])
    passed, grown = step.number - number, float(match[1]) - samples
    return replace(step, batch=grown / passed) if passed > 0 and grown > 0 else step
