"""Whether reports are what a task or a track asks for: topics, limits, references, documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evaluator.argue.formats.report import Report, read_reports
from evaluator.argue.formats.requests import Unit, length, limit_of, truncate
from evaluator.argue.formats.tracks import Track
from evaluator.argue.models import ReportRequest
from evaluator.findings import Log, Unknown, show
from schemas.words import LONGEST, blank, longest_word

LISTED = 5  # ids that a message names


@dataclass(frozen=True)
class Rules:
    """What reports are checked against; everything is optional.

    ``topics``: ids to be answered, with their requests where there are some; ``documents``: the ids that exist;
    ``carried``: documents that a report carries itself exist, too (trusted reports only); ``limit``: for topics whose request has none; ``cut``:
    what is beyond a limit is not judged; ``suggest``: name the
    topic that was probably meant (public data only).
    """

    topics: Mapping[str, ReportRequest | None] | None = None
    documents: Container[str] | None = None
    carried: bool = False
    track: Track | None = None
    limit: tuple[int, Unit] | None = None
    cut: bool = False
    suggest: bool = False


@dataclass
class Checker:
    """Checks the reports of one file, one after the other."""

    rules: Rules
    log: Log
    seen: dict[str, int | None] = field(default_factory=dict)  # topic -> line
    runs: dict[str, int | None] = field(default_factory=dict)
    unknown: int = 0
    cited: int = 0

    def __post_init__(self) -> None:
        """Begin to count topics that the dataset does not have."""
        ours = (lambda: self.rules.topics or ()) if self.rules.suggest else None
        self.strange = Unknown(self.log, "F311", "reports", "the dataset", ours)

    def take(self, report: Report) -> bool:
        """Check one report. False if its topic is unknown or was answered already: it is not to be scored."""
        topic = report.topic_id
        self._run(report)
        refused = self._refused(report, topic)
        if refused and self.log.severity[refused] != "error":
            return False  # of reports that are not scored everything is said
        if self._content(report):
            self._documents(report)
            self._length(report)
            if self.rules.track is not None:
                _Tracked(self.rules.track, report, self._add).check(self._request(report))
        return not refused

    def _refused(self, report: Report, topic: str) -> str:
        """The code of the finding for which a report is left out, which is noted; "" for one that counts."""
        if topic in self.seen:
            first = f" in line {self.seen[topic]:,}" if self.seen[topic] else ""
            self._add("F310", report, f"the topic {show(topic)} was answered already{first}")
            return "F310"
        self.seen[topic] = report.line
        if self.rules.topics is None or topic in self.rules.topics:
            return ""
        self._add("F311", report, f"there is no topic {show(topic)}{self.strange.add(topic)}")
        return "F311"

    def finish(self) -> None:
        """Report the topics that nobody answered."""
        if not self.seen:
            return
        self.strange.summarise(len(self.seen) - self.strange.count)
        for topic in self.rules.topics or ():
            if topic not in self.seen:
                self.log.add("F312", None, f"there is no report for topic {show(topic)}", topic.encode())
        if not self.log.invalid:
            if self.rules.topics is not None and self.seen.keys().isdisjoint(self.rules.topics):
                self.log.add("F028", None, "no topic of the dataset is answered")
            elif self.cited and self.unknown == self.cited:
                self.log.add("F029", None, "no cited document is in the collection")
        self.log.answered = len(self.seen)
        self.log.tag = next(iter(self.runs), "").encode() or None

    def _add(self, code: str, report: Report, message: str) -> None:
        self.log.add(code, report.line, message, report.topic_id.encode("utf-8", "backslashreplace"))

    def _request(self, report: Report) -> ReportRequest | None:
        return (self.rules.topics or {}).get(report.topic_id)

    def _run(self, report: Report) -> None:
        if self.runs and report.run_id not in self.runs and len(self.runs) < LISTED:
            first = next(iter(self.runs))
            self._add("F332", report, f"the run is {show(report.run_id)} here, but {show(first)} before")
        self.runs.setdefault(report.run_id, report.line)

    def _content(self, report: Report) -> bool:
        if all(blank(s.text) for s in report.sentences):
            what = "all sentences are blank" if report.sentences else "the report has no sentence"
            self._add("F314", report, what)
            return False
        empty = [i for i, s in enumerate(report.sentences, 1) if blank(s.text)]
        if empty:
            self._add("F315", report, f"sentence {empty[0]} is blank{_and(len(empty) - 1)}")
        if report.style == "mixed":
            self._add("F328", report, "citations are written in several ways")
        return True

    def _documents(self, report: Report) -> None:
        known = self.rules.documents
        if known is None:
            return
        self.cited += len(report.cited)
        missing = [
            d for d in report.cited if d not in known and not (self.rules.carried and d in report.documents)
        ]
        if missing:
            self.unknown += len(missing)
            named = ", ".join(show(d) for d in missing[:LISTED])
            cited = "1 cited document is" if len(missing) == 1 else f"{len(missing):,} cited documents are"
            more = _and(len(missing) - LISTED)
            self._add("F313", report, f"{cited} not in the collection: {named}{more}")

    def _length(self, report: Report) -> None:
        longest = max((longest_word(s.text) for s in report.sentences), default=0)
        if longest > LONGEST:
            self._add("F342", report, f"the report has a word of {longest:,} characters")
        track = self.rules.track
        limit = limit_of(self._request(report)) or self.rules.limit
        if track is not None and track.length_limit is not None:
            limit = track.length_limit, track.length_unit
        if limit is None:
            return
        found = length([s.text for s in report.sentences], limit[1])
        if found > limit[0]:
            what = f"the report has {found:,} {limit[1]}, {limit[0]:,} are allowed"
            if self.rules.cut:
                count = len(report.sentences)
                kept = len(truncate(report, *limit).sentences)
                what += f": {kept:,} of {count:,} sentences fit and are judged"
            self._add("F317", report, what)


class _Tracked:
    """The rules of a track, for one report."""

    def __init__(self, track: Track, report: Report, add: Callable[[str, Report, str], None]) -> None:
        self.track, self.report = track, report
        self._add = add

    def say(self, code: str, message: str) -> None:
        self._add(code, self.report, message)

    def check(self, request: ReportRequest | None) -> None:
        track, report, say = self.track, self.report, self.say
        if report.key != track.sentences:
            where = f"{track.title} has them under {track.sentences}"
            say("F337", f"the sentences are under {report.key}, {where}")
        if report.style not in ("none", "mixed", *track.citations):
            taken = " or ".join(track.citations)
            say("F307", f"citations are of the form {report.style}, {track.title} takes {taken}")
        self._metadata(request)
        self._citations()
        self._references()

    def _metadata(self, request: ReportRequest | None) -> None:
        track, metadata, say = self.track, self.report.metadata, self.say
        for code, keys in (("F303", track.metadata), ("F324", track.recommended)):
            absent = [k for k in keys if metadata.get(k) in (None, "")]
            if absent:
                say(code, f"metadata lacks {', '.join(absent)}")
        if track.run_id_length is not None and len(self.report.run_id) > track.run_id_length:
            say("F325", f"run_id has {len(self.report.run_id)} characters, {track.run_id_length} are allowed")
        if track.narrative and request is not None and metadata.get("narrative"):
            texts = (request.title, request.problem_statement, request.data.get("narrative"))
            if metadata["narrative"] not in texts:
                say("F326", "narrative is not the text of the topic")

    def _citations(self) -> None:
        track, report, say = self.track, self.report, self.say
        most = track.max_citations
        counts = [(i, len(s.citations)) for i, s in enumerate(report.sentences, 1)]
        if many := [(i, n) for i, n in counts if most is not None and n > most]:
            at, n = many[0]
            say("F316", f"sentence {at} has {n} citations, {most} are allowed{_and(len(many) - 1)}")
        if track.document_pattern is not None:
            odd = [d for d in report.cited if not track.document_pattern.match(d)]
            if odd:
                say("F318", f"{show(odd[0])} is not a document id of {track.title}{_and(len(odd) - 1)}")

    def _references(self) -> None:
        track, report, say = self.track, self.report, self.say
        if track.references == "unchecked":
            return
        listed = report.references
        if listed is None:
            say("F319", "there are no references")
            return
        distinct, cited = set(listed), set(report.cited)
        if len(distinct) < len(listed):
            twice = next(d for d, times in Counter(listed).items() if times > 1)
            say("F320", f"references list {show(twice)} more than once")
        if absent := [d for d in report.cited if d not in distinct]:
            say("F321", f"{show(absent[0])} is cited, but not in references{_and(len(absent) - 1)}")
        if spare := [d for d in dict.fromkeys(listed) if d not in cited]:
            say("F322", f"{show(spare[0])} is in references, but never cited{_and(len(spare) - 1)}")
        if track.max_references is not None and len(listed) > track.max_references:
            say("F323", f"there are {len(listed):,} references, {track.max_references:,} are allowed")


def load_reports(
    path: Path, log: Log, rules: Rules | None = None, *, max_bytes: int | None = None
) -> list[Report]:
    """The reports of a file that may be scored: known topics, each once.

    Args:
        path: reports as JSON Lines, plain or gzip.
        log: takes everything that is wrong; for the severities of a track make it with ``Log(name, track.severities())``.
        rules: what the reports are checked against.
        max_bytes: the most that is read, unpacked; None is no limit.
    """
    checker = Checker(rules or Rules(), log)
    found = [report for report in read_reports(path, log, max_bytes=max_bytes) if checker.take(report)]
    checker.finish()
    return found


def _and(more: int) -> str:
    return f", and {more:,} more" if more > 0 else ""
