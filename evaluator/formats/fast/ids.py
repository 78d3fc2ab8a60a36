"""The ids of a large corpus as 64-bit hashes in a file that is mapped into memory: 16 bytes or so for each id.

The file holds, behind its head, a hash table with linear probing whose hashes rise: of ``PLACES`` for each id the first bits of a
hash say which is its own, and it stands there or, where that was taken, in one of the next. A place that none took holds what the
next one holds. So an id is there if its hash is met before a greater one, mostly at the first place and without a list of where
others begin. The file is made once for each corpus, and found again by the SHA-256 of that and how it is read: in the folder
``EVALUATOR_CACHE``, else ``~/.cache/proctor/ids``. It is held in memory for one call where that cannot be written or is
``/dev/null``, and where what lies there is not ours or others may write to it.

Two ids have the same hash by chance only, with a probability of 2^-64: its multipliers are drawn anew for each file, so nobody
can make an id that passes for another. A wrong id passes for one of nine million with a probability of 5e-13.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from evaluator.formats.fast.words import (
    WIDEST,
    Array,
    Unusual,
    drawn_hashed,
    first_fields,
    gather,
    padded,
    words_of,
)
from evaluator.formats.files import BOM, Unreadable, open_regular
from evaluator.formats.trec_lines import CONTROLS

_MAGIC = b"proctor ids 3\n\0\0"
PLACES = 2.0  # for each id; fewer take less memory and more steps
_COUNTS = (
    24  # bytes: how many ids there are, how many places of their own they have, and how many places there are
)
_DRAWN = (2, 1 + WIDEST // 4)  # multipliers: two rows of one and one for each half of a word
_HEAD = len(_MAGIC) + _COUNTS + 8 * _DRAWN[0] * _DRAWN[1]
_SOME = 1 << 20
_HALF = np.uint64(32)
_BATCH = 100_000
_PIECE = 4 << 20


class IdIndex:
    """The ids of a corpus; see :class:`evaluator.formats.ranked.KnownDocuments`. ``everyone`` reads the ids themselves."""

    def __init__(self, data: Array, everyone: Callable[[], Iterator[bytes]]) -> None:
        self._count, self._own, _ = _counts(data)
        self._drawn = np.array(data[len(_MAGIC) + _COUNTS : _HEAD]).view(np.uint64).reshape(_DRAWN)
        self._hashes = data[_HEAD:].view(np.uint64)
        self._everyone = everyone

    def __len__(self) -> int:
        return self._count

    def hashed(self, words: Array) -> Array:
        """The hash of every document, given as rows of words: what :meth:`knows` is asked."""
        with np.errstate(over="ignore"):
            return drawn_hashed(words, self._drawn)

    def knows(self, hashes: Array) -> bool:
        """Whether all documents with these hashes are in the corpus."""
        return bool(self._found(hashes).all())

    def missing(self, docs: Collection[bytes]) -> Collection[bytes]:
        """Return those of ``docs`` that are not in the corpus."""
        fitting = [doc for doc in docs if len(doc) <= WIDEST and b"\0" not in doc]
        found = self._found(self.hashed(words_of(fitting))) if fitting else np.empty(0, dtype=bool)
        known = {doc for doc, one in zip(fitting, found.tolist(), strict=True) if one}
        return {doc for doc in docs if doc not in known}

    def ids(self) -> Iterator[bytes]:
        """Every id."""
        return self._everyone()

    def _found(self, wanted: Array) -> Array:
        """For every hash whether it is there."""
        at = _own_places(wanted, self._own)  # the last of which may be behind the last that is filled
        found: Array = self._hashes.take(at, mode="clip") == wanted
        rows = np.flatnonzero(~found)
        at, wanted = at[rows], wanted[rows]
        while len(rows):  # once for each step that a hash is behind its own place
            at += 1
            here = self._hashes.take(at, mode="clip")
            found[rows] = here == wanted
            on = np.flatnonzero((here < wanted) & (at < len(self._hashes)))
            rows, at, wanted = rows[on], at[on], wanted[on]
        return found


def _own_places(hashes: Array, count: int) -> Array:
    """Which of ``count`` places is the own one of every hash: it rises as they do."""
    at = hashes >> _HALF
    at *= np.uint64(count)
    at >>= _HALF
    return at.view(np.int64)


def _counts(data: Array) -> tuple[int, int, int]:
    """How many ids, places of their own, and places there are, as the head says."""
    ids, own, places = data[len(_MAGIC) : len(_MAGIC) + _COUNTS].view(np.uint64).tolist()
    return ids, own, places


def open_index(
    path: Path, form: str, batches: Iterator[Array], ids: Callable[[], Iterator[bytes]]
) -> IdIndex | None:
    """The index of the corpus at ``path``, made now if there is none yet; None for a corpus that it cannot hold.

    ``form`` is how it is read, a word. ``batches`` are all its ids as rows of words (:func:`in_batches`, :func:`of_lines`);
    ``ids`` reads them as they are.
    """
    kept = _place(path, form)
    data = None if kept is None else _mapped(kept)
    if data is None:
        try:
            data = _made(batches)
        except Unusual:
            return None
        if kept is not None:
            with contextlib.suppress(OSError):
                _keep(kept, data)
                if (mapped := _mapped(kept)) is not None:
                    data = mapped  # the memory is free again
    return IdIndex(data, ids)


def in_batches(ids: Iterator[bytes]) -> Iterator[Array]:
    """Ids as rows of words, many at a time. Raises :class:`Unusual` for one that has no place in them."""
    while some := list(islice(ids, _BATCH)):
        if max(map(len, some)) > WIDEST or b"\0" in b"".join(some):
            raise Unusual
        yield words_of(some)


def of_lines(read: Callable[[int], bytes]) -> Iterator[Array]:
    """The first field of every line as rows of words. Raises :class:`Unusual` as :func:`in_batches`."""
    rest, mark = b"", BOM
    while piece := read(_PIECE):
        lines = rest + piece.removeprefix(mark)
        end = lines.rfind(b"\n") + 1
        yield from _first_words(lines[:end])
        rest, mark = lines[end:], b""
    yield from _first_words(rest + b"\n")


def _first_words(lines: bytes) -> Iterator[Array]:
    text = padded(lines)
    starts, lengths = first_fields(text)
    if len(lines) != len(lines.translate(None, CONTROLS)) or not lengths.all():
        # Something that is no blank for Python, or lines that are empty or begin with a blank.
        words = (line.split(None, 1)[:1] for line in lines.split(b"\n"))
        yield from in_batches(word for one in words for word in one)
    elif len(lengths):
        longest = int(lengths.max())
        if longest > WIDEST:
            raise Unusual
        yield gather(text, starts, lengths, longest)


def _place(path: Path, form: str) -> Path | None:
    """Where the index of a corpus that is read so is kept; None if nowhere."""
    given = os.environ.get("EVALUATOR_CACHE")
    if given == os.devnull:
        return None
    folder = Path(given) if given else Path(os.path.expanduser("~"), ".cache", "proctor", "ids")  # noqa: PTH111 (raises nothing)
    with path.open("rb") as file:
        return folder / f"{hashlib.file_digest(file, 'sha256').hexdigest()}.{form}.ids"


def _mapped(path: Path) -> Array | None:
    """The file, if it is there and whole, is ours, and nobody else may write to it."""
    try:
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return None
            data: Array = np.memmap(file, dtype=np.uint8, mode="r")
    except (Unreadable, OSError, ValueError):
        return None
    if len(data) <= _HEAD or bytes(data[: len(_MAGIC)]) != _MAGIC:
        return None
    _, own, places = _counts(data)
    return data if own < 1 << 32 and len(data) == _HEAD + 8 * places else None


def _made(batches: Iterator[Array]) -> Array:
    """The bytes of the file. Raises :class:`Unusual`."""
    drawn = np.frombuffer(os.urandom(8 * _DRAWN[0] * _DRAWN[1]), dtype=np.uint64).reshape(_DRAWN)
    with np.errstate(over="ignore"):
        hashes = np.concatenate(
            [np.empty(0, dtype=np.uint64), *(drawn_hashed(words, drawn) for words in batches)]
        )
    if not 0 < len(hashes) < 1 << 32:
        raise Unusual
    hashes.sort()
    own = max(1, int(PLACES * len(hashes)))
    data = np.empty(
        _HEAD + 8 * (own + len(hashes)), dtype=np.uint8
    )  # at most; what is not used takes no memory
    places = _fill(data[_HEAD:].view(np.uint64), hashes, own)
    head = _MAGIC + np.array([len(hashes), own, places], dtype=np.uint64).tobytes() + drawn.tobytes()
    data[:_HEAD] = np.frombuffer(head, dtype=np.uint8)
    return data[: _HEAD + 8 * places]


def _fill(places: Array, hashes: Array, own: int) -> int:
    """Put the sorted ``hashes`` into their places, and into empty ones what the next one holds. Returns how many that are."""
    end = 0  # behind the last that has been filled
    for start in range(0, len(hashes), _SOME):
        some = hashes[start : start + _SOME]
        numbers = np.arange(len(some))
        at = _own_places(some, own)
        at = np.maximum.accumulate(np.maximum(at, end) - numbers) + numbers  # each behind the one before
        last = int(at[-1]) + 1
        places[end:last] = np.repeat(some, np.diff(at, prepend=end - 1))
        end = last
    return end


def _keep(path: Path, data: Array) -> None:
    """Write the file as a whole or not at all. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".ids-", delete=False) as file:
        try:
            data.tofile(file)
            file.flush()
            os.fsync(file.fileno())  # else its name may be on the disk before what it holds
            os.replace(file.name, path)  # noqa: PTH105 (the first is a string)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
