"""Where submissions come from: what git knows of their folder, and nothing that a repository could have run."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from filelock import FileLock

import schemas
from runner.model.container import ImageRef
from runner.provision.engine import can_install, install
from runner.submissions.bundle import bundle_digest, registration
from runner.submissions.load import load_submission
from runner.submissions.pack import write
from runner.submissions.source import public_address, source_of
from tests.worlds.definitions import project, write_submission, write_task

pytestmark = pytest.mark.timeout(1200)  # a package may have to be fetched


@pytest.fixture(scope="module", autouse=True)
def has_git() -> None:
    """A bare machine has no git."""
    if shutil.which("git") is None and can_install():
        with FileLock(Path(tempfile.gettempdir()) / "install-git-for-tests.lock", timeout=1000):
            if shutil.which("git") is None:
                install("git")
    if shutil.which("git") is None:
        pytest.fail("there is no git. Fix: apt-get install git", pytrace=False)


def git(folder: Path, *words: str) -> str:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "init.defaultBranch=main")
    command = ["git", *who, *words]
    return subprocess.run(
        command, cwd=folder, env=env, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with a committed software, and an ignored file."""
    made = tmp_path / "repository/software"
    made.mkdir(parents=True)
    (made / "main.py").write_text("print(1)\n")
    (made / "naïve name.txt").write_text("x\n")
    (made / "run.sh").write_text("true\n")
    (made / "run.sh").chmod(0o755)
    (made / "link").symlink_to("main.py")
    (made / ".gitignore").write_text("cache\n")
    (made / "cache").write_text("left out\n")
    git(made.parent, "init", "-q")
    git(made.parent, "add", "-A")
    git(made.parent, "commit", "-qm", "one")
    return made


def test_a_committed_folder_has_remote_commit_and_no_change(folder: Path) -> None:
    commit = git(folder, "rev-parse", "HEAD")
    assert source_of(folder) == {"remote": None, "commit": commit, "dirty": False}
    git(folder, "remote", "add", "other", "https://other.example/x.git")
    git(folder, "remote", "add", "origin", "https://ann:secret@code.example/team/software.git")
    assert source_of(folder) == {
        "remote": "https://code.example/team/software.git",
        "commit": commit,
        "dirty": False,
    }


@pytest.mark.parametrize("change", ["edited", "new", "gone", "mode", "link"])
def test_what_is_not_as_it_was_committed_is_dirty(folder: Path, change: str) -> None:
    if change == "edited":
        (folder / "main.py").write_text("print(2)\n")
    elif change == "new":
        (folder / "new.py").write_text("")
    elif change == "gone":
        (folder / "main.py").unlink()
    elif change == "mode":
        (folder / "main.py").chmod(0o755)
    else:
        (folder / "link").unlink()
        (folder / "link").symlink_to("run.sh")
    found = source_of(folder)
    assert found is not None and found["dirty"] is True


def test_without_a_repository_there_is_nothing(tmp_path: Path, folder: Path) -> None:
    assert source_of(tmp_path) is None
    outside = folder.parent / "never-committed"
    outside.mkdir()
    (outside / "main.py").write_text("")
    assert source_of(outside) is None, "a folder of which the repository knows nothing"
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    assert source_of(empty) is None


def test_nothing_that_a_repository_names_is_run(folder: Path, tmp_path: Path) -> None:
    proof = tmp_path / "ran"
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch '{proof}'\ncat\n")
    trap.chmod(0o755)
    (folder / ".gitattributes").write_text("* filter=trap diff=trap\n")
    for key in ("core.fsmonitor", "filter.trap.clean", "filter.trap.process", "diff.external", "core.pager"):
        git(folder, "config", key, str(trap))
    for key in ("core.sshCommand", "credential.helper", "diff.trap.textconv", "alias.ls-tree"):
        git(folder, "config", key, f"!{trap}")
    git(folder, "config", "remote.origin.url", f"ext::{trap}")
    git(folder, "config", "remote.origin.promisor", "true")
    git(folder, "config", "extensions.partialClone", "origin")
    hooks = folder.parent / ".git/hooks"
    for hook in ("post-index-change", "pre-commit", "post-checkout"):
        hooks.joinpath(hook).write_text(trap.read_text())
        hooks.joinpath(hook).chmod(0o755)
    os.utime(folder / "main.py", (1, 1))
    subprocess.run(["git", "status"], cwd=folder, check=False, capture_output=True)
    assert proof.exists(), "git itself falls into the trap"
    proof.unlink()
    found = source_of(folder)
    assert found is not None and found["dirty"] is True and found["remote"] is None
    for thing in (folder.parent / ".git/objects").rglob(
        "*"
    ):  # an object is missing, so that it would be fetched
        if thing.is_file():
            thing.unlink()
    assert source_of(folder) is None and not proof.exists()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://code.example/a/b.git", "https://code.example/a/b.git"),
        ("https://token@code.example/a", "https://code.example/a"),
        ("https://u:p@ss@code.example:8443/a@v1", None),
        ("https://u:p@ss@code.example:8443/a", "https://code.example:8443/a"),
        ("https://code.example/a?private_token=x#y", "https://code.example/a"),
        ("ssh://git@code.example:22/a", "ssh://code.example:22/a"),
        ("git@code.example:a/b.git", "code.example:a/b.git"),
        ("me:pw@code.example:a", "code.example:a"),
        ("file:///home/ann/private", None),
        ("/home/ann/private", None),
        ("../other", None),
        ("C:\\Users\\ann", None),
        ("ext::sh -c true", None),
        ("https://code.example/\x1b[2J", None),
        ("", None),
    ],
)
def test_addresses_carry_no_secret_and_no_folder_of_a_machine(url: str, shown: str | None) -> None:
    assert public_address(url) == shown


def test_the_source_stands_in_the_bundle_and_in_its_registration_and_makes_no_other_submission(
    tmp_path: Path,
) -> None:
    config = project(tmp_path / "root")
    write_task(config)
    folder = write_submission(config, f"task: toy\nimage: sha256:{'0' * 64}\n", "mine", "first")
    submission, image = load_submission(config, "mine", "first"), ImageRef(f"sha256:{'0' * 64}")

    def packed() -> dict[str, object]:
        bundle = write(submission, image, tmp_path / "b", engine=None, check=None, with_archive=False)
        assert schemas.validate(schemas.load_json(bundle.folder / "bundle.json", "b"), "bundle") == []
        return {"digest": bundle_digest(bundle.data), **registration(bundle)}

    before = packed()
    assert "source" not in before
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    git(folder, "remote", "add", "origin", "git@code.example:mine/first")
    after = packed()
    commit = git(folder, "rev-parse", "HEAD")
    assert after["source"] == {"remote": "code.example:mine/first", "commit": commit, "dirty": False}
    assert after["submission"] == before["submission"] and after["digest"] == before["digest"]
