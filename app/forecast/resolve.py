"""Resolve the names that a scenario uses against the tables and this server's data."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from app.forecast import calibrations, machines, price_book
from app.forecast.machines import CUSTOM
from app.forecast.search import anchor_of
from app.forecast.stack_limits import check_stack
from app.scenario.model import model_of
from core.errors import RuncastError, ScenarioError, unknown_name, unknown_sentence
from core.model.presets import PRESETS, preset
from core.scenario import Scenario
from core.scenario.quotes import quote_of, text_of
from core.scenario.types import AUTO
from hardware import facts, names
from hardware.efficiency import stacks
from hardware.habits.built_on import software_names
from pricing import offers as prices
from pricing.book.files import has_book


def current_prices() -> str:
    """The id of the installed price snapshot."""
    return prices.installed_id()


def model_names() -> list[str]:
    """Names of the model presets, in the order of their table."""
    return list(PRESETS)


def accelerator_names() -> list[str]:
    """Accelerators that can be estimated, and 'custom'."""
    return [*facts.accelerators(), CUSTOM]


def cloud_names(scenario: Scenario | None = None) -> list[str]:
    """Providers that have offers in the snapshot of the scenario, else in the installed one, and
    those that only its quotes and price book name."""
    pinned = scenario.prices if scenario is not None else ""
    listed = list(prices.snapshot(pinned if pinned in prices.snapshot_ids() else None).providers)
    own = price_book.providers_of(scenario) if scenario is not None else []
    return [*listed, *(name for name in own if name not in listed)]


def stack_names() -> list[str]:
    """'auto', and the software stacks that have a profile."""
    return [AUTO, *stacks()]


def resolve(scenario: Scenario) -> tuple[Scenario, list[str]]:
    """The scenario with canonical names; unknown names are dropped, each with a sentence."""
    notes: list[str] = []
    kept: dict[str, object] = scenario.model_dump()
    for name, one in (("quotes", _quote), ("gpu", _gpu), ("cloud", partial(_cloud, scenario))):
        found = []
        for given in getattr(scenario, name):
            try:
                found.append(one(given))
            except ScenarioError as e:
                notes.append(f"Left out of {name}: {e}")
        kept[name] = tuple(dict.fromkeys(found))
    for name, check in (("model", _model), ("stack", _stack)):
        try:
            kept[name] = check(scenario)
        except ScenarioError as e:
            default = Scenario.model_fields[name].default
            notes.append(f"{e} {default} is shown instead.")
            kept[name] = default
    try:
        check_stack(Scenario.model_validate(kept))
    except ScenarioError as e:
        default = Scenario.model_fields["stack"].default
        notes.append(f"{e} {default} is shown instead.")
        kept["stack"] = default
    if CUSTOM in scenario.gpu:
        try:
            machines.accelerator_of(CUSTOM, scenario)
        except ScenarioError as e:
            notes.append(f"Left out the custom GPU: {e}")
            kept["gpu"] = tuple(g for g in kept["gpu"] if g != CUSTOM)  # type: ignore[attr-defined]
    try:
        _check_anchor(Scenario.model_validate(kept))
    except ScenarioError as e:
        notes.append(f"Left out the measurement: {e}")
        kept["anchor_tokens_per_s_per_gpu"] = None
    for lacking in [c for c in scenario.calibration if not calibrations.has(c)]:
        notes.append(f"The calibration {lacking} is not on this server: it is left out.")
        kept["calibration"] = tuple(c for c in kept["calibration"] if c != lacking)  # type: ignore[attr-defined]
    try:
        calibrations.chosen(Scenario.model_validate(kept))
    except RuncastError as e:
        notes.append(f"Left out the calibrations: {e}")
        kept["calibration"] = ()
    if scenario.prices and scenario.prices not in prices.snapshot_ids():
        kept["prices"] = ""
    if scenario.price_book and not has_book(scenario.price_book):
        notes.append(price_book.lacking_sentence(scenario.price_book))
        kept["price_book"] = ""
    return Scenario.model_validate(kept), notes


def resolve_strict(scenario: Scenario) -> Scenario:
    """The scenario with canonical names; raises an error at the first unknown name."""
    resolved = Scenario.model_validate(
        {
            **scenario.model_dump(),
            "quotes": tuple(_quote(q) for q in scenario.quotes),
            "gpu": tuple(_gpu(g) for g in scenario.gpu),
            "cloud": tuple(_cloud(scenario, c) for c in scenario.cloud),
            "model": _model(scenario),
            "stack": _stack(scenario),
        }
    )
    if CUSTOM in resolved.gpu:
        machines.accelerator_of(CUSTOM, resolved)
    check_stack(resolved)
    price_book.book_of(resolved)
    calibrations.chosen(resolved)
    _check_anchor(resolved)
    return resolved


def _gpu(given: str) -> str:
    if given.lower() == CUSTOM:
        return CUSTOM
    canonical = names.canonical(given)
    facts.accelerator(canonical)
    return canonical


def _quote(given: str) -> str:
    """A quote with the canonical names of its GPU and of a known seller."""
    quote = quote_of(given)
    gpu, sellers = _gpu(quote.gpu), {c.lower(): c for c in cloud_names()}
    if gpu == CUSTOM:
        raise ScenarioError(
            "A quote of a custom GPU cannot be compared: give custom_usd_per_gpu_hour instead."
        )
    provider = sellers.get(quote.provider.lower(), quote.provider)
    return text_of(replace(quote, gpu=gpu, provider=provider))


def _cloud(scenario: Scenario, given: str) -> str:
    known = {c.lower(): c for c in cloud_names(scenario)}
    if given.lower() not in known:
        raise unknown_name("cloud", given, known.values())
    return known[given.lower()]


def _model(scenario: Scenario) -> str:
    if scenario.model == CUSTOM:
        model_of(scenario)
        return CUSTOM
    return preset(scenario.model).id


def _stack(scenario: Scenario) -> str:
    if scenario.stack not in (*stack_names(), *software_names()):
        raise ScenarioError(unknown_sentence("stack", scenario.stack, stack_names()))
    return scenario.stack


def _check_anchor(scenario: Scenario) -> None:
    """Raise ScenarioError if the scenario's measurement is not possible."""
    if scenario.anchor_tokens_per_s_per_gpu is not None:
        anchor_of(scenario)
