"""What an evaluator is handed of a run: the files of its output, as they lie in a folder or as they were read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import schemas
from runner.model.limits import MIB
from runner.records.archive import Attempt
from runner.records.files import damaged

MAX_HANDED_FILES = 64
SMALL = 1 * MIB  # of output that is held in memory while it is evaluated


class RunFiles(NamedTuple):
    """What is evaluated: a folder of output files, or what they hold by their names, and the name of the run file among them.

    ``records`` says that the platform's own records of an interactive run lie there, too (see :func:`runner.tasks.request.request`).
    """

    folder: Path | Mapping[str, bytes]
    name: str
    records: bool = False


@contextmanager
def output_of(attempt: Attempt) -> Iterator[Path | Mapping[str, bytes]]:
    """The output files of an attempt as :class:`RunFiles` takes them, as long as the context lasts; each is compared with its digest.

    Those of a small one are read: copying them into a folder, from which an engine reads them once, takes longer. Raises E306, E307.
    """
    files = {name: file for name, file in attempt.files("output").items() if "/" not in name}
    if sum(file.size for file in files.values()) > SMALL:
        with attempt.output() as folder:
            yield folder
        return
    held = dict[str, bytes]()
    for name, file in files.items():
        with file.open() as stream:
            held[name] = stream.read()
    yield held


def files_for_evaluator(
    output: Path | Mapping[str, bytes], run_file: str, most: int
) -> dict[str, Path | bytes]:
    """The files of a run's output that the evaluator is given: the main one, and others next to it by name.

    Others are left out where they would make it more than ``most`` bytes or :data:`MAX_HANDED_FILES` files. Raises E307 where the main one
    is none of the output's own.
    """
    there: dict[str, Path | bytes]
    if isinstance(output, Path):
        there = {p.name: p for p in sorted(output.iterdir()) if p.is_file() and not p.is_symlink()}
    else:
        there = dict(sorted(output.items()))
    if run_file not in there:
        raise damaged(f"the run file {schemas.show(run_file, 200)} is not in the output")
    found, left = {run_file: there[run_file]}, most - size_of(there[run_file])
    for name, what in there.items():
        if name not in found and size_of(what) <= left and len(found) < MAX_HANDED_FILES:
            found[name] = what
            left -= size_of(what)
    return found


def size_of(what: Path | bytes) -> int:
    """The bytes of a file, or of what one holds. Raises OSError."""
    return len(what) if isinstance(what, bytes) else what.stat().st_size
