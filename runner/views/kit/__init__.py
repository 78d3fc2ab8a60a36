"""The kit of a task: what participants get in one archive, with nothing that is hidden in it."""
