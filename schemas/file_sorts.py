"""Recognise files that no reader of text accepts (archives, spreadsheets, UTF-16, web pages) by their first bytes."""

from __future__ import annotations

import gzip
import re
import zlib
from contextlib import suppress
from typing import BinaryIO, NamedTuple

HEAD_BYTES = 4096


class FileSort(NamedTuple):
    """A sort of file that cannot be read: a stable ``key``, its ``name`` with an article, and the ``fix``."""

    key: str
    name: str
    fix: str

    def __str__(self) -> str:
        return f"{self.name}; {self.fix}"


_UNPACK = "unpack it and use the file inside"
_EXPORT = "export it as CSV or plain text in UTF-8"
_UTF8 = "save it as UTF-8 (in PowerShell: Out-File -Encoding utf8)"
_BZIP2_HEAD = re.compile(rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90)")
_HTML = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL
)

_LFS = FileSort(
    "lfs", "a Git LFS pointer, not the file itself", "run `git lfs pull`, and use the file it fetches"
)
_PAGE = FileSort("html", "a web page (HTML)", "download the file itself, not the page that shows it")
_BZIP2 = FileSort("bzip2", "compressed with bzip2", "unpack it with bunzip2")
_TAR = FileSort("tar", "a tar archive", _UNPACK)
_ZIP = FileSort("zip", "a zip archive", _UNPACK)
_MAC_ZIP = FileSort("zip", "a zip archive", f"{_UNPACK}, without the folder __MACOSX")
_XLSX = FileSort("xlsx", "a spreadsheet (xlsx)", _EXPORT)
_ODS = FileSort("ods", "an OpenDocument file (such as ods)", _EXPORT)
_DOCX = FileSort("docx", "an Office document (such as docx)", _EXPORT)
_UTF16 = FileSort("utf-16", "text in UTF-16", _UTF8)
_UTF32 = FileSort("utf-32", "text in UTF-32", _UTF8)

_MAGIC = (
    (b"\x1f\x8b", FileSort("gzip", "compressed with gzip", "unpack it with gunzip")),
    (b"\x1f\x9d", FileSort("compress", "compressed with compress (.Z)", "unpack it with gunzip")),
    (b"\xfd7zXZ\0", FileSort("xz", "compressed with xz", "unpack it with unxz")),
    (b"\x28\xb5\x2f\xfd", FileSort("zstd", "compressed with zstd", "unpack it with unzstd")),
    (b"\x04\x22\x4d\x18", FileSort("lz4", "compressed with lz4", "unpack it with unlz4")),
    (b"]\0\0", FileSort("lzma", "compressed with lzma", "unpack it with unlzma")),
    (b"7z\xbc\xaf\x27\x1c", FileSort("7z", "a 7z archive", _UNPACK)),
    (b"Rar!\x1a\x07", FileSort("rar", "a RAR archive", _UNPACK)),
    (b"%PDF-", FileSort("pdf", "a PDF document", "use the text file that it was made from")),
    (b"{\\rtf", FileSort("rtf", "a rich text document (RTF)", "save it as plain text in UTF-8")),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", FileSort("ole", "an Office document (such as xls)", _EXPORT)),
    (b"PAR1\x15", FileSort("parquet", "a Parquet file", "export it as text, such as JSON Lines")),
    (b"SQLite format 3\0", FileSort("sqlite", "an SQLite database", "export it as text, such as JSON Lines")),
    (b"\x93NUMPY", FileSort("npy", "a NumPy array", "export it as text, such as JSON Lines")),
    (b"\x89HDF\r\n", FileSort("hdf5", "an HDF5 file", "export it as text, such as JSON Lines")),
    (b"\x89PNG\r\n", FileSort("png", "a picture (PNG)", "use the text file")),
    (b"\xff\xd8\xff", FileSort("jpeg", "a picture (JPEG)", "use the text file")),
    (b"\x7fELF", FileSort("elf", "a program (ELF)", "use the file that it writes")),
    (b"\xff\xfe\0\0", _UTF32),
    (b"\0\0\xfe\xff", _UTF32),
    (b"\xff\xfe", _UTF16),
    (b"\xfe\xff", _UTF16),
)  # fmt: skip


def describe_wrong_sort(head: bytes) -> str | None:
    """Return the sort of a file that cannot be read as text, and the fix, in one line; None for other files.

    The text completes "the file is ...", such as "a zip archive; unpack it and use the file inside". It never holds
    anything of the file.

    Args:
        head: The first :data:`HEAD_BYTES` of the file. A reader that accepts gzip passes what it unpacked.
    """
    sort = find_wrong_sort(head)
    return None if sort is None else str(sort)


def find_wrong_sort(head: bytes) -> FileSort | None:
    """Return the sort of a file that cannot be read as text, by its first bytes; None for other files."""
    head = head[:HEAD_BYTES]
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")):
        return _sort_of_zip(head)
    for magic, sort in _MAGIC:
        if head.startswith(magic):
            return sort
    if _BZIP2_HEAD.match(head):
        return _BZIP2
    if head[257:262] == b"ustar":
        return _TAR
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"version https://git-lfs.github.com/spec/"):
        return _LFS
    if _HTML.match(text):
        return _PAGE
    return _UTF16 if _is_utf16(head) else None


def read_head(raw: BinaryIO, *, packed: bool) -> bytes:
    """Return the first bytes of a file, unpacked; fewer where they are damaged."""
    head = b""
    with suppress(EOFError, zlib.error, gzip.BadGzipFile):
        head = (gzip.GzipFile(fileobj=raw) if packed else raw).read(HEAD_BYTES)
    raw.seek(0)
    return head


def _sort_of_zip(head: bytes) -> FileSort:
    if b"mimetypeapplication/vnd.oasis.opendocument" in head:
        return _ODS
    if b"[Content_Types].xml" in head or b"_rels/.rels" in head:
        return _XLSX if b"xl/" in head or b"word/" not in head else _DOCX
    return _MAC_ZIP if b"__MACOSX" in head else _ZIP


def _is_utf16(head: bytes) -> bool:
    """True if text without a byte order mark has its zero bytes at even places alone, or at odd ones alone."""
    zeros = head.count(0)
    if zeros < 2 or zeros * 10 < len(head):
        return False
    even = head[::2].count(0)
    return max(even, zeros - even) * 20 >= zeros * 19
