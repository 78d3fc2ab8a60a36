"""Making run files for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluator.findings import Log
from evaluator.formats.ranked import Rules, Scan
from evaluator.formats.trec import scan


class Ids:
    """A corpus of the given ids."""

    def __init__(self, *ids: bytes) -> None:
        self._ids = set(ids)

    def missing(self, docs: Any) -> set[bytes]:
        return set(docs) - self._ids

    def ids(self) -> Any:
        return iter(sorted(self._ids))


def read(path: Path, content: bytes, rules: Rules | None = None, **options: Any) -> tuple[Scan, Log]:
    """Write ``content`` to ``path`` and scan it."""
    path.write_bytes(content)
    log = Log(path.name, options.pop("severities", None))
    return scan(path, rules or Rules(), log, **options), log


def outcome(path: Path, content: bytes, rules: Rules | None = None, **options: Any) -> tuple[Any, ...]:
    """Everything that a reader says about a file, to compare two ways of reading it."""
    result, log = read(path, content, rules, **options)
    topics = {
        t: (r.retrieved, dict(sorted(r.ranks.items())), r.double) for t, r in sorted(result.topics.items())
    }
    return (
        topics,
        result.tag,
        sorted(map(str, log.sorted())),
        dict(sorted(log.counts.items())),
        log.lines,
        {t: (r.first, dict(sorted(r.untied.items()))) for t, r in sorted(result.topics.items())},
        dict(sorted(result.ties.items())),
        log.invalid,
    )
