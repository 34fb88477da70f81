"""Tokens of each stage of a programme, and the steps of its batch ramp."""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import ScenarioError, shown
from core.programme.stage import Ramp, Stage, label


def main_stage(stages: Sequence[Stage], tokens: Sequence[float]) -> int:
    """The stage that shares refer to: of those with tokens of their own the largest.

    >>> main_stage([Stage(), Stage(), Stage(share=0.5)], [1e9, 1e12, 0.0])
    1
    """
    own = [n for n, s in enumerate(stages) if s.share is None]
    return max(own, key=lambda n: tokens[n])


def tokens_of_stages(stages: Sequence[Stage], own: Sequence[float]) -> list[float]:
    """Tokens of one run of each stage; `own` are those of a stage without a share.

    >>> tokens_of_stages([Stage(name="main"), Stage(share=0.05)], [1e12, 0.0])
    [1000000000000.0, 50000000000.0]
    """
    names = [label(stages, n) for n in range(len(stages))]

    def of(n: int) -> float:
        stage = stages[n]
        if stage.share is None:
            return own[n]
        whole = names.index(stage.of) if stage.of else main_stage(stages, own)
        return stage.share * of(whole)

    return [of(n) for n in range(len(stages))]


def ramp_steps(ramp: Ramp, *, num_tokens: float, name: str) -> list[tuple[float, int]]:
    """Tokens and sequences per batch of each step of a ramp.

    >>> ramp_steps(((0.0, 512), (10.0, 1024)), num_tokens=30.0, name="main")
    [(10.0, 512), (20.0, 1024)]
    """
    ends = [at for at, _ in ramp[1:]] + [num_tokens]
    if ramp[-1][0] >= num_tokens:
        raise ScenarioError(
            f"The batch ramp of {shown(name)} reaches token {ramp[-1][0]:,.0f}, but the stage ends "
            f"after {num_tokens:,.0f}: leave the last step out or give it more tokens."
        )
    return [(end - at, batch) for (at, batch), end in zip(ramp, ends, strict=True)]
