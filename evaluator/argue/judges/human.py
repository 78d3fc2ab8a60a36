"""People as judges: judgments files, looked up by what was judged, not by the name of the run.

A judgment about a sentence holds for the same sentence with the same citation on the same topic wherever it stands, so that a run
that is sent again keeps its judgments. Each file is one annotator; the majority counts, and a tie counts as the default of the
type, or against the report where the default would favour it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import schemas
from evaluator.argue.asking import Question, Unjudged, Verdict
from evaluator.argue.formats.judgments import load_judgments
from evaluator.argue.models import (
    BY_DOCUMENT,
    DEFAULTS,
    MATCHING,
    JudgedReport,
    Judgment,
    JudgmentType,
    Segment,
)
from evaluator.errors import EvaluatorError
from evaluator.findings import show
from evaluator.formats.files import files_in
from schemas.details import Detail, noted

T = JudgmentType
Key = tuple[str, ...]
ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.gzip")
# What a tie counts as: the default, except where that would be in favour of the report.
TIES = {**DEFAULTS, T.SENTENCE_GIVES_WRONG_ANSWER: True}
MAX_FILES = 1_000


class HumanJudge:
    """Answers from stored judgments; :class:`Unjudged` where there is none."""

    name = "human"
    width = 1000

    def __init__(self, annotators: Mapping[str, Sequence[JudgedReport]]) -> None:
        """``annotators``: a name and the reports that it has judged."""
        self.annotators = tuple(annotators)
        self._votes: dict[Key, dict[str, bool]] = {}  # one an annotator, however often it was asked
        self._looked: dict[Key, set[str]] = {}  # who has looked for matches
        self._matched: dict[Key, set[str]] = {}  # who has found this one
        for who, reports in annotators.items():
            for report in reports:
                self._take(who, report)

    def _take(self, who: str, report: JudgedReport) -> None:
        before: list[str] = []
        for segment in report.segments:
            for judgment in segment.judgments:
                base = (judgment.type.value, report.request_id, *_place(judgment, segment, before))
                if judgment.type not in MATCHING:
                    assert judgment.value is not None
                    self._votes.setdefault(base, {})[who] = judgment.value
                    continue
                self._looked.setdefault(base, set()).add(who)
                for match in judgment.matches:
                    for text in match.answers or ("",):
                        self._matched.setdefault((*base, match.question, text), set()).add(who)
            before.append(segment.text)

    def says(self, question: Question) -> bool | None:
        """What people say; None where nobody has judged it."""
        base: Key = (question.type.value, question.topic, question.sentence)
        if question.type in BY_DOCUMENT:
            base = (*base, question.doc_id)
        elif question.type is T.FIRST_INSTANCE:
            base = (*base, question.previous)
        if question.type in MATCHING:
            looked = len(self._looked.get(base, ()))
            found = (*base, question.nugget_question, question.nugget_answer)
            yes = len(self._matched.get(found, ()))
            no = looked - yes
        else:
            votes = Counter(self._votes.get(base, {}).values())
            yes, no = votes[True], votes[False]
        if not yes + no:
            return None
        return TIES[question.type] if yes == no else yes > no

    async def decide(self, question: Question) -> Verdict:
        """See :class:`evaluator.argue.asking.Judge`."""
        said = self.says(question)
        if said is None:
            raise Unjudged(
                f"nobody has judged {question.type} of a sentence on topic {show(question.topic)}",
                show(question.sentence, 120),
            )
        return Verdict(said)

    def identity(self) -> Mapping[str, Any]:
        """The judgments themselves."""
        votes = {"\0".join(k): v for k, v in self._votes.items()}
        sets = [{"\0".join(k): sorted(v) for k, v in d.items()} for d in (self._looked, self._matched)]
        return {"judgments": f"sha256:{schemas.digest([votes, *sets])}"}

    def facts(self) -> dict[str, Any]:
        """Who judged."""
        return {"name": "people", **noted(Detail("strict-majority", annotators=len(self.annotators)))}

    async def close(self) -> None:
        """Nothing is open."""


def _place(judgment: Judgment, segment: Segment, before: Sequence[str]) -> Key:
    if judgment.type in BY_DOCUMENT:
        return segment.text, judgment.doc_id or ""
    if judgment.type is T.FIRST_INSTANCE:
        return segment.text, "\n".join(before)
    return (segment.text,)


def questions_of(
    report: JudgedReport, pairs: Callable[[JudgmentType, str, str], Iterable[tuple[str, str]]]
) -> Iterator[Question]:
    """What was asked for a judged report, as :meth:`HumanJudge.says` understands it; some questions may come twice.

    ``pairs``: the questions and answers that were looked for, by type, topic and document ("" where it plays no part).
    """
    before: list[str] = []
    for segment in report.segments:
        for judgment in segment.judgments:
            kind = judgment.type
            doc_id = (judgment.doc_id or "") if kind in BY_DOCUMENT else ""
            base = Question(kind, segment.text, topic=report.request_id, doc_id=doc_id)
            if kind in MATCHING:
                for question, text in pairs(kind, report.request_id, doc_id):
                    yield base._replace(nugget_question=question, nugget_answer=text)
            elif kind is T.FIRST_INSTANCE:
                yield base._replace(previous="\n".join(before))
            else:
                yield base
        before.append(segment.text)


def read_annotators(place: Path) -> HumanJudge:
    """The judgments of a file, or of the files of a folder, each one annotator. Raises as :func:`read_reports`."""
    return HumanJudge(read_reports(place))


def read_reports(place: Path) -> dict[str, list[JudgedReport]]:
    """The judged reports of a file, or of the files of a folder, by file name.

    Raises :class:`EvaluatorError` with everything wrong with them, and for a place that holds none.
    """
    files = [place]
    if place.is_dir():
        files = files_in(place, ENDINGS)
    if not files or len(files) > MAX_FILES or not files[0].is_file():
        raise EvaluatorError(
            f"there are no judgments in {place.name}",
            fix="put one .jsonl file of judgments per annotator there",
        )
    return {p.name: load_judgments(p) for p in files}
