"""Imports debates to be judged, with their labels; see :mod:`runner.kinds.debate.importer`."""

from __future__ import annotations

from runner.kinds.debate.importer import import_judging as import_release

__all__ = ["import_release"]
