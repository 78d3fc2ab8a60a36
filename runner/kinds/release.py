"""The files of a release as organisers ship them: a folder, an archive, or a single file.

What something is, its content says, never its name: a tar archive may be called ``.zip``, and JSON Lines packed with gzip
``.jsonl``, ``.jsonl.gz`` or ``.jsonl.gzip``. Members of archives are copied, capped, under names of ours, so that no name
leads anywhere.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import re
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from runner.model.errors import Problem, RunnerError
from schemas import show
from schemas.file_sorts import HEAD_BYTES, find_wrong_sort
from schemas.files import put_in_place, scratch_folder

MAX_FILES = 10_000
MAX_FILE = 1 << 30  # bytes of one file, unpacked
MAX_ALL = 4 << 30
DEPTH = 4  # folders below that of the release
_ENDINGS = (".gz", ".gzip", ".jsonl", ".ndjson", ".json", ".txt")
_BROKEN = (
    OSError, zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, RuntimeError, NotImplementedError,
    ValueError,
)  # fmt: skip


class Wrong(Exception):
    """A release, a file of it or an object in that is wrong: what, and how to correct it."""

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


def files_of(source: Path, scratch: Path, most: int = MAX_ALL, depth: int = DEPTH) -> dict[str, Path]:
    """The files of a release by their name in it; what an archive holds is copied to ``scratch``. Raises :class:`Wrong`.

    Files that operating systems add are left out. An archive that holds more than ``most`` bytes is refused. Of a folder, those
    are taken that lie at most ``depth`` folders deep.
    """
    if source.is_dir():
        return dict(_walk(source, depth))
    if not source.is_file():
        raise Wrong("is neither a folder nor a file", "give the release's folder or archive")
    with source.open("rb") as file:
        packed = file.read(2) == b"PK"
    try:
        if packed:
            with zipfile.ZipFile(source) as archive:
                return _copied(_zipped(archive), scratch, most)
        if (tar := _tar(source)) is not None:
            with tar:
                return _copied(_tarred(tar), scratch, most)
    except _BROKEN:
        kind = "zip" if packed else "tar"
        raise Wrong(f"is not a {kind} archive that can be read", "give the folder or archive anew") from None
    return {source.name: source}


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """A file to read, unpacked if its bytes are those of gzip. Raises OSError, EOFError and zlib.error, as reading it does."""
    with path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        yield gzip.GzipFile(fileobj=raw) if packed else raw  # type: ignore[misc]


def read(path: Path) -> bytes:
    """The bytes of a file, unpacked if they are those of gzip. Raises :class:`Wrong`."""
    try:
        with unpacked(path) as stream:
            data = stream.read(MAX_FILE + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise Wrong(f"cannot be read ({show(str(error))})") from None
    if len(data) > MAX_FILE:
        raise Wrong(f"is larger than {MAX_FILE >> 20} MiB")
    sort = find_wrong_sort(data[:HEAD_BYTES])
    if sort is not None:
        raise Wrong(f"is {sort.name}", sort.fix)
    return data


def stem(name: str) -> str:
    """A file's name without the endings that say how it is written: ``corpus`` for ``corpus.jsonl.gzip``."""
    while name.lower().endswith(_ENDINGS):
        name = name.rpartition(".")[0]
    return name


def passed_over(files: Iterable[str], used: Iterable[str]) -> list[str]:
    """A line that names the files of a release that nothing is made of, or none."""
    rest = sorted(set(files) - set(used))
    if not rest:
        return []
    more = f" and {len(rest) - 10:,} more" if len(rest) > 10 else ""
    return [f"passed over: {', '.join(show(name, 100) for name in rest[:10])}{more}"]


def _noise(path: PurePosixPath) -> bool:
    """Files that operating systems add."""
    return "__MACOSX" in path.parts or path.name.startswith(".") or path.name in ("Thumbs.db", "desktop.ini")


def _walk(source: Path, depth: int) -> Iterator[tuple[str, Path]]:
    count = 0
    for folder, below, names in os.walk(source):
        relative = PurePosixPath(Path(folder).relative_to(source).as_posix())
        if len(relative.parts) >= depth:
            below.clear()
        for name in sorted(names):
            path = Path(folder) / name
            if _noise(relative / name) or not path.is_file():
                continue
            count += 1
            if count > MAX_FILES:
                raise Wrong(f"holds more than {MAX_FILES:,} files", "give the folder of the release only")
            yield str(relative / name), path


def _tar(source: Path) -> tarfile.TarFile | None:
    """The archive, packed with whatever, or None for a file that is none."""
    try:
        return tarfile.open(source, "r:*")
    except _BROKEN:
        return None


_Member = tuple[str, str, BinaryIO | IO[bytes]]  # its name, what is wrong with it, its bytes


def _zipped(archive: zipfile.ZipFile) -> Iterator[_Member]:
    for member in archive.infolist():
        if member.is_dir():
            continue
        wrong = "link" if stat.S_ISLNK(member.external_attr >> 16) else ""
        if member.flag_bits & 1:
            raise Wrong("is encrypted", "unpack it first, and give the folder")
        with archive.open(member) as file:
            yield member.filename.replace("\\", "/"), wrong, file


def _tarred(archive: tarfile.TarFile) -> Iterator[_Member]:
    for member in archive:
        if member.isdir():
            continue
        file = archive.extractfile(member) if member.isreg() else None
        if file is None:
            yield member.name, "link", io.BytesIO()
            continue
        with file:
            yield member.name, "", file


def _copied(members: Iterator[_Member], scratch: Path, left: int) -> dict[str, Path]:
    """Copy members under names of ours. Raises :class:`Wrong` for what no honest archive holds."""
    found: dict[str, Path] = {}
    for number, (name, wrong, file) in enumerate(members):
        if number >= MAX_FILES:
            raise Wrong(f"holds more than {MAX_FILES:,} files", "give the release's own archive")
        path = PurePosixPath(name)
        if _noise(path):
            continue
        if path.is_absolute() or ".." in path.parts or re.match("[A-Za-z]:", name):
            raise Wrong(f'holds the file "{show(name)}", outside its own folder', "do not trust this archive")
        if wrong:
            raise Wrong(f'holds "{show(name)}", a link', "pack files only")
        if str(path) in found:
            raise Wrong(f'holds the file "{show(name)}" twice', "pack it again")
        copy = scratch / f"{number}-{re.sub('[^A-Za-z0-9._-]', '_', path.name)[-80:]}"
        with copy.open("xb") as out:
            size = 0
            while block := file.read(1 << 20):
                size += len(block)
                if size > min(MAX_FILE, left):
                    raise Wrong(
                        f'holds "{show(name)}", which is larger than allowed ({MAX_FILE >> 20} MiB a file)',
                        "give the release's own archive",
                    )
                out.write(block)
        left -= size
        found[str(path)] = copy
    return found


Write = Callable[[Path, Path], Sequence[Problem]]  # into the folders of inputs and truths


def imported(
    source: Path, target: Path, truths: Path | None, read: Callable[[Path], Sequence[Problem] | Write]
) -> list[Problem]:
    """Make ``target/inputs`` and ``truths`` (None: ``target/truths``), both or neither.

    ``read(scratch)`` reads the release and returns what writes the two folders, or what is wrong. Returns every problem;
    when there is one, nothing was written: a folder that holds something already, what the functions return, and what
    they raise as :class:`Wrong` or as an error of the readers. Raises OSError.
    """
    finals = (target / "inputs", truths or target / "truths")
    taken = [p for p in finals if os.path.lexists(p) and not (p.is_dir() and not any(p.iterdir()))]
    if taken:
        return [Problem(show(str(p), 200), "is there already", "move it away first") for p in taken]
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="release-")))
        try:
            write = read(scratch)
            if not callable(write):
                return list(write)
            folders = []
            for final in finals:
                final.parent.mkdir(parents=True, exist_ok=True)
                folders.append(stack.enter_context(scratch_folder(final.parent, final.name)))
            problems = list(write(*folders))
        except Wrong as error:
            return [Problem(show(source.name, 200), error.what, error.fix)]
        except RunnerError as error:  # every problem of a reader has its place
            return list(error.problems) or [Problem(show(source.name, 200), error.what, error.fix)]
        if not problems:
            for final, folder in zip(finals, folders, strict=True):
                folder.chmod(0o755)
                put_in_place(folder, final)
    return problems
