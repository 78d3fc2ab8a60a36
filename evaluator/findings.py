"""What can be wrong with a run file: one table of codes, and the log that keeps what was found.

A finding has a severity. ``error``: the run is invalid. ``defect``: the topic scores 0, the rest counts.
``warning``: nothing changes, but somebody should know. A task may give a code another severity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

SEVERITIES = ("error", "defect", "warning", "ignore")
SHOWN = 60  # characters of a participant's value that a message may hold


class Code(NamedTuple):
    """A finding's stable code, title, default severity and what the participant should do."""

    code: str
    title: str
    severity: str
    fix: str


_TABLE = (
    Code("F001", "empty run file", "error", "write at least one line."),
    Code("F002", "no readable run file", "error", "write a regular file, not a link, folder or pipe."),
    Code("F003", "damaged gzip file", "error", "write the file again, and close it before the program ends."),
    Code("F004", "file too large", "error", "write fewer documents per topic."),
    Code("F005", "not UTF-8", "error", "write the file as UTF-8."),
    Code("F006", "byte order mark", "error", "write UTF-8 without a byte order mark: it becomes part of the first topic."),
    Code("F007", "control character", "error", "write text only: no NUL and no other control character but tab and newline."),
    Code("F008", "Windows line ends", "warning", "end lines with a newline only."),
    Code("F009", "line too long", "error", "write one document a line."),
    Code("F010", "wrong number of columns", "error", "write six columns: topic Q0 document rank score tag."),
    Code("F011", "second column is not Q0", "warning", "write Q0 in the second column."),
    Code("F012", "duplicate document", "error", "keep one line per document and topic."),
    Code("F013", "rank is not an integer", "error", "write ranks as integers: 1, 2, 3, ..."),
    Code("F014", "score is not a finite number", "error", "write scores as decimal numbers such as 12.5 or 3e-05."),
    Code("F015", "several run tags", "error", "write the same tag in every line."),
    Code("F016", "unusual run tag", "warning", "use 1 to 40 letters, digits, dots, hyphens and underscores."),
    Code("F017", "unknown topic", "error", "answer only topics of this dataset, with their ids as given."),
    Code("F018", "missing topic", "warning", "answer every topic: one without documents scores 0."),
    Code("F019", "unknown document", "error", "list only documents of this dataset, with their ids as given."),
    Code("F020", "too many documents for a topic", "error", "cut the list of every topic."),
    Code("F021", "score rises with rank", "warning", "make scores fall with rank: the order is taken from the scores, not the ranks."),
    Code("F022", "rank given twice", "warning", "give every document of a topic a rank of its own."),
    Code("F023", "tied scores", "warning", "break ties in your scores: documents with equal scores are ordered by id, falling."),
    Code("F024", "scores tied in single precision", "warning", "make scores differ in their first 7 digits, or scale them."),
    Code("F025", "empty line", "warning", "leave empty lines out."),
    Code("F026", "too many lines for one topic", "error", "cut the list of every topic."),
    Code("F027", "reading was given up", "error", "write a run file: most of what was read are no results."),
    Code("F101", "not JSON", "error", "write JSON Lines: one complete object a line."),
    Code("F102", "not an object", "error", 'write one object a line: {"query_id": 0, "relevant_candidates": [...]}.'),
    Code("F103", "query id missing or not an integer", "error", "give every object the query_id of a query of this dataset, an integer."),
    Code("F104", "no list of candidates", "error", "give every object a list relevant_candidates, best first."),
    Code("F105", "key given twice", "error", "give every key once, and the candidates under relevant_candidates only."),
    Code("F106", "candidate is not an integer", "error", "list argument_ids as integers."),
    Code("F107", "candidate written as text", "warning", "write argument_ids as integers, without quotes."),
    Code("F108", "query answered twice", "error", "write one object per query."),
    Code("F109", "unknown query", "error", "answer only queries of this dataset and scenario."),
    Code("F110", "query not answered", "error", "answer every query, if need be with an empty list."),
    Code("F111", "unknown candidate", "error", "list only arguments of this dataset's corpus."),
    Code("F112", "candidate listed twice", "error", "list every argument once per query."),
    Code("F113", "repeated candidates are scored", "warning", "list every argument once per query."),
    Code("F114", "fewer candidates than the cut-off", "warning", "list more candidates: what is not there cannot be found."),
    Code("F115", "no candidates", "warning", "list candidates: an empty list finds nothing."),
    Code("F116", "too many candidates", "warning", "cut the list of every query: only its beginning counts."),
    Code("F117", "line or object too long", "error", "write one object per query, with no more candidates than allowed."),
    Code("F118", "byte order mark", "warning", "write UTF-8 without a byte order mark."),
)  # fmt: skip
CODES: dict[str, Code] = {c.code: c for c in _TABLE}


class Finding(NamedTuple):
    """One thing wrong at one place. ``line`` counts from 1; ``topic`` is the topic it concerns, if just one."""

    code: str
    severity: str
    file: str
    line: int | None
    message: str
    topic: str | None = None

    @property
    def fix(self) -> str:
        """What the participant should do, as an instruction."""
        return CODES[self.code].fix

    def as_json(self) -> dict[str, Any]:
        """The finding as one object of ``findings.jsonl``."""
        out: dict[str, Any] = {
            "code": self.code,
            "severity": self.severity,
            "file": self.file,
            "line": self.line,
            "message": self.message,
            "fix": self.fix,
        }
        if self.topic is not None:
            out["topic"] = self.topic
        return out

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.code} {self.severity}: {self.message}. Fix: {self.fix}"


def show(value: bytes | str, limit: int = SHOWN) -> str:
    """Return a participant's value in quotes: shortened to ``limit`` characters, every unprintable one escaped."""
    text = value[: limit * 4 + 4].decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
    return f'"{plain(text, limit)}"'


def plain(text: str, limit: int = SHOWN) -> str:
    """Return ``text`` shortened to ``limit`` characters, with control, format and unprintable ones escaped."""
    cut = text[:limit]
    if not cut.isprintable():
        cut = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)
    cut = cut.replace('"', '\\"')
    return cut + ("..." if len(text) > limit else "")


class Log:
    """Counts every finding, and keeps the first ``per_code`` of each code and ``kept`` in all.

    ``defects`` holds the topics that have to score 0 because of a finding of severity ``defect``. What a reader got to
    know of the file besides is here too: its ``lines``, how many topics it answers, and its tag.
    """

    def __init__(
        self, file: str, severities: Mapping[str, str] | None = None, *, kept: int = 1000, per_code: int = 100
    ) -> None:
        self.file = plain(file, 200)
        self.severity = {code: c.severity for code, c in CODES.items()} | dict(severities or {})
        self.kept: list[Finding] = []
        self.counts: dict[str, int] = {}
        self.defects: set[bytes] = set()
        self.lines = 0
        self.answered = 0
        self.tag: bytes | None = None
        self.invalid = False  # a finding of severity error was made
        self._limit = kept
        self._per_code = per_code

    def wants(self, code: str) -> bool:
        """Whether one more finding of this code would be kept (its message is worth making)."""
        return (
            self.severity[code] != "ignore"
            and self.counts.get(code, 0) < self._per_code
            and len(self.kept) < self._limit
        )

    def add(
        self, code: str, line: int | None, message: str, topic: bytes | None = None, *, times: int = 1
    ) -> None:
        """Note ``times`` findings of ``code``; the message is kept for the first of them."""
        severity = self.severity[code]
        if severity == "ignore":
            return
        if severity == "defect":
            if topic is None:
                severity = "error"  # there is no topic to set to 0
            else:
                self.defects.add(topic)
        self.invalid = self.invalid or severity == "error"
        if self.wants(code):
            shown = None if topic is None else plain(topic.decode("utf-8", "backslashreplace"))
            self.kept.append(Finding(code, severity, self.file, line, message, shown))
        self.counts[code] = self.counts.get(code, 0) + times

    def checkpoint(self) -> tuple[int, dict[str, int], set[bytes], int, bool]:
        """What :meth:`restore` needs to forget everything that is added from now on."""
        return len(self.kept), dict(self.counts), set(self.defects), self.lines, self.invalid

    def restore(self, to: tuple[int, dict[str, int], set[bytes], int, bool]) -> None:
        """Forget what was added since :meth:`checkpoint` (the file is read again, in another way)."""
        kept, counts, defects, self.lines, self.invalid = to
        del self.kept[kept:]
        self.counts, self.defects = dict(counts), set(defects)

    def once(self, code: str) -> bool:
        """Whether ``code`` has not been found yet (for findings reported once a file)."""
        return self.severity[code] != "ignore" and code not in self.counts

    def effective(self, code: str) -> str:
        """The severity under which findings of ``code`` are counted."""
        return self.severity[code]

    def count(self, severity: str) -> int:
        """How many findings have this severity, also those that were not kept."""
        return sum(n for code, n in self.counts.items() if self.severity[code] == severity)

    def sorted(self) -> list[Finding]:
        """The kept findings in the order of the file; those about the whole file come first."""
        return sorted(self.kept, key=lambda f: (f.line or 0, f.code))

    def summary(self) -> str:
        """One line such as ``3 errors, 1 warning in 48,000 lines``."""
        parts = [
            f"{n:,} {name}{'' if n == 1 else 's'}"
            for name in ("error", "defect", "warning")
            if (n := self.count(name))
        ]
        lines = f"{self.lines:,} line{'' if self.lines == 1 else 's'}"
        return f"{', '.join(parts) or 'no problems'} in {lines}"

    def as_json(self) -> dict[str, Any]:
        """The ``findings`` part of ``result.json``: counts by severity and by code."""
        codes = {
            code: {"severity": self.severity[code], "count": n, "title": CODES[code].title}
            for code, n in sorted(self.counts.items())
        }
        return {
            "error": self.count("error"),
            "defect": self.count("defect"),
            "warning": self.count("warning"),
            "codes": codes,
        }


def nearest(value: str, known: Iterable[str]) -> str | None:
    """Return the id in ``known`` that ``value`` was probably meant to be, or None.

    Exact matches that ignore case, blanks and leading zeros come first; then one edit away by difflib.
    """
    import difflib

    folded = value.strip().casefold().lstrip("0")
    candidates: list[str] = []
    for other in known:
        if other.casefold().lstrip("0") == folded:
            return other
        if abs(len(other) - len(value)) <= 2 and len(candidates) < 20_000:
            candidates.append(other)
    close = difflib.get_close_matches(value, candidates, n=1, cutoff=0.85) if len(value) < 100 else []
    return close[0] if close else None
