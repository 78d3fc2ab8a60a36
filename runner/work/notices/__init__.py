"""Whoever wants it is told: by a web hook or by mail, when a run is done or held, or a deadline is near."""
