"""Memory of the logits and of the loss."""

from __future__ import annotations

import numpy as np

from core.layout.layouts import Layouts
from core.layout.workload import (
    Workload,
)
from core.machine.efficiency import Efficiency
from core.memory.layer_memory import tokens_per_rank
from core.numeric import Numeric

CHUNK_OF_LOGITS = 1 / 8  # pieces into which a chunked loss divides the sequence


def logits_bytes(work: Workload, lay: Layouts, eff: Efficiency) -> Numeric:
    """Logits of one micro-batch, their copies and gradient, divided by tensor parallelism."""
    own = np.asarray(work.logit_bytes)
    per_logit = np.where(np.isnan(own), eff.held_logits_bytes, own)
    per_logit = per_logit * np.where(work.compiled_loss, eff.compiled_logits, 1.0)
    tokens = tokens_per_rank(work, lay)
    pieces = np.where(work.chunked_loss, chunk_of_logits(work, tokens), 1.0)
    parts = np.where(work.whole_logits, 1.0, lay.tp)
    return per_logit * pieces * np.multiply(tokens, work.model.vocab_size) / parts


def chunk_of_logits(work: Workload, tokens: Numeric) -> Numeric:
    """Share of the logits that exists at one time in a loss in pieces: of `loss_chunk_tokens`
    tokens, or as many pieces as the vocabulary is wider than the model (linkedin/Liger-Kernel:
    src/liger_kernel/ops/fused_linear_cross_entropy.py, inc_factor), else an eighth."""
    each = np.asarray(work.loss_chunk_tokens) / np.maximum(tokens, 1.0)
    share = np.where(np.isnan(each), CHUNK_OF_LOGITS, np.minimum(each, 1.0))
    pieces = np.ceil(np.divide(work.model.vocab_size, work.model.hidden_size))
    return np.where(work.loss_chunk_by_width, 1 / np.maximum(pieces, 1.0), share)
