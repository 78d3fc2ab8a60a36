"""Run by alembic: migrate over the connection that :mod:`runner.records.store.connect` hands in."""

from alembic import context

from runner.records.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
