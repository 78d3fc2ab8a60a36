"""Submissions that are for some datasets and scenarios only, and those that were uploaded."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the two columns; the rows are filled anew from the event log afterwards."""
    op.add_column("submissions", sa.Column("workflow", sa.Text(), server_default="batch", nullable=False))
    op.add_column("submissions", sa.Column("cells", sa.Text(), nullable=True))


def downgrade() -> None:
    """Never: the store is derived, an older program rebuilds it."""
    raise NotImplementedError
