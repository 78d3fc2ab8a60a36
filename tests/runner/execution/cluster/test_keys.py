"""The secret of a coordinator is on the disk as a whole, or is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.execution.cluster.keys import key_of
from runner.model.errors import PlatformError
from runner.records.archive import RunArchive


def test_a_secret_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    archive = RunArchive(tmp_path / "archive")
    key = key_of(archive)
    assert len(key) == 32 and key_of(archive) == key
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("left", [b"", b"short"])
def test_what_a_crash_left_of_a_secret_signs_nothing(tmp_path: Path, left: bytes) -> None:
    (tmp_path / "cluster.key").write_bytes(left)
    with pytest.raises(PlatformError) as error:
        key_of(RunArchive(tmp_path / "archive"))
    assert error.value.code == "E307" and error.value.fix
