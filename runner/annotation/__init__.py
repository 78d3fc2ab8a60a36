"""Judging by people: who judges what, their forms, and the files that come back."""
