"""Replies that are kept: a question that was answered once is never asked, or paid for, again."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from evaluator.errors import EvaluatorError
from evaluator.formats.files import Closing
from schemas.documents import Problem
from schemas.replies import StoredReply, read_replies

SHOWN_PROBLEMS = 5


class Replies(Closing):
    """Replies in memory and, where a path is given, in a ``replies.jsonl`` that grows as they come.

    A path that exists is read first; a line that an interrupted writer left half is cut off. Of two replies with
    one key the first counts, but an answer more than a refusal. Raises :class:`EvaluatorError` for lines that are no replies. Close it, or use
    ``with``; every reply is on its way to the disk as soon as :meth:`put` returns.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._known: dict[str, StoredReply] = {}
        self._out: BinaryIO | None = None
        if path is not None:
            self._load(path)

    def _load(self, path: Path) -> None:
        try:
            read = list(read_replies(path)) if path.exists() else []
        except OSError as error:
            raise EvaluatorError(f"The replies in {path} cannot be read.", error.strerror or "") from None
        problems = [item for item in read if isinstance(item, Problem)]
        if problems:
            more = f" and {len(problems) - SHOWN_PROBLEMS} more" if len(problems) > SHOWN_PROBLEMS else ""
            raise EvaluatorError(
                f"{path} holds lines that are no replies.",
                "; ".join(str(problem) for problem in problems[:SHOWN_PROBLEMS]) + more,
                "Remove these lines, or name another file.",
            )
        for item in read:
            if isinstance(item, StoredReply) and item.over(self._known.get(item.key)):
                self._known[item.key] = item

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str) -> StoredReply | None:
        """The reply to the question with this key (:func:`schemas.replies.reply_key`), or None."""
        return self._known.get(key)

    def put(self, reply: StoredReply) -> None:
        """Keep a reply. One with a known key changes nothing. Raises :class:`EvaluatorError` if it cannot be written."""
        if not reply.over(self._known.get(reply.key)):
            return
        self._known[reply.key] = reply
        if self.path is None:
            return
        try:
            if self._out is None:
                self._out = _opened(self.path)
            self._out.write(reply.line())
            self._out.flush()
        except OSError as error:
            raise EvaluatorError(f"{self.path} cannot be written.", error.strerror or "") from None

    def close(self) -> None:
        """Close the file. What is known stays known."""
        if self._out is not None:
            self._out.close()
            self._out = None


def _opened(path: Path) -> BinaryIO:
    """The file for appending, behind its last whole line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as out:
        out.seek(0)
        out.truncate(out.read().rfind(b"\n") + 1)
    return path.open("ab")
