"""Leaderboards: who ranks where, how sure that is, and the files to publish it in."""
