"""Exact search for the nearest vectors: one matrix a field, mapped from its file, cosine by blocks of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from schemas.vectors import matrix_problems
from sidecars.search.errors import DataError

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]
BLOCK = 512  # rows at a time; a block of 1,024 dimensions as float32 is 2 MiB
_MARGIN = 1e-4  # how far an estimate in single precision may be off, generously
_THREADS = 2  # that read one matrix
ALONE = 4_000_000  # numbers; fewer are read by one of them before the other has begun
_SAMPLES, _SAMPLE_BYTES = 256, 4096


def files(folder: Path) -> dict[str, Path]:
    """The matrices in ``folder`` by the name of their field, in the order of names."""
    return {path.stem: path for path in sorted(folder.glob("*.npy")) if path.is_file()}


def fingerprint(path: Path) -> str:
    """SHA-256 (hex) of a matrix's length, its beginning and 256 blocks spread evenly over it.

    It tells a matrix that was made anew from the one that was prepared, without reading gigabytes at every start. It
    is no protection against somebody who wants to deceive.
    """
    size = path.stat().st_size
    state = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        for number in range(_SAMPLES):
            file.seek(max(0, size - _SAMPLE_BYTES) * number // (_SAMPLES - 1))
            state.update(file.read(_SAMPLE_BYTES))
    return state.hexdigest()


class Matrix:
    """The vectors of one field. A row of zeros, or with a value that is not finite, means: has no vector."""

    def __init__(self, rows: npt.NDArray[Any], inverse: Floats) -> None:
        self._rows, self._inverse = rows, inverse
        self.dimensions = int(rows.shape[1])

    @classmethod
    def open(cls, path: Path, count: int, inverse: Floats | None = None) -> Matrix:
        """Map a .npy file of float16 or float32 with ``count`` rows; lengths are computed if not given.

        Raises DataError when the file is not such a matrix.
        """
        try:
            rows = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise DataError([f"{path}: not a .npy file that can be mapped: {error}"]) from error
        wrong = [f"{path}: {what}" for what, _ in matrix_problems(rows, "the folder", count)]
        if wrong:
            raise DataError(wrong, "write it with numpy.save, rows in the order of the arguments")
        return cls(rows, inverse if inverse is not None else inverse_lengths(rows))

    def nearest(
        self,
        query: Floats,
        k: int,
        among: Places | None = None,
        at_least: float = -1.0,
        estimates: Floats | None = None,
    ) -> list[tuple[int, float]]:
        """The ``k`` rows with the largest cosine, best first, equal ones in their order: (row, cosine).

        ``query`` is not zero. Only rows of ``among`` (rising) are looked at, if given, and only cosines of at least
        ``at_least`` are returned. Selected with the machine's fast multiplication, whose last digits depend on where
        a row lies; then the best are computed anew, so that equal vectors have equal cosines. ``estimates``: what
        :meth:`estimates` says of the query, where it was asked about several.
        """
        cosines = self.estimates([query], among)[0] if estimates is None else estimates
        bound = max(at_least, -1.0)
        if k < len(cosines):
            bound = max(bound, float(np.partition(cosines, len(cosines) - k)[len(cosines) - k]))
        places = np.flatnonzero(cosines >= bound - _MARGIN)
        rows = places if among is None else among[places]
        exact = self._exact(_unit(query), rows)
        if at_least > -1.0:
            rows, exact = rows[exact >= at_least], exact[exact >= at_least]
        best = np.argsort(-exact, kind="stable")[:k]
        return [(int(rows[place]), float(exact[place])) for place in best]

    def estimates(self, queries: Sequence[Floats], among: Places | None = None) -> Floats:
        """The cosines of each query and the rows in single precision, a line a query; -2 where there is no vector.

        Several queries read and widen the rows once.
        """
        count = len(self._rows) if among is None else len(among)
        inverse = self._inverse if among is None else self._inverse[among]
        half = self._rows.dtype == np.float16
        wanted = np.stack([_unit(query) for query in queries], axis=1) * np.float32(2.0**112 if half else 1)
        # numpy multiplies with one vector much faster than with a matrix of one column.
        wanted = wanted[:, 0] if len(queries) == 1 else wanted
        found = np.zeros((count, *wanted.shape[1:]), dtype=np.float32)
        rows: npt.NDArray[Any] = np.asarray(self._rows)  # a part of a mapped file takes longer to make

        def look(places: range) -> None:
            buffer = np.empty((min(BLOCK, count), self.dimensions), dtype=np.int32)
            for start in places:
                end = min(start + BLOCK, count)
                block = rows[start:end] if among is None else rows[among[start:end]]
                with np.errstate(invalid="ignore", over="ignore"):
                    np.dot(widened(block, buffer) if half else block, wanted, out=found[start:end])

        blocks = range(0, count, BLOCK)
        if count * self.dimensions < ALONE:
            look(blocks)
        else:  # two threads read as fast as two processors can
            with ThreadPoolExecutor(_THREADS) as pool:
                list(pool.map(look, (blocks[n::_THREADS] for n in range(_THREADS))))
        with np.errstate(invalid="ignore", over="ignore"):
            lines = np.atleast_2d(found.T)  # the same memory: 4 bytes a row and query are all there is
            np.multiply(lines, inverse, out=lines)
            np.copyto(lines, np.float32(-2), where=~(inverse > 0))
        return lines

    def _exact(self, query: Floats, rows: Places) -> npt.NDArray[np.float64]:
        """The cosines of ``query`` and these rows in double precision, every row computed in the same way."""
        wide = query.astype(np.float64)
        wide /= np.sqrt((wide * wide).sum())
        found = np.empty(len(rows), dtype=np.float64)
        for start in range(0, len(rows), BLOCK):
            block = self._rows[rows[start : start + BLOCK]].astype(np.float64)
            lengths = np.sqrt((block * block).sum(axis=1))
            found[start : start + len(block)] = (block * wide).sum(axis=1) / lengths
        # Rounding may leave a cosine a hair outside its range.
        return np.clip(found, -1.0, 1.0)

    def values(self, row: int) -> list[float] | None:
        """The vector of ``row`` as it is stored, or None when the row has none."""
        if self._inverse[row] <= 0:
            return None
        return cast(list[float], self._rows[row].tolist())

    def rows_with_vectors(self) -> Places:
        """The places of the rows that have a vector."""
        return np.flatnonzero(self._inverse > 0)


def _unit(query: Floats) -> Floats:
    """The vector with length 1."""
    return query / np.float32(np.sqrt(np.dot(query.astype(np.float64), query)))


def widened(block: npt.NDArray[Any], buffer: npt.NDArray[np.int32]) -> Floats:
    """Half precision as single precision, divided by 2**112, in ``buffer``: much faster than numpy's conversion.

    Sign, exponent and fraction are moved to where single precision has them. What is left is the difference of the two
    formats' exponents, 127 - 15. Small numbers come out right, too; infinities become finite, but their rows are
    not looked at.
    """
    bits = buffer[: len(block)]
    np.copyto(bits, block.view(np.int16))
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, np.int32(-0x70000001), out=bits)
    return bits.view(np.float32)


def inverse_lengths(rows: npt.NDArray[Any]) -> Floats:
    """One divided by the Euclidean length of every row; 0 for a row of zeros or with a value that is not finite."""
    found = np.zeros(len(rows), dtype=np.float32)
    for start in range(0, len(rows), BLOCK):
        block = np.asarray(rows[start : start + BLOCK], dtype=np.float32)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            squares = np.einsum("ij,ij->i", block, block)
            good = np.isfinite(squares) & (squares > 0)
            found[start : start + len(block)] = np.where(good, 1 / np.sqrt(squares), 0)
    return found
