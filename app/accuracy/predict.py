"""Forecast published runs: throughput and memory with their intervals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from app.accuracy.row_columns import Columns, columns
from app.accuracy.row_words import PRECISION_NAMES
from core.evidence import uncertainty
from core.evidence.inference import total
from core.evidence.measured_runs import MeasuredRuns, Traits
from core.evidence.own_runs import OwnRuns, said_by_own
from core.evidence.residual import SMALLEST_SHIFT, learned, sentence
from core.evidence.traits import traits
from core.machine.cluster import Cluster
from core.memory.counters import unreported_bytes
from core.memory.memory import peak_bytes
from core.numeric import Numeric
from core.time.step import Step, step
from core.units import GIB
from hardware.efficiency import stack_of
from hardware.habits.built_on import built_on
from hardware.measured import RunInputs, Runs
from hardware.measured_model import ModelFacts
from hardware.names import canonical


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictions:
    """Forecasts as columns aligned with the inputs; NaN for refused rows."""

    tokens_per_s_per_gpu_p10: NDArray[np.float64]
    tokens_per_s_per_gpu_p50: NDArray[np.float64]
    tokens_per_s_per_gpu_p90: NDArray[np.float64]
    peak_memory_gib_p10: NDArray[np.float64]
    peak_memory_gib: NDArray[np.float64]  # P50
    peak_memory_gib_p90: NDArray[np.float64]
    probability_oom: NDArray[np.float64]
    # What `runcast estimate` prints for `scenarios`: before runs like it correct the throughput,
    # and all bytes of a GPU, not those of the counter that a run names.
    uncorrected_tokens_per_s_per_gpu: NDArray[np.float64]
    needed_memory_gib: NDArray[np.float64]
    ok: NDArray[np.bool_]
    reason: NDArray[np.object_]  # '' where ok
    scenarios: NDArray[np.object_]  # with whole layouts; None for refused rows
    nearby: Nearby | None = None  # None: measured runs were not asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearby:
    """What measured runs did to forecasts, as columns aligned with the inputs."""

    shift: NDArray[np.float64]  # of the log of the throughput
    explained: NDArray[np.float64]  # share of the variance that they explain
    distance: NDArray[np.float64]  # to the nearest
    words: NDArray[np.object_]  # in one sentence

    def placed(self, rows: NDArray[np.intp], count: int) -> Nearby:
        """These columns as those of a table with `count` rows, of which they are `rows`."""

        def whole(column: NDArray[np.float64]) -> NDArray[np.float64]:
            found = np.full(count, np.nan)
            found[rows] = column
            return found

        words = np.full(count, "", dtype=object)
        words[rows] = self.words
        return Nearby(
            shift=whole(self.shift),
            explained=whole(self.explained),
            distance=whole(self.distance),
            words=words,
        )


OTHERS = ("ok", "reason", "scenarios", "nearby")
NUMBERS = tuple(f.name for f in fields(Predictions) if f.name not in OTHERS)


def predict(
    inputs: RunInputs, models: Mapping[str, ModelFacts], runs: MeasuredRuns | None = None
) -> Predictions:
    """Forecast every row, with what measured `runs` say about its error. Rows that cannot be
    forecast get a reason; the others are unaffected."""
    found, kept, reasons = columns(inputs, models)
    result = {name: np.full(len(inputs), np.nan) for name in NUMBERS}
    scenarios = np.full(len(inputs), None, dtype=object)
    nearby = None
    if found is not None:
        shift, left = np.zeros(len(kept)), np.ones(len(kept))
        if runs is not None:
            some = inputs.rows(kept)
            of, whose = traits_of(some, found), publications(some.source)
            said = learned(of, runs, run_id=some.run_id, publication=whose)
            own = OwnRuns.among(runs)
            further, rest = said_by_own(of, own, run_id=some.run_id, publication=whose)
            words = [sentence(said, runs, n) + _own_words(x) for n, x in enumerate(further)]
            shift, left = said.shift + further, said.variance_left * rest
            nearby = Nearby(
                shift=shift,
                explained=1.0 - (1.0 - said.explained) * rest,
                distance=said.distance,
                words=np.array(words, dtype=object),
            ).placed(kept, len(inputs))
        for name, column in _forecast(found, shift, left).items():
            result[name][kept] = column
        scenarios[kept] = found.whole_scenarios()
    p50 = result["tokens_per_s_per_gpu_p50"]
    ok = np.isfinite(p50) & (p50 > 0)
    reasons[(reasons == "") & ~ok] = "The accelerator lacks the precision of this run."
    return Predictions(**result, ok=ok, reason=reasons, scenarios=scenarios, nearby=nearby)


def _own_words(shift: float) -> str:
    """What the user's own runs did on top; '' for nothing."""
    if abs(shift) < SMALLEST_SHIFT:
        return ""
    return f" Moved {np.expm1(shift):+.0%} further by your own runs."


def publications(sources: NDArray[np.str_]) -> NDArray[np.str_]:
    """The repository or paper of each source: what names it without version and section. All rounds
    of MLPerf are one, though each has a repository."""
    names = (re.split(r"[@\s]", str(s))[0] for s in sources)
    return np.array([re.sub(r"(/training_results)_v[\d.]+$", r"\1", n) for n in names], np.str_)


def traits_of(inputs: RunInputs, found: Columns, *, named: bool = True) -> Traits:
    """What the rows of `found` are compared by with measured runs; `inputs` are of the same rows.
    Not `named`: their stack is treated as unknown."""
    stacks = [stack_of(str(name)) if named else None for name in inputs.framework]
    families = [
        s or (built_on(str(n)) if named else None)
        for s, n in zip(stacks, inputs.framework, strict=True)
    ]
    recipes = [PRECISION_NAMES.get(str(p), str(p)).replace("-", "_") for p in inputs.precision]
    return traits(
        found.work,
        found.layouts,
        found.cluster,
        family=np.array([s.family if s else "" for s in families], dtype=np.str_),
        stack=np.array([s.name if s else "" for s in stacks], dtype=np.str_),
        accelerator=np.array([canonical(str(a)) for a in inputs.accelerator], dtype=np.str_),
        precision=np.array(recipes, dtype=np.str_),
        task=inputs.task,
    )


def measured_runs(
    inputs: RunInputs, found: Columns, log_ratio: NDArray[np.float64], *, own: bool = False
) -> MeasuredRuns:
    """Rows with ln(measured / forecast), as a forecast of other runs may use them."""
    return MeasuredRuns(
        run_id=inputs.run_id,
        traits=traits_of(inputs, found),
        publication=publications(inputs.source),
        log_ratio=log_ratio,
        own=np.full(len(inputs), own),
    )


def own_runs(
    runs: Runs, models: Mapping[str, ModelFacts], reason: NDArray[np.object_]
) -> tuple[MeasuredRuns | None, tuple[str, ...]]:
    """The runs whose measured throughput may be used as the user's own (None if there are none),
    and a note on how many these are. `reason` says why a row cannot be read, '' if it can."""
    tokens = runs.measured.tokens_per_s_per_gpu
    usable = np.flatnonzero((reason == "") & runs.measured.throughput_ok & (tokens > 0))
    found, kept, _ = columns(runs.inputs.rows(usable), models)
    rows = usable[kept]
    note = f"Own runs: {len(rows)} of the {len(runs)} rows are used."
    if found is None:
        return None, (note,)
    log_ratio = np.log(tokens[rows]) - np.log(tokens_per_s_per_gpu(found))
    good = np.isfinite(log_ratio)
    measured = measured_runs(runs.inputs.rows(rows), found, log_ratio, own=True)
    return measured.take(good), (note,)


def tokens_per_s_per_gpu(found: Columns) -> NDArray[np.float64]:
    """P50 throughput of every row; NaN where the accelerator lacks the precision."""
    return _step(found, found.cluster).tokens_per_s_per_gpu


def _step(found: Columns, cluster: Cluster) -> Step:
    with np.errstate(invalid="ignore"):
        return step(found.work, found.layouts, cluster, found.efficiency)


def circumstances_of(found: Columns) -> uncertainty.Circumstances:
    """What widens the intervals of throughput, with what the parts of the steps add. A network that
    a row does not state may be half of what is assumed."""
    now, guessed = _step(found, found.cluster), np.asarray(found.circumstances.network_guessed) > 0
    at_half = np.zeros(guessed.shape)
    if guessed.any():
        rows = np.flatnonzero(guessed)
        some = found.take(rows)
        rate = np.asarray(some.cluster.scale_out_bytes_per_s) / 2
        half = _step(some, replace(some.cluster, scale_out_bytes_per_s=rate))
        with np.errstate(invalid="ignore"):
            at_half[rows] = np.log(half.step_s / now.step_s[rows])
    with np.errstate(invalid="ignore"):
        # A constant width for a guessed network is of plans alone: these ran on real clusters.
        known = replace(found.circumstances, network_guessed=np.zeros(guessed.shape))
        return uncertainty.of_step(known, parts_s=now.parts, at_half_network=at_half)


def reported_memory_bytes(found: Columns) -> NDArray[np.float64]:
    """P50 of the peak memory as the stack itself reports it: never more than the device has, as
    the allocator gives back what it keeps in reserve before it fails (PyTorch,
    c10/cuda/CUDACachingAllocator.cpp: release_cached_blocks)."""
    parts = _peak_memory_bytes(found)
    hidden = unreported_bytes(
        found.layouts, found.cluster, found.efficiency, reserve=parts["reserve"]
    )
    return np.minimum(total(parts) - hidden, found.cluster.memory_bytes)


def _peak_memory_bytes(found: Columns) -> dict[str, NDArray[np.float64]]:
    return peak_bytes(found.work, found.layouts, found.cluster, found.efficiency)


def _forecast(
    found: Columns, shift: NDArray[np.float64], variance_left: NDArray[np.float64]
) -> dict[str, Numeric]:
    """The numbers of `Predictions`. Memory is what the stack reports, except for running out."""
    uncorrected, gib = tokens_per_s_per_gpu(found), reported_memory_bytes(found) / GIB
    p50, need = uncorrected * np.exp(shift), total(_peak_memory_bytes(found))
    sigma = uncertainty.throughput_sigma(found.efficiency, circumstances_of(found))
    sigma, skew = sigma * np.sqrt(variance_left), found.efficiency.throughput_skew
    memory_sigma = uncertainty.memory_sigma(found.efficiency, found.circumstances)
    return {
        "tokens_per_s_per_gpu_p10": uncertainty.p10(p50, sigma, skew),
        "tokens_per_s_per_gpu_p50": p50,
        "tokens_per_s_per_gpu_p90": uncertainty.p90(p50, sigma, skew),
        "peak_memory_gib_p10": uncertainty.p10(gib, memory_sigma),
        "peak_memory_gib": gib,
        "peak_memory_gib_p90": np.minimum(
            uncertainty.p90(gib, memory_sigma), found.cluster.memory_bytes / GIB
        ),
        "probability_oom": uncertainty.probability_above(
            found.cluster.memory_bytes, p50=need, sigma=memory_sigma
        ),
        "uncorrected_tokens_per_s_per_gpu": uncorrected,
        "needed_memory_gib": need / GIB,
    }
