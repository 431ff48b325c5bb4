"""Scenarios with their revisions, API keys and idempotency keys."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Go one revision forward."""
    op.create_table(
        "scenarios",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("workspace", sa.String(64), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("model", sa.String(200), nullable=False),
        sa.Column("gpu", sa.String(200), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("deleted_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_scenarios"),
    )
    op.create_index("ix_scenarios_workspace_id", "scenarios", ["workspace", "id"])
    op.create_index("ix_scenarios_model", "scenarios", ["model"])
    op.create_index("ix_scenarios_gpu", "scenarios", ["gpu"])
    op.create_table(
        "scenario_revisions",
        sa.Column("scenario_id", sa.String(36), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("action", sa.String(16), nullable=False),
        sa.Column("question", sa.JSON(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("editions", sa.JSON(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("scenario_id", "revision", name="pk_scenario_revisions"),
        sa.ForeignKeyConstraint(
            ["scenario_id"],
            ["scenarios.id"],
            ondelete="CASCADE",
            name="fk_scenario_revisions_scenario_id",
        ),
    )
    op.create_table(
        "scenario_tags",
        sa.Column("scenario_id", sa.String(36), nullable=False),
        sa.Column("tag", sa.String(200), nullable=False),
        sa.PrimaryKeyConstraint("scenario_id", "tag", name="pk_scenario_tags"),
        sa.ForeignKeyConstraint(
            ["scenario_id"],
            ["scenarios.id"],
            ondelete="CASCADE",
            name="fk_scenario_tags_scenario_id",
        ),
    )
    op.create_index("ix_scenario_tags_tag", "scenario_tags", ["tag"])
    op.create_table(
        "idempotency_keys",
        sa.Column("workspace", sa.String(64), nullable=False),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("headers", sa.JSON(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("workspace", "key", name="pk_idempotency_keys"),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("workspace", sa.String(64), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("scope", sa.String(8), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("hash", name="uq_api_keys_hash"),
    )


def downgrade() -> None:
    """Go one revision back."""
    for table in ("api_keys", "idempotency_keys", "scenario_tags", "scenario_revisions"):
        op.drop_table(table)
    op.drop_table("scenarios")
