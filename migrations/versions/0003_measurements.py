"""Measurements of a workspace's own, and the calibration they give it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Go one revision forward."""
    op.create_table(
        "measurements",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("workspace", sa.String(64), nullable=False),
        sa.Column("format", sa.String(40), nullable=False),
        sa.Column("runs", sa.JSON(), nullable=False),
        sa.Column("notes", sa.JSON(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_measurements"),
    )
    op.create_index("ix_measurements_workspace_id", "measurements", ["workspace", "id"])
    op.create_table(
        "calibrations",
        sa.Column("workspace", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", name="pk_calibrations"),
    )


def downgrade() -> None:
    """Go one revision back."""
    op.drop_table("calibrations")
    op.drop_table("measurements")
