"""Matrices of vectors beside the arguments of an index: what one has to be like, for whoever checks and for whoever serves them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from schemas.documents import show

MAX_DIMENSIONS = 4096


def matrix_problems(matrix: Any, arguments: str, count: int) -> Iterator[tuple[str, str]]:
    """What is wrong with a numpy array as the vectors of ``count`` arguments in the file ``arguments``, and what to do.

    It has to have float16 or float32 values, and a row of 1 to 4096 dimensions for each argument, one after another.
    """
    again = f"write it with numpy.save: one row an argument, in the order of {arguments}"
    if matrix.dtype.str not in ("<f2", "<f4"):
        what = f"its numbers are {show(str(matrix.dtype), 40)}, not float16 or float32"
        yield what, "convert them: vectors.astype(numpy.float16)"
    if matrix.ndim != 2 or not matrix.flags.c_contiguous:
        yield f"it has the shape {show(str(matrix.shape), 80)}, not rows of vectors one after another", again
        return
    if not 1 <= matrix.shape[1] <= MAX_DIMENSIONS:
        yield f"its vectors have {matrix.shape[1]} dimensions; 1 to {MAX_DIMENSIONS} are possible", again
    if matrix.shape[0] != count:
        yield f"{matrix.shape[0]} rows, but {arguments} holds {count} arguments", again
