"""Runs on hosts of a cluster: what travels, who carries it, and what a host does with it."""
