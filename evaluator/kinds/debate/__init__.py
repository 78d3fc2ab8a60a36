"""Debates of a simulated user with a software."""
