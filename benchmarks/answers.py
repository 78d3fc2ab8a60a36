"""A scripted engine whose evaluators answered beforehand, for measurements of what a coordinator itself takes.

An evaluator computes in a container, which is another process, on any engine. A script of :class:`runner.engines.fake.FakeEngine` would
compute in a thread of the coordinator, and keep its room's folders on the coordinator's disk. Here the archives that an engine would send of what
evaluators left are made before anything is measured. What the coordinator does with them is done: files for the evaluator are packed, and
what it left is unpacked and checked.
"""

from __future__ import annotations

import io
import itertools
import tarfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runner.engines import collect, tarstream
from runner.engines.base import ContainerSpec, RoomRun
from runner.engines.fake import FakeEngine, FakeSession
from runner.engines.scripted import Script
from runner.model.container import Exit

FOLDERS = {"in": 0o500, "out": 0o700, "tmp": 0o700}  # as an engine is sent them


class AnsweredRoom:
    """See :class:`runner.engines.base.Room`: each run ends at once, and leaves the next of the ``answers``."""

    usable = True

    def __init__(self, answers: Iterator[bytes]) -> None:
        self._answers = answers

    def retire(self) -> None:
        """Have it not be usable any more."""
        self.usable = False

    def run(
        self,
        command: Sequence[str],
        files: Mapping[str, Path | bytes],
        dest: Path,
        *,
        env: Mapping[str, str],
        deadline: float,
        cancelled: Callable[[], bool],
        allowed: Callable[[str], bool],
        max_bytes: int,
        max_files: int,
    ) -> RoomRun:
        """Pack the files, and unpack an answer."""
        inside = {f"in/{name}": what for name, what in files.items()}
        deque(tarstream.anew(FOLDERS, inside, uid=1), maxlen=0)
        archive = next(self._answers)
        dest.mkdir(parents=True, exist_ok=True)
        collected = collect.collect(
            [archive],
            dest,
            allowed=allowed,
            max_bytes=max_bytes,
            max_files=max_files,
            max_stream=len(archive),
            full=False,
        )
        return RoomRun(Exit(code=0), b"", b"", collected)


class _Session(FakeSession):
    def __init__(self, engine: FakeEngine, attempt_id: str, answers: Iterator[bytes]) -> None:
        super().__init__(engine, attempt_id)
        self._answers = answers

    def room(self, spec: ContainerSpec, *, given: int) -> AnsweredRoom:  # type: ignore[override]
        """A room that nothing runs in."""
        return AnsweredRoom(self._answers)


class AnsweringEngine(FakeEngine):
    """As :class:`FakeEngine`, but that rooms leave ``answers``, archives as of :func:`packed`, one after another and again."""

    def __init__(self, script: Mapping[str, Script], answers: Sequence[bytes]) -> None:
        super().__init__(script)
        self._answers = itertools.cycle(answers)

    @contextmanager
    def session(self, attempt_id: str, **options: Any) -> Iterator[_Session]:
        """See :class:`FakeEngine`."""
        with super().session(attempt_id, **options):
            yield _Session(self, attempt_id, self._answers)


def packed(folder: Path) -> bytes:
    """The files of a folder as an engine sends what a container left."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        tar.add(folder, arcname="output")
    return buffer.getvalue()
