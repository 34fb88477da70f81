"""A link as a scenario, and a scenario as an address that a person copies."""

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

VIEW = "show_"  # begins the names of what a page shows: no fields of the scenario


def parse(
    query: Mapping[str, list[str]], resolve: Resolve, prices: str
) -> tuple[Scenario, list[str]]:
    """A query as the browser sends it, as a scenario and what had to be changed.

    A snapshot of prices that is not here is replaced by the current one, `prices`. Where another
    version made the link, a note says what has changed; the scenario is of this one then.
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
    """The scenario with some fields replaced, validated again; ScenarioError if one is wrong.

    None is a field that is not given.
    """
    values = {**scenario.model_dump(), **fields}
    return Scenario.parse({name: value for name, value in values.items() if value is not None})


def address_of(scenario: Scenario, page_url: str | None) -> str:
    """What a person copies to show somebody else this answer."""
    base = (page_url or "").partition("?")[0].rstrip("/")
    return f"{base}/?{urlencode(scenario.to_query(), safe=',/:')}"


def query_of(scenario: Scenario) -> Query:
    """What the figures of a page depend on: the link without what is merely looked at."""
    return tuple((k, v) for k, v in scenario.to_query().items() if k not in LOOKED_AT)
