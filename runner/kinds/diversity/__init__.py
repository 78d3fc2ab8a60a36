"""Ranked arguments, relevant and diverse."""

from __future__ import annotations

from runner.kinds.diversity.importer import import_release
from runner.kinds.diversity.skeleton import files
from runner.model.kinds import KindSpec

SPEC = KindSpec(importer=import_release, skeleton=files)
