"""Trials: a software, an upload or a task on the public data, in the graded sandbox; nothing is recorded."""
