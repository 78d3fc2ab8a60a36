"""Ad-hoc retrieval: rankings of documents."""

from __future__ import annotations

from runner.kinds.adhoc.irds import PREFIX
from runner.kinds.adhoc.skeleton import files, from_collection
from runner.model.kinds import KindSpec

SPEC = KindSpec(skeleton=files, collection=from_collection, sources=(PREFIX,))
