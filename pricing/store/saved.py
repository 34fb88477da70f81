"""Scenarios that people saved, and the index of calibrations.

Every question about a scenario names its owner: one person never reads another's. What a scenario
holds is the query of its link, so it opens as a link does, and own prices are not in it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from sqlalchemy import select

from core.errors import ScenarioError
from pricing.store.engine import Store
from pricing.store.models import CalibrationRow, ScenarioRow, table_of

_SCENARIOS = table_of(ScenarioRow)
_CALIBRATIONS = table_of(CalibrationRow)
NAME_MAX = 200
QUERY_MAX = 20_000
SCENARIOS_MAX = 1_000  # of one owner


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedScenario:
    """A scenario under a name of its owner."""

    owner: str
    name: str
    query: str
    snapshot_id: str  # '' where it computes with the prices of the day
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Where the result of a calibration lies, and what it was measured on."""

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
) -> SavedScenario:
    """Keep a scenario under a name; one of that name is replaced."""
    at = datetime.now(UTC) if now is None else now
    for what, text, most in (("name", name, NAME_MAX), ("owner", owner, NAME_MAX)):
        if not text.strip() or len(text) > most or not text.isprintable():
            raise ScenarioError(f"The {what} of a scenario has 1 to {most} printable characters.")
    if len(query) > QUERY_MAX:
        raise ScenarioError(f"The scenario has {len(query)} characters, more than {QUERY_MAX}.")
    which = (_SCENARIOS.c.owner == owner, _SCENARIOS.c.name == name)
    with store.writing() as connection:
        before = connection.execute(select(_SCENARIOS.c.created_at).where(*which)).scalar()
        of_owner = select(_SCENARIOS.c.name).where(_SCENARIOS.c.owner == owner)
        if before is None and len(connection.execute(of_owner).all()) >= SCENARIOS_MAX:
            raise ScenarioError(f"There are {SCENARIOS_MAX} saved scenarios: forget one first.")
        kept = SavedScenario(
            owner=owner,
            name=name,
            query=query,
            snapshot_id=snapshot_id,
            created_at=before or at,
            updated_at=at,
        )
        connection.execute(_SCENARIOS.delete().where(*which))
        connection.execute(_SCENARIOS.insert(), asdict(kept))
    return kept


def saved_scenarios(store: Store, *, owner: str) -> list[SavedScenario]:
    """The scenarios of one owner, the last changed first."""
    wanted = (
        select(_SCENARIOS)
        .where(_SCENARIOS.c.owner == owner)
        .order_by(_SCENARIOS.c.updated_at.desc(), _SCENARIOS.c.name)
    )
    with store.reading() as connection:
        return [SavedScenario(**row._mapping) for row in connection.execute(wanted)]


def forget_scenario(store: Store, *, owner: str, name: str) -> bool:
    """Delete a scenario; whether there was one."""
    with store.writing() as connection:
        done = connection.execute(
            _SCENARIOS.delete().where(_SCENARIOS.c.owner == owner, _SCENARIOS.c.name == name)
        )
    return done.rowcount == 1


def index_calibration(store: Store, calibration: Calibration) -> None:
    """Remember where a calibration lies; the same file twice is one."""
    with store.writing() as connection:
        connection.execute(_CALIBRATIONS.delete().where(_CALIBRATIONS.c.id == calibration.id))
        connection.execute(_CALIBRATIONS.insert(), asdict(calibration))


def forget_calibration(store: Store, name: str) -> None:
    """Take a calibration out of the index; its file is the caller's."""
    with store.writing() as connection:
        connection.execute(_CALIBRATIONS.delete().where(_CALIBRATIONS.c.id == name))


def calibrations(store: Store, *, accelerator: str | None = None) -> list[Calibration]:
    """What was calibrated, the newest first."""
    wanted = select(_CALIBRATIONS).order_by(_CALIBRATIONS.c.measured_at.desc(), _CALIBRATIONS.c.id)
    if accelerator is not None:
        wanted = wanted.where(_CALIBRATIONS.c.accelerator == accelerator)
    with store.reading() as connection:
        return [Calibration(**row._mapping) for row in connection.execute(wanted)]
