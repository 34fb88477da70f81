"""How far attention looks back where several documents share a sequence.

[K21] Krell et al., "Efficient Sequence Packing without Cross-contamination", arXiv:2107.02027:
      documents of one sequence do not attend to one another.
"""

from __future__ import annotations

import numpy as np

from core.numeric import Numeric


def attended_length(*, seq_len: Numeric, document_tokens: Numeric) -> Numeric:
    """Length of a sequence whose causal attention costs as much for each token as documents of
    this mean length, packed into sequences of `seq_len`; NaN documents: the sequence itself. [K21]

    A token attends to its document, from its beginning or that of the sequence: a mean of
    a (1 - (a / s) (1 - exp(-s / a))) keys for documents of a tokens in a sequence of s. Lengths are
    taken as exponentially spread, with a standard deviation equal to their mean, as data sets with
    many short and a few long documents have them; equal lengths would need half as much.

    >>> round(float(attended_length(seq_len=4096.0, document_tokens=200.0)), 1)
    380.5
    """
    a = np.minimum(document_tokens, 1e3 * np.asarray(seq_len))  # beyond, rounding errors
    mean_keys = a * (1 + a / seq_len * np.expm1(-np.divide(seq_len, a)))
    return np.where(np.isnan(document_tokens), seq_len, 2 * mean_keys)
