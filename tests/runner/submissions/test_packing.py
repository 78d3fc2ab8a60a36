"""What a build is given on machines with and without a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.engines.fake import FakeEngine
from runner.model.container import Exit
from runner.provision.base import LOCAL_IMAGE
from runner.submissions import pack as packing
from runner.submissions.load import load_submission
from tests.worlds.definitions import project, write_submission, write_task
from tests.worlds.machines import THING, only_own_packages, without_engine


def test_the_first_build_has_its_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Choosing the base image settles whether builds have a network: it must come before the context is made."""
    without_engine(monkeypatch, tmp_path)
    only_own_packages(monkeypatch, tmp_path / "index")
    config = project(tmp_path / "root")
    write_task(config)
    folder = write_submission(config, "task: toy\nbuild: {context: ., network: true}\n", "mine", "first")
    (folder / "Dockerfile").write_text("# fake: mine\nFROM scratch\n")
    (folder / "requirements.txt").write_text("thing==1\n")
    engine = FakeEngine({"mine": Exit(code=0), LOCAL_IMAGE: Exit(code=0)})
    engine.labels[LOCAL_IMAGE] = {"proctor.base": "python3,python3-pip,python3-venv,ca-certificates,socat"}
    packing.image_of(config, engine, load_submission(config, "mine", "first"))
    ((spec, files),) = engine.built
    assert spec.args["BASE_IMAGE"] == LOCAL_IMAGE
    assert f"wheels/{THING}" in files and not spec.network
    assert sorted(p.name for p in folder.iterdir()) == ["Dockerfile", "requirements.txt", "submission.yaml"]
    engine.close()


def test_files_shared_between_softwares_are_copied_into_the_context(tmp_path: Path) -> None:
    config = project(tmp_path / "root")
    write_task(config)
    first = write_submission(config, "task: toy\nbuild: {}\n", "mine", "first")
    (first / "common.py").write_text("shared = 1\n")
    text = "task: toy\nbuild: {shared: [first/common.py]}\n"
    second = write_submission(config, text, "mine", "second")
    before = sorted(second.iterdir())
    build = load_submission(config, "mine", "second").build
    assert build is not None
    with packing.build_context(config, FakeEngine({}), build) as context:
        assert (context / "common.py").read_text() == "shared = 1\n"
        assert (context / "Dockerfile").is_file()
    assert sorted(second.iterdir()) == before and not context.exists()
