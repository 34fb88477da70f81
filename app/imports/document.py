"""An imported file, and a log compared with its forecast: as sentences and as JSON
(docs/imports.md; add keys, never rename)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from app.calibration.added import Added
from app.document import format as fmt
from app.imports.compare import ANCHOR, Comparison
from app.imports.file import ImportedFile
from app.scenario.layout import layout_text
from app.scenario.link_query import link_query
from pricing.offers import snapshot
from runners.calibration.fit import Constant, Link
from runners.imports.mamf import Mamf
from runners.imports.nccl_tests import Table
from runners.imports.profiler import Profile
from runners.imports.result import MatmulRate
from runners.imports.steps import Steady

DISTURBED = 1.1  # time over that of a larger message; reported from here up
SCHEMA_VERSION = 1
WHAT = {
    "scale_up": "the link inside a node", "scale_up_hop": "the latency inside a node",
    "scale_out": "the network, per GPU", "scale_out_hop": "the latency of the network",
    "matmul": "the ceiling of matmuls", "matmul_fp8": "the speed-up of fp8",
}  # fmt: skip
BEST = {
    "mamf": "in a burst at the boost clock", "msmf": "sustained under full load",
    "mean": "the best mean", "median": "the best median", "max": "the best iteration",
}  # fmt: skip


def import_sentences(file: ImportedFile) -> list[str]:
    """Every sentence about an imported file, most important first."""
    sentences: list[str] = []
    for table, link in file.tables:
        sentences += _table_sentences(table, link)
    if file.mamf is not None:
        sentences += _matmul_sentences(file.mamf)
    if file.steady is not None:
        sentences += steady_sentences(file.steady)
    if file.profile is not None:
        sentences += _profile_sentences(file.profile)
    if file.accelerator is not None and file.constants:
        how = "as you say" if file.is_given else "as the file names its device"
        sentences.append(f"Compared with what the forecast assumes of {file.accelerator} ({how}):")
        sentences += [constant_sentence(c) for c in file.constants]
    elif file.accelerator is not None and (file.tables or file.mamf is not None):
        sentences.append(
            "Nothing of it moves a forecast: that takes an all_reduce of at least 4 sizes, or "
            "matmuls."
        )
    return [*sentences, *file.notes]


def _table_sentences(table: Table, link: Link | None) -> Iterator[str]:
    """One operation: its speed, its uncertainty, and any problems."""
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
        if slow := _disturbed_bytes(table, link):
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
        f"{many}, P10 to P90 {rate(found.tokens_per_s_per_gpu_p10)} to "
        f"{rate(found.tokens_per_s_per_gpu_p90)}"
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


def _disturbed_bytes(table: Table, link: Link) -> list[float]:
    """Sizes that clearly took longer than larger ones: the fitted curve lowers them."""
    fit_s = dict(zip(link.curve.size_bytes.tolist(), link.curve.time_s, strict=True))
    return [
        p.size_bytes
        for p in table.points
        if p.time_s > DISTURBED * fit_s.get(p.size_bytes, p.time_s)
    ]


def import_json(file: ImportedFile, kept: Added | None = None) -> dict[str, Any]:
    """The document of `runcast import --json`; values that the file lacks are null."""
    return {
        "schema_version": SCHEMA_VERSION,
        "format": file.format,
        "file": file.text.name,
        "source_sha256": file.text.sha256,
        "source_bytes": file.text.num_bytes,
        "accelerator": file.accelerator,
        "accelerator_from": file.accelerator and ("told" if file.is_given else "file"),
        "sentences": import_sentences(file),
        "collectives": [_table(*table) for table in file.tables],
        "matmuls": None if file.mamf is None else _matmuls(file.mamf),
        "log": None if file.steady is None else steady_json(file.steady),
        "profile": None if file.profile is None else asdict(file.profile),
        "constants": [asdict(c) for c in file.constants],
        "kept": kept and {
            "id": kept.calibration.id, "is_new": kept.is_new, "sentences": list(kept.sentences),
        },
    }  # fmt: skip


def _table(table: Table, link: Link | None) -> dict[str, Any]:
    curve, factor = None if link is None else link.curve, table.bus_factor / 1e9
    return {
        "op": table.op,
        "ranks": table.ranks,
        "nodes": table.nodes,
        "device": table.device or None,
        "num_wrong": sum(1 for p in table.points if p.wrong),
        "num_unchecked": sum(1 for p in table.points if p.wrong is None),
        "latency_us": curve and curve.latency_s * 1e6,
        "bus_gb_per_s": curve and curve.bytes_per_s * factor,
        "bus_gb_per_s_low": curve and curve.bytes_per_s_low * factor,
        "bus_gb_per_s_high": curve and curve.bytes_per_s_high * factor,
        "spikes_bytes": [] if link is None else _disturbed_bytes(table, link),
        "left_out_error": curve and curve.left_out_error,
        "points": [
            {
                "size_bytes": p.size_bytes,
                "time_us": p.time_s * 1e6,
                "alg_gb_per_s": p.alg_gb_per_s,
                "bus_gb_per_s": p.bus_gb_per_s,
                "in_place_us": p.in_place_s and p.in_place_s * 1e6,
                "wrong": p.wrong,
            }
            for p in table.points
        ],
    }


def _matmuls(benchmark: Mamf) -> dict[str, Any]:
    return {
        "dtype": benchmark.dtype or None,
        "device": benchmark.device or None,
        "started": benchmark.started or None,
        "benchmark_version": benchmark.version or None,
        "software": benchmark.software,
        "best": [{"name": name, **_matmul(rate)} for name, rate in benchmark.best],
        "shapes": [_matmul(rate) for rate in benchmark.shapes],
    }


def _matmul(rate: MatmulRate) -> dict[str, Any]:
    return {"m": rate.m, "n": rate.n, "k": rate.k, "tflop_per_s": rate.flops_per_s / 1e12}


def steady_json(steady: Steady) -> dict[str, Any]:
    """The steady state of a log."""
    values = asdict(steady)
    del values["is_mean"]
    values |= {"tokens_per_s": steady.tokens_per_s, "step_s": steady.step_s}
    return {**values, "device": steady.device or None}


def compare_sentences(found: Comparison) -> list[str]:
    """How well the forecast did, most important first."""
    measured, run = found.measured, found.run
    forecast = run.forecast
    where = "inside" if found.is_inside else (
        "below" if measured.tokens_per_s_per_gpu < forecast.p10 else "above"
    )  # fmt: skip
    sentences = [
        f"Measured {rate(measured.tokens_per_s_per_gpu)} tokens/s per GPU, forecast "
        f"{rate(forecast.p50)} (P10 to P90 {rate(forecast.p10)} to {rate(forecast.p90)}): measured "
        f"over forecast is {found.ratio:.3f}, {where} the interval.",
        f"The forecast is of {found.scenario.model} on {fmt.count(run.num_gpus)} x "
        f"{run.accelerator}: {fmt.layout(run.layout)}.",
    ]
    if not found.is_named:
        sentences.append(
            "No layout was named: it is the best one. --layout names the one that was run."
        )
    return [*sentences, *steady_sentences(measured), *found.notes]


def anchor_sentences(found: Comparison) -> list[str]:
    """How to anchor every forecast to the measurement."""
    if found.anchored is None:
        return [f"It cannot become the anchor of a forecast: {found.refused}"]
    return ["With these options every forecast of this model follows the measurement:"]


def anchor_fields(found: Comparison) -> dict[str, Any]:
    """The fields of the scenario that hold the anchor; empty if there is none."""
    return {name: getattr(found.anchored, name) for name in ANCHOR} if found.anchored else {}


def anchor_options(found: Comparison) -> list[str]:
    """The command-line options of the anchor."""
    return [
        f"--set {name}={value:.6g}" if isinstance(value, float) else f'--set "{name}={value}"'
        for name, value in anchor_fields(found).items()
        if value
    ]


def compare_json(found: Comparison, row: dict[str, str] | None, done: str) -> dict[str, Any]:
    """The document of `runcast compare --json`; values that could not be computed are null."""
    asked, run = found.scenario, found.run
    return {
        "schema_version": SCHEMA_VERSION,
        "link": link_query(asked, snapshot(asked.prices).id),
        "sentences": compare_sentences(found),
        "file": found.text.name,
        "source_sha256": found.text.sha256,
        "plan": {
            "id": run.plan and run.plan.id,
            "accelerator": run.accelerator,
            "num_gpus": run.num_gpus,
            "layout": layout_text(run.layout),
            "named": found.is_named,
            "fits": run.plan is not None,
        },
        "forecast_tokens_per_s_per_gpu": asdict(run.forecast),
        "measured": steady_json(found.measured),
        "ratio": found.ratio,
        "inside_interval": found.is_inside,
        "anchor": {"fields": anchor_fields(found), "link": found.link} if found.anchored else None,
        "anchor_refused": found.refused or None,
        "measured_run": row,
        "appended": done or None,
    }
