"""The log of what was served: one JSON line a request, for the check of which arguments a software has really seen."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

LOG_BYTES = 64 << 20
_LAST = b'{"truncated":true}\n'


class ServedLog:
    """Appends lines until ``limit`` bytes are reached; then one last line says that the rest is missing.

    A log that cannot be written never fails a query: it is given up, which is said once on stderr.
    """

    def __init__(self, path: Path | None, limit: int = LOG_BYTES) -> None:
        self._lock = threading.Lock()
        self._room = limit - len(_LAST)
        self._number = 0
        self._began = time.monotonic()
        self._file: int | None = None
        if path is not None:
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
                self._file = os.open(path, flags, 0o644)
                self._room -= os.fstat(self._file).st_size
            except OSError as error:
                print(f"warning: nothing is logged: {error}", file=sys.stderr)

    def add(self, kind: str, status: int, hits: Sequence[str]) -> None:
        """Note one answered request."""
        with self._lock:
            self._number += 1
            if self._file is None:
                return
            at = round((time.monotonic() - self._began) * 1000, 1)
            row = {"n": self._number, "at_ms": at, "kind": kind, "status": status, "hits": list(hits)}
            line = json.dumps(row, separators=(",", ":")).encode() + b"\n"
            self._room -= len(line)
            try:
                if self._room >= 0:
                    _write(self._file, line)
                    return
                _write(self._file, _LAST)
                self._close()
            except OSError as error:
                print(f"warning: nothing more is logged: {error}", file=sys.stderr)
                self._close()

    def close(self) -> None:
        """Close the file; what comes later is not logged."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _write(file: int, line: bytes) -> None:
    while line:
        line = line[os.write(file, line) :]
