"""The stages of a scenario, each as the scenario that it trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from app.forecast.stack_limits import check_stack
from app.forecast.training import tokens_of
from app.scenario.fields import fields_of
from app.scenario.link import changed
from app.scenario.model import custom_fields, model_of
from core.errors import ScenarioError, shown
from core.model.presets import preset
from core.model.transformer import train_flops_per_token
from core.numeric import as_float
from core.programme.scaled import scaled
from core.programme.stage import Stage, label, stage_of
from core.programme.tokens import ramp_steps, tokens_of_stages
from core.scenario import Scenario

SIZES = {"num_tokens", "num_examples", "tokens_per_example", "epochs"}
DATA_SET: Mapping[str, Any] = {
    "num_examples": None, "tokens_per_example": None, "epochs": 1.0, "packing_efficiency": 1.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRun:
    """One stage: what it trains on, as one scenario for each step of its batch ramp."""

    name: str
    stage: Stage
    steps: tuple[Scenario, ...]
    tokens: float  # of one run

    @property
    def scenario(self) -> Scenario:
        """What it trains when its ramp has ended."""
        return self.steps[-1]

    @property
    def flops(self) -> float:
        """Of all its runs."""
        model = model_of(self.scenario).transformer
        per_token = as_float(train_flops_per_token(model, float(self.scenario.seq_len)))
        return self.stage.count * self.tokens * per_token


def has_stages(scenario: Scenario) -> bool:
    """Whether a scenario is a programme of more than its own run."""
    return bool(scenario.stages)


@lru_cache(maxsize=64)
def stage_runs(scenario: Scenario) -> tuple[StageRun, ...]:
    """The stages of a resolved scenario, in their order; its own run if it has none."""
    base = changed(scenario, stages=(), plan="", pinned=())
    if not has_stages(scenario):
        return (StageRun(name="run", stage=Stage(), steps=(base,), tokens=tokens_of(base)),)
    stages = [stage_of(text) for text in scenario.stages]
    names = [label(stages, n) for n in range(len(stages))]
    own = [_named(name, partial(_own, base, s)) for name, s in zip(names, stages, strict=True)]
    tokens = tokens_of_stages(stages, [tokens_of(s) for s in own])
    return tuple(
        StageRun(name=name, stage=s, steps=_steps(name, s, scn, size), tokens=size)
        for name, s, scn, size in zip(names, stages, own, tokens, strict=True)
    )


def _named(name: str, make: Callable[[], Scenario]) -> Scenario:
    """What `make` returns; its mistake names the stage."""
    try:
        return make()
    except ScenarioError as e:
        raise ScenarioError(f"Stage {shown(name)}: {e}") from None


def _own(base: Scenario, stage: Stage) -> Scenario:
    """What a stage trains, before its share of another one and its ramp."""
    given: dict[str, Any] = dict(stage.fields)
    values = base.model_dump()
    if "num_tokens" in given or stage.share is not None:
        values |= DATA_SET
    if set(given) - SIZES or stage.scale != 1 or stage.ramp:
        values["anchor_tokens_per_s_per_gpu"] = None  # the measurement is of the scenario's own run
    if "model" in given:
        values |= dict.fromkeys(fields_of("custom_model"))
        given["model"] = preset(given["model"]).id
    found = _parsed({**values, **given})
    if stage.scale != 1:
        smaller = custom_fields(scaled(model_of(found).transformer, share=stage.scale))
        found = _parsed(
            {**found.model_dump(), **dict.fromkeys(fields_of("custom_model")), **smaller}
        )
    check_stack(found)
    return found


def _parsed(values: Mapping[str, Any]) -> Scenario:
    return Scenario.parse({n: v for n, v in values.items() if v is not None})


def _steps(name: str, stage: Stage, own: Scenario, size: float) -> tuple[Scenario, ...]:
    if stage.share is not None:
        own = own.model_copy(update={"num_tokens": size})
    if not stage.ramp:
        return (own,)
    whole = own.model_copy(update=dict(DATA_SET))
    return tuple(
        whole.model_copy(update={"num_tokens": tokens, "global_batch_size": batch})
        for tokens, batch in ramp_steps(stage.ramp, num_tokens=size, name=name)
    )
