"""Ranked arguments, relevant and diverse: Perspective Argument Retrieval."""
