"""Indexes that serve every filter of the list of scenarios in its order."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

DELETED = sa.text("deleted_at IS NOT NULL")


def upgrade() -> None:
    """Go one revision forward."""
    op.drop_index("ix_scenarios_model", "scenarios")
    op.drop_index("ix_scenarios_gpu", "scenarios")
    op.drop_index("ix_scenario_tags_tag", "scenario_tags")
    op.create_index("ix_scenarios_workspace_model_id", "scenarios", ["workspace", "model", "id"])
    op.create_index("ix_scenarios_workspace_gpu_id", "scenarios", ["workspace", "gpu", "id"])
    op.create_index(
        "ix_scenarios_deleted",
        "scenarios",
        ["workspace", "id"],
        sqlite_where=DELETED,
        postgresql_where=DELETED,
    )
    op.create_index("ix_scenario_tags_tag_scenario_id", "scenario_tags", ["tag", "scenario_id"])


def downgrade() -> None:
    """Go one revision back."""
    op.drop_index("ix_scenario_tags_tag_scenario_id", "scenario_tags")
    for name in ("deleted", "workspace_gpu_id", "workspace_model_id"):
        op.drop_index(f"ix_scenarios_{name}", "scenarios")
    op.create_index("ix_scenario_tags_tag", "scenario_tags", ["tag"])
    op.create_index("ix_scenarios_gpu", "scenarios", ["gpu"])
    op.create_index("ix_scenarios_model", "scenarios", ["model"])
