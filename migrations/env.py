"""Run migrations on the connection that `api.store.migrate` hands over."""

from __future__ import annotations

from alembic import context

from api.store.tables import Base

DERIVED = ("scenario_words", "scenario_numbers", "ix_scenarios_trigrams")
"""What makes text searchable, which differs between databases: revision 0008 has it."""

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    render_as_batch=connection.dialect.name == "sqlite",
    transactional_ddl=True,
    compare_type=True,
    include_name=lambda name, _kind, _parents: not (name or "").startswith(DERIVED),
)
context.run_migrations()
