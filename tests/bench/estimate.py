"""What a person waits for, as medians of several repetitions. `make bench`.

The scalar estimate and the batch are of the core alone: step and memory of layouts that are
already there, in seconds of one core, so that a busy machine does not count. An answer is a whole
search with prices, in seconds that a person waits; the first one also reads the tables. A search
is timed against its target, in seconds of a core, and its peak memory is that of a process that
does nothing else. Layouts a second stand beside what another estimator, installed here from PyPI,
does on the same core.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path

import numpy as np

from app.accuracy.validate import validate
from app.buy.purchases import purchases_of
from app.forecast.answer import answer
from app.forecast.costs import jobs_and_training
from app.forecast.resolve import resolve_strict
from app.forecast.training import choices_of, workload_of
from app.scenario.model import model_of
from core.cost.run_cost import RunTerms, run_cost
from core.evidence.inference import total
from core.failures import monte_carlo
from core.layout.layouts import Layouts
from core.layout.workload import Workload
from core.machine.cluster import Cluster, cluster_of
from core.machine.efficiency import Efficiency
from core.memory.memory import peak_bytes
from core.scenario import Scenario
from core.search.fastest import CHUNK_ROWS
from core.search.space import candidates
from core.time.step import step
from core.units import HOUR_S
from hardware.efficiency import efficiency
from hardware.facts import accelerator

ROOT = Path(__file__).parents[2]
RUNS, MODELS, PAIRS = (ROOT / f"hardware/measured_{n}.csv" for n in ("runs", "models", "pairs"))

SCENARIOS: Mapping[str, Mapping[str, str]] = {
    "default scenario": {},
    "llama3.1-70b, 15T tokens": {"model": "llama3.1-70b", "num_tokens": "15T"},
    "llama3.1-405b, every purchase": {
        "model": "llama3.1-405b",
        "purchase": "on_demand,spot,reserved_1y,reserved_3y,capacity_block",
    },
}
COUNTS_TO_1024 = "8,16,32,64,128,256,512,1024"
# The whole catalogue -> the scenario and the seconds that it may take.
SEARCHES: Mapping[str, tuple[Mapping[str, str], float]] = {
    "llama3.1-70b, 8 to 1,024 GPUs": (
        {"model": "llama3.1-70b", "num_tokens": "1T", "global_batch_size": "1024",
         "num_gpus": COUNTS_TO_1024}, 1.0,
    ),
    "mixtral-8x7b, 8 to 1,024 GPUs": (
        {"model": "mixtral-8x7b", "num_tokens": "1T", "global_batch_size": "1024",
         "num_gpus": COUNTS_TO_1024}, 5.0,
    ),
    "deepseek-v3, 256 to 16,384 GPUs": (
        {"model": "deepseek-v3", "num_tokens": "15T", "global_batch_size": "4096",
         "num_gpus": "256,512,1024,2048,4096,8192,16384"}, 5.0,
    ),
    "llama3.1-70b at 128k, 64 to 16,384 GPUs": (
        {"model": "llama3.1-70b", "seq_len": "128k", "num_tokens": "1T",
         "global_batch_size": "128", "num_gpus": "64,128,256,512,1024,4096,16384"}, 5.0,
    ),
    "llama3.1-70b, counts that are no powers of two": (
        {"model": "llama3.1-70b", "num_tokens": "1T", "global_batch_size": "1440",
         "num_gpus": "24,40,72,96,144,360,720,1536"}, 5.0,
    ),
}  # fmt: skip
MOST_MIB = 600
# llm-analysis 0.2.2 (PyPI, 2023-11): LLMAnalysis.training of Llama 2 70B on 256 H100, 360 layouts
# of tp, pp, micro-batch, ZeRO stage and recompute, one after another; the median of three runs on
# one core of the machine that the figures of the README are of, 2026-11.
PUBLISHED_PER_S = 6_000.0
PUBLISHED = "llm-analysis 0.2.2"
PLAN_70B = (
    "plan", "--model", "llama3.1-70b", "--tokens", "1T", "--seq-len", "8k",
    "--global-batch-size", "1024",
)  # fmt: skip
BATCH = {"model": "llama3.1-70b", "seq_len": "8192", "global_batch_size": "1024"}
BOUGHT = {"num_tokens": "1T", "gpu": "h100", "num_gpus": "256", "deadline_days": "60"}
GPU_COUNTS = (64, 128, 256, 512, 1024)
BATCH_ROWS = 200_000


@dataclass(frozen=True)
class Case:
    """One job on H100 and many legal layouts of it."""

    work: Workload
    layouts: Layouts
    cluster: Cluster
    eff: Efficiency

    def estimate(self, layouts: Layouts) -> tuple[np.ndarray, np.ndarray]:
        """Tokens/s and peak bytes of every layout: what `make bench` times."""
        time_of = step(self.work, layouts, self.cluster, self.eff)
        memory = total(peak_bytes(self.work, layouts, self.cluster, self.eff))
        return np.asarray(time_of.tokens_per_s), memory


def case(model: str = BATCH["model"], rows: int = BATCH_ROWS) -> Case:
    """Legal layouts of a model at several GPU counts, repeated up to `rows`."""
    scenario = resolve_strict(Scenario.parse({**BATCH, "model": model}))
    named = model_of(scenario)
    found = [
        candidates(
            model=named.transformer,
            seq_len=scenario.seq_len,
            global_batch_size=scenario.global_batch_size,
            num_gpus=n,
            gpus_per_node=8,
            scale_up_domain=8,
            choices=replace(choices_of(scenario), searches_offload=False),
        )[0]
        for n in GPU_COUNTS
    ]
    columns = {
        f.name: np.concatenate([np.asarray(getattr(x, f.name)) for x in found])
        for f in fields(Layouts)
    }
    chip = accelerator("H100-80GB-SXM")
    return Case(
        work=workload_of(scenario, named),
        layouts=Layouts(**{name: np.resize(column, rows) for name, column in columns.items()}),
        cluster=cluster_of(
            chip, gpus_per_node=8, scale_up_domain=8, scale_out_bytes_per_s=50e9
        ),
        eff=efficiency("megatron-lm"),
    )  # fmt: skip


def one(layouts: Layouts, row: int) -> Layouts:
    """One layout, each field a number."""
    return Layouts(**{f.name: float(getattr(layouts, f.name)[row]) for f in fields(Layouts)})


def in_chunks(of: Case) -> None:
    """The whole batch, in the pieces that the search takes."""
    for start in range(0, BATCH_ROWS, CHUNK_ROWS):
        of.estimate(of.layouts.take(np.arange(start, min(start + CHUNK_ROWS, BATCH_ROWS))))


def seconds(task: Callable[[], object], clock: Callable[[], float]) -> float:
    begin = clock()
    task()
    return clock() - begin


def medians(
    task: Callable[[], object], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, float]:
    """Seconds of the first and median seconds of the later ones, waited unless the clock is of
    the processor."""
    first = seconds(task, clock)
    return first, statistics.median(seconds(task, clock) for _ in range(repeats))


def report(name: str, first: str, median: str, repeats: object) -> None:
    print(f"{name:<68}{first:>10}{median:>10}{repeats!s:>9}")


def cold_plan() -> None:
    """`runcast plan` in a process of its own, as somebody types it."""
    command = [sys.executable, "-m", "app.cli", *PLAN_70B]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def buy() -> None:
    """Every way to buy one plan, after its search: `runcast buy`."""
    scenario = resolve_strict(Scenario.parse({**BATCH, **BOUGHT}))
    purchases_of(scenario, answer(scenario, top=1).plans[0])


def with_risk() -> None:
    """Goodput, hours and dollars with failures of as many plans as a large search has."""
    scenario, points = plans_100k()
    training = jobs_and_training(scenario, points, num_steps=119_210.0)["training"]
    run_cost(
        training,
        RunTerms(
            startup_hours=points["startup_hours"], least_billed_hours=points["least_billed_hours"],
            usd_per_hour=points["usd_per_gpu_hour"] * points["num_gpus"], sigma=points["sigma"],
            skew=points["skew"], price_sigma=0.1, deadline_hours=1e3, budget_usd=1e6,
        ),
    )  # fmt: skip


@cache
def plans_100k() -> tuple[Scenario, Mapping[str, np.ndarray]]:
    scenario = resolve_strict(Scenario.parse({**BATCH, **BOUGHT}))
    points = answer(scenario, top=1).points
    rows = np.resize(np.arange(len(points["id"])), 100_000)
    return scenario, {name: column[rows] for name, column in points.items()}


def simulate() -> None:
    """A run of 24 hours on 16,384 GPUs that fail every 3.09 hours, 40,000 times."""
    monte_carlo.play(
        work_s=24 * HOUR_S, interval_s=465.0, checkpoint_s=10.0, failures_per_s=1 / 11_135,
        down_s=300.0, reload_s=300.0, seed=1, trials=40_000,
    )  # fmt: skip


def peak_mib(given: Mapping[str, str]) -> float:
    """Peak memory of a process that answers one scenario."""
    code = (
        "import sys; from app.forecast.answer import answer; "
        "from app.forecast.resolve import resolve_strict; "
        "from core.scenario import Scenario; "
        "answer(resolve_strict(Scenario.parse(dict(a.split('=', 1) for a in sys.argv[1:])))); "
        "print(next(x.split()[1] for x in open('/proc/self/status') if x.startswith('VmHWM')))"
    )
    command = [sys.executable, "-c", code, *(f"{k}={v}" for k, v in given.items())]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return int(done.stdout) / 1024


def report_searches(repeats: int) -> None:
    """Whole-catalogue answers against their targets."""
    for name, (given, target) in SEARCHES.items():
        scenario = resolve_strict(Scenario.parse(given))
        first, later = medians(lambda s=scenario: answer(s), repeats, time.process_time)
        said = f"search: {name} (s, at most {target:g})"
        report(said, f"{first:.2f}", f"{later:.2f}", repeats)
        c = answer(scenario).counts
        legal = (c.candidates - c.removed - c.cut) / later
        print(
            f"  {c.candidates:,} layouts: {c.removed:,} break a rule, {c.pruned_by_memory:,} do "
            f"not fit, {c.pruned_by_time:,} proven slower, {c.evaluated:,} timed, {c.cut:,} cut; "
            f"{legal:,.0f} legal ones decided a second, {legal / PUBLISHED_PER_S:,.0f} x "
            f"{PUBLISHED}; {peak_mib(given):.0f} MiB (at most {MOST_MIB})"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="repetitions after the first")
    repeats = parser.parse_args().repeats
    report("", "first", "median", "repeats")
    for model in (BATCH["model"], "deepseek-v3"):
        many = case(model)
        layout = one(many.layouts, len(many.layouts.tp) // 2)
        first, later = medians(
            lambda m=many, x=layout: m.estimate(x), 200 * repeats, time.process_time
        )
        cells = (f"{first * 1e3:.2f}", f"{later * 1e3:.2f}")
        report(f"one estimate of {model} (ms of a core)", *cells, 200 * repeats)
        first, later = medians(lambda m=many: in_chunks(m), repeats, time.process_time)
        cells = (f"{BATCH_ROWS / first:,.0f}", f"{BATCH_ROWS / later:,.0f}")
        report(f"layouts per second of a core, {model}", *cells, repeats)
        times = BATCH_ROWS / later / PUBLISHED_PER_S
        report(f"  over {PUBLISHED}, {PUBLISHED_PER_S:,.0f} a second", "", f"{times:,.0f}x", "")
    report_searches(repeats)
    first, later = medians(cold_plan, repeats)
    report("cold `runcast plan` of llama3.1-70b (s)", f"{first:.2f}", f"{later:.2f}", repeats)
    for name, task in (
        ("failures of 100,000 plans (s of a core, at most 0.3)", with_risk),
        ("ways to buy a plan (s of a core, at most 3)", buy),
        ("40,000 trials of a failing run (s of a core, at most 1)", simulate),
    ):
        first, later = medians(task, repeats, time.process_time)
        report(name, f"{first:.2f}", f"{later:.2f}", repeats)
    for name, given in SCENARIOS.items():
        scenario = resolve_strict(Scenario.parse(given))
        first, later = medians(lambda s=scenario: answer(s), repeats)
        report(f"answer: {name} (s)", f"{first:.2f}", f"{later:.2f}", repeats)
    first, later = medians(lambda: validate(RUNS, MODELS, PAIRS), repeats)
    report("validate, all shipped runs (s)", f"{first:.2f}", f"{later:.2f}", repeats)


if __name__ == "__main__":
    main()
