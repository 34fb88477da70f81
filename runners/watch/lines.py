"""Lines of one growing file as steps, by the reader of its format in `runners.imports`.

A reader takes lines at once. Here it gets one new line at a time, after the few that it needs with
it: the header of a table, the last dictionary of which a difference is taken. What it finds in
those alone was found before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from runners.imports import (
    log_blocks,
    log_csv,
    log_dllogger,
    log_hf,
    log_llama,
    log_megatron,
    log_plain,
    log_swift,
)
from runners.imports.loss import loss_in
from runners.imports.steps import LIMITS, Log, RunFacts, Step, can_be_used, rate_per_gpu
from runners.imports.text import whose
from runners.imports.training_log import READERS
from runners.watch.clock import Clock, time_of
from runners.watch.signs import LineSign, parameters_in, sign_of

HEAD = 4_000  # lines in which the format and the facts are looked for; a dump of arguments is 900
ENOUGH = 64  # steps after which no better format is looked for
LOOK_EVERY = 512  # lines
LEAST_PLAIN = 3  # steps of the least trusted format: other formats print such words, too
OTHER_JOB = 2_000  # lines after a start in which its facts are looked for
RANKS = 4_096  # whose last lines are kept
MARKS: Mapping[str, str] = {  # of lines that the next one is read with
    log_blocks.NAME: "=",
    log_dllogger.NAME: log_dllogger.MARK,
    log_hf.NAME: "_tokens",
    log_llama.NAME: '"current_steps"',
    log_megatron.NAME: "consumed_samples=",
    log_swift.NAME: "global_step/max_steps",
}
Reader = Callable[[Sequence[str]], Log | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one line gave: a step with its loss, or a sign."""

    at_s: float
    step: Step | None = None
    tokens_per_s: float = 0.0  # of the job in this step
    tokens: float = 0.0  # of the job so far
    loss: float | None = None
    sign: LineSign | None = None


@dataclass(slots=True)
class LogLines:
    """One file: its format once it is known, its facts, its clock."""

    user: RunFacts
    rank: str = ""  # of the file; a rank in a line counts more
    head: int = HEAD
    format: str = ""
    facts: dict[str, int] = field(default_factory=dict)
    device: str = ""
    parameters: int | None = None
    num_lines: int = 0
    num_steps: int = 0
    clock: Clock = field(default_factory=Clock)
    _head: deque[tuple[str, float | None]] = field(default_factory=deque)
    _first: str = ""
    _before: dict[str, list[str]] = field(default_factory=dict)
    _count: dict[str, int] = field(default_factory=dict)  # steps of `_before` alone
    contradictions: dict[str, tuple[int, int]] = field(default_factory=dict)  # before, since
    _of_start: dict[str, int] = field(default_factory=dict)  # facts of the first start
    _since_start: list[str] | None = None  # lines after a new start, until its facts are read
    _early: list[LineSign] = field(default_factory=list)  # before any line has a time
    _loss: dict[str, float] = field(default_factory=dict)
    _last: dict[str, float] = field(default_factory=dict)  # tokens of the job at a rank's last step

    def line(self, text: str, arrived: float | None) -> Iterator[Found]:
        """What a line gives, and what lines before it give once the format is known."""
        self.num_lines += 1
        self._first = self._first or text
        if self.num_steps < ENOUGH:
            self._head.append((text, arrived))
            if len(self._head) > self.head:
                self._head.popleft()
        else:
            self._head.clear()
        if not self.format:
            if self.num_lines % LOOK_EVERY == 0:
                yield from self.settled()
            return
        if self._head and (self.num_lines < LOOK_EVERY or self.num_lines % LOOK_EVERY == 0):
            self._choose()
        yield from self._read(text, arrived)

    def settled(self) -> Iterator[Found]:
        """Look for the format in the lines so far, and read them by it."""
        if self.format or not self._head or not self._choose():
            return
        for text, arrived in tuple(self._head):
            yield from self._read(text, arrived)

    def _choose(self) -> bool:
        """Take the first format, in order of trust, that gives a rate."""
        lines = [text for text, _ in self._head]
        for name, read in READERS.items():
            if name == self.format:
                return True
            log = read(lines)
            if log is None or log.is_mean or not can_be_used(log, self.user):
                continue
            if name == log_plain.NAME and len(log.steps) < LEAST_PLAIN:
                continue
            self.format, self._before, self._count = name, {}, {}
            self.facts, self.device = {**log.facts, **self.facts}, log.device or self.device
            return True
        return False

    def _read(self, text: str, arrived: float | None) -> Iterator[Found]:
        self.clock.line(time_of(text))
        rank, line = whose(text)
        rank = rank or self.rank
        if (loss := loss_in(line)) is not None and len(self._loss) < RANKS:
            self._loss[rank] = loss
        steps = self._steps(text, rank)
        for step in steps:
            named = step if step.rank or not rank else replace(step, rank=rank)
            if (found := self._found(named, arrived)) is not None:
                yield from self._signs_until(found.at_s)
                yield found
        sign = None if steps else sign_of(line)
        if sign is not None and len(self._early) < RANKS:
            self._early.append(sign)
        if (now := self.clock.now if self.clock.now is not None else arrived) is not None:
            yield from self._signs_until(now)
        if self._since_start is not None:
            self._since_start.append(text)
            if steps or len(self._since_start) > OTHER_JOB:
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
        log = READERS[self.format](lines)
        for name, value in (log.facts if log is not None else {}).items():
            before = self._of_start.setdefault(name, value)
            if name in LIMITS and before != value:
                self.contradictions.setdefault(name, (before, value))

    def _signs_until(self, at_s: float) -> Iterator[Found]:
        """The signs that wait for a first time."""
        for sign in self._early:
            yield Found(at_s=at_s, sign=sign)
        self._early.clear()

    def _found(self, step: Step, arrived: float | None) -> Found | None:
        """A step with its time and the tokens of the job; None if no rate of the job follows."""
        known = self.known
        each, gpus = rate_per_gpu(step, known), known.get("num_gpus")
        of_step = known.get("global_batch_size", 0) * known.get("seq_len", 0)
        if each is None or gpus is None or (not of_step and step.tokens is None):
            return None
        self.num_steps += 1
        before = self._last.get(step.rank)
        tokens = step.tokens
        if tokens is None and step.number is not None:
            tokens = float(step.number * of_step)
        elif tokens is None:
            tokens = (before or 0.0) + of_step
        if len(self._last) < RANKS:
            self._last[step.rank] = tokens
        passed = tokens - before if before is not None and tokens > before else float(of_step)
        is_new = tokens > max((v for r, v in self._last.items() if r != step.rank), default=-1.0)
        took = passed / (each * gpus) if is_new else 0.0
        return Found(
            at_s=self.clock.step(took_s=took, elapsed_s=step.elapsed_s, arrived=arrived),
            step=step,
            tokens_per_s=each * gpus,
            tokens=tokens,
            loss=self._loss.pop(step.rank, None),
        )

    @property
    def known(self) -> dict[str, int]:
        """The facts of the log, under those that the user gives."""
        given = ((name, getattr(self.user, name)) for name in LIMITS)
        return {**self.facts, **{name: n for name, n in given if n is not None}}

    def _steps(self, text: str, rank: str) -> Sequence[Step]:
        """Steps that a line adds to those of the lines that it is read with."""
        read: Reader = READERS[self.format]
        if self.format == log_csv.NAME:
            log = read([self._first, text]) if text != self._first else None
            return () if log is None else log.steps
        before = self._before.get(rank, [])
        log = read([*before, text])
        if log is not None:
            self.facts |= {n: v for n, v in log.facts.items() if n not in self.facts}
        steps = () if log is None else log.steps[self._count.get(rank, 0) :]
        mark = MARKS.get(self.format)
        if mark is not None and mark in text and len(self._before) < RANKS:
            self._keep(text, rank, read)
        return steps

    def _keep(self, text: str, rank: str, read: Reader) -> None:
        """Keep the line for the next one: in place of the last, after those that give units."""
        if self.format == log_blocks.NAME and not ("[step=" in text or "[batch=" in text):
            return  # a figure of the block; its title is what the next figure needs
        kept = self._before.get(rank, [])
        units = [x for x in kept if '"METADATA"' in x][-100:]
        self._before[rank] = [*units, text]
        alone = read(self._before[rank])
        self._count[rank] = 0 if alone is None else len(alone.steps)
