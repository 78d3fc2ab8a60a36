"""Exact search for the nearest vectors: one matrix a field, mapped from its file, cosine by blocks of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

try:
    import numkong
except ImportError:  # no wheel for this machine: numpy does the same, at a tenth of the speed
    numkong = None  # type: ignore[assignment]

from schemas.vectors import matrix_problems
from sidecars.search.errors import DataError

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]
BLOCK = 512  # rows at a time; a block of 1,024 dimensions as float32 is 2 MiB
_READ = 4 * BLOCK  # rows that are multiplied in one call
# How far an estimate may be from the cosine, at most 4,096 dimensions: 2**-11 for the query in half precision, 4096 *
# 2**-24 for the sum and half of that for the row's length in single precision are 8.6e-4 together.
MARGIN = 1e-3
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
        if k < len(cosines):  # the last of so many is as near as its estimate, but for the error
            last = float(np.partition(cosines, len(cosines) - k)[len(cosines) - k])
            bound = max(bound, last - MARGIN)
        places = np.flatnonzero(cosines >= bound - MARGIN)
        rows = places if among is None else among[places]
        exact = self._exact(_unit(query), rows)
        if at_least > -1.0:
            rows, exact = rows[exact >= at_least], exact[exact >= at_least]
        best = np.argsort(-exact, kind="stable")[:k]
        return [(int(rows[place]), float(exact[place])) for place in best]

    def estimates(self, queries: Sequence[Floats], among: Places | None = None) -> Floats:
        """The cosines of each query and the rows in single precision, a line a query; -2 where there is no vector.

        Several queries read the rows once.
        """
        count = len(self._rows) if among is None else len(among)
        inverse = self._inverse if among is None else self._inverse[among]
        product = _product(np.stack([_unit(query) for query in queries]), self._rows.dtype)
        found = np.zeros((count, len(queries)), dtype=np.float32)
        rows: npt.NDArray[Any] = np.asarray(self._rows)  # a part of a mapped file takes longer to make

        def look(places: range) -> None:
            for start in places:
                end = min(start + _READ, count)
                with np.errstate(invalid="ignore", over="ignore"):
                    found[start:end] = product(rows[start:end] if among is None else rows[among[start:end]])

        blocks = range(0, count, _READ)
        if count * self.dimensions < ALONE:
            look(blocks)
        else:  # two threads read as fast as two processors can
            with ThreadPoolExecutor(_THREADS) as pool:
                list(pool.map(look, (blocks[n::_THREADS] for n in range(_THREADS))))
        with np.errstate(invalid="ignore", over="ignore"):
            lines = found.T  # the same memory: 4 bytes a row and query are all there is
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


def _unit(query: Floats) -> Floats:
    """The vector with length 1."""
    return query / np.float32(np.sqrt(np.dot(query.astype(np.float64), query)))


Product = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]  # of rows: a line a row, a column a query


def by_numpy(queries: Floats) -> Product:
    """What multiplies rows with each of some vectors of length 1; rows in half precision are widened first."""
    if len(queries) == 1:  # numpy multiplies with one vector much faster than with a matrix of one column
        return lambda rows: np.dot(rows.astype(np.float32, copy=False), queries[0])[:, None]
    return lambda rows: np.dot(rows.astype(np.float32, copy=False), queries.T)


def by_numkong(queries: Floats) -> Product:
    """The same for rows in half precision only, which are multiplied as they lie in the file, by queries of half precision."""
    half = queries.astype(np.float16)
    if len(half) == 1:  # limited by memory, and packed it would be by the processor
        return lambda rows: np.asarray(numkong.cdist(rows, half, "dot"))
    packed = numkong.dots_pack(half)
    return lambda rows: np.asarray(numkong.dots_packed(rows, packed))


@cache
def exact_enough() -> bool:
    """Whether numkong is here and sums as exactly on this processor as :data:`MARGIN` supposes.

    It chooses among many ways to multiply by what the processor can, and not all of them can be tried elsewhere.
    """
    if numkong is None:
        return False
    dice = np.random.default_rng(1)
    rows = dice.uniform(0.2, 1, (64, 4096)).astype(np.float16)  # of one sign: the sum is as long as it can be
    wide = rows.astype(np.float64) / np.linalg.norm(rows.astype(np.float64), axis=1)[:, None]
    for count in 1, 3:
        found = by_numkong(wide[:count].astype(np.float32))(rows)
        found = found / np.linalg.norm(rows.astype(np.float64), axis=1)[:, None]
        if not np.abs(found - wide @ wide[:count].T).max() < MARGIN:
            return False
    return True


def _product(queries: Floats, dtype: np.dtype[Any]) -> Product:
    """What multiplies rows of a type with each of some vectors of length 1."""
    return (by_numkong if dtype == np.float16 and exact_enough() else by_numpy)(queries)


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
