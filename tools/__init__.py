"""Programs for work on the project itself; they are not installed."""
