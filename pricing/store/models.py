"""Tables of the store. pricing/store/migrations creates them; a test compares the two.

An observation is an event: a row is written when a price changes or a machine disappears, not for
every refresh. `source_runs`, with one row per source and refresh, records that prices were
unchanged. So a year of refreshes every six hours takes 1,460 rows per source, and a price history
only its changes.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

SEEN, GONE, UNKNOWN = "seen", "gone", "unknown"


class UtcTime(TypeDecorator[datetime]):
    """An aware time in Python, UTC in both databases (SQLite keeps no zone)."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        at = value.astimezone(UTC)
        return at.replace(tzinfo=None) if dialect.name == "sqlite" else at

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """All tables of the store."""


class LeaseRow(Base):
    """The process that may write a refresh. The token only rises: an old one writes nothing."""

    __tablename__ = "leases"

    name: Mapped[str] = mapped_column(String(40), primary_key=True)
    token: Mapped[int] = mapped_column(BigInteger)
    holder: Mapped[str] = mapped_column(Text)
    expires_at: Mapped[datetime] = mapped_column(UtcTime)


class RunRow(Base):
    """One refresh."""

    __tablename__ = "refresh_runs"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    token: Mapped[int] = mapped_column(BigInteger)
    began_at: Mapped[datetime] = mapped_column(UtcTime)
    ended_at: Mapped[datetime] = mapped_column(UtcTime)
    outcome: Mapped[str] = mapped_column(String(20))  # refreshed, in part, failed, recovered
    published: Mapped[bool]
    snapshot_id: Mapped[str] = mapped_column(String(12))  # the snapshot in use afterwards
    offers: Mapped[int]
    seconds: Mapped[float]
    host: Mapped[str] = mapped_column(Text)


class SourceRunRow(Base):
    """The result of one source in one refresh: the heartbeat of its prices."""

    __tablename__ = "source_runs"
    __table_args__ = (Index("ix_source_runs_source", "source", "run_id"),)

    run_id: Mapped[int] = mapped_column(ForeignKey("refresh_runs.id"), primary_key=True)
    source: Mapped[str] = mapped_column(String(80), primary_key=True)
    status: Mapped[str] = mapped_column(String(20))  # refreshed, in part, failed
    at: Mapped[datetime] = mapped_column(UtcTime)
    rows: Mapped[int]
    new: Mapped[int]
    changed: Mapped[int]
    gone: Mapped[int]
    quarantined: Mapped[int]
    seconds: Mapped[float]
    megabytes: Mapped[float]
    sentence: Mapped[str] = mapped_column(Text)


class SeriesRow(Base):
    """One machine at one place as one source prints it, and its latest price."""

    __tablename__ = "series"
    __table_args__ = (
        UniqueConstraint(
            "provider", "instance_type", "accelerator", "gpu_count", "region", "purchase", "source"
        ),
        Index(
            "ix_series_cheapest", "accelerator", "purchase", "state", "usd_per_gpu_hour", "source"
        ),
        Index("ix_series_source", "source"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    provider: Mapped[str] = mapped_column(Text)
    instance_type: Mapped[str] = mapped_column(Text)
    accelerator: Mapped[str] = mapped_column(Text)
    gpu_count: Mapped[int]
    region: Mapped[str] = mapped_column(Text)
    purchase: Mapped[str] = mapped_column(String(20))
    source: Mapped[str] = mapped_column(String(80))
    ref: Mapped[str] = mapped_column(Text)  # as named in the rows of the source
    state: Mapped[str] = mapped_column(String(10))
    usd_per_hour: Mapped[float | None]  # when it was last seen
    usd_per_gpu_hour: Mapped[float | None]


class ObservationRow(Base):
    """A change of one series: another price, or none."""

    __tablename__ = "observations"
    __table_args__ = (
        CheckConstraint("state IN ('seen', 'gone', 'unknown')", name="ck_observations_state"),
        CheckConstraint(
            "(state = 'seen') = (usd_per_hour IS NOT NULL)", name="ck_observations_price"
        ),
        Index("ix_observations_run", "run_id"),
        {"sqlite_with_rowid": False},  # stored in the order of the key: a series is one read
    )

    series_id: Mapped[int] = mapped_column(ForeignKey("series.id"), primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("refresh_runs.id"), primary_key=True)
    state: Mapped[str] = mapped_column(String(10))
    usd_per_hour: Mapped[float | None]
    observed_at: Mapped[str] = mapped_column(String(10))  # as its source dates it


class HeldRow(Base):
    """A quarantined row. `closed_run` is the first refresh that no longer held it back."""

    __tablename__ = "quarantine"
    __table_args__ = (Index("ix_quarantine_open", "closed_run", "source"),)

    key: Mapped[str] = mapped_column(String(12), primary_key=True)
    first_run: Mapped[int] = mapped_column(ForeignKey("refresh_runs.id"), primary_key=True)
    closed_run: Mapped[int | None] = mapped_column(ForeignKey("refresh_runs.id"))
    source: Mapped[str] = mapped_column(String(80))
    rule: Mapped[str] = mapped_column(String(20))
    sentence: Mapped[str] = mapped_column(Text)
    usd_per_hour: Mapped[float | None]
    provider: Mapped[str] = mapped_column(Text)
    instance_type: Mapped[str] = mapped_column(Text)
    accelerator: Mapped[str] = mapped_column(Text)
    gpu_count: Mapped[int]  # 0: the row could not be read as an offer
    region: Mapped[str] = mapped_column(Text)
    purchase: Mapped[str] = mapped_column(String(20))


class ReleaseRow(Base):
    """A release by a person: prices close to it are published."""

    __tablename__ = "releases"

    key: Mapped[str] = mapped_column(String(12), primary_key=True)
    source: Mapped[str] = mapped_column(String(80))
    provider: Mapped[str] = mapped_column(Text)
    instance_type: Mapped[str] = mapped_column(Text)
    accelerator: Mapped[str] = mapped_column(Text)
    gpu_count: Mapped[int]
    region: Mapped[str] = mapped_column(Text)
    purchase: Mapped[str] = mapped_column(String(20))
    usd_per_hour: Mapped[float]
    released_at: Mapped[datetime] = mapped_column(UtcTime)
    released_by: Mapped[str] = mapped_column(Text)
    why: Mapped[str] = mapped_column(Text)


class ScenarioRow(Base):
    """A scenario that a user saved: the query of its link, without own prices."""

    __tablename__ = "saved_scenarios"
    __table_args__ = (Index("ix_saved_scenarios_id", "id", unique=True),)

    owner: Mapped[str] = mapped_column(String(200), primary_key=True)
    name: Mapped[str] = mapped_column(String(200), primary_key=True)
    id: Mapped[str] = mapped_column(String(16))  # of its short link
    query: Mapped[str] = mapped_column(Text)
    snapshot_id: Mapped[str] = mapped_column(String(12))
    created_at: Mapped[datetime] = mapped_column(UtcTime)
    updated_at: Mapped[datetime] = mapped_column(UtcTime)


class CalibrationRow(Base):
    """Path of the result of a calibration, and what it was measured on."""

    __tablename__ = "calibrations"
    __table_args__ = (Index("ix_calibrations_accelerator", "accelerator", "measured_at"),)

    id: Mapped[str] = mapped_column(String(64), primary_key=True)  # hash of its file
    accelerator: Mapped[str] = mapped_column(Text)
    num_gpus: Mapped[int]
    machine: Mapped[str] = mapped_column(Text)
    stack: Mapped[str] = mapped_column(Text)
    measured_at: Mapped[datetime] = mapped_column(UtcTime)
    path: Mapped[str] = mapped_column(Text)
    note: Mapped[str] = mapped_column(Text)


def table_of(model: type[Base]) -> Table:
    """The table of a model: the store uses statements, not objects."""
    return cast(Table, model.__table__)
