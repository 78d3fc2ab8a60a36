"""What models answered before, and what that cost: so that no question is ever paid for twice.

``RUNNER_HOME/replies/<task>.jsonl`` holds lines ``{"key", "model", "reply", …}``; the key is a hash of the question
(model, messages, parameters; never the endpoint). A line with ``refused`` says that an endpoint did not take the question;
an answer that came later stands behind it, and counts. The file only grows, and nothing in it is a secret of the
platform, but it may hold words of participants and of truths: it is the organiser's. It is derived: every line of
it stands in the archive too, beside the attempt or evaluation that asked (``replies.jsonl``).

``<task>.spent.json`` beside it is the account of what that cost: one for all the task's runs and evaluations. It is derived, too: every
call is logged, and the logs lie in the archive next to the attempt or evaluation that asked (``calls.jsonl``). Where the account is
missing it is counted again from them. Calls of work that left nothing there (given up in the middle, or a local check) stand in the
account alone.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.model import names
from runner.model.errors import PlatformError, disk_error
from runner.model.limits import MIB
from runner.records.archive import RunArchive
from schemas import jsonl
from schemas.files import atomic_file, make_private

if TYPE_CHECKING:
    from filelock import BaseFileLock

NAME = "replies.jsonl"
CALLS = "calls.jsonl"
MAX_CALL = 64 * 1024
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


@dataclass(frozen=True)
class Spent:
    """What a task's gateways have used: calls to the endpoint (retries count), tokens, and cost in its currency."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.calls + other.calls, self.tokens + other.tokens, self.cost + other.cost)


def used_by(line: Mapping[str, Any], price: Mapping[str, float]) -> Spent:
    """What one line of a call log used of the budget: nothing when the endpoint was not asked.

    ``price`` is what a million tokens cost, of questions (``input``) and replies (``output``).
    """
    counts = [line.get(name) for name in ("prompt_tokens", "completion_tokens", "retries")]
    prompt, reply, retries = (n if type(n) is int and 0 <= n < 1 << 53 else 0 for n in counts)
    if line.get("cached") is True or not ("upstream" in line or line.get("status") == 200 or retries):
        return Spent()
    cost = (prompt * price.get("input", 0.0) + reply * price.get("output", 0.0)) / 1_000_000
    return Spent(1 + retries, prompt + reply, cost)


def calls(path: Path) -> Iterator[dict[str, Any] | None]:
    """The lines of a call log; None for one that cannot be read. Nothing when there is no log."""
    if not path.is_file():
        return
    with path.open("rb") as stream:
        for _, data, _ in jsonl.rows(stream.read, max_line=MAX_CALL, rules=jsonl.LENIENT):
            yield data if isinstance(data, dict) else None


def spent(book: Path, price: Mapping[str, float] | None = None) -> Spent:
    """What has been spent by now of the budget of the task whose kept replies are in ``book``.

    Raises E306 when the account cannot be read.
    """
    path = account(book)
    if not path.is_file():
        return recount(book, price)
    try:
        data = json.loads(path.read_bytes())
        return Spent(int(data["calls"]), int(data["tokens"]), float(data["cost"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        # Never taken for nothing: that would open the whole budget again.
        what, why = "what models have cost cannot be read", f"{path} is damaged."
        fix = "remove it: it is counted again from the archive"
        raise PlatformError(what, why=why, fix=fix, code="E306") from error


def charge(book: Path, used: Spent, price: Mapping[str, float] | None = None) -> Spent:
    """Add what one gateway has used; returns the sum. Raises E306."""
    make_private(book.parent)
    with locked(book):
        total = spent(book, price) + used
        with atomic_file(account(book)) as file:
            file.write(json.dumps(asdict(total)).encode() + b"\n")
    return total


def account(book: Path) -> Path:
    """Where the account of a book's task is."""
    return book.with_suffix(".spent.json")


def recount(book: Path, price: Mapping[str, float] | None = None) -> Spent:
    """The sum over all call logs in the archive of the task."""
    total = Spent()
    for path in gateway_files(RunArchive(book.parent.parent / "archive"), book.stem, CALLS):
        for line in calls(path):
            total += used_by(line or {}, price or {})
    return total
