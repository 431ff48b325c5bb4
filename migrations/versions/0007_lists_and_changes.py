"""What lists sort and filter by, and who changed what."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

INDEXES = ("name", "updated_at", "engine", "computed_with")


def upgrade() -> None:
    """Go one revision forward."""
    # Not in a batch: SQLite would copy the table.
    op.add_column("scenarios", sa.Column("engine", sa.String(200), nullable=True))
    computed_with = sa.Column("computed_with", sa.String(400), nullable=False, server_default="")
    op.add_column("scenarios", computed_with)
    newest = (
        "(SELECT {} FROM scenario_revisions r "
        "WHERE r.scenario_id = scenarios.id AND r.revision = scenarios.revision)"
    )
    if op.get_bind().dialect.name == "sqlite":
        engine = "json_extract(r.question, '$.engine')"
        part = "coalesce(json_extract(r.editions, '$.{}'), '')"
    else:
        engine, part = "r.question ->> 'engine'", "coalesce(r.editions ->> '{}', '')"
    parts = " || ' ' || ".join(
        part.format(name) for name in ("models", "hardware", "calibration", "engines")
    )
    op.execute(
        f"UPDATE scenarios SET engine = {newest.format(engine)}, "  # noqa: S608 - constants alone
        f"computed_with = coalesce({newest.format(parts)}, '')"
    )
    for column in INDEXES:
        op.create_index(
            f"ix_scenarios_workspace_{column}_id", "scenarios", ["workspace", column, "id"]
        )
    op.create_table(
        "changes",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("workspace", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("object", sa.String(200), nullable=False),
        sa.Column("action", sa.String(16), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=True),
        sa.Column("key_id", sa.String(36), nullable=True),
        sa.Column("client", sa.String(64), nullable=True),
        sa.Column("request_id", sa.String(64), nullable=True),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_changes"),
    )
    op.create_index("ix_changes_workspace_id", "changes", ["workspace", "id"])
    op.create_index("ix_changes_workspace_object_id", "changes", ["workspace", "object", "id"])


def downgrade() -> None:
    """Go one revision back."""
    op.drop_table("changes")
    for column in INDEXES:
        op.drop_index(f"ix_scenarios_workspace_{column}_id", "scenarios")
    op.drop_column("scenarios", "computed_with")
    op.drop_column("scenarios", "engine")
