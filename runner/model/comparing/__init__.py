"""Runs beside each other as pure figures, for commands and for the front: by topic, and by what they retrieved."""
