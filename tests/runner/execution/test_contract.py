"""What an evaluator is handed of a run is what was sealed, whether it is held in memory or copied into a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.execution import contract
from runner.execution.contract import files_for_evaluator, output_of
from runner.model.errors import PlatformError
from runner.records.archive import RunArchive
from tests.worlds.records import TASK, fill_attempt

OUTPUT = {"run.txt": "1 Q0 d1 1 1.0 x\n", "extra.jsonl": '{"a": 1}\n', "more.jsonl": "x" * 50}


@pytest.mark.parametrize("small", [1000, 10])
def test_small_output_is_held_and_all_other_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(contract, "SMALL", small)
    archive = RunArchive(tmp_path)
    attempt = fill_attempt(archive, archive.begin(TASK, "a.x.00000000.test"), "a.x.00000000", output=OUTPUT)
    with output_of(attempt) as output:
        assert isinstance(output, Path) == (small == 10)
        found = files_for_evaluator(output, "run.txt", 30)
        read = {name: what if isinstance(what, bytes) else what.read_bytes() for name, what in found.items()}
    # The last one is larger than what is left.
    assert read == {name: OUTPUT[name].encode() for name in ("run.txt", "extra.jsonl")}
    for name in ("none.txt", "../run.json", ""):
        with output_of(attempt) as output, pytest.raises(PlatformError) as error:
            files_for_evaluator(output, name, 30)
        assert error.value.code == "E307"


def test_what_is_not_what_was_sealed_is_handed_to_nobody(tmp_path: Path) -> None:
    archive = RunArchive(tmp_path)
    attempt = fill_attempt(archive, archive.begin(TASK, "a.x.00000000.test"), "a.x.00000000", output=OUTPUT)
    (content,) = [path for _, path in archive.contents.contents() if path.read_bytes() == b"x" * 50] or [
        path for _, path in archive.contents.contents() if path.suffix == ".gz"
    ]
    content.chmod(0o644)
    content.write_bytes(b"y" * 50)
    with pytest.raises(PlatformError) as error, output_of(attempt):
        pass
    assert error.value.code == "E307"
