"""Records that a JSON Schema describes."""

from __future__ import annotations

from runner.kinds.records.collection import SOURCES, from_elsewhere
from runner.kinds.records.outputs import outputs
from runner.kinds.records.presenter import read
from runner.kinds.records.skeleton import SKELETONS
from runner.model.kinds import KindSpec

SPEC = KindSpec(
    presenter=read,
    outputs=outputs,
    checker=("jsonschema-rs",),
    skeleton=SKELETONS["classification"],
    likes=SKELETONS,
    collection=from_elsewhere,
    sources=tuple(SOURCES),
)
