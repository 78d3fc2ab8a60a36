"""Files that no reader of text accepts are recognised by their first bytes; text of any form is not."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest

from schemas.file_sorts import HEAD_BYTES, describe_wrong_sort, find_wrong_sort

RUN = "301 Q0 doc-17 1 12.5 mytag\r\n" * 400
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"


def packed(*names: str) -> bytes:
    """Return a zip archive with files of these names."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name in names:
            archive.writestr(name, RUN[:100])
    return target.getvalue()


def tarred() -> bytes:
    """Return a tar archive with one file."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("run.txt"))
    return target.getvalue()


@pytest.mark.parametrize(
    ("key", "data"),
    [
        ("zip", packed("run.txt")),
        ("zip", packed("run.txt", "__MACOSX/._run.txt")),
        ("zip", packed()),
        ("xlsx", packed("[Content_Types].xml", "_rels/.rels", "xl/workbook.xml")),
        ("docx", packed("[Content_Types].xml", "_rels/.rels", "word/document.xml")),
        ("ods", packed("mimetype")[:30] + b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet"),
        ("tar", tarred()),
        ("gzip", gzip.compress(RUN.encode())),
        ("xz", lzma.compress(RUN.encode())),
        ("lzma", lzma.compress(RUN.encode(), format=lzma.FORMAT_ALONE)),
        ("bzip2", bz2.compress(RUN.encode())),
        ("bzip2", bz2.compress(b"")),
        ("zstd", b"\x28\xb5\x2f\xfd\x24\x1a"),
        ("pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"),
        ("lfs", LFS),
        ("lfs", LFS.replace(b"\n", b"\r\n")),
        ("html", b"\xef\xbb\xbf\n<!DOCTYPE html>\n<html lang='en'>"),
        ("html", b"<!-- saved from url --><HTML><head>"),
        ("html", b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN">'),
        ("utf-16", RUN.encode("utf-16")),
        ("utf-16", b"\xfe\xff" + RUN.encode("utf-16-be")),
        ("utf-16", RUN.encode("utf-16-le")),
        ("utf-16", RUN.encode("utf-16-be")),
        ("utf-16", "1\tRöntgen und Café in 漢字\n".encode("utf-16-le")),
        ("utf-32", RUN.encode("utf-32")),
    ],
    ids=lambda value: value if isinstance(value, str) else "data",  # no bytes: gzip writes the time
)
def test_a_file_of_another_sort_is_named(key: str, data: bytes) -> None:
    sort = find_wrong_sort(data[:HEAD_BYTES])
    assert sort is not None
    assert sort.key == key
    assert describe_wrong_sort(data) == str(sort)
    assert "\n" not in str(sort)
    assert sort.fix


def test_a_zip_of_a_mac_names_the_folder_that_is_not_meant() -> None:
    assert "__MACOSX" in str(describe_wrong_sort(packed("run.txt", "__MACOSX/._run.txt")))
    assert "__MACOSX" not in str(describe_wrong_sort(packed("run.txt")))


@pytest.mark.parametrize(
    "text",
    [
        RUN,
        "",
        "\n",
        '{"id": 1}\n',
        "[1, 2]",
        "<top>\n<num>1</num>",
        '<?xml version="1.0"?>\n<topics><topic/></topics>',
        "<DOC>\n<HEAD>a headline</HEAD>",
        "BZhang Q0 doc 1 1.0 tag\n",
        "PAR1 Q0 doc 1 1.0 tag\n",
        "PK Q0 doc 1 1.0 tag\n",
        "Rar! Q0 doc 1 1.0 tag\n",
        "1\t漢字かな\n2\tὀδυσσεία\n",
        "a\0b\n" + RUN,
        "\ufeff" + RUN,
    ],
)
def test_text_is_none_of_them(text: str) -> None:
    assert describe_wrong_sort(text.encode()[:HEAD_BYTES]) is None


def test_latin_1_is_none_of_them() -> None:
    assert describe_wrong_sort("1\tCafé in München\n".encode("latin-1")) is None
