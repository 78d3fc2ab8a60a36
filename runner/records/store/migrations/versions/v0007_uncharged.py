"""Whether a withdrawn submission got its place in the quota back though it had run."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column; the rows are filled anew from the event log afterwards."""
    op.add_column(
        "submissions", sa.Column("uncharged", sa.Boolean(), server_default=sa.false(), nullable=False)
    )


def downgrade() -> None:
    """Never: the store is derived, an older program rebuilds it."""
    raise NotImplementedError
