"""Judging the judges: judgments of debates, and leaderboards."""
