"""Lines of one growing file as steps, by the reader of its format in `runners.imports`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from core.watch.records import StepRecord
from runners.imports.log_lines import PlainLog
from runners.imports.loss import loss_in
from runners.imports.steps import LIMITS, Facts, Log, can_be_used, rate_per_gpu
from runners.imports.text import whose
from runners.imports.training_log import FORMATS
from runners.watch.clock import Clock, time_of
from runners.watch.signs import LineSign, parameters_in, sign_of

HEAD = 4_000  # lines in which the format and the facts are looked for; a dump of arguments is 900
ENOUGH = 64  # steps after which no better format is looked for
LOOK_EVERY = 512  # lines
LEAST_PLAIN = 3  # steps of the least trusted format: other formats print such words, too
OTHER_JOB = 2_000  # lines after a start in which its facts are looked for
RANKS = 4_096  # whose last lines are kept


@dataclass(slots=True)
class LogLines:
    """One file: its format once it is known, its facts, its clock."""

    user: Facts
    rank: str = ""  # of the file; a rank in a line counts more
    head: int = HEAD
    reader: Log | None = None  # of the format, once it is known
    facts: dict[str, int] = field(default_factory=dict)
    device: str = ""
    parameters: int | None = None
    num_lines: int = 0
    num_steps: int = 0
    clock: Clock = field(default_factory=Clock)
    _head: deque[tuple[str, float | None]] = field(default_factory=deque)
    contradictions: dict[str, tuple[int, int]] = field(default_factory=dict)  # before, since
    _of_start: dict[str, int] = field(default_factory=dict)  # facts of the first start
    _since_start: list[str] | None = None  # lines after a new start, until its facts are read
    _early: list[LineSign] = field(default_factory=list)  # before any line has a time
    _ranks: set[str] = field(default_factory=set)  # that the reader keeps apart
    _loss: dict[str, float] = field(default_factory=dict)
    _last: dict[str, float] = field(default_factory=dict)  # tokens of the job at a rank's last step

    def line(self, text: str, arrived: float | None) -> Iterator[StepRecord | LineSign]:
        """What a line gives, and what lines before it give once the format is known."""
        self.num_lines += 1
        if self.num_steps < ENOUGH:
            self._head.append((text, arrived))
            if len(self._head) > self.head:
                self._head.popleft()
        else:
            self._head.clear()
        if self.reader is None:
            if self.num_lines % LOOK_EVERY == 0:
                yield from self.settled()
            return
        is_due = self.num_lines < LOOK_EVERY or self.num_lines % LOOK_EVERY == 0
        if self._head and is_due and self._choose():
            for line, _ in list(self._head)[:-1]:
                self._step(*whose(line))
        yield from self._read(text, arrived)

    def settled(self) -> Iterator[StepRecord | LineSign]:
        """Look for the format in the lines so far, and read them by it."""
        if self.reader is not None or not self._head or not self._choose():
            return
        for text, arrived in tuple(self._head):
            yield from self._read(text, arrived)

    def _choose(self) -> bool:
        """Take the first format, in order of trust, that gives a rate; return whether it is new."""
        lines = [text for text, _ in self._head]
        for kind in FORMATS:
            if type(self.reader) is kind:
                return False
            log = kind()
            if not log.read(lines) or log.is_mean or not can_be_used(log, self.user):
                continue
            if kind is PlainLog and len(log.steps) < LEAST_PLAIN:
                continue
            self.reader = kind()
            self.facts, self.device = {**log.facts, **self.facts}, log.device or self.device
            return True
        return False

    def _read(self, text: str, arrived: float | None) -> Iterator[StepRecord | LineSign]:
        self.clock.line(time_of(text))
        prefix, line = whose(text)
        rank = prefix or self.rank
        if (loss := loss_in(line)) is not None and len(self._loss) < RANKS:
            self._loss[rank] = loss
        printed = self._step(prefix, line)
        if printed is not None:
            step = self._placed(replace(printed, rank=printed.rank or rank), arrived)
            if step is not None:
                yield from self._signs_until(step.at_s)
                yield step
        sign = None if printed is not None else sign_of(line)
        if sign is not None and len(self._early) < RANKS:
            self._early.append(sign)
        if (now := self.clock.now if self.clock.now is not None else arrived) is not None:
            yield from self._signs_until(now)
        if self._since_start is not None:
            self._since_start.append(text)
            if printed is not None or len(self._since_start) > OTHER_JOB:
                self._compare(self._since_start)
                self._since_start = None
        elif sign is not None and sign.kind == "start":
            self._since_start = [text]
        size = parameters_in(line)
        if size is not None and self.parameters not in (None, size):
            self.contradictions.setdefault("parameters", (self.parameters or 0, size))
        self.parameters = self.parameters or size

    def _compare(self, lines: Sequence[str]) -> None:
        """Facts of a new start that are others than those before: it is of another job."""
        if self.reader is None:
            return
        log = type(self.reader)()
        log.read(lines)
        for name, value in log.facts.items():
            before = self._of_start.setdefault(name, value)
            if name in LIMITS and before != value:
                self.contradictions.setdefault(name, (before, value))

    def _signs_until(self, at_s: float) -> Iterator[StepRecord | LineSign]:
        """The signs that wait for a first time."""
        for sign in self._early:
            yield replace(sign, at_s=at_s)
        self._early.clear()

    def _placed(self, step: StepRecord, arrived: float | None) -> StepRecord | None:
        """A step with its time and the tokens of the job; None if no rate of the job follows."""
        known = self.known
        each, gpus = rate_per_gpu(step, known), known.get("num_gpus")
        of_step = known.get("global_batch_size", 0) * known.get("seq_len", 0)
        if each is None or gpus is None or (not of_step and not step.tokens):
            return None
        self.num_steps += 1
        before = self._last.get(step.rank)
        tokens = step.tokens
        if not tokens and step.number is not None:
            tokens = float(step.number * of_step)
        elif not tokens:
            tokens = (before or 0.0) + of_step
        if len(self._last) < RANKS:
            self._last[step.rank] = tokens
        passed = tokens - before if before is not None and tokens > before else float(of_step)
        is_new = tokens > max((v for r, v in self._last.items() if r != step.rank), default=-1.0)
        took = passed / (each * gpus) if is_new else 0.0
        return replace(
            step,
            at_s=self.clock.step(took_s=took, elapsed_s=step.elapsed_s, arrived=arrived),
            tokens_per_s=each * gpus,
            tokens=tokens,
            loss=self._loss.pop(step.rank, None),
        )

    @property
    def known(self) -> dict[str, int]:
        """The facts of the log, under those that the user gives."""
        return {**self.facts, **self.user}

    def _step(self, rank: str, line: str) -> StepRecord | None:
        """Read a line by its format."""
        if self.reader is None:
            return None
        if len(self._ranks) < RANKS:
            self._ranks.add(rank)
        step = self.reader.line(rank if rank in self._ranks else "", line)
        if step is not None and not self.reader.facts.keys() <= self.facts.keys():
            self.facts = {**self.reader.facts, **self.facts}
        return step
