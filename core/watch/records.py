"""A logged step, the forecast of its run, and what goes wrong. Times are seconds of one clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

AlertKind: TypeAlias = Literal[
    "slower_than_p10", "slowing", "rank_behind", "rank_silent", "stall", "repeated_restarts",
    "memory", "loss_not_finite", "loss_spike", "loss_flat", "fault",
]  # fmt: skip
LossKind: TypeAlias = Literal["start_up", "restart", "stall", "checkpoint", "pause"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One training step of a log: what one rank printed, and the time and tokens that follow."""

    number: int | None = None  # None: not printed, here and below
    rank: str = ""  # as a launcher prefixed it to the line
    at_s: float = 0.0
    tokens: float = 0.0  # of the job so far; 0: not printed
    tokens_per_s: float = 0.0  # of the job; 0: not printed
    tokens_per_s_per_gpu: float | None = None
    samples_per_s: float | None = None  # sequences, of the job
    step_s: float | None = None
    batch: float | None = None  # sequences of this step, of the job
    memory_bytes: float | None = None  # of one device
    elapsed_s: float | None = None  # since its process began to train
    loss: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The forecast that a run is held against."""

    p10: float  # tokens/s
    p50: float
    p90: float
    tokens: float  # of the whole run
    step_tokens: float
    lost_share: float = 0.0  # seconds lost for each second of training, as forecast
    usd_per_hour: float | None = None  # of the whole job
    deadline_s: float | None = None  # from its begin
    memory_bytes: float | None = None  # of one device

    @property
    def training_s(self) -> float:
        """Seconds of training at the P50."""
        return self.tokens / self.p50

    @property
    def end_s(self) -> float:
        """Seconds from the begin to the end, with what is lost."""
        return self.training_s * (1 + self.lost_share)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Time that was lost: seconds are those lost in it."""

    kind: LossKind
    at_s: float
    lost_s: float
    tokens_redone: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One thing that is wrong, once."""

    kind: AlertKind
    since_s: float
    at_s: float = 0.0  # noticed
    lost_s: float = 0.0  # by the end of the run, if it stays as it is
    size: float = 0.0  # a share slower, seconds, a count, a loss: by its kind
    significance: float | None = None  # standard errors
    subject: str = ""  # a rank, or the line of a fault
