"""Ranked arguments, relevant and diverse."""
