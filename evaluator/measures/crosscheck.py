"""The cross-check: ir_measures scores the run's own file, and has to come to our values.

The file is read anew here, with the run's own document ids, so that a mistake in reading, in ordering or in what a
provider is fed with shows. Where a provider orders tied documents otherwise than trec_eval does, it is given the run
without ties: scores n, n-1, ... 1 in trec_eval's order. Those are all but pytrec_eval:

* msmarco (``RR@k``) and judged order ties by rising id; compat, too, and it takes documents that were not retrieved for
  ones with score 0, which is more than a negative one;
* accuracy, cwl_eval and pyndeval leave them in the order of the file;
* gdeval orders them as trec_eval does.

Scores are compared in single precision for pytrec_eval and the measures that are computed here, for all others in double.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from evaluator.findings import Log
from evaluator.formats.files import read_all
from evaluator.formats.qrels import Qrels
from evaluator.measures import foreign
from evaluator.measures.ir import Measure, Values

SMALL = 50_000  # lines of a run that is checked without being asked for, and lines of its judgements
TOLERANCE = 1e-9
# Findings after which everything in the file still counts.
HARMLESS = frozenset(
    ("F008", "F011", "F013", "F015", "F016", "F018", "F021", "F022", "F023", "F024", "F025", "F029")
)
SAME_TIES = foreign.SINGLE_PRECISION
Run = dict[bytes, dict[bytes, float]]  # scores in the order of the file


def small(qrels: Qrels, log: Log) -> bool:
    """Whether a run costs so little to check that it is checked without being asked for."""
    return log.lines <= SMALL and len(qrels.rows) <= SMALL


def incomparable(log: Log, *, double: bool) -> str:
    """Why a run that was scored cannot be checked against its file, as a kind of detail; empty if it can."""
    if double:
        return "unchecked-double"
    ignored = (code for code, severity in log.severity.items() if severity == "ignore")
    passed = {code for code in ignored if code.startswith("F0")}
    if log.defects or not (set(log.counts) | passed) <= HARMLESS:
        return "unchecked-findings"
    return ""


def cross_check(
    measures: Iterable[Measure], qrels: Qrels, run: Path, ours: Mapping[str, Values]
) -> tuple[str, str] | None:
    """Let ir_measures score the file: the first measure with a difference over 1e-9 and what differs, or None.

    Left out is what ir_measures does not have: ``condensed nDCG@k``, and measures without an installed provider.
    """
    checked = [
        (m, provider)
        for m in measures
        if not m.first and (provider := foreign.provider_of(m.foreign)) is not None
    ]
    if not checked:
        return None
    number = {topic: str(i) for i, topic in enumerate(qrels.grades, 1)}
    found = _read(run, qrels)
    judgements = _judgements(qrels, number)
    for measure, provider in checked:
        lists = found
        if provider.NAME != SAME_TIES:
            lists = {t: _without_ties(docs, double=not measure.own) for t, docs in found.items()}
        theirs = {number[t]: {_text(d): s for d, s in docs.items()} for t, docs in lists.items()}
        difference = _difference(measure, provider, judgements, theirs, ours[measure.text], list(number))
        if difference:
            return measure.text, difference
    return None


def _difference(
    measure: Measure, provider: Any, judgements: list[Any], run: Any, ours: Values, topics: list[bytes]
) -> str:
    """What differs; a value that is not a number is one that we define (see :class:`foreign.Feed`), or refuse."""
    left = dict(ours)
    try:
        with foreign.quiet():
            for metric in provider.iter_calc([measure.foreign], judgements, run):
                value = left.pop(topics[int(metric.query_id) - 1])
                if isfinite(metric.value) and abs(value - float(metric.value)) > TOLERANCE:
                    return f"{value!r} here and {metric.value!r} from {provider.NAME} for one topic"
    except foreign.FAILURES as error:
        return f"{provider.NAME} fails on the run's own file ({type(error).__name__})"
    rest = max(map(abs, left.values()), default=0.0)
    return f"{rest!r} here and nothing from {provider.NAME} for one topic" if rest > TOLERANCE else ""


def _judgements(qrels: Qrels, number: Mapping[bytes, str]) -> list[Any]:
    import ir_measures

    return [
        ir_measures.Qrel(number[topic], _text(doc), max(grade, foreign.LOWEST), _text(subtopic))
        for topic, subtopic, doc, grade in qrels.rows
    ]


def _text(name: bytes) -> str:
    """An id as text, whatever its bytes; the order of ids stays that of their bytes."""
    return name.decode("latin-1")


def _read(path: Path, qrels: Qrels) -> Run:
    """The lists of judged topics as the file has them. A line that is none was a finding, and came not so far."""
    run: Run = {}
    for line in read_all(path).split(b"\n"):
        words = line.split()
        if len(words) == 6 and words[0] in qrels.grades and isfinite(float(words[4])):
            run.setdefault(words[0], {})[words[2]] = float(words[4])
    return run


def _without_ties(docs: Mapping[bytes, float], *, double: bool) -> dict[bytes, float]:
    """The same list by score and then by id, both falling, with scores that are not tied: n, n-1, ... 1."""
    keys = docs if double else dict(zip(docs, array("f", docs.values()), strict=True))
    order = sorted(docs, key=lambda doc: (keys[doc], doc), reverse=True)
    return {doc: float(len(order) - i) for i, doc in enumerate(order)}
