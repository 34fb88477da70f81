"""Tokens, steps and batches of a task, by hand and against what the papers print."""

from __future__ import annotations

import numpy as np
import pytest

from core.scenario import task_size as ts

DATA = {
    "num_tokens": 1e11,
    "num_examples": None,
    "tokens_per_example": None,
    "seq_len": 2048,
    "epochs": 1.0,
    "packing_efficiency": 1.0,
}


@pytest.mark.parametrize(
    ("given_", "tokens"),
    [
        ({}, 1e11),
        ({"epochs": 4.0}, 4e11),
        ({"packing_efficiency": 0.5}, 2e11),
        # 52,002 instructions, three epochs, padded to one sequence of 512 each.
        ({"num_examples": 52_002, "seq_len": 512, "epochs": 3.0}, 52_002 * 512 * 3),
        # 1,000 examples of 300 tokens fill 60% of their sequences of 500.
        (
            {"num_examples": 1000, "tokens_per_example": 300, "packing_efficiency": 0.6},
            1000 * 500,
        ),
        # Two sequences for each example that is twice as long as one.
        ({"num_examples": 10, "tokens_per_example": 4096}, 10 * 2 * 2048),
    ],
)
def test_tokens_of_a_task(given_, tokens):
    assert ts.tokens_of(**{**DATA, **given_}) == pytest.approx(tokens, rel=1e-12)


def test_a_padded_example_takes_one_sequence():
    """Mean length / seq_len as packing efficiency is one example a sequence."""
    for length in (1, 37, 300, 512):
        tokens = ts.tokens_of(
            **{**DATA, "num_examples": 1e4, "tokens_per_example": length, "seq_len": 512,
               "packing_efficiency": length / 512}
        )  # fmt: skip
        assert tokens == pytest.approx(1e4 * 512)


def test_the_critical_batch_doubles_for_13_percent_less_loss():
    """Printed in [K20] 5.1."""
    factor = ts.critical_batch_tokens(loss=0.87 * 2.5) / ts.critical_batch_tokens(loss=2.5)
    assert factor == pytest.approx(2, rel=0.04)


def test_the_order_of_the_printed_critical_batches():
    """[K20] 1.1: about 1 to 2 million tokens for its largest models. With the constants of
    Eq. 1.4 those are losses of 3.04 to 2.63 nats."""
    assert ts.critical_batch_tokens(loss=3.04) == pytest.approx(1e6, rel=0.01)
    assert ts.critical_batch_tokens(loss=2.63) == pytest.approx(2e6, rel=0.02)


@pytest.mark.parametrize(
    ("global_batch_size", "verdict", "written"),
    [(1, "small", "8.19k"), (512, "fitting", "4.19M"), (4096, "large", "33.6M")],
)
def test_advice_on_a_batch(global_batch_size, verdict, written):
    advice = ts.effective_batch_advice(
        seq_len=8192, global_batch_size=global_batch_size, num_tokens=1e11, pretraining=True
    )
    assert advice.verdict == verdict
    assert advice.tokens_per_step == 8192 * global_batch_size
    assert advice.num_steps == np.ceil(1e11 / (8192 * global_batch_size))
    assert (
        f"The batch is {written} tokens, the run {advice.num_steps:,.0f} steps" in advice.sentence
    )
    assert "arXiv:2001.08361" in advice.sentence
    assert advice.critical_tokens_early < advice.critical_tokens_late


def test_no_rule_for_fine_tuning():
    advice = ts.effective_batch_advice(
        seq_len=512, global_batch_size=1, num_tokens=51_200, pretraining=False
    )
    assert advice.sentence == "The batch is 512 tokens, the run 100 steps."
    assert advice.verdict is None
    assert advice.critical_tokens_late is None
