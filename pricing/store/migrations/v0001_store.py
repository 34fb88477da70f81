"""The first tables: runs, series, observations, quarantine, releases, scenarios, calibrations."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def text(name: str, length: int | None = None) -> "sa.Column[str]":
    return sa.Column(name, sa.String(length) if length else sa.Text(), nullable=False)


def count(name: str) -> "sa.Column[int]":
    return sa.Column(name, sa.Integer(), nullable=False)


def number(name: str, *, nullable: bool = False) -> "sa.Column[float]":
    return sa.Column(name, sa.Double(), nullable=nullable)


def time(name: str) -> "sa.Column[object]":
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def key(name: str) -> "sa.Column[int]":
    """A primary key that the writer chooses."""
    return sa.Column(name, sa.Integer(), autoincrement=False, nullable=False)


def sku() -> "list[sa.Column[Any]]":
    """Columns of the SKU of a price."""
    return [
        text("provider"),
        text("instance_type"),
        text("accelerator"),
        count("gpu_count"),
        text("region"),
        text("purchase", 20),
    ]


def upgrade() -> None:
    """Create every table."""
    op.create_table(
        "leases",
        text("name", 40),
        sa.Column("token", sa.BigInteger(), nullable=False),
        text("holder"),
        time("expires_at"),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "refresh_runs",
        key("id"),
        sa.Column("token", sa.BigInteger(), nullable=False),
        time("began_at"),
        time("ended_at"),
        text("outcome", 20),
        sa.Column("published", sa.Boolean(), nullable=False),
        text("snapshot_id", 12),
        count("offers"),
        number("seconds"),
        text("host"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "source_runs",
        key("run_id"),
        text("source", 80),
        text("status", 20),
        time("at"),
        count("rows"),
        count("new"),
        count("changed"),
        count("gone"),
        count("quarantined"),
        number("seconds"),
        number("megabytes"),
        text("sentence"),
        sa.ForeignKeyConstraint(["run_id"], ["refresh_runs.id"]),
        sa.PrimaryKeyConstraint("run_id", "source"),
    )
    op.create_index("ix_source_runs_source", "source_runs", ["source", "run_id"])
    op.create_table(
        "series",
        key("id"),
        *sku(),
        text("source", 80),
        text("ref"),
        text("state", 10),
        number("usd_per_hour", nullable=True),
        number("usd_per_gpu_hour", nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint(*(c.name for c in sku()), "source"),
    )
    op.create_index(
        "ix_series_cheapest",
        "series",
        ["accelerator", "purchase", "state", "usd_per_gpu_hour", "source"],
    )
    op.create_index("ix_series_source", "series", ["source"])
    op.create_table(
        "observations",
        key("series_id"),
        key("run_id"),
        text("state", 10),
        number("usd_per_hour", nullable=True),
        text("observed_at", 10),
        sa.CheckConstraint("state IN ('seen', 'gone', 'unknown')", name="ck_observations_state"),
        sa.CheckConstraint(
            "(state = 'seen') = (usd_per_hour IS NOT NULL)", name="ck_observations_price"
        ),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"]),
        sa.ForeignKeyConstraint(["run_id"], ["refresh_runs.id"]),
        sa.PrimaryKeyConstraint("series_id", "run_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_observations_run", "observations", ["run_id"])
    op.create_table(
        "quarantine",
        text("key", 12),
        key("first_run"),
        sa.Column("closed_run", sa.Integer(), nullable=True),
        text("source", 80),
        text("rule", 20),
        text("sentence"),
        number("usd_per_hour", nullable=True),
        *sku(),
        sa.ForeignKeyConstraint(["first_run"], ["refresh_runs.id"]),
        sa.ForeignKeyConstraint(["closed_run"], ["refresh_runs.id"]),
        sa.PrimaryKeyConstraint("key", "first_run"),
    )
    op.create_index("ix_quarantine_open", "quarantine", ["closed_run", "source"])
    op.create_table(
        "releases",
        text("key", 12),
        text("source", 80),
        *sku(),
        number("usd_per_hour"),
        time("released_at"),
        text("released_by"),
        text("why"),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "saved_scenarios",
        text("owner", 200),
        text("name", 200),
        text("query"),
        text("snapshot_id", 12),
        time("created_at"),
        time("updated_at"),
        sa.PrimaryKeyConstraint("owner", "name"),
    )
    op.create_table(
        "calibrations",
        text("id", 64),
        text("accelerator"),
        count("num_gpus"),
        text("machine"),
        text("stack"),
        time("measured_at"),
        text("path"),
        text("note"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_calibrations_accelerator", "calibrations", ["accelerator", "measured_at"])
