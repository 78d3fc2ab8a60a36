"""Contents of artefact stores, as bytes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from runner.execution.cluster.storage.grants import Store
from runner.records.contents import Content


def read_content(store: Store, content: Content) -> bytes:
    """Return a content of a store. Raises as its ``fetch``."""
    with TemporaryDirectory() as folder:
        store.fetch(content, Path(folder) / "content")
        return (Path(folder) / "content").read_bytes()
