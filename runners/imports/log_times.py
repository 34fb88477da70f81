"""Logs that say how long a step took and little else: Levanter, PaxML, LitGPT and ColossalAI.

Levanter (tqdm_loggable): `Progress on:train 19.0it/70.0it rate:76.8s/it remaining:... elapsed:...`.
PaxML (paxml/programs.py): `[PAX STATUS]: train_step() took 0.634 seconds.` LitGPT (pretrain.py,
finetune/): `Epoch 1 | iter 128 step 32 | loss train: 10.9, val: n/a | iter time: 345.67 ms (step)`,
where an iteration is one micro-batch and iter / step of them are a step. ColossalAI
(examples/language/performance_evaluator.py): `Throughput: 9.86 samples/sec, TFLOPS per GPU by
Megatron: ...`, a mean without the first steps, of one data-parallel rank times their number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from runners.imports.steps import Log, Step
from runners.imports.text import positive, whose

NAME = "step-times"
_FIGURE = r"(\d{1,9}(?:\.\d{1,12})?)"
_LEVANTER = re.compile(
    rf"Progress on:train (\d{{1,9}}(?:\.\d{{1,3}})?)(k?)it/\S{{1,20}} rate:{_FIGURE}(s/it|it/s)"
)
_PAX = re.compile(rf"\[PAX STATUS\]: train_step\(\) took {_FIGURE} seconds")
_LITGPT = re.compile(
    rf"\| iter (\d{{1,9}}) step (\d{{1,9}}) \| .{{0,120}}?\| iter time: {_FIGURE} ms( \(step\))?"
)
_COLOSSAL = re.compile(
    rf"Throughput: {_FIGURE} samples/sec\s?, .{{0,80}}TFLOPS per GPU by Megatron:"
)


def read(lines: Sequence[str]) -> Log | None:
    """The steps of a log; None if it has no line of these formats."""
    for find, unit, is_mean in (
        (_levanter, "seconds of a step (rate)", False),
        (_pax, "seconds of a step (train_step)", False),
        (_litgpt, "seconds of a step: those of its micro-batches (iter time)", False),
        (_colossal, "samples/s of the job over the measured steps (Throughput)", True),
    ):
        if steps := find([whose(line) for line in lines]):
            return Log(format=NAME, steps=tuple(steps), unit=unit, is_mean=is_mean)
    return None


Ranked = Sequence[tuple[str, str]]


def _levanter(lines: Ranked) -> list[Step]:
    found = []
    for rank, line in lines:
        if "Progress on:train" in line and (m := _LEVANTER.search(line)):
            at = float(m[1]) * (1000 if m[2] else 1)
            rate = positive(m[3])
            if rate is not None:
                # A thousand steps and more are printed with three digits: no number of a step.
                number = None if m[2] else round(at)
                seconds = rate if m[4] == "s/it" else 1 / rate
                found.append(Step(number=number, rank=rank, step_s=seconds))
    return found


def _pax(lines: Ranked) -> list[Step]:
    return [
        Step(rank=rank, step_s=seconds)
        for rank, line in lines
        if "train_step() took" in line
        and (m := _PAX.search(line))
        and (seconds := positive(m[1])) is not None
    ]


def _litgpt(lines: Ranked) -> list[Step]:
    """Steps from the mean time of the printed micro-batches of each."""
    rows = [
        (rank, int(m[1]), int(m[2]), seconds * 1e-3)
        for rank, line in lines
        if "iter time:" in line
        and (m := _LITGPT.search(line))
        and (seconds := positive(m[3])) is not None
    ]
    of_step = [iteration / step for _, iteration, step, _ in rows if step]
    each = max(round(of_step[-1]), 1) if of_step else 1
    times: dict[tuple[str, int], list[float]] = {}
    for rank, iteration, _, seconds in rows:
        times.setdefault((rank, -(-iteration // each)), []).append(seconds)
    return [
        Step(number=step, rank=rank, step_s=each * sum(some) / len(some))
        for (rank, step), some in times.items()
    ]


def _colossal(lines: Ranked) -> list[Step]:
    """The last summary, which is of all measured steps."""
    found = [
        Step(rank=rank, samples_per_s=rate)
        for rank, line in lines
        if "samples/sec" in line
        and (m := _COLOSSAL.search(line))
        and (rate := positive(m[1])) is not None
    ]
    return found[-1:]
