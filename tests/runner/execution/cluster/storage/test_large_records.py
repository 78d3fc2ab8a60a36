"""Of what hosts deliver nothing is sealed that the archive could not read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.model.errors import PlatformError
from runner.records.files import MAX_JSON
from tests.runner.execution.cluster.storage.test_taking_in import KEY, Change, Delivering
from tests.worlds.mini import Project


@pytest.fixture
def delivering(project: Project, tmp_path: Path) -> Delivering:
    return Delivering(project, tmp_path)


def named(keys: int, value: Any) -> Change:
    """Say as many things of the engine."""

    def change(folder: Path, facts: dict[str, Any]) -> None:
        more = {f"{key:x}": value for key in range(keys)}
        facts["record"] = {**facts["record"], "engine": {**facts["record"]["engine"], **more}}

    return change


def test_a_record_that_grows_beyond_what_the_archive_reads_is_not_taken(delivering: Delivering) -> None:
    """Its manifest is read: there, 1e15 has four characters, and eighteen where the archive writes it."""
    delivering.deliver(named(700_000, 0))
    text = delivering.place().read_text()
    assert len(text) < MAX_JSON
    manifest = json.loads(json.loads(text)["manifest"])
    engine = json.dumps(manifest["record"]["engine"], separators=(",", ":"))
    manifest["record"]["engine"] = "here"
    short = json.dumps(manifest, separators=(",", ":"))
    delivering.write(short.replace('"here"', engine.replace(":0,", ":1e15,")), KEY)
    assert delivering.place().stat().st_size < MAX_JSON
    assert "archive" in delivering.refused().why


@pytest.mark.parametrize("text", ["x" * 20_000_000, "\x01" * 1_000_000, "é" * 1_000_000], ids=len)
def test_a_record_of_long_texts_is_taken_as_far_as_the_archive_reads_it(
    delivering: Delivering, text: str
) -> None:
    if len(text) > MAX_JSON:
        with pytest.raises(PlatformError) as error:
            delivering.deliver(named(1, text))
        assert error.value.code == "E313"
        return
    assert delivering.deliver(named(1, text)).record()["engine"]["0"] == text
