"""Training logs of one dictionary, JSON object or table row for each step: one reader for each.

Sources of the shapes, as read:
- DLLogger, NVIDIA/dllogger dllogger/logger.py (JSONStreamBackend): a list of steps is epoch and
  iteration, and an empty one is the summary of the run. NeMo writes `train_step_timing in s`; other
  programs say in a line of type METADATA that a figure is in tokens/s or sequences/s, of the job.
- Hugging Face Trainer, trainer.py (`log`, `num_tokens`) and trainer_utils.py (`speed_metrics`):
  with include_num_input_tokens_seen each line has the tokens of the whole job so far and, in newer
  versions, the seconds (train_runtime); their differences are the rate. Without it, only the
  summary is left: samples/s of the job over the whole run. Its train_tokens_per_second is
  documented as per device and has been computed in several ways: it is read only if there is
  nothing else. Values may be quoted. TRL counts `num_tokens`. trainer_state.json
  (TrainerState.save_to_json) has the same dictionaries in its `log_history`, a figure per line.
- LLaMA-Factory, src/llamafactory/train/callbacks.py (LogCallback.on_log), trainer_log.jsonl:
  `elapsed_time` in whole seconds, and, where tokens are counted, `total_tokens` of the job and
  their mean rate since the start as `throughput`. Their quotient is the time since the start to a
  millisecond, and its differences are those of the steps.
- ms-swift, swift/trainers (the progress callback) and its Megatron trainer: the mean time of a step
  since the start as `train_speed(s/it)`, formerly its inverse `train_speed(iter/s)`. Its product
  with the step is the time since the start, whose differences are the steps'.
- Lightning, lightning/pytorch/loggers/csv_logs.py and fabric/utilities/throughput.py: a column per
  metric, blank where a row lacks it. ThroughputMonitor's `device/items_per_sec` counts what
  `length_fn` does: tokens; `items_per_sec` is that of the job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from core.units import GIB
from core.watch.records import StepRecord
from hardware.outside.json_text import LINE, json_value
from runners.imports.steps import Log
from runners.imports.text import ImportFileError, positive

MOST_METRICS = 1000  # of one line of DLLogger, and that it describes
MOST_FIGURES = 100  # of one dictionary of trainer_state.json
MOST_COLUMNS = 500  # of a table of metrics


class DlloggerLog(Log):
    """`DLLL {"type": "LOG", "step": 16, "data": {...}}`."""

    format, example = "dllogger", "`DLLL {...}`"
    _mark, _step_s, _samples = "DLLL {", "train_step_timing in s", "consumed_samples"
    _tokens_units = ("tokens/s", "tok/s", "tokens/sec", "tokens per second")
    _samples_units = ("sequences/s", "sequences/sec", "samples/s", "samples/sec")
    _other_metrics = re.compile(r"val|eval|infer|test|latency", re.IGNORECASE)

    def __init__(self) -> None:
        super().__init__()
        self._units: dict[str, str] = {}
        self._summary: StepRecord | None = None
        self._before: tuple[int, float] | None = None  # step and samples so far

    def line(self, rank: str, line: str) -> StepRecord | None:
        """Read one line."""
        _, mark, rest = line.partition(self._mark)
        try:
            entry = json_value("{" + rest, LINE) if mark else None
        except ValueError:
            return None
        if not isinstance(entry, dict):
            return None
        if entry.get("type") == "METADATA" and len(self._units) < MOST_METRICS:
            metadata = entry.get("metadata")
            unit = metadata.get("unit") if isinstance(metadata, dict) else None
            self._units[str(entry.get("metric"))] = str(unit).lower()
        data = entry.get("data")
        if entry.get("type") != "LOG" or not isinstance(data, dict):
            return None
        steps = entry.get("step")
        number = steps[-1] if isinstance(steps, list) and steps else steps
        step = self._step(data, rank)
        if step is None or not (isinstance(number, int) and 0 <= number < 10**9):
            self._summary = step or self._summary
            return None
        step = replace(step, number=number)
        if (samples := positive(str(data.get(self._samples, "")))) is not None:
            before, self._before = self._before, (number, samples)
            if before is not None and number > before[0] and samples > before[1]:
                step = replace(step, batch=(samples - before[1]) / (number - before[0]))
        return step

    def end(self) -> None:
        """Take the summary where there are no steps, and settle the unit."""
        if not self.steps and self._summary is not None:
            self.steps, self.is_mean = [self._summary], True
            self.notes = ("It is the mean of the whole run, with start-up.",)
        for step in self.steps[:1]:
            self.unit = (
                "seconds of a step"
                if step.step_s is not None
                else "tokens/s of the job"
                if step.tokens_per_s
                else "sequences/s of the job"
            )

    def _step(self, data: Mapping[str, object], rank: str) -> StepRecord | None:
        """The first figure of a line that says how fast the training is."""
        for name, value in list(data.items())[:MOST_METRICS]:
            rate, unit = positive(str(value)), self._units.get(name, "")
            if rate is None or self._other_metrics.search(name):
                continue
            if name == self._step_s:
                return StepRecord(rank=rank, step_s=rate)
            if unit in self._tokens_units:
                return StepRecord(rank=rank, tokens_per_s=rate)
            if unit in self._samples_units:
                return StepRecord(rank=rank, samples_per_s=rate)
        return None


class TrainerLog(Log):
    """`{'loss': 2.6, 'num_input_tokens_seen': 196608, 'train_runtime': 3.5, ...}`."""

    format, example = "hf-trainer", "`'train_samples_per_second': N`"
    _tokens = ("num_input_tokens_seen", "num_tokens")
    _per_gpu = ("tokens_per_second_per_gpu", "tokens/train_per_sec_per_gpu")  # axolotl
    _summary_key = "train_samples_per_second"
    _pair = re.compile(
        r"['\"]([\w/]{1,40})['\"]: ['\"]?(\d{1,15}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?)"
    )
    _batch = re.compile(
        r"Total train batch size \(w\. parallel[^)]{0,60}\) = (\d{1,3}(?:,\d{3})+|\d{1,9})"
    )
    _metric = re.compile(r"^\s*(train_\w{3,30})\s{1,40}=\s{1,40}(\d[\d,]{0,14}(?:\.\d{1,10})?)\s*$")

    def __init__(self) -> None:
        super().__init__()
        self._summary: dict[str, float] = {}
        self._before: tuple[str, float, float] | None = None  # rank, seconds, tokens of the job

    def read(self, lines: Sequence[str]) -> bool:
        """Read a log, or the dictionaries of a trainer_state.json."""
        if not is_trainer_state(lines):
            return super().read(lines)
        if not super().read(list(dictionaries(lines))):
            raise ImportFileError(
                "This trainer_state.json has no times, because it was saved before the end of the "
                "run: give the one that the Trainer saved at the end, or train with "
                "include_num_input_tokens_seen."
            )
        return True

    def line(self, rank: str, line: str) -> StepRecord | None:
        """Read one line."""
        if match := self._batch.search(line):
            self.learn({"global_batch_size": int(match[1].replace(",", ""))})
        elif match := self._metric.match(line):
            self._summary[match[1]] = positive(match[2]) or 0.0
        elif "{" in line:
            return self._dictionary(rank, line)
        return None

    def _dictionary(self, rank: str, line: str) -> StepRecord | None:
        """The step of a printed dictionary, even if the line is cut off."""
        values = {
            m[1]: value
            for m in self._pair.finditer(line)
            if (value := positive(m[2])) is not None and m.end() < len(line)
        }
        if self._summary_key in values:
            self._summary |= values
            return None
        per_gpu = next((values[n] for n in self._per_gpu if n in values), None)
        tokens = next((values[n] for n in self._tokens if n in values), None)
        seconds, before = values.get("train_runtime"), self._before
        if tokens is not None and seconds is not None:
            self._before = rank, seconds, tokens
        if per_gpu is not None:
            return StepRecord(rank=rank, tokens_per_s_per_gpu=per_gpu)
        if tokens is None or seconds is None or before is None or before[0] != rank:
            return None
        if seconds <= before[1] or tokens <= before[2]:
            return None
        rate = (tokens - before[2]) / (seconds - before[1])
        return StepRecord(rank=rank, tokens_per_s=rate, elapsed_s=seconds, tokens=tokens)

    def end(self) -> None:
        """Prefer rates of a GPU to differences, and those to the summary of the run."""
        direct = [s for s in self.steps if s.tokens_per_s_per_gpu is not None]
        if self.steps:
            self.steps = direct or self.steps
            self.unit = "tokens of the job so far (num_input_tokens_seen)"
            if direct:
                self.unit = "tokens/s per GPU"
            return
        mean = "It is the mean of the whole run, with start-up, evaluation and checkpoints."
        self.is_mean = True
        if samples := self._summary.get(self._summary_key):
            self.steps = [StepRecord(samples_per_s=samples)]
            self.unit = "samples/s of the job over the whole run (train_samples_per_second)"
            self.notes = (mean, "Every sample is taken as one full sequence.")
        elif tokens := self._summary.get("train_tokens_per_second"):
            self.steps = [StepRecord(tokens_per_s_per_gpu=tokens)]
            self.unit = "tokens/s of a device over the whole run (train_tokens_per_second)"
            self.notes = (
                mean,
                "The Trainer has computed it in several ways; it may be of the whole job.",
            )


def is_trainer_state(lines: Sequence[str]) -> bool:
    """Whether these are the lines of a trainer_state.json."""
    return bool(lines) and lines[0].strip() == "{" and any('"log_history": [' in x for x in lines)


def dictionaries(lines: Sequence[str]) -> Iterator[str]:
    """The innermost dictionaries of trainer_state.json, each on one line."""
    parts: list[str] = []
    for line in map(str.strip, lines):
        if line.endswith("{"):
            parts = [line]
        elif parts and len(parts) <= MOST_FIGURES:
            parts.append(line)
            if line.startswith("}"):
                yield " ".join(parts)
                parts = []


class LlamaFactoryLog(Log):
    """`{"current_steps": 5, "total_tokens": 9216, "throughput": 3072.0, ...}`."""

    format, example = "llama-factory", '`"current_steps": N, "total_tokens": N`'
    unit = "whole seconds since the start (elapsed_time)"
    notes: tuple[str, ...] = (
        "Its times are whole seconds; include_num_input_tokens_seen makes it print tokens, too.",
    )
    _elapsed = re.compile(r"(?:(\d{1,4}) days?, )?(\d{1,4}):(\d\d):(\d\d)")
    _needed = ("current_steps", "total_steps", "elapsed_time")

    def __init__(self) -> None:
        super().__init__()
        self._row: Mapping[str, float] = {}
        self._counted: Mapping[str, float] = {}  # the last row with tokens

    def line(self, rank: str, line: str) -> StepRecord | None:
        """Read one line."""
        row = self._parsed(line)
        if row is None:
            return None
        before, self._row = self._row, row
        number, counted = int(row["current_steps"]), self._counted
        if "throughput" in row and "total_tokens" in row:
            self._counted = row
            if counted and row["is_training"]:
                tokens = row["total_tokens"] - counted["total_tokens"]
                seconds = row["total_tokens"] / row["throughput"]
                seconds -= counted["total_tokens"] / counted["throughput"]
                if seconds > 0 and tokens > 0:
                    return StepRecord(number=number, rank=rank, tokens_per_s=tokens / seconds)
        if before and row["is_training"]:
            seconds = row["elapsed_s"] - before["elapsed_s"]
            passed = row["current_steps"] - before["current_steps"]
            if seconds > 0 and passed > 0:
                return StepRecord(number=number, rank=rank, step_s=seconds / passed)
        return None

    def end(self) -> None:
        """Prefer counted tokens to whole seconds."""
        if counted := [s for s in self.steps if s.tokens_per_s]:
            self.steps, self.notes = counted, ()
            self.unit = "tokens of the job so far, and their mean rate (total_tokens, throughput)"

    def _parsed(self, line: str) -> Mapping[str, float] | None:
        """The positive figures of one line, with the seconds since the start."""
        if not (line.startswith("{") and all(f'"{name}"' in line for name in self._needed)):
            return None
        try:
            entry = json_value(line, LINE)
        except ValueError:
            return None
        match = self._elapsed.fullmatch(str(entry["elapsed_time"]))
        if match is None:
            return None
        days, hours, minutes, seconds = (int(x or 0) for x in match.groups())
        row = {
            name: value
            for name in ("current_steps", "total_tokens", "throughput")
            if (value := positive(str(entry.get(name, "")))) is not None
        }
        if "current_steps" not in row or row["current_steps"] > 1e9:
            return None
        elapsed = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
        return {**row, "elapsed_s": float(elapsed), "is_training": float("loss" in entry)}


class SwiftLog(Log):
    """`{'global_step/max_steps': '10/100', 'train_speed(s/it)': '2.5', ...}`."""

    format, example = "ms-swift", "`'train_speed(s/it)': N`"
    unit = "seconds of a step (train_speed)"
    _number = re.compile(r"['\"]global_step/max_steps['\"]: ['\"](\d{1,9})/\d{1,9}['\"]")
    _speed = re.compile(
        r"['\"]train_speed\((s/it|iter/s)\)['\"]: "
        r"['\"]?(\d{1,9}(?:\.\d{1,12})?(?:[eE][+-]?\d{1,3})?)(?=['\",}\s])"
    )
    _memory = re.compile(r"['\"]memory\(GiB\)['\"]: ['\"]?(\d{1,5}(?:\.\d{1,4})?)")

    def __init__(self) -> None:
        super().__init__()
        self._before: tuple[int, float] | None = None  # step, seconds since the start

    def line(self, rank: str, line: str) -> StepRecord | None:
        """Read one line."""
        match, speed = self._number.search(line), self._speed.search(line)
        value = None if speed is None else positive(speed[2])
        if match is None or speed is None or value is None or not int(match[1]):
            return None
        number, memory = int(match[1]), self._memory.search(line)
        elapsed = number * value if speed[1] == "s/it" else number / value
        before, self._before = self._before, (number, elapsed)
        if before is None or number <= before[0] or elapsed <= before[1]:
            return None
        return StepRecord(
            number=number,
            rank=rank,
            step_s=(elapsed - before[1]) / (number - before[0]),
            memory_bytes=float(memory[1]) * GIB if memory else None,
        )


class CsvLog(Log):
    """A table of Lightning's CSVLogger, and others with a header and tokens per second."""

    format, example = "csv", "a column `device/items_per_sec`"
    _rate = re.compile(
        r"(?:^|[/_.])(?:items|tokens?)_per_sec(?:ond)?s?(?:_per_(?:gpu|device))?$|(?:^|/)tok/s$",
        re.IGNORECASE,
    )
    _of_device = re.compile(r"device|gpu", re.IGNORECASE)
    _validation = re.compile(r"\b(?:val|eval|test|validate)", re.IGNORECASE)
    _steps = ("step", "global_step", "trainer/global_step", "iter")

    def __init__(self) -> None:
        super().__init__()
        self._names: list[str] | None = None  # of the columns; []: it is no such table
        self._name, self._per_gpu = "", False

    def line(self, rank: str, line: str) -> StepRecord | None:
        """Read one line, of which the first is the header."""
        if self._names is None:
            self._header(line)
        elif self._names:
            cells = line.split(",")
            is_row = len(cells) == len(self._names)
            row = dict(zip(self._names, cells, strict=True)) if is_row else {}
            rate = positive(row.get(self._name, ""))
            if rate is None:
                return None
            number = positive(next((row[name] for name in self._steps if name in row), ""))
            return StepRecord(
                number=None if number is None or number > 1e9 else int(number),
                tokens_per_s_per_gpu=rate if self._per_gpu else None,
                tokens_per_s=0.0 if self._per_gpu else rate,
            )
        return None

    def _header(self, line: str) -> None:
        names = [name.strip().strip('"') for name in line.split(",")]
        rates = [n for n in names if self._rate.search(n) and not self._validation.search(n)]
        is_table = 2 <= len(names) <= MOST_COLUMNS and len(set(names)) == len(names)
        self._names = names if is_table and rates else []
        if self._names:  # rates of one device need no number of devices
            self._name = min(rates, key=lambda n: not self._of_device.search(n))
            self._per_gpu = bool(self._of_device.search(self._name))
            whose = "per GPU" if self._per_gpu else "of the job"
            self.unit = f"tokens/s {whose} ({self._name[:60]})"
