"""The log of a run compared with its forecast: the ratio, and the anchor it gives; the options of
a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from app.command.given import Given
from app.command.values import layout_scenario, plan_scenario, typed_fields
from app.forecast.resolve import resolve_strict
from app.imports.forecast import TOO_LARGE, Run, anchored, check_is_one, forecast_of, too_large
from app.scenario.link_query import link_query
from core.errors import RuncastError, ScenarioError, shown
from core.scenario import Scenario
from pricing.offers import snapshot
from runners.imports.steps import MEANING, OPTIONS, Facts, Steady
from runners.imports.text import Text, read_text
from runners.imports.training_log import NoFigureError, steady_state

ANCHOR = (
    "anchor_tokens_per_s_per_gpu", "anchor_gpu", "anchor_num_gpus", "anchor_layout",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One run, forecast and measured. Rates are in tokens/s per GPU."""

    text: Text
    scenario: Scenario  # of the forecast, without an anchor
    run: Run
    measured: Steady
    is_named: bool  # whether the layout was named; if not, the fastest is assumed
    anchored: Scenario | None  # the scenario with the measurement as its anchor
    refused: str  # why there is no anchor; '' if there is one
    notes: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Measured over forecast."""
        return self.measured.tokens_per_s_per_gpu / self.run.forecast.p50

    @property
    def is_inside(self) -> bool:
        """Whether the measurement lies between the P10 and P90 of the forecast."""
        return self.run.forecast.p10 <= self.measured.tokens_per_s_per_gpu <= self.run.forecast.p90

    @property
    def link(self) -> str | None:
        """The query that reopens the scenario with the measurement as its anchor."""
        if self.anchored is None:
            return None
        return link_query(self.anchored, snapshot(self.anchored.prices).id)


def compared(path: Path, given: Given, layout: str | None, *, per_gpu: bool | None) -> Comparison:
    """Forecast the named run and compare the log with it. Raises RuncastError with what is missing,
    or why the log cannot belong to that run."""
    text = read_text(path)
    filled, notes = _filled(given, text, per_gpu)
    asked, named, more = scenario_of_run(filled, layout)
    check_is_one(asked, named)
    run = forecast_of(asked, named)
    num_gpus = asked.num_gpus[0] if run is None else run.num_gpus
    found = steady_state(text.lines, facts_in(asked, num_gpus), per_gpu=per_gpu)
    if run is None:
        run = too_large(asked, layout or "", found.tokens_per_s_per_gpu)
        more = [*more, TOO_LARGE]
    for sentence in other_degrees(found.known, run, "forecast").values():
        raise ScenarioError(sentence)
    with_anchor, refused = _with_anchor(asked, run, found)
    return Comparison(
        text=text,
        scenario=asked,
        run=run,
        measured=found,
        is_named=bool(named or asked.plan or (asked.tp and asked.pp and asked.sharding)),
        anchored=with_anchor,
        refused=refused,
        notes=(*notes, *more),
    )


def _filled(given: Given, text: Text, per_gpu: bool | None) -> tuple[Given, list[str]]:
    """The given options, completed from the log where nothing else sets a value."""
    if not given.is_new:
        return given, []
    typed = typed_fields(given)
    try:
        known = steady_state(text.lines, facts_of(typed), per_gpu=per_gpu).known
    except NoFigureError:
        raise
    except RuncastError:
        return given, []  # reported later, when the whole scenario is known
    found = {n: str(known[n]) for n in OPTIONS if n in known and n not in typed}
    if not found:
        return given, []
    what = ", ".join(f"{MEANING[n]} {int(v):,}" for n, v in found.items())
    return replace(given, options={**given.options, **found}), [f"From the log: {what}."]


def scenario_of_run(
    given: Given, layout: str | None, *, command: str = "compare"
) -> tuple[Scenario, dict[str, object], list[str]]:
    """The scenario without an anchor, the named layout, and notes for the user."""
    notes: list[str] = []
    named: dict[str, object] = {}
    try:
        if layout is not None:
            scenario, named, _ = layout_scenario(given, layout)
        else:
            # The number of tokens does not change the speed.
            tokens = {"num_tokens": "1e12"} if given.is_new else {}
            scenario, _ = plan_scenario(replace(given, options={**tokens, **given.options}))
    except ScenarioError as e:
        asked_by = "plan" if layout is None else "estimate"
        text = str(e).replace(f"`runcast {asked_by}", f"`runcast {command}")
        raise ScenarioError(text) from None
    if scenario.anchor_tokens_per_s_per_gpu is not None:
        notes.append("The scenario has a measurement already; the forecast is the one without it.")
        none = {name: Scenario.model_fields[name].default for name in ANCHOR}
        scenario = scenario.model_copy(update=none)
    return resolve_strict(scenario), named, notes


def other_degrees(facts: Mapping[str, int], run: Run, target: str) -> dict[str, str]:
    """Parallel degrees in a log that are not those of the run, each with a sentence."""
    return {
        name: f"The log is of {name}={facts[name]}, and the {target} of {name}="
        f"{getattr(run.layout, name)}: give --layout with what was run."
        for name in ("tp", "pp", "cp", "ep")
        if facts.get(name, getattr(run.layout, name)) != getattr(run.layout, name)
    }


def _with_anchor(scenario: Scenario, run: Run, found: Steady) -> tuple[Scenario | None, str]:
    """The scenario anchored to the measurement, or why it cannot be."""
    try:
        made = anchored(
            scenario, found.tokens_per_s_per_gpu, gpu=run.accelerator, num_gpus=run.num_gpus,
            layout=run.layout,
        )  # fmt: skip
        return resolve_strict(made), ""
    except RuncastError as e:
        return None, str(e)


def facts_of(typed: Mapping[str, str]) -> Facts:
    """The facts of a run that the options give; numbers may be written 8k. One of several numbers
    of GPUs is not known.

    >>> facts_of({"seq_len": "8k", "num_gpus": "64"})
    {'seq_len': 8192, 'num_gpus': 64}
    """
    read = Scenario.parse({n: typed[n] for n in OPTIONS if n in typed})
    facts = {n: getattr(read, n) for n in ("seq_len", "global_batch_size") if n in typed}
    return facts if len(read.num_gpus) != 1 else {**facts, "num_gpus": read.num_gpus[0]}


def facts_in(scenario: Scenario, num_gpus: int) -> Facts:
    """The facts of a run that its scenario gives."""
    return {
        "seq_len": scenario.seq_len,
        "global_batch_size": scenario.global_batch_size,
        "num_gpus": num_gpus,
    }


def whose(text: str | None) -> bool | None:
    """`--tokens-of` as a flag: whether the figures are per GPU; None leaves it to the log."""
    if text not in (None, "gpu", "job"):
        raise ScenarioError(f"--tokens-of {shown(text)} is neither gpu nor job.")
    return None if text is None else text == "gpu"


def count(option: str, text: str | None) -> int | None:
    """The whole number given as an option."""
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 7 and int(text) > 0):
        raise ScenarioError(f"{option} {shown(text)} is no whole number from 1 to 999,999.")
    return int(text)
