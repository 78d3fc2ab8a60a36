"""What can be wrong with a run file: one table of codes, and the log that keeps what was found.

A finding has a severity. ``error``: the run is invalid. ``defect``: the topic scores 0, the rest counts; a finding that
is about no topic is an error then. ``warning``: nothing changes, but somebody should know. ``ignore``: the same, and
nobody is told. A task may give a code another severity. What cannot count as it is has its consequence in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

SEVERITIES = ("error", "defect", "warning", "ignore")
SHOWN = 60  # characters of a participant's value that a message may hold


class Code(NamedTuple):
    """A finding's stable code, title, default severity and what the participant should do.

    ``otherwise`` is what happens to what was found where the finding is no error; "": it counts like everything else.
    """

    code: str
    title: str
    severity: str
    fix: str
    otherwise: str = ""


_TABLE = (
    Code("F001", "empty run file", "error", "write at least one line.", "every topic scores 0"),
    Code("F002", "no readable run file", "error", "write a regular file, not a link, folder or pipe.", "every topic scores 0"),
    Code("F003", "damaged gzip file", "error", "write the file again, and close it before the program ends.", "what stands in whole lines before the damage counts"),
    Code("F004", "file too large", "error", "write fewer documents per topic.", "what stands in whole lines before the limit counts"),
    Code("F005", "not UTF-8", "error", "write the file as UTF-8.", "a line of a TREC run counts, with its ids as bytes; a line of another format is left out"),
    Code("F006", "byte order mark", "error", "write UTF-8 without a byte order mark: it becomes part of the first topic.", "the mark is left out"),
    Code("F007", "control character", "error", "write text only: no NUL and no other control character but tab and newline.", "the line counts, and the character is part of its column (carriage return, vertical tab and form feed part columns)"),
    Code("F008", "Windows line ends", "warning", "end lines with a newline only."),
    Code("F009", "line too long", "error", "write one document a line.", "the line is left out"),
    Code("F010", "wrong number of columns", "error", "write six columns: topic Q0 document rank score tag.", "a line of more than six columns counts with the first six; a line of fewer is left out"),
    Code("F011", "second column is not Q0", "warning", "write Q0 in the second column."),
    Code("F012", "duplicate document", "error", "keep one line per document and topic.", "the document's first line counts"),
    Code("F013", "rank is not an integer", "error", "write ranks as integers: 1, 2, 3, ...", "the line counts (its place comes from the score); a rank that is no number comes behind all others"),
    Code("F014", "score is not a finite number", "error", "write scores as decimal numbers such as 12.5 or 3e-05.", "infinity counts; a line whose score is no number is left out"),
    Code("F015", "several run tags", "error", "write the same tag in every line.", "the first tag is the run's"),
    Code("F016", "unusual run tag", "warning", "use 1 to 40 letters, digits, dots, hyphens and underscores."),
    Code("F017", "unknown topic", "error", "answer only topics of this dataset, with their ids as given.", "its lines are left out"),
    Code("F018", "missing topic", "warning", "answer every topic: one without documents scores 0.", "the topic scores 0"),
    Code("F019", "unknown document", "error", "list only documents of this dataset, with their ids as given.", "it counts as a document that nobody has judged"),
    Code("F020", "too many documents for a topic", "error", "cut the list of every topic.", "the list is cut, in the order of the scores"),
    Code("F021", "score rises with rank", "warning", "make scores fall with rank: the order is taken from the scores, not the ranks."),
    Code("F022", "rank given twice", "warning", "give every document of a topic a rank of its own."),
    Code("F023", "tied scores", "warning", "break ties in your scores: documents with equal scores are ordered by id, falling."),
    Code("F024", "scores tied in single precision", "warning", "make scores differ in their first 7 digits, or scale them."),
    Code("F025", "empty line", "warning", "leave empty lines out."),
    Code("F026", "too many lines for one topic", "error", "cut the list of every topic.", "the topic scores 0"),
    Code("F027", "reading was given up", "error", "write a run file: most of what was read are no results.", "what was read until then counts"),
    Code("F028", "no topic of the run is judged", "error", "answer the topics of this dataset, with their ids as given.", "the run scores 0"),
    Code("F029", "nothing of the run is judged", "warning", "check the ids of documents: none of those listed is known to the judgments."),
    Code("F101", "not JSON", "error", "write JSON Lines: one complete object a line.", "the line is left out; of an array, everything from there on"),
    Code("F102", "not an object", "error", 'write one object a line: {"query_id": 0, "relevant_candidates": [...]}.', "it is left out"),
    Code("F103", "query id missing or not an integer", "error", "give every object the query_id of a query of this dataset, an integer.", "it is left out"),
    Code("F104", "no list of candidates", "error", "give every object a list relevant_candidates, best first.", "the query is answered with nothing"),
    Code("F105", "key given twice", "error", "give every key once, and the candidates under relevant_candidates only.", "the last one counts, relevant_candidates before retrieved_candidates"),
    Code("F106", "candidate is not an integer", "error", "list argument_ids as integers.", "it is left out, and those behind it move up"),
    Code("F107", "candidate written as text", "warning", "write argument_ids as integers, without quotes."),
    Code("F108", "query answered twice", "error", "write one object per query.", "the first answer counts"),
    Code("F109", "unknown query", "error", "answer only queries of this dataset and scenario.", "it is left out"),
    Code("F110", "query not answered", "error", "answer every query, if need be with an empty list.", "the query scores 0"),
    Code("F111", "unknown candidate", "error", "list only arguments of this dataset's corpus.", "it counts as not relevant"),
    Code("F112", "candidate listed twice", "error", "list every argument once per query.", "its first place counts, and those behind the others move up"),
    Code("F113", "repeated candidates are scored", "warning", "list every argument once per query."),
    Code("F114", "fewer candidates than the cut-off", "warning", "list more candidates: what is not there cannot be found."),
    Code("F115", "no candidates", "warning", "list candidates: an empty list finds nothing."),
    Code("F116", "too many candidates", "warning", "cut the list of every query: only its beginning counts.", "the beginning counts"),
    Code("F117", "line or object too long", "error", "write one object per query, with no more candidates than allowed.", "it is left out"),
    Code("F118", "byte order mark", "warning", "write UTF-8 without a byte order mark.", "the mark is left out"),
    Code("F201", "debate failed", "defect", "answer every request: the whole debate scores 0.", "the debate scores 0"),
    Code("F202", "turn not answered", "defect", "answer every request in time with status 200 and a JSON object with content: the turn scores 0.", "the turn scores 0"),
    Code("F203", "debate missing", "defect", "write one line for every claim, in the order of the claims.", "the debate scores 0"),
    Code("F204", "debate of no claim", "error", "write debates about the claims of this dataset only.", "it is left out"),
    Code("F205", "claim debated too often", "error", "write one line for every claim.", "it is left out"),
    Code("F206", "debates in another order", "warning", "write the debates in the order of the claims."),
    Code("F207", "answer over the word limit", "warning", "shorten the answer: words are what a reader sees between blanks."),
    Code("F208", "argument is not in the index", "warning", "list only arguments of the index, with their ids as given."),
    Code("F209", "argument with another text", "warning", "give the texts of arguments as the index has them."),
    Code("F210", "argument was not retrieved", "warning", "list only arguments that the index returned to this software."),
    Code("F211", "argument without text", "warning", "give every argument its text: those who judge need it."),
    Code("F212", "many arguments", "warning", "list only the arguments that the answer rests on.", "those beyond the limit are not in order (provenance) and ground nothing"),
    Code("F213", "argument that cannot be read", "warning", 'list arguments as objects with an id: {"id": "4711.12", "text": "..."}.'),
    Code("F214", "not a debate", "error", 'write one debate a line: {"simulation": {"userTurns": [...]}}.', "the line is left out"),
    Code("F215", "line too long", "error", "write one debate a line, and shorter answers.", "the line is left out"),
    Code("F216", "part of a debate was left out", "warning", "write shorter answers with fewer arguments."),
    Code("F217", "turn missing", "defect", "hold as many turns as the task has: turns that are not there score 0.", "the missing turns score 0"),
    Code("F218", "more turns than the task has", "warning", "hold as many turns as the task has: the others do not count.", "the first ones count"),
    Code("F219", "answer is there twice, and differs", "warning", "write response.content also as utterance."),
    Code("F220", "record of the index is not complete", "warning", "send fewer requests to the index: arguments that are not in the record count as not retrieved."),
    Code("F221", "record of turns does not fit", "warning", "nothing to mend in the run; times are taken from the debates."),
    Code("F222", "argument listed twice", "warning", "list every argument of an answer once."),
    Code("F223", "no verdict from the judge", "warning", "write answers that can be judged: without a verdict, it is no.", "it is no"),
    Code("F224", "answer cut for the judge", "warning", "write shorter answers: the judge reads the beginning only."),
    Code("F225", "very long word", "warning", "write words between blanks."),
    Code("F226", "question refused by the judge's endpoint", "warning", "keep to the subject: endpoints may filter what they are asked; without a verdict, it is no.", "it is no"),
    Code("F227", "answer speaks to the judge", "warning", "write for the user, not for whoever judges. Found by patterns: an answer about such texts may be meant too."),
    Code("F231", "not one debate's judgments", "error", 'write one object a line: {"userTurnsEvaluations": [{"Quantity": {"score": 1}, ...}, ...]}.', "all judgments of that debate are no"),
    Code("F232", "debate without judgments", "defect", "write a list userTurnsEvaluations with one object per turn; what is missing counts as no.", "all judgments of that debate are no"),
    Code("F233", "wrong number of debates or turns", "error", "write one line per debate and one object per turn, in the order of the input.", "lines are matched with debates by their place, what is missing is no, and lines too many are left out; of a debate with another number of turns all judgments are no"),
    Code("F234", "judgment without a score", "defect", 'write an object with a score, such as {"score": 0.7}; this one counts as no.', "it is no"),
    Code("F235", "score is not a number from 0 to 1", "defect", "write scores as numbers from 0 to 1, without quotes; this one counts as no.", "it is no"),
    Code("F236", "criterion given twice", "defect", "give each criterion once per turn; this one counts as no.", "it is no"),
    Code("F237", "judgments of another debate", "error", "keep the order of the input: debates are matched by their position.", "all judgments of that debate are no"),
    Code("F238", "judgment missing", "defect", "judge every turn: a missing judgment counts as no.", "it is no"),
    Code("F239", "no judgment at all", "error", "judge at least one of Quantity, Quality, Relation and Manner.", "no measure has a value"),
    Code("F240", "criterion not judged", "warning", "judge it as well, or be ranked in the other criteria only, without a Score.", "measures that need it have no value"),
    Code("F241", "line too long", "error", "leave simulation out: the debate need not be repeated.", "all judgments of that debate are no"),
    Code("F242", "not a line of a leaderboard", "error", "write the columns of the task's format, one value a line.", "the line is left out"),
    Code("F243", "value is not a finite number", "error", "write values as decimal numbers such as 0.25.", "the line is left out"),
    Code("F244", "value given twice", "error", "write one value per run, topic and measure.", "the first value counts"),
    Code("F245", "run missing in the leaderboard", "error", "give every run of the task a value.", "the run is left out; over too few runs the correlation is 0"),
    Code("F246", "run left out or counted 0", "warning", "give every run of the task a value."),
    Code("F247", "unknown run", "warning", "leave out what is no run of the task: it is not looked at."),
    Code("F248", "measure missing", "error", "give the measure that the task asks for.", "the correlation is 0"),
    Code("F249", "no value over all topics", "warning", "write a line with the topic all for every run and measure: the mean over topics was taken."),
    Code("F250", "all runs have the same value", "warning", "tell the runs apart: without an order the correlation counts 0.", "the correlation is 0"),
    Code("F301", "not JSON", "error", "write JSON Lines: one complete report a line, strict JSON without trailing commas.", "the line is left out"),
    Code("F302", "not an object", "error", 'write one object a line: {"metadata": {...}, "responses": [...], "references": [...]}.', "the line is left out"),
    Code("F303", "metadata missing or wrong", "error", "give every report metadata with team_id, run_id and topic_id, as text.", "a report without topic_id or run_id is left out; any other counts"),
    Code("F304", "topic_id and narrative_id differ", "error", "give one of them, or the same in both.", "the report is left out"),
    Code("F305", "no list of sentences", "error", "give every report one list of sentences, under responses.", "the report is left out"),
    Code("F306", "sentence without text", "error", 'write every sentence as {"text": "...", "citations": ["..."]}.', "the sentence is left out"),
    Code("F307", "citations cannot be read", "error", "give every sentence citations: a list of document ids (empty if there are none), or an object of ids with numbers.", "a citation that cannot be read is left out"),
    Code("F308", "citation of a position that is not there", "error", "count positions in references from 0.", "the citation is left out"),
    Code("F309", "citation score is not a number", "error", "write scores of citations as numbers, without quotes.", "the citation counts, its score does not"),
    Code("F310", "topic answered twice", "error", "write one report per topic.", "the first report counts"),
    Code("F311", "unknown topic", "error", "answer only topics of this dataset, with their ids as given.", "the report is left out"),
    Code("F312", "missing topic", "warning", "answer every topic: one without a report scores 0.", "the topic scores 0"),
    Code("F313", "unknown document", "warning", "cite only documents of the collection, with their ids as given: others support nothing."),
    Code("F314", "empty report", "warning", "write at least one sentence: an empty report scores 0."),
    Code("F315", "blank sentence", "warning", "leave blank sentences out."),
    Code("F316", "too many citations of a sentence", "warning", "cite the documents that support the sentence best."),
    Code("F317", "report too long", "warning", "shorten the report: what is beyond the limit is cut at the end of a sentence before it is judged.", "what is beyond the limit is left out, if the task cuts reports"),
    Code("F318", "document id of another form", "warning", "cite documents with their ids as given."),
    Code("F319", "no references", "warning", "give every report a list references, empty if need be."),
    Code("F320", "reference listed twice", "warning", "list every reference once."),
    Code("F321", "cited document is not in references", "warning", "list every cited document in references."),
    Code("F322", "reference that is never cited", "warning", "list only the documents that are cited."),
    Code("F323", "too many references", "warning", "cut the list of references."),
    Code("F324", "recommended metadata missing", "warning", "add what is recommended to metadata."),
    Code("F325", "run_id too long", "warning", "choose a shorter run_id."),
    Code("F326", "narrative is not the topic's text", "warning", "copy the text of the topic exactly."),
    Code("F327", "document cited twice by one sentence", "warning", "list every document once per sentence: repeated ones count once."),
    Code("F328", "several ways of writing citations", "warning", "write all citations of a report in the same way."),
    Code("F330", "line too long", "error", "write one report a line, without the documents.", "the line is left out"),
    Code("F331", "byte order mark", "warning", "write UTF-8 without a byte order mark.", "the mark is left out"),
    Code("F332", "several runs in one file", "warning", "write the same run_id in every report of a file."),
    Code("F333", "something too large or not printable", "error", "keep to the limits: printable ids of at most 512 characters, 5,000 sentences, 1,000 citations a sentence.", "what is beyond a limit, or cited under such an id, is left out; so is a report with such a topic_id or run_id"),
    Code("F335", "reading was given up", "error", "write a file of reports: none of what was read is one.", "every topic scores 0"),
    Code("F336", "documents of the report cannot be read", "warning", 'write documents as {"ID": {"id": "ID", "text": "..."}}, or leave them out.'),
    Code("F337", "sentences under another key", "warning", "use the key of the track: responses or answer."),
    Code("F338", "references are not a list of ids", "error", "write references as a list of document ids, as text.", "what is no id is left out"),
    Code("F340", "report takes too many questions to judge", "defect", "write a shorter report that cites fewer documents: the whole report scores 0.", "the topic scores 0"),
    Code("F341", "reply of the judge could not be read", "warning", "nothing to mend in the run; the default of the judgment was taken.", "the default of the judgment holds"),
    Code("F342", "very long word", "warning", "write words between blanks."),
    Code("F343", "question refused by the judge's endpoint", "warning", "keep to the subject: endpoints may filter what they are asked; the default of the judgment was taken.", "the default of the judgment holds"),
    Code("F344", "sentence speaks to the judge", "warning", "write for the reader, not for whoever judges. Found by patterns: a sentence about such texts may be meant too."),
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


class Checkpoint(NamedTuple):
    """What a log held at some time."""

    kept: int
    counts: dict[str, int]
    by_severity: dict[str, int]
    defects: frozenset[bytes]
    lines: int
    invalid: bool


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
        self._by_severity[severity] = self._by_severity.get(severity, 0) + times

    def checkpoint(self) -> Checkpoint:
        """What :meth:`restore` needs to forget everything that is added from now on."""
        counts = dict(self.counts), dict(self._by_severity)
        return Checkpoint(len(self.kept), *counts, frozenset(self.defects), self.lines, self.invalid)

    def restore(self, to: Checkpoint) -> None:
        """Forget what was added since :meth:`checkpoint` (the file is read again, in another way)."""
        del self.kept[to.kept :]
        self.counts, self._by_severity, self.defects = (
            dict(to.counts),
            dict(to.by_severity),
            set(to.defects),
        )
        self.lines, self.invalid = to.lines, to.invalid

    def once(self, code: str) -> bool:
        """Whether ``code`` has not been found yet (for findings reported once a file)."""
        return self.severity[code] != "ignore" and code not in self.counts

    def count(self, severity: str) -> int:
        """How many findings have this severity, also those that were not kept."""
        return self._by_severity.get(severity, 0)

    def sorted(self) -> list[Finding]:
        """The kept findings in the order of the file; those about the whole file come first."""
        return sorted(self.kept, key=lambda f: (f.line or 0, f.code))

    def printed(self, most: int) -> str:
        """The first ``most`` findings, how many more there are, and the summary, a line each; "" without any."""
        if not self.counts:
            return ""
        lines = [str(finding) for finding in self.sorted()[:most]]
        if (more := sum(self.counts.values()) - len(lines)) > 0:
            lines.append(f"... and {more:,} more")
        return "\n".join([*lines, f"{self.file}: {self.summary()}"]) + "\n"

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
