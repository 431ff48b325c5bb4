"""Long work as jobs, and the pieces of their results."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Go one revision forward."""
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("workspace", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("media_type", sa.String(60), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("cancelled", sa.Boolean(), nullable=False),
        sa.Column("holder", sa.String(36), nullable=False),
        sa.Column("error", sa.JSON(), nullable=True),
        sa.Column("result_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("heard_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("expires_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_index("ix_jobs_workspace_id", "jobs", ["workspace", "id"])
    op.create_index("ix_jobs_state_id", "jobs", ["state", "id"])
    op.create_table(
        "job_pieces",
        sa.Column("job_id", sa.String(36), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "number", name="pk_job_pieces"),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], ondelete="CASCADE", name="fk_job_pieces_job_id"
        ),
    )


def downgrade() -> None:
    """Go one revision back; the queue on Postgres names jobs that are gone then."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP SCHEMA IF EXISTS planner_queue CASCADE")
    op.drop_table("job_pieces")
    op.drop_table("jobs")
