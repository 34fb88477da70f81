"""Training logs that print lines of text: one reader for each program.

Sources of the shapes, as read:
- TorchTitan, components/metrics.py at 00fbaafa and train.py: tps is tokens per second and device,
  called wps before 2025. Validation lines also have a tps, and are left out.
- Megatron-LM, training/training.py (training_log) and arguments.py: a line per interval, and once a
  dump of all arguments. Megatron-DeepSpeed adds `tokens per gpu per second (tgs)`; Argonne's prints
  every figure as `name=value`; nanotron prints `tokens_per_sec_per_gpu: 14.8K`, GPT-NeoX
  `samples/sec: 51.2` instead of the batch. NeMo prints `train_step_timing in s`, in lines with
  `global_batch_size` or in a progress bar, where the batch is the growth of `consumed_samples`.
  Megatron-Bridge (train_utils.py) prints `Step Time : 2.51s` on the first rank and the line of the
  interval on the last; the former is read where a log lacks the latter.
- DeepSpeed, utils/timer.py (ThroughputTimer) at 038beb63: samples of the whole job, because the
  engine gives it the global batch; CurrSamplesPerSec is for the last step only. Older versions
  print `0/20, RunningAvgSamplesPerSec=...`.
- OLMo-core, train/callbacks/console_logger.py, OLMo, train.py, and Composer (LLM Foundry),
  loggers/console_logger.py: `[step=10/1000,epoch=1]` or `[batch=10/4800]:`, then a line for each
  metric of one device; `(actual avg)` and `.avg` are means since the start and left out.
- Levanter (tqdm_loggable), PaxML (paxml/programs.py), LitGPT (pretrain.py, finetune/), where an
  iteration is one micro-batch and iter / step of them are a step, and ColossalAI
  (examples/language/performance_evaluator.py), whose figure is a mean without the first steps, of
  one data-parallel rank times their number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, median
from typing import ClassVar, Literal

from core.units import GIB
from core.watch.records import StepRecord
from runners.imports.steps import Log
from runners.imports.text import positive

_FIGURE = r"(\d{1,12}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?)"
DEGREES = ("pp", "dp_replicate", "dp_shard", "cp", "tp")


def _gib(match: re.Match[str] | None) -> float | None:
    """Bytes of a printed number of GiB."""
    return None if match is None else float(match[1]) * GIB


class FigureLog(Log):
    """A log with one figure in a line of its own, and no more."""

    mark: ClassVar[str]  # what the line has, for speed
    pattern: ClassVar[re.Pattern[str]]
    name: ClassVar[Literal["step_s", "samples_per_s"]]

    def line(self, rank: str, line: str) -> StepRecord | None:
        """Read one line."""
        match = self.pattern.search(line) if self.mark in line else None
        figure = None if match is None else positive(match[1])
        if figure is None:
            return None
        if self.name == "step_s":
            return StepRecord(rank=rank, step_s=figure)
        return StepRecord(rank=rank, samples_per_s=figure)


class TorchTitanLog(Log):
    """`step: 10  loss: ...  memory: 40.1GiB(50.7%)  tps: 7,284  mfu: 42.6%`."""

    format, example, unit = "torchtitan", "`step: N ... tps: N`", "tokens/s per GPU (tps)"
    _step = re.compile(
        r"\bstep:\s{0,8}(\d{1,9})\s.{0,400}?\b(?:tps|wps):\s{0,8}(\d[\d,]{0,14}(?:\.\d{1,6})?)(?=\s)"
    )
    _memory = re.compile(r"\bmemory:\s{0,8}(\d{1,5}(?:\.\d{1,4})?)GiB")
    _trainer = re.compile(r"global batch size (\d{1,9}),.{0,80}?sequence length (\d{1,9})")
    _mesh = re.compile(
        r"device mesh with parallelism: ([a-z_]{2,12}=\d{1,6}(?:, [a-z_]{2,12}=\d{1,6})*)"
    )
    _old_mesh = re.compile(r"Building \d-D device mesh with \[([^\]]{1,100})\], \[([\d, ]{1,60})\]")
    _device = re.compile(r"[A-Z]{2,5} capacity: (.{2,80}?) with \d")

    def line(self, rank: str, line: str) -> StepRecord | None:
        """Read one line."""
        if "step:" in line and "validate" not in line and (match := self._step.search(line)):
            if (rate := positive(match[2])) is not None:
                return StepRecord(
                    number=int(match[1]), rank=rank, tokens_per_s_per_gpu=rate,
                    memory_bytes=_gib(self._memory.search(line)),
                )  # fmt: skip
        elif match := self._trainer.search(line):
            self.learn({"global_batch_size": int(match[1]), "seq_len": int(match[2])})
        elif match := self._mesh.search(line):
            self._degrees([pair.split("=") for pair in match[1].split(", ")])
        elif match := self._old_mesh.search(line):
            names = [n.strip(" '\"") for n in match[1].split(",")]
            self._degrees(list(zip(names, match[2].split(","), strict=False)))
        elif match := self._device.search(line):
            self.device = match[1]
        return None

    def _degrees(self, pairs: Sequence[Sequence[str]]) -> None:
        """Learn the degrees of a mesh, and the number of GPUs, which is their product."""
        sizes = {name: int(size) for name, size in pairs if size.strip().isdigit()}
        known = {name: sizes[name] for name in DEGREES if name in sizes}
        if known:
            self.learn({**known, "num_gpus": math.prod(known.values())})


class MegatronLog(Log):
    """`iteration 10/ 100 | elapsed time per iteration (ms): 450.2 | global batch size: 32 |`."""

    format, example = "megatron", "`elapsed time per iteration (ms): N`"
    unit = "seconds of an iteration"
    _intervals: tuple[str, ...] = (
        "elapsed time per iteration", "elapsed_time_per_iteration", "train_step_timing",
    )  # fmt: skip
    _iteration = re.compile(
        r"\biteration[\s=:]{0,12}(\d{1,9})\s{0,12}/\s{0,12}(?:\d{1,9}|infinity)"
    )
    _elapsed = re.compile(
        rf"elapsed[ _]time[ _]per[ _]iteration(?: \(ms\):|_ms=)\s{{0,8}}{_FIGURE}(?=[\s/|])"
    )
    _batch = re.compile(r"\bglobal[ _]batch[ _]size[:=]?\s{0,8}(\d{1,9})(?![\w.])")
    _tgs = re.compile(
        rf"tokens[ _]per[ _]gpu[ _]per[ _]second(?: \(tgs\):|_tgs=)\s{{0,8}}{_FIGURE}(?=[\s/|])|"
        rf"tokens/s/GPU[^\d|]{{0,12}}{_FIGURE}(?=[\s/|])",
        re.IGNORECASE,
    )
    _short = re.compile(r"\btokens_per_sec_per_gpu: (\d{1,9}(?:\.\d{1,6})?)([KM]?)(?=[\s|])")
    _samples = re.compile(rf"\bsamples/sec: {_FIGURE}(?=[\s|])")
    _nemo = re.compile(rf"train_step_timing in s[:=]\s{{0,8}}{_FIGURE}")
    _nemo_step = re.compile(r"\bglobal_step[:=]\s{0,8}(\d{1,9})")
    _consumed = re.compile(r"\bconsumed_samples=\s{0,8}(\d{1,15})(?:\.0{1,3})?(?=[,\]])")
    _argument = re.compile(r"^\s*(\w{3,50}) \.{3,60} (\d{1,9})\s*$")
    _world = re.compile(r"using world size: (\d{1,7}), data-parallel")
    _arguments: ClassVar = {
        "seq_length": "seq_len", "world_size": "num_gpus", "tensor_model_parallel_size": "tp",
        "pipeline_model_parallel_size": "pp", "context_parallel_size": "cp",
        "expert_model_parallel_size": "ep", "micro_batch_size": "micro_batch_size",
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, tuple[int, float]] = {}  # rank -> step and samples of its last bar

    def line(self, rank: str, line: str) -> StepRecord | None:
        """Read one line."""
        if any(words in line for words in self._intervals):
            return self._interval(rank, line)
        if " ..." in line and (match := self._argument.match(line)):
            if name := self._arguments.get(match[1]):
                self.learn({name: int(match[2])})
        elif match := self._world.search(line):
            self.learn({"num_gpus": int(match[1])})
        return None

    def end(self) -> None:
        """Settle the unit, and note a batch that grows."""
        if any(s.tokens_per_s_per_gpu is not None for s in self.steps):
            self.unit = "tokens/s per GPU (tgs)"
        batches = [s.batch for s in self.steps if s.batch is not None]
        if len(batches) > 1 and median(batches) != batches[-1]:
            self.notes = ("The global batch grows in this log.",)

    def _interval(self, rank: str, line: str) -> StepRecord | None:
        """The step of an interval; None if its time is missing or cut off."""
        elapsed, nemo = self._elapsed.search(line), self._nemo.search(line)
        iteration = self._iteration.search(line) or self._nemo_step.search(line)
        batch, tgs = self._batch.search(line), self._tgs.search(line)
        short, samples = self._short.search(line), self._samples.search(line)
        millis = positive(elapsed[1]) if elapsed else None
        seconds = positive(nemo[1]) if nemo else None if millis is None else millis * 1e-3
        per_gpu = None if tgs is None else positive(tgs[1] or tgs[2])
        if short is not None and (figure := positive(short[1])) is not None:
            per_gpu = figure * {"": 1.0, "K": 1e3, "M": 1e6}[short[2]]
        if seconds is None and per_gpu is None:
            return None
        step = StepRecord(
            number=None if iteration is None else int(iteration[1]),
            rank=rank,
            step_s=seconds,
            tokens_per_s_per_gpu=per_gpu,
            samples_per_s=positive(samples[1]) if samples and not batch else None,
            batch=positive(batch[1]) if batch else None,
        )
        return self._with_growth(step, line)

    def _with_growth(self, step: StepRecord, line: str) -> StepRecord:
        """The step with the batch by which the samples of a progress bar grew since its last."""
        match = self._consumed.search(line)
        if match is None or step.number is None or step.batch is not None:
            return step
        number, samples = self._last.get(step.rank, (step.number, 0.0))
        self._last[step.rank] = step.number, float(match[1])
        passed, grown = step.number - number, float(match[1]) - samples
        return replace(step, batch=grown / passed) if passed > 0 and grown > 0 else step


class MegatronBridgeLog(MegatronLog):
    """`Step Time : 2.51s GPU utilization: ...`."""

    example = ""
    _intervals = ("Step Time : ",)
    _step_time = re.compile(rf"\bStep Time : {_FIGURE}s GPU utilization")

    def _interval(self, rank: str, line: str) -> StepRecord | None:
        match = self._step_time.search(line)
        seconds = None if match is None else positive(match[1])
        return None if seconds is None else StepRecord(rank=rank, step_s=seconds)


class MetricBlocksLog(Log):
    """`[step=10/1000,epoch=1]` or `[batch=10/4800]:`, then `throughput/device/TPS=12,345`."""

    format, example = "metric-blocks", "`throughput/device/TPS=N`"
    unit = "tokens/s per GPU (throughput/device)"
    _step = re.compile(r"\[(?:step|batch)=(\d{1,9})/\d{1,9}[^\]]{0,80}\]")
    _rate = re.compile(
        r"\bthroughput/device/(?:TPS|tokens_per_sec(?:ond)?)\s{0,2}[=:]\s{0,4}"
        r"(\d[\d,]{0,14}(?:\.\d{1,20})?)"
    )

    def __init__(self) -> None:
        super().__init__()
        self._number: dict[str, int] = {}  # rank -> step of its block

    def line(self, rank: str, line: str) -> StepRecord | None:
        """Read one line."""
        if match := self._step.search(line):
            self._number[rank] = int(match[1])
        elif (match := self._rate.search(line)) and rank in self._number:
            rate = positive(match[1])
            if rate is not None:
                return StepRecord(number=self._number[rank], rank=rank, tokens_per_s_per_gpu=rate)
        return None


class DeepSpeedLog(Log):
    """`global_step=10, RunningAvgSamplesPerSec=25.0, CurrSamplesPerSec=25.7, ...`."""

    format, example = "deepspeed", "`CurrSamplesPerSec=N`"
    unit = "samples/s of the job (CurrSamplesPerSec)"
    _step = re.compile(
        r"(?:global_step=|\b\d{1,9}/)(\d{1,9}), RunningAvgSamplesPerSec=[^,]{1,40}, "
        rf"CurrSamplesPerSec={_FIGURE},"
    )
    _memory = re.compile(r"MaxMemAllocated=(\d{1,5}(?:\.\d{1,4})?)GB")  # printed GB is GiB
    _settings: ClassVar = {
        "global_batch_size": re.compile(r"\btrain_batch_size \.{3,40} (\d{1,9})\b"),
        "num_gpus": re.compile(r"\bworld_size \.{3,60} (\d{1,7})\b"),
    }

    def line(self, rank: str, line: str) -> StepRecord | None:
        """Read one line."""
        if "CurrSamplesPerSec=" in line:
            match = self._step.search(line)
            if match is not None and (rate := positive(match[2])) is not None:
                return StepRecord(
                    number=int(match[1]), rank=rank, samples_per_s=rate,
                    memory_bytes=_gib(self._memory.search(line)),
                )  # fmt: skip
        elif " ..." in line:
            for name, pattern in self._settings.items():
                if match := pattern.search(line):
                    self.learn({name: int(match[1])})
        return None


class LevanterLog(Log):
    """`Progress on:train 19.0it/70.0it rate:76.8s/it remaining:... elapsed:...`."""

    format, unit = "step-times", "seconds of a step (rate)"
    example = "`iter time: N ms`, `train_step() took N seconds` or `rate:Ns/it`"
    _progress = re.compile(
        r"Progress on:train (\d{1,9}(?:\.\d{1,3})?)(k?)it/\S{1,20} "
        r"rate:(\d{1,9}(?:\.\d{1,12})?)(s/it|it/s)"
    )

    def line(self, rank: str, line: str) -> StepRecord | None:
        """Read one line."""
        match = self._progress.search(line) if "Progress on:train" in line else None
        if match is None or (rate := positive(match[3])) is None:
            return None
        # A thousand steps and more are printed with three digits: no number of a step.
        number = None if match[2] else round(float(match[1]))
        seconds = rate if match[4] == "s/it" else 1 / rate
        return StepRecord(number=number, rank=rank, step_s=seconds)


class PaxLog(FigureLog):
    """`[PAX STATUS]: train_step() took 0.634 seconds.`."""

    format, unit, name = "step-times", "seconds of a step (train_step)", "step_s"
    mark = "train_step() took"
    pattern = re.compile(r"\[PAX STATUS\]: train_step\(\) took (\d{1,9}(?:\.\d{1,12})?) seconds")


class LitGptLog(Log):
    """`Epoch 1 | iter 128 step 32 | loss train: 10.9, val: n/a | iter time: 345.67 ms (step)`."""

    format = "step-times"
    unit = "seconds of a step: those of its micro-batches (iter time)"
    _iteration = re.compile(
        r"\| iter (\d{1,9}) step (\d{1,9}) \| .{0,120}?\| "
        r"iter time: (\d{1,9}(?:\.\d{1,12})?) ms( \(step\))?"
    )

    def __init__(self) -> None:
        super().__init__()
        self._each, self._is_exact = 1, False  # micro-batches of a step
        self._step: dict[str, int] = {}  # rank -> its last step
        self._times: dict[str, list[float]] = {}  # rank -> milliseconds since its last step

    def line(self, rank: str, line: str) -> StepRecord | None:
        """Read one line: the step is complete where its number grows."""
        match = self._iteration.search(line) if "iter time:" in line else None
        if match is None or (millis := positive(match[3])) is None:
            return None
        iteration, step = int(match[1]), int(match[2])
        if step and (match[4] or not self._is_exact):
            self._each, self._is_exact = max(round(iteration / step), 1), bool(match[4])
        times = self._times.setdefault(rank, [])
        times.append(millis * 1e-3)
        if step == self._step.setdefault(rank, 0):
            del times[:-1000]
            return None
        self._step[rank], self._times[rank] = step, []
        return StepRecord(number=step, rank=rank, step_s=self._each * fmean(times))


class ColossalAiLog(FigureLog):
    """`Throughput: 9.86 samples/sec, TFLOPS per GPU by Megatron: ...`; the last is of all steps."""

    format, is_mean, name = "step-times", True, "samples_per_s"
    unit = "samples/s of the job over the measured steps (Throughput)"
    mark = "samples/sec"
    pattern = re.compile(
        r"Throughput: (\d{1,9}(?:\.\d{1,12})?) samples/sec\s?, "
        r".{0,80}TFLOPS per GPU by Megatron:"
    )

    def end(self) -> None:
        """Keep the last summary."""
        self.steps = self.steps[-1:]


class PlainLog(Log):
    """Anything with tokens per second: `5,762 tok/s`, `Tokens/s/device: 5300`.

    A rate is for the job unless the line says per GPU, device, chip or rank, or the user does.
    """

    format, example, unit = "plain", "`N tokens/s`", "tokens/s of the job"
    _words = (
        r"(?:tokens?[ _]?(?:/|per)[ _]?s(?:ec(?:ond)?s?)?|toks?/s(?:ec)?|tokens_per_second"
        r"|tgs(?: \(tokens/gpu/second\))?)"  # InternEvo
        r"(?![a-z])((?:[ _]?(?:/|per)[ _]?(?:gpu|device|chip|rank))?)"
    )
    _number = r"(\d[\d,]{0,14}(?:\.\d{1,12})?(?:e[+-]?\d{1,2})?)"
    _after = re.compile(
        rf"(?<![a-z]){_words}['\"]?\s{{0,4}}[:=]?\s{{0,4}}['\"]?{_number}([kM]?)(?![\w.])",
        re.IGNORECASE,
    )
    _before = re.compile(rf"(?<![\w.,]){_number}\s{{0,2}}([kM]?)\s{{0,2}}{_words}", re.IGNORECASE)
    _step = re.compile(r"\b(?:step|iter(?:ation)?)s?\b[\s:=#\[]{0,8}(\d{1,9})\b", re.IGNORECASE)

    def __init__(self, per_gpu: bool | None = None) -> None:
        super().__init__()
        self._per_gpu = per_gpu  # whether the user says so; None: it follows from the line

    def line(self, rank: str, line: str) -> StepRecord | None:
        """Read one line."""
        if "tok" not in line.lower() and "tgs" not in line.lower():
            return None
        if match := self._after.search(line):
            unit, figure, scale = match.groups()
        elif match := self._before.search(line):
            figure, scale, unit = match.groups()
        else:
            return None
        if (rate := positive(figure)) is None:
            return None
        rate *= {"": 1.0, "k": 1e3, "m": 1e6}[scale.lower()]
        per_gpu = self._per_gpu
        if per_gpu is None:
            per_gpu = bool(unit) or "tgs" in match[0].lower()
        step = self._step.search(line)
        return StepRecord(
            number=None if step is None else int(step[1]),
            rank=rank,
            tokens_per_s_per_gpu=rate if per_gpu else None,
            tokens_per_s=0.0 if per_gpu else rate,
        )

    def end(self) -> None:
        """Of lines of both kinds keep those per GPU, which need no other figure."""
        direct = [s for s in self.steps if s.tokens_per_s_per_gpu is not None]
        if direct:
            self.steps, self.unit = direct, "tokens/s per GPU"
        elif self._per_gpu is None:
            self.notes = (
                "The log does not say whose tokens/s it prints: taken as those of the job.",
            )
