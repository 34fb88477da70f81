"""The strategy or the task recommended for one job, and the verdict on the published advice.

A forecast cannot distinguish strategies within `ALIKE` of the fastest. Of those that fit, the
simplest is recommended; one that uses host memory only if it saves more than `ALIKE` of the time,
or if nothing fits without it. Published advice agrees if it is that fast. It agrees in part if it
costs up to `CLEARLY` more, or if one of its strategies does not run. It disagrees if all of it
costs more or none of it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from hardware.decision_tables import Advice
from tests.support.guides import words
from tests.support.guides.decision import Alternative, Decision, Verdict, alternatives_of, answered
from tests.support.guides.one_case import Fields, Miss, Run, forecast
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

ALIKE, CLEARLY = 0.05, 0.25


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
    alternatives = alternatives_of(advice, found)
    fastest, chosen = _chosen(list(found.values()), free)
    return answered(
        advice,
        *_verdict(advice, found, chosen),
        run=chosen,
        recommends=words.recommended(chosen),
        reasons=_reasons(alternatives, advice.beside, chosen, fastest),
        alternatives=alternatives,
    )


def decide_task(advice: Advice) -> Decision:
    """The most that these GPUs can train: every weight, adapters, or adapters on 4-bit weights."""
    asked = [t for t in TASK_ORDER if t in (*advice.ways, *advice.beside)]
    found = {task: forecast_of(task, advice.scenario) for task in asked}
    runs = {t: f for t, f in found.items() if isinstance(f, Run)}
    able = [t for t, r in runs.items() if not r.is_tight] or list(runs)
    task = able[0] if able else ""
    chosen = runs.get(task)
    alternatives = alternatives_of(advice, found)
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
            *(words.compared(a.words, a.found, chosen) for a in alternatives if a.way != task),
        ],
        alternatives=alternatives,
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


def _reasons(
    alternatives: tuple[Alternative, ...],
    beside: tuple[str, ...],
    chosen: Run | None,
    fastest: Run | None,
) -> list[str]:
    """The published or requested ways, and the next best, each compared with the recommendation."""
    named = [a for a in alternatives if a.published or a.way in beside]
    compared = [
        words.compared(a.words, a.found, chosen) for a in named if not _same(a.found, chosen)
    ]
    if chosen is None or fastest is None:
        return compared
    memory = words.memory(chosen)
    reasons = [memory if chosen.is_tight else f"it fits: {memory}", *compared]
    if not words.is_as_fast(fastest, chosen) and not any(_same(a.found, fastest) for a in named):
        reasons.append(
            f"the fastest, {strategy(fastest)}, {words.times(fastest, chosen)}: too little for a "
            "forecast to tell"
        )
    rest = [
        (a, a.found) for a in alternatives
        if a not in named and not _same(a.found, chosen) and not _same(a.found, fastest)
    ]  # fmt: skip
    runs = [(f.step_s, a) for a, f in rest if isinstance(f, Run) and not f.is_tight]
    misses = [(f.short_bytes, a) for a, f in rest if isinstance(f, Miss) and f.need_bytes]
    if runs or misses:
        _, after = min(runs or misses, key=lambda pair: pair[0])
        text = words.compared(after.words, after.found, chosen)
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
