"""What was found wrong with a run file: the log that keeps it.

A finding has a severity. ``error``: the run is invalid. ``defect``: the topic scores 0, the rest counts; a finding that
is about no topic is an error then. ``warning``: nothing changes, but somebody should know. ``ignore``: the same, and
it is not reported. A task may give a code another severity. What cannot count as it is has its consequence in the
table of codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from evaluator.codes import CODES
from schemas.findings import describe, list_findings, severity_rank

SEVERITIES = ("error", "defect", "warning", "ignore")
MAX_SUGGESTIONS = 5  # looking for similar ids costs time
MAX_UNKNOWN = 1000  # unknown ids of a run that are told apart
SHOWN = 60  # characters of a participant's value that a message may hold


class _Severities(dict[str, str]):
    """Severities by code: those of the table, where nothing else was set."""

    def __missing__(self, code: str) -> str:
        return CODES[code].severity


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
        fields = self._asdict()
        topic = fields.pop("topic")
        return fields | {"fix": self.fix} | ({} if topic is None else {"topic": topic})

    def __str__(self) -> str:
        return describe(self.as_json())


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


class Checkpoint(NamedTuple):
    """What a log held at some time."""

    kept: tuple[Finding, ...]
    counts: dict[str, int]
    by_severity: dict[str, int]
    defects: frozenset[bytes]
    lines: int
    invalid: bool


class Log:
    """Counts every finding, and keeps the first ``per_code`` of each code and ``kept`` in all; errors oust warnings.

    ``defects`` holds the topics that have to score 0 because of a finding of severity ``defect``. What a reader got to
    know of the file besides is here too: its ``lines``, how many topics it answers, and its tag.
    """

    def __init__(
        self, file: str, severities: Mapping[str, str] | None = None, *, kept: int = 1000, per_code: int = 100
    ) -> None:
        self.file = plain(file, 200)
        self.severity: dict[str, str] = _Severities(severities or {})
        self.kept: list[Finding] = []
        self.summaries: list[Finding] = []  # what findings come to; not counted
        self.counts: dict[str, int] = {}
        self._by_severity: dict[str, int] = {}
        self.defects: set[bytes] = set()
        self.lines = 0
        self.answered = 0
        self.tag: bytes | None = None
        self.invalid = False  # a finding of severity error was made
        self._limit = kept
        self._per_code = per_code

    def wants(self, code: str) -> bool:
        """Whether one more finding of this code would be kept (its message is worth making)."""
        severity = self.severity[code]
        return (
            severity != "ignore"
            and self.counts.get(code, 0) < self._per_code
            and (len(self.kept) < self._limit or (severity != "warning" and self._last_warning() is not None))
        )

    def _last_warning(self) -> int | None:
        """Return the place of the last kept warning, which gives way to an error; None if none is kept."""
        places = range(len(self.kept) - 1, -1, -1)
        return next((place for place in places if self.kept[place].severity == "warning"), None)

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
            if len(self.kept) >= self._limit and (place := self._last_warning()) is not None:
                del self.kept[place]
            self.kept.append(Finding(code, severity, self.file, line, message, shown))
        self.counts[code] = self.counts.get(code, 0) + times
        self._by_severity[severity] = self._by_severity.get(severity, 0) + times

    def summarise(self, code: str, message: str) -> None:
        """Say first, and once, what the findings of ``code`` come to, if there are any. It is not counted."""
        if code in self.counts:
            self.summaries.append(Finding(code, self.severity[code], self.file, None, message))

    def checkpoint(self) -> Checkpoint:
        """What :meth:`restore` needs to forget everything that is added from now on."""
        counts = dict(self.counts), dict(self._by_severity)
        return Checkpoint(tuple(self.kept), *counts, frozenset(self.defects), self.lines, self.invalid)

    def restore(self, to: Checkpoint) -> None:
        """Forget what was added since :meth:`checkpoint` (the file is read again, in another way)."""
        self.kept[:] = to.kept
        self.counts, self._by_severity = dict(to.counts), dict(to.by_severity)
        self.defects, self.lines, self.invalid = set(to.defects), to.lines, to.invalid

    def once(self, code: str) -> bool:
        """Whether ``code`` has not been found yet (for findings reported once a file)."""
        return self.severity[code] != "ignore" and code not in self.counts

    def count(self, severity: str) -> int:
        """How many findings have this severity, also those that were not kept."""
        return self._by_severity.get(severity, 0)

    def sorted(self) -> list[Finding]:
        """Return the summaries and the kept findings: errors, defects, warnings, each in the order of the file."""
        ordered = sorted(self.kept, key=lambda f: (f.line or 0, f.code))
        return sorted([*self.summaries, *ordered], key=lambda f: severity_rank(f.severity))

    def lines_of(self, most: int) -> list[str]:
        """Return about ``most`` errors and defects, one a line, and one line for all warnings of each code."""
        ordered = sorted(self.kept, key=lambda f: (f.line or 0, f.code))
        summaries = [finding.as_json() for finding in self.summaries]
        return list_findings((f.as_json() for f in ordered), self.counts, most=most, summaries=summaries)

    def printed(self, most: int) -> str:
        """The first ``most`` findings, how many more there are, and the summary, a line each; "" without any."""
        if not self.counts:
            return ""
        return "\n".join([*self.lines_of(most), f"{self.file}: {self.summary()}"]) + "\n"

    @property
    def status(self) -> str:
        """``invalid`` after a finding of severity error, else ``valid``."""
        return "invalid" if self.invalid else "valid"

    def with_kept(self) -> dict[str, Any]:
        """:meth:`as_json`, and every kept finding in ``kept``."""
        return self.as_json() | {"kept": [finding.as_json() for finding in self.sorted()]}

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


class Unknown:
    """Ids of a run that its dataset does not have (findings of one code), and what they come to.

    Args:
        log: Takes the summary.
        code: The findings' code.
        what: What has the ids: ``topics``; and ``where`` they should be: ``the corpus``.
        where: See there.
        ours: The dataset's ids; None where they are not to be said.
    """

    def __init__(
        self, log: Log, code: str, what: str, where: str, ours: Callable[[], Iterable[str]] | None
    ) -> None:
        self._log, self._code, self._what, self._where, self._ours = log, code, what, where, ours
        self.ids: set[str] = set()  # the first MAX_UNKNOWN different ones
        self.count = 0
        self._far = False  # there is one to which none of the dataset is near

    def add(self, one: str) -> str:
        """Count an id that is not there, and return in brackets which was probably meant; "" if none is near."""
        self.count += 1
        if len(self.ids) < MAX_UNKNOWN:
            self.ids.add(one)
        if self._ours is None or self.count > MAX_SUGGESTIONS:
            return ""
        close = nearest(one[:200], self._ours())
        self._far = self._far or close is None
        return f" (did you mean {show(close)}?)" if close else ""

    def summarise(self, known: int, unknown: int | None = None) -> None:
        """Say what the ids come to, beside ``known`` ones that are there, if most are wrong or one is like none.

        ``unknown`` is how many there are, if that is not how often one was counted.
        """
        unknown = self.count if unknown is None else unknown
        most = unknown > known
        if not (most or (self._far and self._ours is not None)):
            return
        share = f"{known:,}" if known else "none"
        said = f"{share} of the run's {known + unknown:,} {self._what} are in {self._where}: unknown are "
        said += looks(self.ids)
        if self._ours is not None and (ours := looks(self._ours())):
            said += f", right are {ours}"
        self._log.summarise(self._code, said + ("; the run may be of another version" if most else ""))


def looks(ids: Iterable[str]) -> str:
    """What ids look like, in a few words: ``1 to 50`` where all are numbers, else the first in their order; "" of none."""
    known = list(ids)
    if not known:
        return ""
    if all(one.isascii() and one.isdigit() and len(one) < 19 for one in known):
        low, high = min(known, key=int), max(known, key=int)
        return f"{low} to {high}" if low != high else low
    return f"such as {show(min(known))}"


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
