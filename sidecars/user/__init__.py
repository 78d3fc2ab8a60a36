"""Simulated users: they state a claim, and attack what a software answers, turn after turn.

``python -m sidecars.user serve`` speaks the wire format of the official service of Retrieval-Augmented Debating 2025:
``POST /user-sim/api/chat``, where ``assistant`` is the simulated user and ``user`` the software. Nothing is remembered
between requests. One speaker is deterministic and offline; the other asks a language model. Both choose what they
attack and what they retrieve in the same way; docs/reference/simulated-user.md says how.
"""
