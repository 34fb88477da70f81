"""The causes of an alert: which of them files beside the log show, and what each remedy is worth.

A remedy that is a setting of the plan is forecast: the same layout on the same machines with it,
over the layout without it. Causes that one sign shows alike are not told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from app.document import format as fmt
from app.imports.forecast import too_large
from app.scenario.layout import layout_text
from app.watch.run import WatchedRun
from core.errors import RuncastError
from core.scenario import Scenario
from core.units import HOUR_S
from core.watch.records import Alert
from hardware.diagnosis.causes import Cause, causes_of
from runners.watch.beside import Sign

ANY_SPEED = 1000.0  # tokens/s: no figure of the forecast depends on it
LEAST_GAIN = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosed:
    """One cause of an alert of this run."""

    cause: Cause
    sign: Sign | None = None  # of a file beside the log; None: none shows it
    faster: float | None = None  # by its remedy, of tokens/s; None: it is no setting of a plan
    saved_s: float | None = None  # by the end

    @property
    def is_seen(self) -> bool | None:
        """Whether it was seen; None: nothing looked at shows it."""
        return None if self.sign is None else self.sign.is_seen


def diagnosed(alert: Alert, state: WatchedRun) -> list[Diagnosed]:
    """The causes of an alert: those that were seen first, those looked for in vain last."""
    found = [
        _priced(Diagnosed(cause=cause, sign=_sign_of(cause, state.signs)), state)
        for cause in causes_of(alert.kind)
    ]
    return sorted(found, key=lambda one: {True: 0, None: 1, False: 2}[one.is_seen])


def _sign_of(cause: Cause, signs: Sequence[Sign]) -> Sign | None:
    own = [s for s in signs if s.name == cause.shown_by]
    return next((s for s in own if s.is_seen), own[0] if own else None)


def _priced(one: Diagnosed, state: WatchedRun) -> Diagnosed:
    if not one.cause.fields:
        return one
    run = state.plan.run
    scenario = state.plan.scenario.model_copy(
        update={"gpu": (run.accelerator,), "num_gpus": (run.num_gpus,)}
    )
    text = layout_text(run.layout)
    before = _tokens_per_s(scenario.model_dump_json(), text, "")
    after = _tokens_per_s(scenario.model_dump_json(), text, one.cause.fields)
    if before is None or after is None or abs(after / before - 1) < LEAST_GAIN:
        return one
    left_s = max(state.outlook.end_s.p50 - state.elapsed_s, 0.0)
    return replace(one, faster=after / before - 1, saved_s=left_s * (1 - before / after))


@lru_cache(maxsize=64)
def _tokens_per_s(scenario: str, layout: str, fields: str) -> float | None:
    """Tokens/s of a GPU, as forecast of the layout with some fields; None: it is not legal."""
    given = dict(pair.split("=") for pair in fields.split("&") if pair)
    recompute = given.pop("recompute", None)
    if recompute is not None:
        parts = [p for p in layout.split(",") if not p.startswith("recompute=")]
        layout = ",".join([*parts, f"recompute={recompute}"])
    try:
        asked = Scenario.model_validate_json(scenario)
        asked = Scenario.model_validate({**asked.model_dump(), **given})
        return too_large(asked, layout, ANY_SPEED).forecast.p50
    except (RuncastError, ValueError):
        return None


def cause_sentences(alert: Alert, state: WatchedRun, most: int | None = None) -> list[str]:
    """The likely causes of an alert in order, each with its sign and its remedy."""
    found = diagnosed(alert, state)[:most]
    sentences = [_sentence(one, state) for one in found]
    for name in dict.fromkeys(one.cause.shown_by for one in found if one.is_seen):
        alike = [one.cause.cause for one in found if one.cause.shown_by == name and one.is_seen]
        if len(alike) > 1:
            sentences.append(f"Not told apart by what was read: {', '.join(alike)}.")
    return sentences


def _sentence(one: Diagnosed, state: WatchedRun) -> str:
    cause = one.cause
    text = f"{cause.cause[0].upper()}{cause.cause[1:]}"
    if one.sign is not None:
        text += f" ({'seen' if one.sign.is_seen else 'not seen'}: {one.sign.text})"
    else:
        text += f" (sign: {cause.sign})"
    text += f": {cause.remedy}"
    if one.faster is not None and one.saved_s is not None:
        rate = state.planned.usd_per_hour
        how, less = ("faster", "less") if one.faster > 0 else ("slower", "more")
        text += f"; as forecast {fmt.percent(abs(one.faster))} {how}"
        if rate is not None:
            text += f", {fmt.usd(abs(one.saved_s) / HOUR_S * rate)} {less}"
    return f"{text}."
