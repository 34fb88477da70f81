"""Values that each degree of a layout may take: divisors of what it must divide.

A degree that is given is the only one tried.
"""

from __future__ import annotations

from functools import lru_cache

MICRO_BATCH_SIZES = (1, 2, 4, 8, 16)  # usual; the search tries all divisors up to the last
LARGEST_CONTEXT_PARALLEL = 64
LONG_SEQUENCE = 32_768  # tokens from which context parallelism is always searched
PARAMS_OF_SEQUENCE = 50e9  # GPUs times parameters for each sequence of a batch from which it is
LEAST_TOKENS = 2048  # then: of a sequence on one rank
USUAL_CHUNKS = (1, 2, 4, 8)  # besides divisors: published runs place 126 layers on 16 x 4


@lru_cache(maxsize=4096)
def divisors(n: int) -> tuple[int, ...]:
    """Every divisor, in ascending order.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return tuple(sorted({*small, *(n // d for d in small)}))


def up_to(limit: float, values: tuple[int, ...]) -> list[int]:
    """The values that do not exceed the limit; at least the first."""
    return [v for v in values if v <= limit] or list(values[:1])


def tensor_parallel(*, num_gpus: int, domain: int, across_nodes: bool) -> list[int]:
    """Divisors of the GPUs, within the scale-up domain unless it may be left."""
    return up_to(num_gpus if across_nodes else max(domain, 1), divisors(num_gpus))


def pipeline_parallel(*, num_gpus: int, layers: int) -> list[int]:
    """Divisors of the GPUs, at most one stage a layer."""
    return up_to(layers, divisors(num_gpus))


def context_parallel(
    *, num_gpus: int, seq_len: int, global_batch_size: int, params: float
) -> list[int]:
    """Divisors of the GPUs, up to the largest that is of use: for long sequences, and for shorter
    ones of large models on many GPUs, where a pipeline lacks micro-batches or memory for what they
    keep: the recipes for Llama 3.1 405B split sequences of 8,192 tokens.

    >>> context_parallel(num_gpus=16_384, seq_len=8192, global_batch_size=2048, params=405e9)
    [1, 2, 4]
    >>> context_parallel(num_gpus=512, seq_len=8192, global_batch_size=512, params=8e9)
    [1]
    """
    if seq_len >= LONG_SEQUENCE:
        most = LARGEST_CONTEXT_PARALLEL
    elif num_gpus * params >= PARAMS_OF_SEQUENCE * global_batch_size:
        most = min(seq_len // LEAST_TOKENS, LARGEST_CONTEXT_PARALLEL)
    else:
        most = 1
    return up_to(max(most, 1), divisors(num_gpus))


def virtual_stages(*, layers: int, pp: int) -> list[int]:
    """Chunks of one pipeline rank: divisors of its layers (rounded up), and the usual ones.

    >>> virtual_stages(layers=126, pp=16)
    [1, 2, 4, 8]
    """
    return sorted({*divisors(max(-(-layers // pp), 1)), *USUAL_CHUNKS})


def micro_batch_sizes(*, global_batch_size: int) -> list[int]:
    """Divisors of the global batch up to the largest that is tried."""
    return up_to(MICRO_BATCH_SIZES[-1], divisors(global_batch_size))


def expert_parallel(*, num_experts: int) -> list[int]:
    """Divisors of the experts."""
    return list(divisors(max(num_experts, 1)))


def shard_groups(*, num_gpus: int, gpus_per_node: int) -> list[int]:
    """Group sizes over which hybrid sharding may divide one copy: whole nodes, dividing their
    number.

    >>> shard_groups(num_gpus=32, gpus_per_node=8)
    [8, 16, 32]
    """
    per_node = max(gpus_per_node, 1)
    return [per_node * n for n in divisors(max(num_gpus // per_node, 1))]
