"""Saved scenarios, and the index of calibrations.

Every query names the owner: nobody lists or changes the scenarios of another user. The id alone
opens a scenario for reading: that is a short link. A scenario is stored as the query of its link,
without own prices.
"""

from __future__ import annotations

import base64
import secrets
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Connection, func, select

from core.errors import ScenarioError, shown
from pricing.store.engine import Store
from pricing.store.models import CalibrationRow, ScenarioRow, table_of

_SCENARIOS = table_of(ScenarioRow)
_CALIBRATIONS = table_of(CalibrationRow)
NAME_MAX = 200
QUERY_MAX = 20_000
SCENARIOS_MAX = 1_000  # of one owner
_JOINERS = ("\N{ZERO WIDTH NON-JOINER}", "\N{ZERO WIDTH JOINER}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedScenario:
    """A scenario under a name that its owner gave."""

    id: str  # of its short link
    owner: str
    name: str
    query: str
    snapshot_id: str  # '' to compute with the prices of the day
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Path of the result of a calibration, and what it was measured on."""

    id: str  # hash of its file
    accelerator: str
    num_gpus: int
    machine: str
    stack: str
    measured_at: datetime
    path: str
    note: str = ""


def save_scenario(
    store: Store,
    *,
    owner: str,
    name: str,
    query: str,
    snapshot_id: str = "",
    now: datetime | None = None,
    replace: bool = True,
) -> SavedScenario:
    """Save a scenario under a name; an existing one is replaced and keeps its id.

    With `replace` false, a name that is taken is a `ScenarioError`.
    """
    at = datetime.now(UTC) if now is None else now
    _check(owner, name, query)
    with store.writing() as connection:
        _wait_for_others(store, connection, owner)
        before = connection.execute(select(_SCENARIOS).where(*_key(owner, name))).first()
        if before is not None and not replace:
            raise _taken(name)
        kept = SavedScenario(
            id=before.id if before else new_id(),
            owner=owner,
            name=name,
            query=query,
            snapshot_id=snapshot_id,
            created_at=before.created_at if before else at,
            updated_at=at,
        )
        _put(connection, kept)
    return kept


def restore_scenario(store: Store, scenario: SavedScenario) -> None:
    """Restore a deleted scenario under its id; `ScenarioError` if its name has been taken."""
    with store.writing() as connection:
        _wait_for_others(store, connection, scenario.owner)
        taken = select(_SCENARIOS.c.id).where(*_key(scenario.owner, scenario.name))
        if connection.execute(taken).first():
            raise _taken(scenario.name)
        _put(connection, scenario)


def rename_scenario(
    store: Store, *, owner: str, name: str, to: str, now: datetime | None = None
) -> SavedScenario:
    """Rename a scenario; its id and short link stay."""
    at = datetime.now(UTC) if now is None else now
    _check(owner, to, "")
    with store.writing() as connection:
        _wait_for_others(store, connection, owner)
        found = connection.execute(select(_SCENARIOS).where(*_key(owner, name))).first()
        if found is None:
            raise ScenarioError(f"There is no saved scenario {shown(name)}.")
        if to != name and connection.execute(select(_SCENARIOS).where(*_key(owner, to))).first():
            raise _taken(to)
        values = {"name": to, "updated_at": at}
        connection.execute(_SCENARIOS.update().where(*_key(owner, name)).values(values))
    return SavedScenario(**{**found._mapping, **values})


def saved_scenarios(store: Store, *, owner: str) -> list[SavedScenario]:
    """The scenarios of one owner, last changed first."""
    wanted = (
        select(_SCENARIOS)
        .where(_SCENARIOS.c.owner == owner)
        .order_by(_SCENARIOS.c.updated_at.desc(), _SCENARIOS.c.name)
    )
    with store.reading() as connection:
        return [SavedScenario(**row._mapping) for row in connection.execute(wanted)]


def scenario_of_id(store: Store, id: str) -> SavedScenario | None:
    """The scenario of a short link, for any user; None if there is none."""
    with store.reading() as connection:
        found = connection.execute(select(_SCENARIOS).where(_SCENARIOS.c.id == id)).first()
    return None if found is None else SavedScenario(**found._mapping)


def forget_scenario(store: Store, *, owner: str, name: str) -> bool:
    """Delete a scenario; returns whether there was one."""
    with store.writing() as connection:
        done = connection.execute(_SCENARIOS.delete().where(*_key(owner, name)))
    return done.rowcount == 1


def new_id() -> str:
    """80 random bits as 16 letters and digits, which cannot be guessed."""
    return base64.b32encode(secrets.token_bytes(10)).decode().lower()


def _key(owner: str, name: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return _SCENARIOS.c.owner == owner, _SCENARIOS.c.name == name


def _put(connection: Connection, scenario: SavedScenario) -> None:
    """Write one row, replacing the one of its name, within the limit per owner."""
    connection.execute(_SCENARIOS.delete().where(*_key(scenario.owner, scenario.name)))
    of_owner = select(func.count()).where(_SCENARIOS.c.owner == scenario.owner)
    if connection.execute(of_owner).scalar_one() >= SCENARIOS_MAX:
        raise ScenarioError(f"There are {SCENARIOS_MAX:,} saved scenarios: delete one first.")
    connection.execute(_SCENARIOS.insert(), asdict(scenario))


def _wait_for_others(store: Store, connection: Connection, owner: str) -> None:
    """Allow one writer per owner at a time: SQLite has only one, PostgreSQL takes a lock."""
    if store.is_shared:
        lock = select(func.pg_advisory_xact_lock(func.hashtext("runcast scenarios " + owner)))
        connection.execute(lock)


def _check(owner: str, name: str, query: str) -> None:
    for what, text, most in (("name", name, NAME_MAX), ("owner", owner, NAME_MAX)):
        if not text.strip() or len(text) > most or not _is_printable(text):
            raise ScenarioError(f"The {what} of a scenario has 1 to {most} printable characters.")
    if len(query) > QUERY_MAX:
        raise ScenarioError(f"The scenario has {len(query)} characters, more than {QUERY_MAX}.")


def _is_printable(text: str) -> bool:
    """Without control characters; Persian and emoji need the two joiners."""
    return text.replace(_JOINERS[0], "").replace(_JOINERS[1], "").isprintable()


def _taken(name: str) -> ScenarioError:
    return ScenarioError(
        f"There is already a saved scenario {shown(name)}: replace it, or take another name."
    )


def index_calibration(store: Store, calibration: Calibration) -> None:
    """Add a calibration to the index, once per file."""
    with store.writing() as connection:
        connection.execute(_CALIBRATIONS.delete().where(_CALIBRATIONS.c.id == calibration.id))
        connection.execute(_CALIBRATIONS.insert(), asdict(calibration))


def forget_calibration(store: Store, name: str) -> None:
    """Remove a calibration from the index; the caller deletes its file."""
    with store.writing() as connection:
        connection.execute(_CALIBRATIONS.delete().where(_CALIBRATIONS.c.id == name))


def calibrations(store: Store, *, accelerator: str | None = None) -> list[Calibration]:
    """All calibrations, the newest first."""
    wanted = select(_CALIBRATIONS).order_by(_CALIBRATIONS.c.measured_at.desc(), _CALIBRATIONS.c.id)
    if accelerator is not None:
        wanted = wanted.where(_CALIBRATIONS.c.accelerator == accelerator)
    with store.reading() as connection:
        return [Calibration(**row._mapping) for row in connection.execute(wanted)]
