"""A short id for every saved scenario, used in its short link."""

import base64
import secrets

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, give every row an id, and make it unique and required."""
    op.add_column("saved_scenarios", sa.Column("id", sa.String(16), nullable=True))
    table = sa.table("saved_scenarios", sa.column("owner"), sa.column("name"), sa.column("id"))
    connection = op.get_bind()
    for owner, name in connection.execute(sa.select(table.c.owner, table.c.name)).all():
        made = base64.b32encode(secrets.token_bytes(10)).decode().lower()
        which = (table.c.owner == owner, table.c.name == name)
        connection.execute(table.update().where(*which).values(id=made))
    with op.batch_alter_table("saved_scenarios") as changed:
        changed.alter_column("id", existing_type=sa.String(16), nullable=False)
    op.create_index("ix_saved_scenarios_id", "saved_scenarios", ["id"], unique=True)
