"""What is read of a run, what its plan forecast, and what is found. Times are seconds of one clock,
tokens are those of the whole job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

AlertKind: TypeAlias = Literal[
    "slower_than_p10", "slowing", "rank_behind", "rank_silent", "stall", "repeated_restarts",
    "memory", "loss_not_finite", "loss_spike", "loss_flat", "fault",
]  # fmt: skip
LossKind: TypeAlias = Literal["start_up", "restart", "stall", "checkpoint", "pause"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One logged step of one rank."""

    at_s: float
    tokens: float  # so far
    tokens_per_s: float
    rank: str = ""
    loss: float | None = None
    memory_bytes: float | None = None


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
    at_s: float  # found
    since_s: float
    lost_s: float  # by the end of the run, if it stays as it is
    size: float = 0.0  # a share slower, seconds, a count, a loss: by its kind
    significance: float | None = None  # standard errors
    subject: str = ""  # a rank, or the line of a fault
