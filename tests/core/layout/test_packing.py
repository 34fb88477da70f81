"""Tests of the length that attention covers in packed sequences."""

import numpy as np
import pytest

from core.layout.packing import attended_length


@pytest.mark.parametrize("mean", [40.0, 500.0, 3000.0])
def test_a_token_attends_to_as_many_keys_as_in_drawn_documents(mean):
    """Documents of exponentially spread lengths, joined and cut into sequences of 1,000 tokens."""
    ends = np.cumsum(np.random.default_rng(0).exponential(mean, size=200_000))
    at = np.arange(0.5, ends[-1] // 1000 * 1000, 97.0)
    begins = np.concatenate([[0.0], ends])[np.searchsorted(ends, at)]
    keys = at - np.maximum(begins, at // 1000 * 1000)
    length = attended_length(seq_len=1000.0, document_tokens=mean)
    assert float(length) == pytest.approx(2 * keys.mean(), rel=0.02)


def test_without_documents_or_with_endless_ones_attention_covers_the_sequence():
    lengths = attended_length(seq_len=4096.0, document_tokens=np.array([np.nan, 1e12, 1.0]))
    assert lengths == pytest.approx([4096, 4096, 2], rel=1e-3)
