"""What models answered before, and what that cost: so that no question is ever paid for twice.

``RUNNER_HOME/replies/<task>.jsonl`` holds lines ``{"key", "model", "reply", …}``; the key is a hash of the question
(model, messages, parameters; never the endpoint). A line with ``refused`` says that an endpoint did not take the question;
an answer that came later stands behind it, and counts. The file only grows, and nothing in it is a secret of the
platform, but it may hold words of participants and of truths: it is the organiser's. It is derived: every line of
it stands in the archive too, beside the attempt or evaluation that asked (``replies.jsonl``).

``<task>.spent.json`` beside it is the account of what that cost (:mod:`runner.execution.spending`).
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from runner.model import names
from runner.model.errors import PlatformError, disk_error
from runner.model.limits import MIB
from schemas import jsonl
from schemas.files import make_private

if TYPE_CHECKING:
    from filelock import BaseFileLock

    from runner.records.archive import RunArchive

NAME = "replies.jsonl"
MAX_LINE = 4 * MIB
MAX_BYTES = 512 * MIB  # of one task's file: it is copied into memory of the engine's machine for each gateway
_KEY = re.compile(r"[0-9a-f]{64}")


def replies_of(home: Path, task: str) -> Path:
    """The file of a task's replies; it may not be there yet."""
    if not names.NAME.fullmatch(task):
        raise ValueError("not the name of a task")
    return home / "replies" / f"{task}.jsonl"


def learn(book: Path, found: Path) -> int:
    """Add the replies in ``found`` (a gateway's file) that ``book`` does not have; returns how many were new.

    Lines that are no replies are left out. Raises E306 when the book cannot be written.
    """
    if not found.is_file() or found.stat().st_size == 0:
        return 0
    try:
        make_private(book.parent)
        with locked(book):
            answered, refused = set[str](), set[str]()
            for key, line in _lines(book):
                (refused if _refused(line) else answered).add(key)
            added = 0
            _end_the_line(book)
            with book.open("ab") as out:
                for key, line in _lines(found):
                    mine = refused if _refused(line) else answered
                    if key not in answered and key not in mine:
                        mine.add(key)
                        out.write(line + b"\n")
                        added += 1
            return added
    except OSError as error:
        raise disk_error("the replies of models cannot be kept", error, book) from error


def rebuild(home: Path, archive: RunArchive, task: str) -> int:
    """Make a task's file anew from everything in the archive; returns how many replies it has."""
    book = replies_of(home, task)
    book.unlink(missing_ok=True)
    return sum(learn(book, path) for path in gateway_files(archive, task, NAME))


def gateway_files(archive: RunArchive, task: str, name: str) -> Iterator[Path]:
    """The files ``name`` that gateways left in attempts of a task and their evaluations; each is there until the next is asked for.

    Raises E307 for one that is damaged.
    """
    for sealed in archive.sealed(task):
        file = sealed.file(name)
        if file is not None:
            with file.local() as path:
                yield path


@contextmanager
def snapshot(book: Path | None) -> Iterator[Path | None]:
    """A copy of a book that does not change while it is read; None when there is nothing in it.

    Raises E306 when it has grown beyond what a gateway can be given.
    """
    if book is None or not book.is_file() or book.stat().st_size == 0:
        yield None
        return
    if book.stat().st_size > MAX_BYTES:
        what, why = (
            "there are too many kept replies of models",
            f"{book} is larger than {MAX_BYTES // MIB} MiB.",
        )
        fix = "move it away: runner store rebuild makes it again from the archive"
        raise PlatformError(what, why=why, fix=fix, code="E306")
    with tempfile.TemporaryDirectory(prefix="replies-") as folder:
        copy = Path(folder) / NAME
        with locked(book), copy.open("wb") as out:
            out.writelines(line + b"\n" for _, line in _lines(book))
        yield copy


def _lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """Key and line of every reply in a file; what is no reply (a line that was cut off, say) is passed over."""
    if not path.is_file():
        return
    with path.open("rb") as stream:
        for _, _, line in jsonl.split(stream.read, MAX_LINE):
            if line is not None and (key := _key(line)) is not None:
                yield key, line.rstrip(b"\r")


def _key(line: bytes) -> str | None:
    data = jsonl.parse(line, jsonl.LENIENT)
    key = data.get("key") if isinstance(data, dict) else None
    return key if isinstance(key, str) and _KEY.fullmatch(key) and "reply" in data else None


def _refused(line: bytes) -> bool:
    """Whether a reply's line says that the endpoint did not take the question."""
    return b'"refused"' in line and "refused" in json.loads(line)


def _end_the_line(book: Path) -> None:
    """A process that was killed while it wrote may have left half a line: what follows starts a new one."""
    if book.is_file() and book.stat().st_size:
        with book.open("rb+") as stream:
            stream.seek(-1, 2)
            if stream.read(1) != b"\n":
                stream.write(b"\n")


def locked(book: Path) -> BaseFileLock:
    """The lock of a task's replies and of their account, over processes."""
    from filelock import FileLock

    return FileLock(book.with_name(f".{book.name}.lock"), timeout=60)
