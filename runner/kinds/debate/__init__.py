"""Debates: retrieval-augmented debating, sub-task 1."""
