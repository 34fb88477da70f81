"""What operators that pass over memory are counted to move."""

from dataclasses import replace

from core.model.presets import preset
from core.time.kernels import inside_tp_bytes_per_token


def test_only_rotary_positions_are_rotated():
    """GPT-3 and BLOOM add positions to the embedding or to the scores: queries and keys are read
    and written by no rotation, 8 hidden sizes of bytes a layer where there is a KV head a head."""
    gpt3 = preset("gpt3-175b").transformer
    rotated = inside_tp_bytes_per_token(replace(gpt3, num_positions=0.0))
    assert rotated - inside_tp_bytes_per_token(gpt3) == 8 * gpt3.hidden_size

    bloom = preset("bloom-176b").transformer
    rotated = inside_tp_bytes_per_token(replace(bloom, alibi=False))
    assert rotated - inside_tp_bytes_per_token(bloom) == 8 * bloom.hidden_size
