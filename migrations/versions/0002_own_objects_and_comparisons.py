"""Own models and accelerators, what a revision used of them, and comparisons."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Go one revision forward."""
    op.create_table(
        "own_objects",
        sa.Column("workspace", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("workspace", "kind", "id", name="pk_own_objects"),
    )
    op.create_table(
        "comparisons",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("workspace", sa.String(64), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("asked", sa.JSON(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_comparisons"),
    )
    op.create_index("ix_comparisons_workspace_id", "comparisons", ["workspace", "id"])
    # A default for the rows that exist; the service always writes the column.
    with op.batch_alter_table("scenario_revisions") as batch:
        batch.add_column(sa.Column("own", sa.JSON(), nullable=False, server_default="{}"))


def downgrade() -> None:
    """Go one revision back."""
    with op.batch_alter_table("scenario_revisions") as batch:
        batch.drop_column("own")
    op.drop_table("comparisons")
    op.drop_table("own_objects")
