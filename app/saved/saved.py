"""Saved scenarios of one owner: save, list, open, rename, delete and restore.

Used by the page and the command line; pricing/store/saved.py stores the rows. A scenario is stored
as the query of its link, with its prices pinned, so that it opens as a link does. A price book is
stored only by name. `StoreError`: the store cannot be used. `ScenarioError`: a wrong request.
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
    """Save a scenario under a name; raises `ScenarioError` if it is taken and not replaceable."""
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
    """The saved scenarios of one owner, last changed first."""
    return saved_scenarios(open_store(), owner=owner)


def matching(found: Sequence[SavedScenario], search: str) -> list[SavedScenario]:
    """The scenarios with every word of a search in their name or model, ignoring case."""
    words = tidy(search).casefold().split()
    return [s for s in found if all(w in f"{s.name} {model_of(s)}".casefold() for w in words)]


def named(name: str, *, owner: str) -> SavedScenario:
    """The scenario with a name; if there is none, `ScenarioError` suggests a similar name."""
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
    """Delete a scenario and return it, so that `bring_back` can undo the deletion."""
    found = named(name, owner=owner)
    forget_scenario(open_store(), owner=owner, name=found.name)
    return found


def bring_back(deleted: SavedScenario) -> None:
    """Undo a `delete`, including the short link; `ScenarioError` if the name is now taken."""
    restore_scenario(open_store(), deleted)


def query_of(saved: SavedScenario) -> dict[str, str]:
    """The saved scenario as the fields of a link."""
    pairs = parse_qsl(saved.query.removeprefix("?"), keep_blank_values=True)
    return {name: value for name, value in pairs if name != SHORT}


def model_of(saved: SavedScenario) -> str:
    """The model of a saved scenario; the default model if it names none."""
    return query_of(saved).get("model", str(Scenario.model_fields["model"].default))


def opened(saved: SavedScenario) -> tuple[Scenario, list[str]]:
    """The scenario as its link would open it now, and notes on what had to be changed."""
    query = {name: [value] for name, value in query_of(saved).items()}
    return parse(query, resolve.resolve, resolve.current_prices())


def expanded(query: Query) -> tuple[Query, list[str]]:
    """A query with its short link expanded; the other fields of the query override it.

    An unknown short link gives a sentence, and the rest of the query is used.
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
    """The short link of a saved scenario, to copy.

    >>> from datetime import datetime
    >>> some = SavedScenario(id="a" * 16, owner="local", name="70b", query="v=1", snapshot_id="",
    ...     created_at=datetime.min, updated_at=datetime.min)
    >>> short_address(some, "http://localhost:8501/options?v=1")
    'http://localhost:8501/options/?s=aaaaaaaaaaaaaaaa'
    """
    base = (page_url or "").partition("?")[0].rstrip("/")
    return f"{base}/?{SHORT}={saved.id}"


def tidy(name: str) -> str:
    """A name as it is stored: composed Unicode letters, no surrounding spaces."""
    return unicodedata.normalize("NFC", name).strip()
