"""What became of everything that was imported by lines: imports can be resumed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go one revision forward."""
    op.create_table(
        "imported",
        sa.Column("workspace", sa.String(64), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("exported_id", sa.String(64), nullable=False),
        sa.Column("new_id", sa.String(36), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "name", "exported_id", name="pk_imported"),
    )
    op.create_index("ix_imported_created_at", "imported", ["created_at"])


def downgrade() -> None:
    """Go one revision back."""
    op.drop_table("imported")
