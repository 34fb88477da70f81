"""Size of a task: tokens of a data set, optimizer steps, and advice on the batch.

[M18] McCandlish et al. 2018, arXiv:1812.06162, Eq. 2.7 and 2.11; [K20] Kaplan et al. 2020,
arXiv:2001.08361, Eq. 1.4, 5.1 and 5.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.money.cost import num_steps
from core.numeric import Numeric, as_float

# [K20] Eq. 1.4: measured on WebText2, 1,024 tokens of context, losses in nats per token.
CRITICAL_TOKENS_AT_ONE_NAT = 2e8
CRITICAL_EXPONENT = 0.21
EARLY_LOSS, LATE_LOSS = 3.0, 2.0  # the losses at which `effective_batch_advice` compares the batch


def tokens_of(
    *,
    num_tokens: float,
    num_examples: float | None,
    tokens_per_example: float | None,
    seq_len: float,
    epochs: float,
    packing_efficiency: float,
) -> float:
    """Tokens that the GPUs process in a whole run, padding included: the basis of time and dollars.

    The data is `num_examples` of `tokens_per_example` each, where the number of examples is
    given, else `num_tokens`; the run passes over it `epochs` times. An example without a length
    fills one sequence. `packing_efficiency` is the share of every sequence that is data: 1 for
    documents that are joined and cut, mean length / `seq_len` for one padded example a sequence.
    Examples longer than a sequence are taken to be cut up, not cut off.

    >>> tokens_of(num_tokens=1e9, num_examples=None, tokens_per_example=None, seq_len=2048,
    ...           epochs=2.0, packing_efficiency=1.0)
    2000000000.0
    """
    if num_examples is None:
        data = num_tokens * epochs
    else:
        length = seq_len if tokens_per_example is None else tokens_per_example
        data = num_examples * length * epochs
    return data / packing_efficiency


def packed_example_tokens(
    *, tokens_per_example: float | None, seq_len: float, packing_efficiency: float
) -> float | None:
    """Mean length of examples that share a sequence: of those of which two or more fit in the data
    of one. None where an example fills its sequence, or is padded to it.

    >>> packed_example_tokens(tokens_per_example=512, seq_len=4096, packing_efficiency=0.95)
    512
    >>> packed_example_tokens(tokens_per_example=512, seq_len=4096, packing_efficiency=0.125)
    """
    if tokens_per_example is None or 2 * tokens_per_example > packing_efficiency * seq_len:
        return None
    return tokens_per_example


def tokens_per_step(*, seq_len: Numeric, global_batch_size: Numeric) -> Numeric:
    """The batch in tokens, on which effects on learning depend.

    >>> tokens_per_step(seq_len=8192, global_batch_size=512)
    4194304
    """
    return seq_len * global_batch_size


def critical_batch_tokens(*, loss: Numeric) -> Numeric:
    """Batch, in tokens, at which a run needs twice the fewest steps and twice the fewest tokens.

    [K20] Eq. 1.4: B* / L^(1/0.21), B* about 2e8 tokens, of the loss L alone. A rule of thumb:
    the constant depends on data and tokenizer, and it was measured in pre-training with Adam.

    >>> round(critical_batch_tokens(loss=3.0) / 1e6, 2)
    1.07
    """
    return CRITICAL_TOKENS_AT_ONE_NAT / loss ** (1 / CRITICAL_EXPONENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAdvice:
    """A batch compared with the critical batch at two losses."""

    tokens_per_step: float
    num_steps: float
    critical_tokens_early: float | None  # at EARLY_LOSS; None: the rule does not hold for this task
    critical_tokens_late: float | None  # at LATE_LOSS, the larger of the two
    verdict: str | None  # small, fitting or large
    sentence: str


def effective_batch_advice(
    *, seq_len: float, global_batch_size: float, num_tokens: float, pretraining: bool
) -> BatchAdvice:
    """Tokens of a step, steps of the run (`num_tokens` are those of `tokens_of`), and, for
    pre-training, how the batch compares with the critical one.

    The fit needs a loss, and fits of the size of the run alone do not agree with one another;
    so the batch is compared with the critical one at two losses, and not with a single number.
    Fine-tuning starts at a low loss on little data, where the fit has not been shown to hold.
    """
    batch = float(tokens_per_step(seq_len=seq_len, global_batch_size=global_batch_size))
    steps = num_steps(num_tokens=num_tokens, seq_len=seq_len, global_batch_size=global_batch_size)
    size = f"The batch is {_counted(batch)} tokens, the run {as_float(steps):,.0f} steps"
    if not pretraining:
        return BatchAdvice(
            tokens_per_step=batch,
            num_steps=as_float(steps),
            critical_tokens_early=None,
            critical_tokens_late=None,
            verdict=None,
            sentence=f"{size}.",
        )
    early = float(critical_batch_tokens(loss=EARLY_LOSS))
    late = float(critical_batch_tokens(loss=LATE_LOSS))
    if batch < early:
        verdict, meaning = "small", "a larger batch would need fewer steps for little more data"
    elif batch <= late:
        verdict, meaning = "fitting", "about the critical batch, as a rule of thumb"
    else:
        verdict, meaning = "large", "a larger batch mostly costs tokens and saves few steps"
    return BatchAdvice(
        tokens_per_step=batch,
        num_steps=as_float(steps),
        critical_tokens_early=early,
        critical_tokens_late=late,
        verdict=verdict,
        sentence=(
            f"{size}: {meaning} (critical: {_counted(early)} at a loss of {EARLY_LOSS:g} nats, "
            f"{_counted(late)} at {LATE_LOSS:g}; arXiv:2001.08361)."
        ),
    )


FEWEST_STEPS = 100  # fewer leave no room for a warm-up and a decay of the learning rate
LONG_STEP_S = 60.0


def few_long_steps(*, num_steps: float, step_s: float) -> bool:
    """Whether a run has so few steps, each so long, that its batch is too large for its tokens.

    >>> few_long_steps(num_steps=12, step_s=22 * 60), few_long_steps(num_steps=90, step_s=2.0)
    (True, False)
    """
    return num_steps < FEWEST_STEPS and step_s > LONG_STEP_S


def batch_for_steps(*, global_batch_size: int, num_steps: float) -> int:
    """The largest power of two of sequences that gives a run at least FEWEST_STEPS steps.

    >>> batch_for_steps(global_batch_size=512, num_steps=12.0)
    32
    """
    largest = max(1.0, global_batch_size * num_steps / FEWEST_STEPS)
    return int(2 ** math.floor(math.log2(largest)))


def _counted(tokens: float) -> str:
    """Tokens of a batch as text: 512, 66k, 4.2M."""
    for size, suffix in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if tokens >= size:
            return f"{tokens / size:.3g}{suffix}"
    return f"{tokens:.0f}"
