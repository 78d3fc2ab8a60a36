"""Attempts that the organiser has opened to their teams."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table; its rows come from the event log."""
    op.create_table(
        "releases",
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["run", "attempt"], ["attempts.run", "attempts.number"]),
        sa.PrimaryKeyConstraint("run", "attempt"),
    )


def downgrade() -> None:
    """Never: the store is derived, an older program rebuilds it."""
    raise NotImplementedError
