"""What can be trained on a few GPUs: every weight, adapters, or adapters on 4-bit weights."""

from __future__ import annotations

from app.forecast.one_case import Run
from app.guides import words
from app.guides.decision import Decision, Verdict, alternatives_of, answered
from app.guides.strategies import TASK_ORDER, WAYS, forecast_of
from hardware.decision_tables import Advice


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
