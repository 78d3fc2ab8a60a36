"""The steps from one shape of the store to the next, run when a store is opened.

``HEAD`` is the newest step; it is written here too so that a store that is up to date opens without alembic.
"""

HEAD = "0007"
