"""A store over SSH, at a real server: it works as a folder does, and who is who is checked on both sides."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.execution.cluster.storage.artefacts import Artefacts
from runner.model.errors import PlatformError
from runner.records.contents import Content
from tests.worlds.ssh_server import ssh_server

NAME = f"{'0' * 16}/a~mini~x~1~00000000"


def test_a_store_over_ssh(tmp_path: Path) -> None:
    (folder := tmp_path / "ssh").mkdir()
    (file := tmp_path / "file").write_bytes(b"some data" * 400_000)
    with ssh_server(folder) as server:
        store = Artefacts(server.address, server.options())
        content = store.put(file)
        store.fetch(content, tmp_path / "fetched")
        assert (tmp_path / "fetched").read_bytes() == file.read_bytes() and not store.signs
        store.deliver(NAME, {"run.txt": file}, {"fact": 1}, b"key")
        assert store.attempts() == [NAME] and store.changed(NAME) is not None
        files = {name: Content(*entry) for name, entry in store.manifest(NAME, b"key")["files"].items()}
        store.take(NAME, files, tmp_path / "taken")
        assert (tmp_path / "taken" / "run.txt").read_bytes() == file.read_bytes()
        store.forget(NAME)
        assert store.attempts() == []
        for options, why in (
            (server.options(key="other"), "denied"),
            (server.options(known="other"), "not trusted"),
        ):
            with pytest.raises(PlatformError) as error:
                Artefacts(server.address, options)
            assert error.value.code == "E313" and why in error.value.why and "own" not in error.value.why
