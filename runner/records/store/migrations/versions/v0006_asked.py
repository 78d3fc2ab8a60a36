"""By which definitions an evaluation was made, and whose fault it is when it failed."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two columns; the rows are filled anew from the event log afterwards."""
    op.add_column("evaluations", sa.Column("asked", sa.Text(), nullable=True))
    op.add_column("evaluations", sa.Column("fault", sa.Text(), server_default="", nullable=False))


def downgrade() -> None:
    """Never: the store is derived, an older program rebuilds it."""
    raise NotImplementedError
