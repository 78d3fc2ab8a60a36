"""Readers of what participants write: one module a format; findings instead of exceptions."""
