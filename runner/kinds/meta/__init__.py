"""Judging debates: retrieval-augmented debating, sub-task 2."""

from __future__ import annotations

from runner.kinds.debate.importer import import_judging
from runner.kinds.meta.presenter import read
from runner.kinds.meta.skeleton import files
from runner.model.kinds import KindSpec

SPEC = KindSpec(presenter=read, importer=import_judging, skeleton=files, annotation="inputs")
