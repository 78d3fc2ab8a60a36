"""Records that a JSON Schema describes."""

from __future__ import annotations

from runner.kinds.records.outputs import outputs
from runner.kinds.records.presenter import read
from runner.kinds.records.skeleton import files
from runner.model.kinds import KindSpec

SPEC = KindSpec(presenter=read, outputs=outputs, skeleton=files)
