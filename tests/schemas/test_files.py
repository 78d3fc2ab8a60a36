"""Files and folders appear as a whole or not at all, and leave nothing beside them."""

import errno
import hashlib
import os
from pathlib import Path

import pytest

from schemas.files import (
    atomic_file,
    atomic_folder,
    atomic_path,
    file_sha256,
    once,
    put_in_place,
    scratch_folder,
)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def write(path: Path, data: bytes, mode: int | None = None, sync: bool = False) -> None:
    with atomic_file(path, mode=mode, sync=sync) as file:
        file.write(data)


@pytest.mark.parametrize("size", [0, 1, 1 << 20])
def test_the_hash_of_a_file_is_that_of_its_bytes(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * size)
    wanted = hashlib.sha256(b"a" * size).hexdigest()
    assert file_sha256(path) == wanted
    with path.open("rb") as file:
        assert file_sha256(file) == wanted


def test_the_hash_of_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        file_sha256(tmp_path / "none")


@pytest.mark.parametrize("sync", [False, True])
def test_a_file_is_written(tmp_path: Path, sync: bool) -> None:
    write(tmp_path / "file", b"new", sync=sync)
    assert (tmp_path / "file").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_the_target_is_untouched_until_the_end(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")
    with atomic_file(target) as file:
        file.write(b"new")
        file.flush()
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("error", [OSError, ValueError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")
    with pytest.raises(error), atomic_file(target) as file:
        file.write(b"half")
        raise error
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_target_that_is_a_folder_is_refused_and_left(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    with pytest.raises(IsADirectoryError):
        write(tmp_path / "target", b"x")
    assert os.listdir(tmp_path) == ["target"]


@pytest.mark.parametrize(
    ("before", "given", "after"), [(None, 0o444, 0o444), (0o600, None, 0o600), (0o600, 0o644, 0o644)]
)
def test_modes(tmp_path: Path, before: int | None, given: int | None, after: int) -> None:
    target = tmp_path / "file"
    if before is not None:
        target.touch()
        target.chmod(before)
    write(target, b"x", mode=given)
    assert mode_of(target) == after


def test_a_new_file_has_what_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path / "file", b"x")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "file") == 0o640


def test_an_unfinished_version_of_a_private_file_is_private(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.touch(mode=0o600)
    with atomic_path(target) as part:
        assert mode_of(part) == 0o600
        assert part.parent == tmp_path


@pytest.mark.parametrize("name", ["n" * 255, "é" * 127, "😀" * 63])
def test_names_may_be_as_long_as_names_can_be(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, b"x")
    with atomic_folder(tmp_path / "inner" / name) as folder:
        (folder / "file").touch()
    assert (tmp_path / name).is_file()
    assert (tmp_path / "inner" / name / "file").is_file()


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b"
    with atomic_folder(target) as folder:
        (folder / "file").write_text("x")
        assert not target.exists()
    assert (target / "file").read_text() == "x"
    assert mode_of(target) == 0o755
    assert os.listdir(target.parent) == ["b"]


def test_an_empty_folder_gives_way(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    with atomic_folder(tmp_path / "target") as folder:
        (folder / "file").touch()
    assert (tmp_path / "target" / "file").is_file()


@pytest.mark.parametrize("replace", [False, True])
def test_a_full_folder_gives_way_only_when_asked(tmp_path: Path, replace: bool) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "old").touch()

    def make() -> None:
        with atomic_folder(target, replace=replace) as folder:
            (folder / "new").touch()

    if replace:
        make()
    else:
        with pytest.raises(OSError) as caught:
            make()
        assert caught.value.errno == errno.ENOTEMPTY
    assert os.listdir(target) == ["new" if replace else "old"]
    assert os.listdir(tmp_path) == ["target"]


@pytest.mark.parametrize("error", [OSError, ValueError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_folder(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "old").touch()
    with pytest.raises(error), atomic_folder(target, replace=True) as folder:
        (folder / "new").touch()
        raise error
    assert os.listdir(target) == ["old"]
    assert os.listdir(tmp_path) == ["target"]


def test_an_old_folder_comes_back_when_the_new_one_cannot_be_moved(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "old").touch()
    with pytest.raises(FileNotFoundError):
        put_in_place(tmp_path / "none", target, replace=True)
    assert os.listdir(target) == ["old"]
    assert os.listdir(tmp_path) == ["target"]


def test_a_scratch_folder_is_private_and_goes(tmp_path: Path) -> None:
    with scratch_folder(tmp_path, "work") as folder:
        assert folder.name.startswith(".work-")
        assert mode_of(folder) == 0o700
        (folder / "file").touch()
    assert os.listdir(tmp_path) == []


def test_a_scratch_folder_that_was_renamed_stays(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as folder:
        folder.rename(tmp_path / "kept")
    assert os.listdir(tmp_path) == ["kept"]


def test_a_secret_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    target = tmp_path / "key"
    assert once(target, lambda: b"first") == b"first" == once(target, lambda: b"second")
    assert mode_of(target) == 0o600 and os.listdir(tmp_path) == ["key"]


def without_links(monkeypatch: pytest.MonkeyPatch, why: int) -> None:
    """As on a file system that has no hard links."""

    def refused(source: Path, *_: object) -> None:
        if not source.exists():
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(source))
        raise OSError(why, os.strerror(why), str(source))

    monkeypatch.setattr("os.link", refused)


@pytest.mark.parametrize("why", [None, errno.EPERM, errno.ENOTSUP])
def test_of_two_that_make_a_secret_at_once_both_have_that_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: int | None
) -> None:
    if why is not None:
        without_links(monkeypatch, why)
    target, synced = tmp_path / "key", list[Path]()
    monkeypatch.setattr("schemas.files.sync_folder", lambda folder: synced.append(folder))

    def slow() -> bytes:
        assert once(target, lambda: b"first") == b"first"
        assert synced.pop() == tmp_path and not synced
        return b"second"

    assert once(target, slow) == b"first" == target.read_bytes()
    assert synced == [tmp_path], "who comes second uses it, too: its name is on the disk then"
    assert os.listdir(tmp_path) == ["key"] and mode_of(target) == 0o600


@pytest.mark.parametrize("why", [errno.EPERM, errno.ENOTSUP, errno.EACCES])
def test_a_secret_is_made_as_a_whole_where_there_are_no_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: int
) -> None:
    without_links(monkeypatch, why)
    if why == errno.EACCES:  # which is another failure
        with pytest.raises(PermissionError):
            once(tmp_path / "key", lambda: b"first")
        assert os.listdir(tmp_path) == []
        return
    assert once(tmp_path / "key", lambda: b"first") == b"first" == once(tmp_path / "key", lambda: b"second")
    assert os.listdir(tmp_path) == ["key"] and mode_of(tmp_path / "key") == 0o600


def test_a_second_name_that_who_was_killed_left_of_a_secret_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, synced = tmp_path / "key", list[Path]()
    monkeypatch.setattr("schemas.files.sync_folder", lambda folder: synced.append(folder))
    target.write_bytes(b"first")
    (tmp_path / ".key.0123abcd.part").hardlink_to(target)
    assert once(target, lambda: b"second") == b"first"
    assert os.listdir(tmp_path) == ["key"] and synced == [tmp_path], (
        "it was killed before its name was on the disk"
    )
    assert once(target, lambda: b"second") == b"first" and len(synced) == 1


def test_what_who_was_killed_left_of_a_secret_that_was_never_used_is_removed_and_nothing_else(
    tmp_path: Path,
) -> None:
    others = [".key.part", ".keys.0123abcd.part", ".key.0123abcd.part.bak", "x.key.0123abcd.part"]
    for name in [*others, ".key.0123abcd.part"]:
        (tmp_path / name).write_bytes(b"half")
    assert once(tmp_path / "key", lambda: b"first") == b"first"
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "key"])
