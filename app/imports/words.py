"""An imported file in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from app.document import format as fmt
from app.imports.file import Imported
from runners.calibration.fit import Constant
from runners.imports.mamf import Mamf
from runners.imports.nccl_tests import Table
from runners.imports.profiler import Profile
from runners.imports.steps import Steady

WHAT = {
    "scale_up": "the link inside a node", "scale_up_hop": "the latency inside a node",
    "scale_out": "the network, per GPU", "scale_out_hop": "the latency of the network",
    "matmul": "the ceiling of matmuls", "matmul_fp8": "the speed-up of fp8",
}  # fmt: skip
BEST = {
    "mamf": "in a burst at the boost clock", "msmf": "sustained under full load",
    "mean": "the best mean", "median": "the best median", "max": "the best iteration",
}  # fmt: skip


def import_sentences(found: Imported) -> list[str]:
    """Every sentence about an imported file, most important first."""
    sentences: list[str] = []
    for table in found.tables:
        sentences += _table_sentences(found, table)
    if found.mamf is not None:
        sentences += _matmul_sentences(found.mamf)
    if found.steady is not None:
        sentences += steady_sentences(found.steady)
    if found.profile is not None:
        sentences += _profile_sentences(found.profile)
    if found.accelerator is not None and found.constants:
        how = "as you say" if found.is_given else "as the file names its device"
        sentences.append(f"Compared with what the forecast assumes of {found.accelerator} ({how}):")
        sentences += [constant_sentence(c) for c in found.constants]
    elif found.accelerator is not None and (found.tables or found.mamf is not None):
        sentences.append(
            "Nothing of it moves a forecast: that takes an all_reduce of at least 4 sizes, or "
            "matmuls."
        )
    return [*sentences, *found.notes]


def _table_sentences(found: Imported, table: Table) -> Iterator[str]:
    """One operation: its speed, its uncertainty, and any problems."""
    link = found.link_of(table)
    nodes = "1 node" if table.nodes == 1 else f"{fmt.count(table.nodes)} nodes"
    where = f"{table.op} over {fmt.count(table.ranks)} ranks of {nodes}"
    wrong = sum(1 for p in table.points if p.wrong)
    if link is None:
        yield (
            f"{where}: no bandwidth follows from its sizes ({len(table.points)}). That takes 4, 2 "
            "of them 4 times slower than the smallest, or all of them large: measure 8 B to 1 GiB "
            "(-b 8 -e 1G -f 2)."
        )
    else:
        c, factor = link.curve, table.bus_factor / 1e9
        yield (
            f"{where}: bus bandwidth {c.bytes_per_s * factor:.3g} GB/s "
            f"({c.bytes_per_s_low * factor:.3g} to {c.bytes_per_s_high * factor:.3g}), latency "
            f"{'' if link.has_latency else 'at most '}{fmt.seconds(c.latency_s)}, from "
            f"{len(c.size_bytes)} sizes; a left-out size is missed by "
            f"{fmt.percent(c.left_out_error)}."
        )
        if not link.has_latency:
            yield "All its messages are large: they say nothing of the latency (-b 8 does)."
        if slow := found.disturbed_bytes(table):
            sizes = ", ".join(f"{s:,.0f} B" for s in slow[:5])
            yield (
                f"Longer than larger messages, and taken as disturbed: {sizes}"
                f"{' and others' if len(slow) > 5 else ''}."
            )
    if wrong:
        yield f"{wrong} sizes gave wrong results (#wrong) and are left out: look at the node."
    elif all(p.wrong is None for p in table.points):
        yield "The results were not checked (#wrong is N/A)."


def _matmul_sentences(found: Mamf) -> Iterator[str]:
    for name, x in found.best:
        yield (
            f"{x.m}x{x.n}x{x.k} (MxNxK) has {x.flops_per_s / 1e12:.4g} TFLOP/s in "
            f"{found.dtype or 'an unnamed format'}, {BEST[name]}."
        )
    if found.shapes:
        yield f"{fmt.count(len(found.shapes))} shapes have a line each; their medians count."
    elif found.best:
        yield (
            "Only the best shapes are in the file: others are slower, and the file with a line a "
            "shape (--output_file) says by how much."
        )


def steady_sentences(found: Steady) -> list[str]:
    """The steady state of a log, and the steps it is computed from."""
    many = f"the median of {fmt.count(found.num_steps)} logged steps" if found.num_steps > 1 else (
        "one logged step"
    )  # fmt: skip
    kind = "the mean of the whole run" if found.is_mean else (
        f"{many}, P10 to P90 {rate(found.low)} to {rate(found.high)}"
    )  # fmt: skip
    job = "" if found.tokens_per_s is None else (
        f", {fmt.tokens_per_s(found.tokens_per_s)} on {fmt.count(found.known['num_gpus'])} GPUs"
    )  # fmt: skip
    sentences = [f"{rate(found.tokens_per_s_per_gpu)} tokens/s per GPU{job}: {kind}."]
    about = f"The log is of {found.format}, which prints {found.unit}"
    if found.format == "plain":
        about = f"The log prints {found.unit}"
    if found.num_left_out:
        starts = "a start" if found.num_starts == 1 else f"{found.num_starts} starts"
        about += f"; logged steps left out as the warm-up of {starts}: {found.num_left_out}"
    if found.num_ranks > 1:
        about += f"; of {found.num_ranks} ranks that print it, the median counts"
    sentences.append(f"{about}.")
    return [*sentences, *found.notes]


def rate(tokens_per_s: float) -> str:
    """Tokens/s per GPU with enough digits to distinguish two runs: 6,305 or 812.5.

    >>> rate(6305.25), rate(812.46)
    ('6,305', '812.5')
    """
    return f"{tokens_per_s:,.0f}" if tokens_per_s >= 1000 else f"{tokens_per_s:.4g}"


def _profile_sentences(found: Profile) -> Iterator[str]:
    shares = ", ".join(f"{kind} {fmt.percent(x)}" for kind, x in found.shares.items() if x)
    yield (
        f"A step takes {fmt.seconds(found.step_s)} under the profiler (median of "
        f"{found.num_steps}), which slows it: it is no throughput."
    )
    if found.num_kernels:
        yield (
            f"Of that time kernels run: {shares}; communication that no other kernel hides is "
            f"{fmt.percent(found.exposed)}, and nothing runs for {fmt.percent(found.idle)}."
        )
    else:
        yield "The trace has no kernels of a GPU: profile with ProfilerActivity.CUDA."
    if found.num_left_out:
        yield f"{fmt.count(found.num_left_out)} events have no finite time and are left out."


def constant_sentence(c: Constant) -> str:
    """One constant: its measured value, the assumed one, and what the forecast would use."""
    return (
        f"{WHAT.get(c.name, c.name)} ({c.name}): measured {c.measured:.4g} {c.unit}, assumed "
        f"{c.assumed:.4g}; a forecast would use {c.factor:.3f} times the assumed "
        f"({c.low:.3f} to {c.high:.3f}). {c.note[:1].upper()}{c.note[1:]}".rstrip().rstrip(".")
        + "."
    )
