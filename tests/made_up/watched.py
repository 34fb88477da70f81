"""Runs of many days that are made up, with faults at known times, and their logs in five formats.

The speed scatters by 1.5% with a correlation of neighbours of 0.6, and swings by 1% each day; every
two hours a checkpoint stops the run for a minute. The loss falls as a power of the steps.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

STEP_S, EVERY, BATCH, SEQ_LEN, GPUS = 20.0, 3, 256, 4096, 64
TOKENS = float(BATCH * SEQ_LEN)
SPEED = TOKENS / STEP_S
BEGIN_S = 1_772_323_200.0  # 2026-03-01
DAY = 86_400.0


@dataclass(frozen=True, kw_only=True)
class Faults:
    """When what happens, as shares of the run; None: never."""

    stall: float | None = None  # 25 minutes
    restarts: tuple[float, ...] = ()  # 12 minutes, back to the last checkpoint
    slow: tuple[float, float] | None = None  # 9% slower between the two
    straggler: float | None = None  # rank 2 is 7% slower from there on, where ranks log
    spike: float | None = None  # the loss is tripled for 20 logged steps
    not_finite: float | None = None


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One line, or that of each rank, of a log."""

    kind: str  # step, start, checkpoint
    at_s: float
    step: int
    step_s: float = 0.0  # mean since the last logged step, with what stopped the run
    loss: float = 0.0
    since_start_s: float = 0.0
    straggler: bool = False


def moments(faults: Faults, *, days: float = 30.0, seed: int = 1) -> Iterator[Moment]:
    """A run from its start to its last step."""
    draw = random.Random(seed)
    steps = int(days * DAY / STEP_S)
    at, started, step, noise = BEGIN_S, BEGIN_S, 0, 0.0
    saved_at, saved, waiting, stalled, spikes = at, 0, list(faults.restarts), False, 0
    yield Moment(kind="start", at_s=at, step=0)
    at += 300
    while step < steps:
        share = step / steps
        if waiting and share >= waiting[0]:
            waiting.pop(0)
            at, step = at + 720, saved
            started = at
            yield Moment(kind="start", at_s=at, step=step)
            at += 60
            continue
        noise = 0.6 * noise + 0.8 * draw.gauss(0, 0.015)
        slow = faults.slow is not None and faults.slow[0] <= share < faults.slow[1]
        daily = 1 + 0.01 * math.sin(2 * math.pi * (at - BEGIN_S) / DAY)
        took = EVERY * STEP_S / (daily * (0.91 if slow else 1.0) * math.exp(noise))
        if faults.stall is not None and share >= faults.stall and not stalled:
            stalled, took = True, took + 1500
        if at - saved_at >= 7200:
            yield Moment(kind="checkpoint", at_s=at, step=step)
            saved_at, saved, took = at, step, took + 60
        at, step = at + took, step + EVERY
        loss = 1.8 + 9 * (1 + step / 50) ** -0.5 + draw.gauss(0, 0.02)
        if faults.spike is not None and share >= faults.spike and spikes < 20:
            spikes, loss = spikes + 1, 3 * loss
        if faults.not_finite is not None and share >= faults.not_finite:
            loss = math.nan
        yield Moment(
            kind="step", at_s=at, step=step, step_s=took / EVERY, loss=loss,
            since_start_s=at - started,
            straggler=faults.straggler is not None and share >= faults.straggler,
        )  # fmt: skip


def _time(at_s: float, separator: str = ",") -> str:
    moment = dt.datetime.fromtimestamp(at_s, dt.UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}{separator}{moment.microsecond // 1000:03d}"


def megatron(m: Moment) -> str:
    if m.kind == "start":
        return (
            f"using world size: {GPUS}, data-parallel size: 8, context-parallel size: 1\n"
            f"  seq_length ...................... {SEQ_LEN}\n"
        )
    if m.kind == "checkpoint":
        return f"saving checkpoint at iteration {m.step:7d} to ckpt in torch_dist format\n"
    return (
        f" [{_time(m.at_s, '.')}] iteration {m.step:8d}/ 9999999 | consumed samples: "
        f"{m.step * BATCH:12d} | elapsed time per iteration (ms): {m.step_s * 1e3:.1f} | "
        f"global batch size: {BATCH:5d} | lm loss: {m.loss:.6E} |\n"
    )


def torchtitan(m: Moment) -> str:
    lines = []
    for rank in range(4):
        head = f"[rank{rank}]:[titan] {_time(m.at_s)} - root - INFO - "
        if m.kind == "start":
            lines.append(f"{head}Starting job: made up")
        elif m.kind == "checkpoint":
            lines.append(f"{head}Saving the checkpoint (or staging if async is enabled).")
        else:
            slower = 0.93 if m.straggler and rank == 2 else 1.0
            tps = SPEED * STEP_S / m.step_s / GPUS * slower
            lines.append(
                f"{head}\x1b[31mstep: {m.step:2d}  \x1b[32mloss: {m.loss:8.5f}  \x1b[33mmemory: "
                f"60.12GiB(76.00%)  \x1b[34mtps: {tps:,.0f}  \x1b[36mtflops: 400.00  mfu: 40.44%"
            )
    return "\n".join(lines) + "\n"


def nemo(m: Moment) -> str:
    head = f"[NeMo I {_time(m.at_s, '.')[:-4]} nemo_logging:393] "
    if m.kind == "start":
        return f"{head}Rank 0 has data parallel group\nusing world size: {GPUS}, data-parallel\n"
    if m.kind == "checkpoint":
        return f"{head}Saving checkpoint to ckpt-step={m.step}\n"
    return (
        f"{head}Training epoch 0, iteration {m.step}/9999999 | lr: 0.0001 | global_batch_size: "
        f"{BATCH} | global_step: {m.step} | reduced_train_loss: {m.loss:.4f} | "
        f"train_step_timing in s: {m.step_s:.3f} | consumed_samples: {m.step * BATCH}\n"
    )


def deepspeed(m: Moment) -> str:
    head = f"[{_time(m.at_s)}] [INFO] "
    if m.kind == "start":
        return f"{head}[logging.py:96:log_dist] [Rank -1] DeepSpeed info: version=0.18.0\n"
    if m.kind == "checkpoint":
        return f"{head}[engine.py:3500:save] Saving model checkpoint: ckpt/global_step{m.step}\n"
    rate = BATCH / m.step_s
    return (
        f"{head}[timer.py:260:stop] epoch=0/micro_step={4 * m.step}/global_step={m.step}, "
        f"RunningAvgSamplesPerSec={rate:.4f}, CurrSamplesPerSec={rate:.6f}, "
        "MemAllocated=4.32GB, MaxMemAllocated=38.49GB\n"
    )


def hugging_face(m: Moment) -> str:
    head = f"[INFO|trainer.py:2519] {_time(m.at_s)} >> "
    if m.kind == "start":
        return f"{head}***** Running training *****\n"
    if m.kind == "checkpoint":
        return f"{head}Saving model checkpoint to out/checkpoint-{m.step}\n"
    return (
        f"{{'loss': {m.loss:.4f}, 'grad_norm': 6.84, 'learning_rate': 5e-05, 'epoch': 0.01, "
        f"'num_input_tokens_seen': {m.step * BATCH * SEQ_LEN}, 'train_runtime': "
        f"{m.since_start_s:.4f}, 'train_tokens_per_second': 9.9}}\n"
    )


FORMATS: Mapping[str, Callable[[Moment], str]] = {
    "megatron": megatron, "torchtitan": torchtitan, "nemo": nemo, "deepspeed": deepspeed,
    "hugging_face": hugging_face,
}  # fmt: skip
