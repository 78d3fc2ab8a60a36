"""The ids of a large corpus as sorted 64-bit hashes in a file that is mapped into memory: 12 bytes or so for each id.

The file holds, behind its head: where in the hashes those begin that have the same first ``BITS`` bits, so that an id is looked up
among one or two; and the hashes. It is made once for each corpus, and found again by the SHA-256 of that and how it is read: in
the folder ``EVALUATOR_CACHE``, else ``~/.cache/proctor/ids``. It is held in memory for one call where that cannot be
written or is ``/dev/null``, and where what lies there is not ours or others may write to it.

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

from evaluator.formats.fast.unusual import Unusual
from evaluator.formats.fast.words import WIDEST, Array, drawn_hashed, first_fields, gather, padded, words_of
from evaluator.formats.files import BOM, Unreadable, open_regular
from evaluator.formats.trec_lines import CONTROLS

_MAGIC = b"proctor ids 2\n\0\0"
BITS = 23
_DRAWN = (2, 1 + WIDEST // 4)  # multipliers: two rows of one and one for each half of a word
_HEAD = len(_MAGIC) + 8 * _DRAWN[0] * _DRAWN[1]
_BATCH = 100_000
_PIECE = 4 << 20


class IdIndex:
    """The ids of a corpus; see :class:`evaluator.formats.ranked.KnownDocuments`. ``everyone`` reads the ids themselves."""

    def __init__(self, data: Array, everyone: Callable[[], Iterator[bytes]]) -> None:
        self._drawn = np.array(data[len(_MAGIC) : _HEAD]).view(np.uint64).reshape(_DRAWN)
        self._table = data[_HEAD : _HEAD + 4 * ((1 << BITS) + 1)].view(np.uint32)
        self._hashes = data[_HEAD + _table_bytes() :].view(np.uint64)
        self._everyone = everyone

    def __len__(self) -> int:
        return len(self._hashes)

    def knows(self, words: Array) -> bool:
        """Whether all documents, given as rows of words, are in the corpus."""
        return bool(self._found(words).all())

    def missing(self, docs: Collection[bytes]) -> Collection[bytes]:
        """Return those of ``docs`` that are not in the corpus."""
        fitting = [doc for doc in docs if len(doc) <= WIDEST and b"\0" not in doc]
        found = self._found(words_of(fitting)) if fitting else np.empty(0, dtype=bool)
        known = {doc for doc, one in zip(fitting, found.tolist(), strict=True) if one}
        return {doc for doc in docs if doc not in known}

    def ids(self) -> Iterator[bytes]:
        """Every id."""
        return self._everyone()

    def _found(self, words: Array) -> Array:
        """For every row whether its hash is there."""
        with np.errstate(over="ignore"):
            wanted = drawn_hashed(words, self._drawn)
        first = (wanted >> np.uint64(64 - BITS)).astype(np.int64)
        at = self._table[first].astype(np.int64)
        end = np.minimum(self._table[first + 1], len(self._hashes))  # a file on a disk may be damaged
        found = np.zeros(len(wanted), dtype=bool)
        left = np.flatnonzero(at < end)
        while len(left):  # once for the longest list of hashes that begin alike
            here = self._hashes[at[left]] == wanted[left]
            found[left[here]] = True
            left = left[~here]
            at[left] += 1
            left = left[at[left] < end[left]]
        return found


def _table_bytes() -> int:
    """The size of the table: a place for each beginning, the end, and nothing, so that the hashes are aligned."""
    return 4 * ((1 << BITS) + 2)


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
    whole = len(data) >= _HEAD + _table_bytes() and bytes(data[: len(_MAGIC)]) == _MAGIC
    if not whole:
        return None
    count = int(data[_HEAD : _HEAD + 4 * ((1 << BITS) + 1)].view(np.uint32)[-1])
    return data if len(data) == _HEAD + _table_bytes() + 8 * count else None


def _made(batches: Iterator[Array]) -> Array:
    """The bytes of the file. Raises :class:`Unusual`."""
    drawn = np.frombuffer(os.urandom(_HEAD - len(_MAGIC)), dtype=np.uint64).reshape(_DRAWN)
    with np.errstate(over="ignore"):
        hashes = np.concatenate(
            [np.empty(0, dtype=np.uint64), *(drawn_hashed(words, drawn) for words in batches)]
        )
    if not 0 < len(hashes) < 1 << 32:
        raise Unusual
    hashes.sort()
    firsts = np.arange((1 << BITS) + 1, dtype=np.uint64)[:-1] << np.uint64(64 - BITS)
    table = np.append(np.searchsorted(hashes, firsts), [len(hashes), 0]).astype(np.uint32)
    head = np.frombuffer(_MAGIC + drawn.tobytes(), dtype=np.uint8)
    return np.concatenate([head, table.view(np.uint8), hashes.view(np.uint8)])


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
