"""The field's terms, one sentence each: what a page shows when the pointer rests on a label.

`explained` gives the sentences of all terms in a label. Every abbreviation and every choice of the
form that a page prints is listed here; a test collects them.
"""

from __future__ import annotations

import re
from functools import cache

MOST = 300  # characters of one help text

TERMS = {
    # results of a plan
    "P10": "One outcome in ten is below it.",
    "P50": "The median: half of the outcomes are below it.",
    "P90": "One outcome in ten is above it.",
    "MFU": "Model FLOPs utilisation: the model's own FLOPs over the dense 16-bit peak; causal "
    "attention counts once, recompute does not count.",
    "HFU": "Hardware FLOPs utilisation: as MFU, with the FLOPs that recompute repeats.",
    "FLOP": "One multiplication or addition of two numbers.",
    "FLOPs": "Multiplications and additions of numbers: a count, not a rate.",
    "TFLOP/s": "A million million floating-point operations a second.",
    "Tokens/s": "Tokens of a step over its time, all GPUs together.",
    "GPU-hours": "Hours times every GPU that is paid, idle ones of an instance included.",
    "Wall clock": "Hours from the first step to the last, as a clock on the wall has it.",
    "Goodput": "Share of the time that is training which is kept: not lost to failures or "
    "checkpoints.",
    "Badput": "Time that is no kept training: checkpoints, work done again, restarts, waiting.",
    "OOM": "Out of memory: the device cannot hold what a step needs, and the job stops.",
    "Out of memory": "The device cannot hold what a step needs, and the job stops.",
    "Frontier": "Plans that no other priced plan beats in both cost and time.",
    "Step": "One update of the weights, on one global batch.",
    # machines
    "GPU": "The accelerator that trains: here also a TPU chip, or half of a module that frameworks "
    "see as two.",
    "GPUs": "Accelerators of the job.",
    "TPU": "Google's accelerator for training.",
    "Instance": "The machine that is rented, always whole.",
    "Node": "One machine with its GPUs.",
    "HBM": "High-bandwidth memory: the memory on the device.",
    "NVLink": "NVIDIA's fast link between the GPUs of a machine.",
    "PCIe": "The usual bus between a device and its host.",
    "NVMe": "Fast local drives.",
    "SHARP": "Switches that add up an all-reduce themselves.",
    "Scale-up": "The fast link between the devices of one machine.",
    "Scale-out": "The network between machines.",
    "CPU": "The host's own processor, with the host's memory.",
    # how a job is split
    "TP": "Tensor parallelism: each matrix is cut over so many GPUs.",
    "PP": "Pipeline parallelism: the layers are cut into so many stages.",
    "CP": "Context parallelism: each sequence is cut over so many GPUs.",
    "EP": "Expert parallelism: the experts are dealt to so many GPUs.",
    "ETP": "Expert tensor parallelism: each expert is cut over so many GPUs.",
    "DP": "Data parallelism: so many copies of the model train on different sequences.",
    "DDP": "Data parallelism in which every GPU keeps all weights, gradients and states.",
    "ZeRO-1": "Data parallelism that shares out the optimizer's states.",
    "ZeRO-2": "Data parallelism that shares out optimizer states and gradients.",
    "ZeRO-3": "Data parallelism that shares out states, gradients and weights.",
    "ZeRO++": "ZeRO-3 with a second copy of the weights inside the machine, and fewer bytes sent.",
    "FSDP1": "PyTorch's first fully sharded data parallelism: as ZeRO-3.",
    "FSDP2": "PyTorch's fully sharded data parallelism: weights, gradients and states are shared "
    "out and gathered layer by layer.",
    "HSDP": "Fully sharded inside a group of GPUs, copied between groups.",
    "Sharding": "What data-parallel ranks share out instead of each keeping it whole.",
    "Virtual stages": "Pieces of a pipeline stage that take turns, so that it idles less.",
    "Micro-batch": "Sequences that go through the model at once on one rank.",
    "Global batch": "Sequences of one step over all GPUs.",
    "Schedule": "The order in which a pipeline's stages work.",
    "GPipe": "A pipeline that runs all forward passes, then all backward passes.",
    "1F1B": "A pipeline that runs one forward and one backward pass in turn.",
    "Interleaved 1F1B": "1F1B whose stages hold several pieces of the model in turn.",
    "Zero bubble": "A pipeline that fills its idle time with gradients of weights.",
    "Naive": "A pipeline of which one stage works at a time.",
    "Pipeline bubble": "Time in which a pipeline stage waits for the others.",
    "Recompute": "Activations computed again in backward instead of being kept: less memory, more "
    "work.",
    "Selective": "Recompute of attention alone, which is large and cheap to compute again.",
    "Full": "Recompute of whole layers: only their inputs are kept.",
    "Offload": "Keeping something in the host's memory and fetching it when it is needed.",
    "Ring attention": "Context parallelism that passes keys and values round a ring.",
    "Ulysses": "Context parallelism that exchanges heads for pieces of the sequence.",
    "All-gather": "Every GPU receives the pieces of all others.",
    "All-reduce": "Every GPU receives the sum over all of them.",
    "All-to-all": "Every GPU sends a piece of its own to each other one.",
    # numbers and training
    "FP16": "16-bit numbers with a small range.",
    "BF16": "16-bit numbers with the range of 32-bit ones: the usual format of training.",
    "FP32": "32-bit numbers.",
    "FP8": "8-bit numbers: faster matrix products, scaled to stay in range.",
    "MXFP8": "8-bit numbers with one scale for each 32 of them.",
    "NVFP4": "NVIDIA's 4-bit numbers with one scale for each 16 of them.",
    "NF4": "4-bit numbers spaced as weights usually are: a quantised base of QLoRA.",
    "AdamW": "The usual optimizer: two moments kept for each parameter.",
    "Adafactor": "An optimizer that keeps sums of rows and columns instead of second moments.",
    "Muon": "An optimizer that makes updates of matrices orthogonal, with one moment.",
    "SGD": "Stochastic gradient descent: no state, or one moment.",
    "SFT": "Supervised fine-tuning: all weights train on examples.",
    "LoRA": "Small matrices train beside frozen weights.",
    "QLoRA": "LoRA beside weights kept in 4 bits.",
    "Pretraining": "Training from random weights on a large amount of text.",
    "LM head": "The last matrix, which scores every word of the vocabulary.",
    "Logits": "Scores of every word of the vocabulary, before the loss.",
    "Gradients": "How the loss changes with each weight.",
    "Optimizer states": "What the optimizer remembers of each parameter.",
    "Activations": "What the forward pass keeps for the backward pass.",
    "Communication buffers": "Weights gathered for the moment, and what collectives work in.",
    "Framework reserve": "The context of the driver, workspaces, and what an allocator cannot use.",
    "MoE": "Mixture of experts: each token passes through a few of many MLPs.",
    "MLP": "The two or three matrices of a layer beside attention.",
    "Experts": "MLPs of which each token passes through a few.",
    "FlashAttention": "Attention as one kernel, without the score matrix in memory.",
    "Calibration": "Rates measured on machines of yours, used instead of what is assumed.",
    "Stack": "The training software, with its habits and its fitted fractions.",
    # how it is bought
    "On demand": "Rented by the hour, given back at any time.",
    "Spot": "Cheaper, and may be taken away at short notice.",
    "Reserved": "Paid for one or three years, used or not.",
    "Capacity block": "A number of machines for fixed days, paid ahead.",
    "Owned": "Machines of your own, at what their hours cost you.",
    "Commitment": "What must be paid for, used or not.",
    "CO2e": "Greenhouse gases as the carbon dioxide that warms as much.",
    "PUE": "Energy of a data centre over that of its machines.",
    # kinds of numbers
    "Measured": "Seen on a real machine.",
    "Fitted": "Set so that forecasts of published runs come out right.",
    "Published": "Printed by a source.",
    "Assumed": "A stated default or guess.",
    "Given": "Typed in by you.",
    "Computed": "Follows from other numbers by a formula.",
}
_BY_LOWER = {t.lower(): t for t in TERMS}


@cache
def _pattern() -> re.Pattern[str]:
    """Any term as a whole word, the longest first; a degree may follow it, as in TP8."""
    longest = sorted(TERMS, key=len, reverse=True)
    joined = "|".join(re.escape(t) for t in longest)
    return re.compile(rf"(?<![\w-])({joined})(?=\d*(?![\w+]))", re.IGNORECASE)


def terms_in(label: str) -> tuple[str, ...]:
    """The terms in a label, in order, each once.

    >>> terms_in("TP8 DP16 FSDP2"), terms_in("Price of"), terms_in("Cost P10 (USD)")
    (('TP', 'DP', 'FSDP2'), (), ('P10',))
    """
    found = (_BY_LOWER[m[1].lower()] for m in _pattern().finditer(label))
    return tuple(dict.fromkeys(found))


def explained(label: str, most: int = MOST) -> str | None:
    """The sentences for a label's terms, in at most `most` characters; None without a term.

    >>> explained("MFU")[:30]
    'MFU: Model FLOPs utilisation: '
    """
    text = ""
    for term in terms_in(label):
        more = f"{term}: {TERMS[term]}"
        if len(text) + len(more) + 1 > most:
            break
        text = f"{text} {more}".strip()
    return text or None
