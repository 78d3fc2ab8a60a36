"""Imports debates to be judged, with their labels; see :mod:`runner.importers.rad`."""

from __future__ import annotations

from runner.importers.rad import import_judging as import_release

__all__ = ["import_release"]
