"""Run by alembic: migrate over the connection that :mod:`runner.store.connect` hands in."""

from alembic import context

from runner.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
