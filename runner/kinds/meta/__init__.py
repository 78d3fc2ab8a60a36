"""Judging debates: retrieval-augmented debating, sub-task 2."""
