"""The JavaScript of others: as its packages have it, and as one script that is named by its content."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from pathlib import Path

import pytest

from runner.model.errors import PlatformError
from runner.web.vega import script
from tools.vendor import FOLDER, MANIFEST, fetch


def test_every_file_is_that_of_the_manifest_and_there_is_no_other() -> None:
    packages = json.loads((FOLDER / MANIFEST).read_text("utf-8"))["packages"]
    wanted = {name: one["sha256"] for package in packages for name, one in package["files"].items()}
    here = [path for path in FOLDER.iterdir() if path.is_file() and path.suffix not in (".py", ".json")]
    assert {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in here} == wanted
    assert all(package["license"] and package["integrity"].startswith("sha512-") for package in packages)
    assert (FOLDER / "vega.LICENSE").read_text("utf-8").startswith("Copyright")


def test_one_script_named_by_its_content() -> None:
    digest, content = script()
    assert hashlib.sha256(content).hexdigest() == digest
    text = content.decode()
    assert "import {" not in text and "\nexport" not in text and "sourceMappingURL" not in text
    assert files("runner.web").joinpath("plots.js").read_text("utf-8") in text


def test_another_content_is_refused_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An npm that gets another package: a program of the test, found first."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "npm").write_text("#!/bin/sh\necho other > other-1.tgz\n")
    (tools / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    folder = tmp_path / "vendor"
    folder.mkdir()
    (folder / MANIFEST).write_bytes((FOLDER / MANIFEST).read_bytes())
    with pytest.raises(PlatformError) as caught:
        fetch(folder)
    assert "another content" in caught.value.what and [path.name for path in folder.iterdir()] == [MANIFEST]
