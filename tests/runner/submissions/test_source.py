"""Where submissions come from: what git knows of their folder, and nothing that a repository could have run."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import schemas
from runner.engines.fake import FakeEngine
from runner.model.container import Exit, ImageRef
from runner.model.errors import RunnerError
from runner.provision.base import LOCAL_IMAGE
from runner.submissions.bundle import bundle_digest, registration
from runner.submissions.load import load_submission
from runner.submissions.pack import image_of, write
from runner.submissions.source import public_address, source_of
from tests.worlds.definitions import project, write_submission, write_task
from tests.worlds.machines import without_engine
from tests.worlds.repository import git, require_git

pytestmark = pytest.mark.timeout(1200)  # a package may have to be fetched


@pytest.fixture(scope="module", autouse=True)
def has_git() -> None:
    """A bare machine has no git."""
    require_git()


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


def built(tmp_path: Path, git_keys: str, *, handing_in: bool = False) -> tuple[set[str], dict[str, object]]:
    """What the build of a submission that names a commit was given, and the source in its bundle."""
    config = replace(project(tmp_path / "root"), handing_in=handing_in, base_image="local")
    write_task(config)
    write_submission(config, f"task: toy\nbuild: {{{git_keys}}}\n", "mine", "first")
    submission = load_submission(config, "mine", "first")
    engine = FakeEngine({"mine": Exit(code=0), LOCAL_IMAGE: Exit(code=0)})
    engine.labels[LOCAL_IMAGE] = {"proctor.base": "python3,python3-pip,python3-venv,ca-certificates,socat"}
    try:
        image = image_of(config, engine, submission)
        bundle = write(submission, image, tmp_path / "b", engine=None, check=None, with_archive=False)
        return engine.built[-1][1], bundle.data["source"]
    finally:
        engine.close()


@pytest.fixture
def commit(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A commit with a Dockerfile, and a working tree that is otherwise by now."""
    without_engine(monkeypatch, tmp_path)
    (folder / "Dockerfile").write_text("# fake: mine\nFROM scratch\n")
    (folder / "outside").symlink_to("/etc")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "two")
    made = git(folder, "rev-parse", "HEAD")
    (folder / "Dockerfile").write_text("# fake: another\nFROM scratch\n")
    (folder / "later.py").write_text("")
    return made


def test_a_commit_is_built_as_it_was_committed(folder: Path, commit: str, tmp_path: Path) -> None:
    files, source = built(tmp_path, f"git: '{folder.parent}', commit: '{commit}', context: software")
    assert "main.py" in files and "Dockerfile" in files and "later.py" not in files and "cache" not in files
    assert not any(".git/" in name for name in files)
    assert source == {"remote": None, "commit": commit, "dirty": False}


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ("git: 'GIT', commit: 'COMMIT', context: ../..", "E202"),
        ("git: 'GIT', commit: 'COMMIT', context: software/outside, dockerfile: passwd", "E202"),
        ("git: 'GIT', commit: 'COMMIT', context: /etc, dockerfile: passwd", "E202"),
        ("git: 'GIT', commit: 'COMMIT'", "E202"),
        ("git: 'GIT', commit: '0000000000000000000000000000000000000000', context: software", "E203"),
        ("git: nowhere, commit: 'COMMIT'", "E203"),
        ("git: 'GIT', commit: HEAD", "E201"),
        ("git: 'GIT'", "E201"),
        ("commit: 'COMMIT'", "E201"),
        ("git: 'GIT', commit: 'COMMIT', shared: [other/x]", "E201"),
        ("git: '--upload-pack=touch ran', commit: 'COMMIT'", "E201"),
        ("git: 'ext::sh -c true', commit: 'COMMIT'", "E201"),
        ("git: 'http://code.example/a', commit: 'COMMIT'", "E201"),
        ("git: 'https://u:secret@code.example/a', commit: 'COMMIT'", "E201"),
        ("git: 'file:///etc', commit: 'COMMIT'", "E201"),
    ],
)
def test_what_cannot_be_built_from_is_refused(
    folder: Path, commit: str, tmp_path: Path, keys: str, code: str
) -> None:
    keys = keys.replace("GIT", str(folder.parent)).replace("COMMIT", commit)
    with pytest.raises(RunnerError) as refused:
        built(tmp_path, keys)
    assert refused.value.code == code, refused.value
    assert "secret" not in str(refused.value) + refused.value.why


def test_strangers_name_no_folder_of_the_machine_that_takes_them_in(
    folder: Path, commit: str, tmp_path: Path
) -> None:
    with pytest.raises(RunnerError) as refused:
        built(tmp_path, f"git: '{folder.parent}', commit: '{commit}', context: software", handing_in=True)
    assert refused.value.code == "E212" and "https" in refused.value.fix
