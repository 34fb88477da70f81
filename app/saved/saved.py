"""Saved scenarios of one owner: kept, listed, opened, renamed, deleted and brought back.

Page and command line ask this module; pricing/store/saved.py keeps the rows. A scenario is kept as
the query of its link, its prices pinned, so that it opens as a link does. A price book is in it by
its name only. `StoreError` where the store cannot be used, `ScenarioError` for what was asked.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, urlencode

from app.forecast import resolve
from app.scenario import age as scenario_age
from app.scenario.link import changed, parse
from core.errors import RuncastError, ScenarioError, nearest, shown
from core.scenario import Scenario
from pricing.store.opening import open_store
from pricing.store.saved import (
    SavedScenario,
    forget_scenario,
    rename_scenario,
    restore_scenario,
    save_scenario,
    saved_scenarios,
    scenario_of_id,
)

SHORT = "s"  # the key of a short link; no field of a scenario may have it
_ID = re.compile(r"[a-z2-7]{16}")

Query = Mapping[str, list[str]]  # as a browser sends it


def keep(scenario: Scenario, *, owner: str, name: str, replace: bool) -> SavedScenario:
    """Save a scenario under a name; a taken name is a `ScenarioError` unless it may be replaced."""
    pinned = changed(scenario, prices=scenario.prices or resolve.current_prices())
    return save_scenario(
        open_store(),
        owner=owner,
        name=tidy(name),
        query=urlencode(scenario_age.stamped(pinned).to_query(), safe=",/:"),
        snapshot_id=pinned.prices,
        replace=replace,
    )


def listed(*, owner: str) -> list[SavedScenario]:
    """What one owner saved, the last changed first."""
    return saved_scenarios(open_store(), owner=owner)


def matching(found: Sequence[SavedScenario], search: str) -> list[SavedScenario]:
    """Those that have every word of a search in their name or their model, in any case."""
    words = tidy(search).casefold().split()
    return [s for s in found if all(w in f"{s.name} {model_of(s)}".casefold() for w in words)]


def named(name: str, *, owner: str) -> SavedScenario:
    """The scenario of one name; a `ScenarioError` says which name was probably meant."""
    every = {s.name: s for s in listed(owner=owner)}
    if (wanted := tidy(name)) not in every:
        guess = nearest(wanted, every)
        hint = f" Did you mean {shown(guess)}?" if guess else ""
        raise ScenarioError(f"There is no saved scenario {shown(wanted)}.{hint}")
    return every[wanted]


def rename(name: str, *, owner: str, to: str) -> SavedScenario:
    """Give a scenario another name; its short link stays."""
    return rename_scenario(open_store(), owner=owner, name=tidy(name), to=tidy(to))


def delete(name: str, *, owner: str) -> SavedScenario:
    """Delete a scenario; what it was, so that `bring_back` can undo it."""
    found = named(name, owner=owner)
    forget_scenario(open_store(), owner=owner, name=found.name)
    return found


def bring_back(deleted: SavedScenario) -> None:
    """Undo a `delete`, short link and all; `ScenarioError` if the name is taken since."""
    restore_scenario(open_store(), deleted)


def query_of(saved: SavedScenario) -> dict[str, str]:
    """What is saved, as the fields of a link."""
    pairs = parse_qsl(saved.query.removeprefix("?"), keep_blank_values=True)
    return {name: value for name, value in pairs if name != SHORT}


def model_of(saved: SavedScenario) -> str:
    """The model that a saved scenario trains; that of a first visit where it does not say."""
    return query_of(saved).get("model", str(Scenario.model_fields["model"].default))


def opened(saved: SavedScenario) -> tuple[Scenario, list[str]]:
    """The scenario as its link would open it here and now, and what had to be changed."""
    query = {name: [value] for name, value in query_of(saved).items()}
    return parse(query, resolve.resolve, resolve.current_prices())


def expanded(query: Query) -> tuple[Query, list[str]]:
    """A query with a short link in it, as the long one; what else it says goes before it.

    A short link that opens nothing is a sentence, and the rest of the query counts.
    """
    if SHORT not in query:
        return query, []
    rest = {name: values for name, values in query.items() if name != SHORT}
    id = (query[SHORT] or [""])[-1].strip().lower()
    try:
        found = scenario_of_id(open_store(), id) if _ID.fullmatch(id) else None
    except RuncastError as e:
        return rest, [f"The short link could not be opened: {e}"]
    if found is None:
        return rest, [
            f"The short link {shown(id)} is of no scenario on this server: it may be deleted, or "
            "saved elsewhere."
        ]
    return {name: [value] for name, value in query_of(found).items()} | rest, []


def short_address(saved: SavedScenario, page_url: str | None) -> str:
    """The short link, as a person copies it.

    >>> from datetime import datetime
    >>> some = SavedScenario(id="a" * 16, owner="local", name="70b", query="v=1", snapshot_id="",
    ...     created_at=datetime.min, updated_at=datetime.min)
    >>> short_address(some, "http://localhost:8501/options?v=1")
    'http://localhost:8501/options/?s=aaaaaaaaaaaaaaaa'
    """
    base = (page_url or "").partition("?")[0].rstrip("/")
    return f"{base}/?{SHORT}={saved.id}"


def tidy(name: str) -> str:
    """A name as it is kept: composed letters, no space around it."""
    return unicodedata.normalize("NFC", name).strip()
