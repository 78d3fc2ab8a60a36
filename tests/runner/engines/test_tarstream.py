"""Names in archives for engines lead nowhere else, and are written in one way; folders of images are given on without special files."""

from __future__ import annotations

import io
import tarfile
from pathlib import PurePosixPath

import pytest

from runner.engines.tarstream import checked, readable


@pytest.mark.parametrize(
    "name", ["", ".", "/etc/hostname", "run//etc/hostname", "run/../x", "run/./x", "run/", "a\0b"]
)
def test_a_name_that_is_no_plain_path_inside_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a relative path"):
        checked(name)


@pytest.mark.parametrize("name", ["run.txt", "run/run.txt", "..x", ".hidden/x y"])
def test_other_names_stay_as_they_are(name: str) -> None:
    assert str(checked(name)) == name


def _archive(*entries: tuple[str, bytes, int, str | bytes]) -> bytes:
    """Return an archive of entries: name, type, mode, and content or the target of a link."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, kind, mode, content in entries:
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.uid = kind, mode, 1000
            if isinstance(content, str):
                info.linkname = content
            else:
                info.size = len(content)
            archive.addfile(info, io.BytesIO(content if isinstance(content, bytes) else b""))
    return file.getvalue()


FOLDER = _archive(
    ("./", tarfile.DIRTYPE, 0o700, b""),
    ("./a", tarfile.REGTYPE, 0o4700, b"x" * 700),
    ("./b/", tarfile.DIRTYPE, 0o700, b""),
    ("./b/c", tarfile.REGTYPE, 0o600, b"c"),
    ("./hard", tarfile.LNKTYPE, 0o600, "./a"),
    ("./soft", tarfile.SYMTYPE, 0o777, "/etc/shadow"),
    ("./dev", tarfile.CHRTYPE, 0o666, b""),
    ("./pipe", tarfile.FIFOTYPE, 0o666, b""),
    ("./../up", tarfile.REGTYPE, 0o600, b"up"),
    ("/abs", tarfile.REGTYPE, 0o600, b"abs"),
)


def test_a_folder_is_given_on_readable_and_without_special_files() -> None:
    parts = readable([FOLDER], [PurePosixPath("b"), PurePosixPath("new/deep")], 10**6)
    with tarfile.open(fileobj=io.BytesIO(b"".join(parts))) as archive:
        found = {entry.name: (entry.type, entry.mode, entry.uid, entry.linkname) for entry in archive}
        content = archive.extractfile("a")
        assert content is not None and content.read() == b"x" * 700
    assert found == {
        "a": (tarfile.REGTYPE, 0o755, 0, ""),
        "b": (tarfile.DIRTYPE, 0o755, 0, ""),
        "hard": (tarfile.LNKTYPE, 0o644, 0, "a"),
        "soft": (tarfile.SYMTYPE, 0o777, 0, "/etc/shadow"),
        "new": (tarfile.DIRTYPE, 0o777, 0, ""),
        "new/deep": (tarfile.DIRTYPE, 0o777, 0, ""),
    }


@pytest.mark.parametrize(("archive", "most"), [(FOLDER, 5000), (b"\xff" * 2000, 10**6)])
def test_a_folder_that_is_too_large_or_damaged_is_refused(archive: bytes, most: int) -> None:
    with pytest.raises(ValueError, match=r"too large|cannot be read"):
        list(readable([archive], [], most))
