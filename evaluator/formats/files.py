"""Opening files that a participant may have planted, and organiser's files that may be compressed."""

from __future__ import annotations

import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Self

from evaluator.errors import EvaluatorError
from schemas.file_sorts import HEAD_BYTES, FileSort, find_wrong_sort

BOM = b"\xef\xbb\xbf"
GZIP = b"\x1f\x8b"
MAX_MEMBERS = 100_000  # files of bgzip have one for every 64 KiB
_STEP = 1 << 16


class Unreadable(Exception):
    """The file is missing or not a regular file. The text says what it is instead; ``code`` is that of a finding."""

    code = "F002"


class WrongSort(Unreadable):
    """The file is of a sort that no reader accepts, such as a zip archive."""

    code = "F030"

    def __init__(self, sort: FileSort) -> None:
        super().__init__(f"the file is {sort}")
        self.sort = sort


class TooLarge(Exception):
    """More bytes than allowed came out of the file (after decompression)."""


class Damaged(Exception):
    """The gzip stream is broken or ends too early."""


def open_regular(path: str | Path, *, follow: bool = False) -> BinaryIO:
    """Open a regular file for reading, unbuffered; never waits for a pipe, and follows no link unless told to.

    Raises :class:`Unreadable` for everything else.
    """
    try:
        nofollow = 0 if follow else os.O_NOFOLLOW
        fd = os.open(path, os.O_RDONLY | nofollow | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Unreadable("it does not exist") from None
    except OSError as error:
        if Path(path).is_symlink():
            raise Unreadable("it is a link") from None
        raise Unreadable(error.strerror.lower() if error.strerror else "it cannot be opened") from None
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        names = ((stat.S_ISDIR, "folder"), (stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"))
        kind = next((name for test, name in names if test(mode)), "device")
        raise Unreadable(f"it is a {kind}, not a regular file")
    return os.fdopen(fd, "rb", buffering=0)


class _Gunzip:
    """Decompresses gzip, also several members one behind the other, in steps that keep a bomb flat.

    Python's own reader goes through zeros behind a member byte by byte, and through a million empty members
    one by one: files of some MiB that take minutes.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._packed = b""
        self._inflate = zlib.decompressobj(wbits=31)
        self._members = 1

    def read(self, n: int) -> bytes:
        """Up to ``n`` bytes, b"" at the end. Raises EOFError or zlib.error for what is broken."""
        while True:
            if self._inflate.eof and not self._next():
                return b""
            if not self._packed:
                self._packed = self._file.read(_STEP)
                if not self._packed:
                    raise EOFError("the compressed data ends before its end mark")
            data = self._inflate.decompress(self._packed, n)
            self._packed = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
            if data:
                return data

    def _next(self) -> bool:
        """Go on to the next member; False at the end of the file."""
        self._packed = self._packed.lstrip(b"\0")
        while not self._packed:
            piece = self._file.read(_STEP)
            if not piece:
                return False
            self._packed = piece.lstrip(b"\0")
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise zlib.error(f"more than {MAX_MEMBERS:,} gzip files one behind the other")
        self._inflate = zlib.decompressobj(wbits=31)
        return True


class Closing:
    """A base for what is closed at the end of a ``with``."""

    def close(self) -> None:
        """Close what is open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Source(Closing):
    """The bytes of one file, decompressed if it starts like gzip, never more than ``max_bytes``.

    ``size`` is the size on disk; ``read(n)`` returns up to ``n`` bytes, and b"" at the end.

    Raises:
        Unreadable: The file is missing, or not a regular file.
        WrongSort: The file is not text, but for example a zip archive.
    """

    def __init__(self, path: str | Path, max_bytes: int | None = None, *, follow: bool = False) -> None:
        self.path = path
        self._file = open_regular(path, follow=follow)
        self.size = os.fstat(self._file.fileno()).st_size
        self._left = max_bytes
        self.gzip = self._file.read(len(GZIP)) == GZIP
        sort = find_wrong_sort(self._head())
        if sort is not None:
            self._file.close()
            raise WrongSort(sort)
        self._read = self._reader()

    def _reader(self) -> Callable[[int], bytes]:
        """Return the function that reads from the beginning of the file."""
        self._file.seek(0)
        return _Gunzip(self._file).read if self.gzip else self._file.read

    def _head(self) -> bytes:
        """Return the first bytes, unpacked. Damaged data ends them; :meth:`read` reports the damage."""
        read, head = self._reader(), b""
        with suppress(OSError, EOFError, zlib.error):
            while len(head) < HEAD_BYTES and (piece := read(HEAD_BYTES - len(head))):
                head += piece
        return head

    def read(self, n: int) -> bytes:
        """Return up to ``n`` bytes. Raises :class:`TooLarge` or :class:`Damaged`."""
        try:
            data = self._read(n)
        except (OSError, EOFError, zlib.error) as error:
            if not self.gzip:
                raise
            raise Damaged(str(error)) from None
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                raise TooLarge
        return data

    def lines(self) -> Iterator[bytes]:
        """Every line without its line end; a byte order mark is dropped. Raises as :meth:`read`."""
        rest, mark = b"", BOM
        while piece := self.read(1 << 22):
            lines = (rest + piece.removeprefix(mark)).split(b"\n")
            rest, mark = lines.pop(), b""
            yield from lines
        if rest:
            yield rest

    def share(self) -> float:
        """Which part of the file on disk has been read, from 0 to 1."""
        return self._file.tell() / self.size if self.size else 1.0

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def plain_or_gzip(path: Path) -> Path:
    """``path``, or the same with ``.gz`` where only that exists."""
    packed = path.with_name(f"{path.name}.gz")
    return packed if not path.exists() and packed.exists() else path


@contextmanager
def organisers(
    what: str, fix: str = "correct the path where it was given: task.yaml or the command line"
) -> Iterator[None]:
    """Raise :class:`EvaluatorError` about ``what`` where the block finds that a file cannot be read or is damaged."""
    try:
        yield
    except WrongSort as error:
        raise EvaluatorError(
            f"{what} cannot be read", f"the file is {error.sort.name}", error.sort.fix
        ) from None
    except (Unreadable, Damaged) as error:
        raise EvaluatorError(f"{what} cannot be read", str(error), fix) from None


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """``path``, or a temporary file of all that comes from standard input (``-``) or from the pipe that it is.

    Never for files that a participant may have planted: a pipe can keep its reader waiting.
    """
    if str(path) != "-" and not path.is_fifo():
        yield path
        return
    import shutil
    import tempfile

    with tempfile.NamedTemporaryFile(prefix="run-") as file:
        if str(path) == "-":
            shutil.copyfileobj(sys.stdin.buffer, file)
        else:
            with path.open("rb") as pipe:
                shutil.copyfileobj(pipe, file)
        file.flush()
        yield Path(file.name)


def files_in(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    """The files of an organiser's folder whose names end like this, sorted; other files are named on stderr.

    Hidden files, folders and what tells people about the others (``README``, ``LICENSE``) are left out in silence.
    """
    found, others = [], []
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or not path.is_file():
            continue
        if path.name.endswith(endings):
            found.append(path)
        elif not path.name.upper().startswith(("README", "LICENSE")):
            others.append(path.name)
    if others:
        shown = ", ".join(ascii(name[:100])[1:-1] for name in others[:10])
        more = f" and {len(others) - 10:,} more" if len(others) > 10 else ""
        print(
            f"passed over in {folder.name}: {shown}{more} (read are *{', *'.join(endings)})", file=sys.stderr
        )
    return found


def read_all(path: str | Path, max_bytes: int | None = None, *, follow: bool = False) -> bytes:
    """Return all bytes of a plain or gzip file. Raises :class:`Unreadable`, :class:`TooLarge`, :class:`Damaged`."""
    with Source(path, max_bytes, follow=follow) as source:
        return b"".join(iter(lambda: source.read(1 << 22), b""))
