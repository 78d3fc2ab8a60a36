"""Records that a JSON Schema describes, joined with the truths by their ids, and measured by named measures."""
