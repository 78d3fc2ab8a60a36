"""Who judged, notes, and measures that have no value yet."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two columns and a table; the rows are filled anew from the event log afterwards."""
    op.add_column("evaluations", sa.Column("judge", sa.Text(), nullable=True))
    op.add_column("evaluations", sa.Column("notes", sa.Text(), server_default="[]", nullable=False))
    op.create_table(
        "pending",
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("evaluation", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("measure", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run", "attempt", "evaluation"],
            ["evaluations.run", "evaluations.attempt", "evaluations.number"],
        ),
        sa.PrimaryKeyConstraint("run", "attempt", "evaluation", "measure"),
    )


def downgrade() -> None:
    """Never: the store is derived, an older program rebuilds it."""
    raise NotImplementedError
