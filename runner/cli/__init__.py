"""The command line: its root, what commands share, and how things are printed."""
