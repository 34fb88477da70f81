"""Read a link as a scenario, and write a scenario as an address to copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import urlencode

from app.scenario import age as scenario_age
from app.scenario.fields import fields_of
from core.errors import shown
from core.scenario import Scenario
from core.scenario.risk_fields import VIEW as LOOKED_AT

Query = tuple[tuple[str, str], ...]
Resolve = Callable[[Scenario], tuple[Scenario, list[str]]]

VIEW = "show_"  # prefix of a page's view settings, which are not scenario fields


def parse(
    query: Mapping[str, list[str]], resolve: Resolve, prices: str
) -> tuple[Scenario, list[str]]:
    """Parse a browser's query into a scenario and notes about what had to be changed.

    An unknown price snapshot is replaced by the current one, `prices`. If another version made the
    link, a note says what has changed; the scenario is then marked with this version.
    """
    notes = [
        f"The link gives {shown(name)} {len(values)} times: the last one counts."
        for name, values in query.items()
        if len(values) > 1
    ]
    scenario, more = Scenario.from_query({k: v[-1] for k, v in query.items() if v})
    notes += more
    resolved, more = resolve(scenario)
    if scenario.prices and resolved.prices != scenario.prices:
        notes.append(
            f"This link was made with price snapshot {shown(scenario.prices)}, which is not here: "
            f"the answer was recomputed with the prices of snapshot {prices!r}."
        )
    notes += more
    notes += scenario_age.since(scenario, "This link")
    stray = [n for n in fields_of("custom_model") if getattr(resolved, n) is not None]
    if stray and resolved.model != "custom":
        notes.append(f"Ignored {', '.join(stray)} from the link: they go with model=custom only.")
        resolved = changed(resolved, **dict.fromkeys(stray))
    return scenario_age.stamped(changed(resolved, prices=resolved.prices or prices)), notes


def changed(scenario: Scenario, **fields: object) -> Scenario:
    """The scenario with some fields replaced, validated again. Raises ScenarioError if one is
    wrong.

    None means that a field is not given.
    """
    values = {**scenario.model_dump(), **fields}
    return Scenario.parse({name: value for name, value in values.items() if value is not None})


def address_of(scenario: Scenario, page_url: str | None) -> str:
    """The address to copy in order to share this answer."""
    base = (page_url or "").partition("?")[0].rstrip("/")
    return f"{base}/?{urlencode(scenario.to_query(), safe=',/:')}"


def is_reordered(scenario: Scenario, other: Scenario) -> bool:
    """Whether two scenarios differ at most in the order of their plans and in what is shown."""
    a, b = (
        {**one.to_query(), **dict.fromkeys((*LOOKED_AT, "rank_by"), "")}
        for one in (scenario, other)
    )
    return a == b


def query_of(scenario: Scenario) -> Query:
    """The part of the link that the figures of a page depend on, without view settings."""
    return tuple((k, v) for k, v in scenario.to_query().items() if k not in LOOKED_AT)
