"""The security log: who signed in, what was refused, revoked or registered; one of the front, one of work, each in its own folder.

``security.jsonl`` has a JSON object a line: ``time`` (UTC), ``what``, and plain facts. Whatever strangers sent stands in it in
ASCII and cut, so that no text makes a line of its own or moves a terminal. It is rotated: no more than :data:`KEPT` files of
:data:`MOST` bytes beside the newest. It is no event log: addresses stand in it, and it may be deleted.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from runner.model.clock import Clock, SystemClock, stamp
from schemas.files import make_private

FILE = "security.jsonl"
MOST = 4 * 1024 * 1024  # bytes of a file
KEPT = 5  # older files: security.jsonl.1 is the newest of them
_LONGEST = 200  # characters of one fact


class SecurityLog:
    """The log in a folder, which is made when something is noted. Several processes may write."""

    def __init__(self, folder: Path, *, clock: Clock | None = None, most: int = MOST) -> None:
        self.path = folder / FILE
        self._clock, self._most = clock or SystemClock(), most

    def note(self, what: str, **facts: str | None) -> None:
        """Note what happened; facts that are None are left out. A disk that refuses it stops nobody."""
        said = {name: text[:_LONGEST] for name, text in facts.items() if text is not None}
        line = json.dumps({"time": stamp(self._clock.now()), "what": what, **said}).replace("\x7f", "\\u007f")
        with suppress(OSError):
            self._write(f"{line}\n".encode())

    def _write(self, line: bytes) -> None:
        from filelock import FileLock

        make_private(self.path.parent)
        with FileLock(f"{self.path}.lock", timeout=1):
            with suppress(FileNotFoundError):
                if self.path.stat().st_size + len(line) > self._most:
                    self._rotate()
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                os.write(file, line)
            finally:
                os.close(file)

    def _rotate(self) -> None:
        for number in range(KEPT, 0, -1):
            older = self.path if number == 1 else self.path.with_name(f"{FILE}.{number - 1}")
            with suppress(FileNotFoundError):
                older.replace(self.path.with_name(f"{FILE}.{number}"))
