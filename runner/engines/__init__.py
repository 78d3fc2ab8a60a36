"""Where containers run: one interface, Docker Engine behind it, a scripted one for tests."""
