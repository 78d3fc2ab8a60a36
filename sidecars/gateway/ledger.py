"""What the gateway writes: a line for every request that it was asked, and every reply that it paid for."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from schemas import canonical
from schemas.documents import Problem
from schemas.replies import StoredReply, read_replies
from sidecars.gateway.config import ConfigError


class Ledger:
    """The call log and the replies' file. Both grow by whole lines, each on its way to the disk at once.

    A gateway that cannot write any longer must not ask any longer: the callers let OSError through to a refusal.
    """

    def __init__(self, log: Path | None, replies: Path | None, known: list[Path]) -> None:
        """Open both files for appending and read all known replies. Raises :class:`ConfigError`."""
        self.known: dict[str, StoredReply] = {}
        self.lines = 0
        problems: list[str] = []
        for path in [*known, *([replies] if replies and replies.exists() else [])]:
            try:
                for item in read_replies(path):
                    if isinstance(item, Problem):
                        problems.append(str(item))
                    else:
                        if item.over(self.known.get(item.key)):
                            self.known[item.key] = item
            except OSError as error:
                problems.append(f"{path.name} cannot be read: {error.strerror}")
        self._log = _appending(log, problems)
        self._replies = _appending(replies, problems)
        if problems:
            raise ConfigError(problems[:20])

    def keep(self, reply: StoredReply) -> None:
        """Keep a reply for ever, unless it is known already. Raises OSError."""
        if not reply.over(self.known.get(reply.key)):
            return
        self.known[reply.key] = reply
        if self._replies:
            self._replies.write(reply.line())

    def log(self, **facts: Any) -> None:
        """Write one line of the call log: its number, the time, and ``facts``. Raises OSError."""
        self.lines += 1
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self._log:
            self._log.write(canonical({"n": self.lines, "at": at, **facts}) + b"\n")

    def close(self) -> None:
        """Close both files."""
        for file in (self._log, self._replies):
            if file:
                file.close()


def _appending(path: Path | None, problems: list[str]) -> BinaryIO | None:
    if path is None:
        return None
    try:
        return path.open("ab", buffering=0)
    except OSError as error:
        problems.append(f"{path.name} cannot be written: {error.strerror}")
        return None
