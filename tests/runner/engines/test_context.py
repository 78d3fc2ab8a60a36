"""Build contexts: what goes in, and that nothing from outside does."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from runner.engines.docker.build_context import pack
from runner.model.errors import RunnerError


def packed(folder: Path, dockerfile: str = "Dockerfile") -> tuple[bytes, dict[str, tarfile.TarInfo]]:
    with pack(folder, dockerfile) as file:
        raw = file.read()
        file.seek(0)
        with tarfile.open(fileobj=file) as tar:
            return raw, {m.name: m for m in tar}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "context"
    (path / "src").mkdir(parents=True)
    path.joinpath("Dockerfile").write_text("FROM x\n")
    path.joinpath("src/run.sh").write_text("true\n")
    path.joinpath("src/run.sh").chmod(0o755)
    path.joinpath("secret.txt").write_text("no")
    return path


def test_links_stay_links_and_pipes_stay_out(folder: Path) -> None:
    folder.joinpath("link").symlink_to("/etc/passwd")
    folder.joinpath("src/up").symlink_to("../..")
    os.mkfifo(folder / "pipe")
    _, found = packed(folder)
    assert set(found) == {"Dockerfile", "src", "src/run.sh", "src/up", "secret.txt", "link"}
    assert found["link"].issym() and found["link"].linkname == "/etc/passwd"
    assert found["src/run.sh"].mode == 0o755


def test_the_same_files_give_the_same_bytes(folder: Path) -> None:
    before, _ = packed(folder)
    os.utime(folder / "Dockerfile", (1, 1))
    assert packed(folder)[0] == before


def test_dockerignore_as_an_allow_list(folder: Path) -> None:
    folder.joinpath(".dockerignore").write_text("# nothing\n*\n!src/run.sh\n")
    _, found = packed(folder)
    assert set(found) == {".dockerignore", "Dockerfile", "src", "src/run.sh"}


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "src/../../outside", "evil"])
def test_a_dockerfile_outside(folder: Path, name: str) -> None:
    folder.parent.joinpath("outside").write_text("FROM secret")
    folder.joinpath("evil").symlink_to("../outside")
    with pytest.raises(RunnerError) as caught:
        packed(folder, name)
    assert caught.value.code == "E202"
    assert "secret" not in str(vars(caught.value))


def test_a_missing_dockerfile(folder: Path) -> None:
    with pytest.raises(RunnerError) as caught:
        packed(folder, "nope")
    assert caught.value.code == "E203"
