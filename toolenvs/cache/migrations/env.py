"""What Alembic runs for each upgrade: the revisions, on the connection that ``upgrade`` was given.

The transaction is the caller's, so that a killed upgrade leaves the database as it was; SQLite's
DDL takes part in it, which Alembic does not assume by itself.
"""

from __future__ import annotations

from alembic import context

from toolenvs.cache.schema import metadata, revisions

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=revisions.name,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
