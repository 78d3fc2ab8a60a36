"""Memory volumes: mounted by the engine or by the runner, lent to several sessions, filled and read."""
