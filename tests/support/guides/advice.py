"""Our answer to every row of the published decision tables.

A forecast cannot distinguish strategies within `ALIKE` of the fastest. Of those that fit, the
simplest is recommended; one that uses host memory only if it saves more than `ALIKE` of the time,
or if nothing fits without it. Published advice agrees if it is that fast. It agrees in part if it
costs up to `CLEARLY` more, or if one of its strategies does not run. It disagrees if all of it
costs more or none of it runs.

Stacks differ in their fitted fractions and in their habits (recompute, strategies); ease of use is
not counted. A difference within the spread of two forecasts counts as none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import Literal

from app.document import format as fmt
from core.evidence.uncertainty import p90, quadrature
from core.model.presets import preset
from core.model.transformer import total_params
from core.numeric import as_float
from core.scenario import Scenario
from hardware.decision_tables import Advice, Kind
from hardware.efficiency import stack_of
from hardware.measured import RUNS_CSV, read_runs
from tests.support.guides import words
from tests.support.guides.claim_text import FORECAST_DIGITS, figure, number
from tests.support.guides.claims import checked, printed, verdict
from tests.support.guides.one_case import Fields, Miss, Run, forecast, timed_if_it_fitted
from tests.support.guides.strategies import (
    LEANEST,
    OFFLOAD_LEVEL,
    OFFLOADED,
    ON_GPU,
    SIMPLE,
    TASK_ORDER,
    WAYS,
    forecast_of,
    level,
    strategy,
)

Verdict = Literal["agrees", "agrees in part", "disagrees", "no opinion"]
CHOSEN = ("task", "stack")
ALIKE, CLEARLY = 0.05, 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One concrete case of one published row, answered."""

    advice: Advice
    recommends: str
    reasons: tuple[str, ...]  # sentences
    verdict: Verdict
    disagreement: str = ""  # one sentence; empty if it agrees or there is no opinion
    job: str = ""
    details: str = ""
    run: Run | None = None  # run of the recommendation
    link: Mapping[str, str] = field(default_factory=dict)  # fields of a scenario; empty: no page


def answered(
    advice: Advice, verdict: Verdict, disagreement: str, *, run: Run | None, recommends: str,
    reasons: Iterable[str],
) -> Decision:  # fmt: skip
    """The decision that forecasts lead to; `run` is that of the recommendation."""
    return Decision(
        advice=advice,
        job=words.job(Scenario.parse(advice.scenario), with_task=advice.kind != "task"),
        recommends=recommends, details=words.details(run) if run else "",
        reasons=tuple(map(words.sentence, reasons)), verdict=verdict, disagreement=disagreement,
        run=run, link=link_of(advice, run),
    )  # fmt: skip


def link_of(advice: Advice, run: Run | None) -> dict[str, str]:
    """The fields of a link to the Plan page: the case with every layout, the fastest first; and the
    task and stack chosen, without which the page would answer another question."""
    fields: dict[str, object] = {**advice.scenario, "rank_by": "time"}
    if run is not None:
        fields |= {name: getattr(run.scenario, name) for name in CHOSEN}
        if "nvme" in run.offload:  # the search does not try nvme
            fields |= dict(zip(("offload_optimizer", "offload_params"), run.offload, strict=True))
    return Scenario.parse(fields).to_query()


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """Combine several verdicts about one row: differing verdicts agree in part.

    >>> together(["agrees", "disagrees"]), together(["agrees", "agrees"])
    ('agrees in part', 'agrees')
    """
    found = set(verdicts)
    return found.pop() if len(found) == 1 else "agrees in part"


def decide_strategy(advice: Advice) -> Decision:
    """Of all strategies that fit, recommend the fastest, or the simplest of those equally fast."""
    case = advice.scenario
    asked = dict.fromkeys((*advice.ways, *advice.then, *advice.beside))
    found = {way: forecast_of(way, case) for way in asked}
    free = [forecast(case)]
    if isinstance(free[0], Run) and not _fits_on_gpu(free[0]):
        free.append(forecast({**case, **ON_GPU}))
    found |= _simpler(case, found, free)
    if not any(_fits_on_gpu(f) for f in (*found.values(), *free)):
        found |= {way: forecast_of(way, case) for way in OFFLOADED if way not in found}
    fastest, chosen = _chosen(list(found.values()), free)
    return answered(
        advice,
        *_verdict(advice, found, chosen),
        run=chosen,
        recommends=words.recommended(chosen),
        reasons=_reasons(found, {*advice.ways, *advice.beside}, chosen, fastest),
    )


def decide_task(advice: Advice) -> Decision:
    """The most that these GPUs can train: every weight, adapters, or adapters on 4-bit weights."""
    asked = [t for t in TASK_ORDER if t in (*advice.ways, *advice.beside)]
    found = {task: forecast_of(task, advice.scenario) for task in asked}
    runs = {t: f for t, f in found.items() if isinstance(f, Run)}
    able = [t for t, r in runs.items() if not r.is_tight] or list(runs)
    task = able[0] if able else ""
    chosen = runs.get(task)
    verdict: Verdict = "agrees" if task in advice.ways else "disagrees"
    why = ""
    for way in advice.ways:
        if chosen is None or way not in runs:
            why = words.sentence(words.compared(WAYS[way].words, found[way], chosen))
        elif task != way:
            verdict = "agrees in part"
            why = words.sentence(
                f"{WAYS[way].words} runs but is not needed: {WAYS[task].words} fits with "
                f"{words.memory(chosen)}"
            )
    return answered(
        advice,
        verdict,
        why,
        run=chosen,
        recommends=WAYS[task].words if task else words.recommended(None),
        reasons=[
            *([f"it fits: {words.memory(chosen)}"] if chosen else []),
            *(words.compared(_named(w, f), f, chosen) for w, f in found.items() if w != task),
        ],
    )


def _simpler(
    case: Fields, known: Mapping[str, Run | Miss], free: list[Run | Miss]
) -> dict[str, Run | Miss]:
    """Simple strategies, the simplest first, until one is as fast as the fastest known. If no
    layout fits without host memory, the one that shards most shows how much is missing."""
    if not any(_fits_on_gpu(f) for f in free):
        return {way: forecast_of(way, case) for way in LEANEST if way not in known}
    limit_s = _fastest([f for f in (*known.values(), *free) if isinstance(f, Run)]).step_s
    found: dict[str, Run | Miss] = {}
    for ways in SIMPLE:
        found |= {way: forecast_of(way, case) for way in ways if way not in known}
        tried = [f for f in ({**known, **found}[way] for way in ways) if isinstance(f, Run)]
        if any(_fits_on_gpu(r) and r.step_s <= limit_s * (1 + ALIKE) for r in tried):
            break
    return found


def _fits_on_gpu(found: Run | Miss) -> bool:
    return isinstance(found, Run) and not found.is_tight and level(found) < OFFLOAD_LEVEL


def _fastest(runs: list[Run]) -> Run:
    """The fastest that fits, except those that use the host only to be a little faster; and those
    that are tight only if nothing else fits."""
    fitting = [r for r in runs if not r.is_tight] or runs
    fastest = min(fitting, key=lambda r: r.step_s)
    on_gpu = min((r for r in fitting if _fits_on_gpu(r)), key=lambda r: r.step_s, default=fastest)
    return on_gpu if on_gpu.step_s <= fastest.step_s * (1 + ALIKE) else fastest


def _chosen(found: list[Run | Miss], free: list[Run | Miss]) -> tuple[Run | None, Run | None]:
    """The fastest, and the simplest that is equally fast. A free search adds only what no named
    strategy reaches."""
    runs = [f for f in found if isinstance(f, Run)]
    for best in free:
        if isinstance(best, Run) and not any(
            words.is_as_fast(r, best) and level(r) <= level(best) for r in runs
        ):
            runs.append(best)
    if not runs:
        return None, None
    fastest = _fastest(runs)
    alike = [
        r for r in runs
        if r.is_tight == fastest.is_tight and r.step_s <= fastest.step_s * (1 + ALIKE)
    ]  # fmt: skip
    return fastest, min(alike, key=lambda r: (level(r), r.step_s))


def _named(way: str, found: Run | Miss) -> str:
    return words.named(WAYS[way].words, found)


def _reasons(
    found: Mapping[str, Run | Miss], named: set[str], chosen: Run | None, fastest: Run | None
) -> list[str]:
    """The published or requested ways, and the next best, each compared with the recommendation."""
    compared = [
        words.compared(_named(way, f), f, chosen)
        for way, f in found.items()
        if way in named and not _same(f, chosen)
    ]
    if chosen is None or fastest is None:
        return compared
    memory = words.memory(chosen)
    reasons = [memory if chosen.is_tight else f"it fits: {memory}", *compared]
    is_named = any(_same(f, fastest) for way, f in found.items() if way in named)
    if not words.is_as_fast(fastest, chosen) and not is_named:
        reasons.append(
            f"the fastest, {strategy(fastest)}, {words.times(fastest, chosen)}: too little for a "
            "forecast to tell"
        )
    rest = [
        (way, f) for way, f in found.items()
        if way not in named and not _same(f, chosen) and not _same(f, fastest)
    ]  # fmt: skip
    runs = [(f.step_s, way) for way, f in rest if isinstance(f, Run) and not f.is_tight]
    misses = [(f.short_bytes, way) for way, f in rest if isinstance(f, Miss) and f.need_bytes]
    if runs or misses:
        _, after = min(runs or misses, key=lambda pair: pair[0])
        text = words.compared(_named(after, found[after]), found[after], chosen)
        reasons.append(f"next, {text}" if runs else text)
    return reasons


def _same(found: Run | Miss, run: Run | None) -> bool:
    """Whether two ways have the same layout."""
    return (
        isinstance(found, Run)
        and run is not None
        and found.layout == run.layout
        and level(found) == level(run)
    )


def _verdict(
    advice: Advice, found: Mapping[str, Run | Miss], chosen: Run | None
) -> tuple[Verdict, str]:
    """The forecasts' verdict on the published strategies, and the reason if they do not agree."""
    published = {WAYS[w].words: found[w] for w in advice.ways}
    lacking = [
        words.compared(name, f, chosen) for name, f in published.items() if isinstance(f, Miss)
    ]
    runs = {words.named(name, f): f for name, f in published.items() if isinstance(f, Run)}
    if chosen is None or not runs:
        left = f"; {strategy(chosen)} does it" if chosen else ""
        return "disagrees", words.sentence("; ".join(lacking) + left)
    name, best = min(runs.items(), key=lambda r: (r[1].is_tight, r[1].step_s))
    more = best.step_s / chosen.step_s - 1
    if more > CLEARLY and not best.is_tight:
        return "disagrees", words.sentence(_against(name, best, chosen))
    why = lacking
    if best.is_tight:
        why.append(words.compared(name, best, chosen))
    elif more > ALIKE:
        why.append(_against(name, best, chosen))
    why += [
        words.compared(other, run, chosen) if run.is_tight else _against(other, run, chosen)
        for other, run in runs.items()
        if other != name and (run.is_tight or run.step_s > chosen.step_s * (1 + CLEARLY))
    ]
    why += _out_of_order([(WAYS[w].words, found[w]) for w in advice.then])
    return ("agrees in part", words.sentence("; ".join(why))) if why else ("agrees", "")


def _against(name: str, run: Run, chosen: Run) -> str:
    """How much slower a strategy is, and what takes the time."""
    slower = words.times(run, chosen, strategy(chosen))
    return f"{name} {slower}{words.longest_difference(run, chosen)}"


def _out_of_order(then: list[tuple[str, Run | Miss]]) -> list[str]:
    """Where a later fall-back does better than the one before it."""
    return [
        f"of the fall-backs, {earlier} {words.times(a, b, words.named(later, b))}"
        for (earlier, a), (later, b) in pairwise(then)
        if isinstance(a, Run) and isinstance(b, Run) and a.step_s > b.step_s * (1 + ALIKE)
    ]


@cache
def published_runs() -> Counter[str]:
    """The number of published runs of each stack that has a profile."""
    stacks = [stack_of(str(name)) for name in read_runs(RUNS_CSV).inputs.framework]
    return Counter(s.name for s in stacks if s is not None)


def spread(one: Run, other: Run) -> float:
    """The throughput ratio that stays within the noise: nine of ten pairs of equal stacks stay
    under it."""
    return as_float(p90(1.0, quadrature(one.throughput_sigma, other.throughput_sigma)))


def decide_stack(advice: Advice) -> Decision:
    """Of the stacks that are equally fast, recommend the one whose profile has the most published
    runs."""
    asked = dict.fromkeys((*advice.ways, *advice.beside))
    found = {name: forecast({**advice.scenario, **ON_GPU, "stack": name}) for name in asked}
    runs = {name: f for name, f in found.items() if isinstance(f, Run)}
    if not runs:
        return answered(
            advice,
            "disagrees",
            "None of these stacks fits the job.",
            run=None,
            recommends=words.recommended(None),
            reasons=[words.compared(n, f, None) for n, f in found.items()],
        )
    fastest = min(runs.values(), key=lambda r: r.step_s)
    alike = [n for n, r in runs.items() if r.step_s <= fastest.step_s * (1 + ALIKE)]
    name = max(alike, key=lambda n: published_runs()[n])
    chosen = runs[name]
    others = [
        f"{words.compared(n, f, chosen)}{_mostly(f, chosen)} ({_runs(n)})"
        for n, f in found.items()
        if n != name
    ]
    return answered(
        advice,
        *_stack_verdict(advice, runs, found, name),
        run=chosen,
        recommends=name,
        reasons=[
            f"{strategy(chosen)}, {words.memory(chosen)}; {_runs(name)}",
            f"of the others, {'; '.join(others)}",
        ],
    )


def _mostly(found: Run | Miss, chosen: Run) -> str:
    """What takes most of the extra time of a slower stack."""
    if isinstance(found, Run) and found.step_s > chosen.step_s * (1 + ALIKE):
        return words.longest_difference(found, chosen)
    return ""


def _runs(name: str) -> str:
    """The runs a profile is based on; one without runs of its own uses those of its family."""
    n = published_runs()[name]
    return f"{fmt.count(n) if n else 'no'} published run{'' if n == 1 else 's'} of its own"


def _stack_verdict(
    advice: Advice, runs: dict[str, Run], found: dict[str, Run | Miss], name: str
) -> tuple[Verdict, str]:
    """Whether the forecasts can distinguish the published stacks from the recommended one."""
    chosen = runs[name]
    slow = [
        n for n in advice.ways
        if n not in runs or runs[n].step_s > chosen.step_s * spread(runs[n], chosen)
    ]  # fmt: skip
    if not slow:
        return "agrees", ""
    why = [
        f"{n} {words.times(runs[n], chosen, name)}{words.longest_difference(runs[n], chosen)}"
        if n in runs else words.compared(n, found[n], chosen)
        for n in slow
    ]  # fmt: skip
    verdict: Verdict = "disagrees" if len(slow) == len(advice.ways) else "agrees in part"
    return verdict, f"{'; '.join(why)}: more than the spread of the two forecasts."


GB = 1e9
MEANS: Mapping[str, Verdict] = {
    "reproduced": "agrees",
    "reproduced as a limit": "agrees in part",
    "refuted": "disagrees",
    "input": "no opinion",
}
# One fixed layout, so that bytes compare: micro-batch and recompute are the same in all.
_LEAST = {"tp": 1, "pp": 1, "cp": 1, "micro_batch_size": 1, "recompute": "full"}


def with_printed_figures(decision: Decision) -> Decision:
    """A decision whose advice also prints a figure; the verdict on the figure counts equally."""
    found = [checked(printed(name)) for name in decision.advice.claims]
    costs = (f"Cost against DDP, if DDP fitted: printed {c.printed}, ours {c.ours}." for c in found)
    off = (
        f"the printed {c.printed} is {c.ours} here: {c.why.rstrip('.')}"
        for c in found
        if MEANS[c.verdict] != "agrees"
    )
    why = "; ".join(text for text in (decision.disagreement.rstrip("."), *off) if text)
    return replace(
        decision,
        reasons=(*decision.reasons, *costs),
        verdict=together([decision.verdict, *(MEANS[c.verdict] for c in found)]),
        disagreement=words.sentence(why) if why else "",
    )


def decide_memory(advice: Advice) -> Decision:
    """Compare a rule of thumb with our memory forecast, model by model."""
    claim = printed(advice.claims[0])
    slope, more = advice.gb_per_billion or 0.0, advice.gb_more or 0.0
    sizes: dict[float, float] = {}
    ratios: list[float] = []
    verdicts: dict[str, Verdict] = {}  # by the text of each comparison
    for name in advice.ways:
        run = timed_if_it_fitted({**advice.scenario, **_LEAST, "model": name})
        billions = as_float(total_params(preset(name).transformer)) / GB
        ours, rule = run.need_bytes * run.scenario.num_gpus[0], (slope * billions + more) * GB
        sizes[billions] = ours
        ratios.append(ours / rule)
        text = (
            f"{number(billions, FORECAST_DIGITS)}B: {figure(ours, 'GB', FORECAST_DIGITS)} against "
            f"{figure(rule, 'GB', FORECAST_DIGITS)}"
        )
        verdicts[text] = MEANS[
            verdict(rule=claim.rule, ours_low=ours, ours_high=ours, printed_low=rule,
                    printed_high=rule, tolerance=claim.tolerance)
        ]  # fmt: skip
    off = [text for text, v in verdicts.items() if v != "agrees"]
    scenario = Scenario.parse(advice.scenario)
    return Decision(
        advice=advice,
        job=f"One sequence of {scenario.seq_len:,} tokens a GPU, full recompute, "
        f"{scenario.num_gpus[0]} GPU{'s' if scenario.num_gpus[0] > 1 else ''}, "
        f"{len(verdicts)} models",
        recommends=f"{number(min(ratios), 2)} to {number(max(ratios), 2)} times the rule",
        details=f"holds for {len(verdicts) - len(off)} of {len(verdicts)} models",
        reasons=tuple(map(words.sentence, verdicts)),
        verdict=together(verdicts.values()),
        disagreement=words.sentence(f"off for {words.joined(off)}; {_line(sizes)}") if off else "",
    )


def _line(sizes: Mapping[float, float]) -> str:
    """The slope and the intercept of our memory forecast between the two ends."""
    least, most = min(sizes), max(sizes)
    slope = (sizes[most] - sizes[least]) / (most - least)
    return (
        f"from {number(least, FORECAST_DIGITS)}B to {number(most, FORECAST_DIGITS)}B ours grows by "
        f"{figure(slope, 'GB', FORECAST_DIGITS)} per billion, on top of "
        f"{figure(sizes[least] - slope * least, 'GB', FORECAST_DIGITS)}"
    )


def decide_saving(advice: Advice) -> Decision:
    """Compare a printed saving of model states with the saving of a whole GPU's memory in our
    forecast."""
    c, way = checked(printed(advice.claims[0])), advice.ways[0]
    ddp, sharded = (forecast_of(w, advice.scenario).need_bytes for w in ("ddp", way))
    whole = (
        f"A whole GPU, activations and buffers included: {figure(ddp, 'GB', 3)} with DDP, "
        f"{figure(sharded, 'GB', 3)} with {WAYS[way].words}, {number(ddp / sharded, 2)}x."
    )
    return Decision(
        advice=advice,
        job=words.job(Scenario.parse(advice.scenario)),
        recommends=c.ours,
        details="of the model states it shards",
        reasons=(words.sentence(c.arithmetic), whole),
        verdict=MEANS[c.verdict],
        disagreement="" if c.verdict == "reproduced" else c.why,
        link=link_of(advice, None),
    )


DECIDE: Mapping[Kind, Callable[[Advice], Decision]] = {
    "strategy": lambda advice: with_printed_figures(decide_strategy(advice)),
    "task": decide_task,
    "stack": decide_stack,
    "memory": decide_memory,
    "saving": decide_saving,
    "none": lambda advice: Decision(
        advice=advice, recommends="No opinion", reasons=(advice.note,), verdict="no opinion"
    ),
}
