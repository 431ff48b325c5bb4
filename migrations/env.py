"""Run migrations on the connection that `api.store.migrate` hands over."""

from __future__ import annotations

from alembic import context

from api.store.tables import Base

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    render_as_batch=connection.dialect.name == "sqlite",
    transactional_ddl=True,
    compare_type=True,
)
context.run_migrations()
