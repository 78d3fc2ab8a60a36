"""Fixtures of this folder."""

from __future__ import annotations

from tests.worlds.command_line import cli

__all__ = ["cli"]
