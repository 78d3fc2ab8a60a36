"""Measures for ranked lists, named by ir-measures strings such as ``nDCG@10`` or ``P(rel=2)@5``.

The common ones are computed here from the ranks of judged documents, bit for bit as trec_eval computes them;
all others go through the ir_measures package. Every value averages over **all** topics of the judgements: a topic
that the run does not answer counts 0. (One stands apart: ``condensed nDCG@k``, see
:mod:`evaluator.measures.condensed`, averages over the topics that have a value.) The definitions are those of
trec_eval (Buckley and Voorhees, "Retrieval System Evaluation", in: TREC, MIT Press 2005) and, for nDCG, Järvelin and
Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS 20(4), 2002.

One rule orders tied documents everywhere: by id, falling, as in trec_eval. (ir_measures itself breaks ties the
other way round for RR@k and Judged@k.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from math import fsum, log2
from typing import Any, NamedTuple

from evaluator.formats.qrels import Qrels
from evaluator.formats.ranked import Ranked
from evaluator.measures.condensed import condensed_cutoff, condensed_ndcg

_STRING = re.compile(
    r"(?P<name>[A-Za-z]+)(?:\(\s*rel\s*=\s*(?P<rel>[0-9]{1,6})\s*\))?(?:@(?P<cutoff>[0-9]{1,9}))?"
)
_ALIASES = {
    "NDCG": "nDCG",
    "MAP": "AP",
    "MRR": "RR",
    "Precision": "P",
    "Recall": "R",
    "RPrec": "Rprec",
    "BPref": "Bpref",
}

Values = dict[bytes, float]


class Judged(NamedTuple):
    """One topic as measures see it: grades of retrieved judged documents by rank, and all grades, falling."""

    retrieved: int
    hits: list[tuple[int, int]]  # (rank from 1, grade), by rank
    grades: list[int]


def _relevant(topic: Judged, rel: int) -> int:
    return sum(1 for grade in topic.grades if grade >= rel)


def _ndcg(topic: Judged, rel: int, cutoff: int) -> float:
    """Gain = grade (0 if negative), discount log2(rank + 1), against the best order of all judged documents."""
    ideal = gain = 0.0
    for rank, grade in enumerate(topic.grades[:cutoff] if cutoff else topic.grades, 1):
        if grade <= 0:
            break
        ideal += grade / log2(rank + 1)
    if ideal <= 0.0:
        return 0.0
    for rank, grade in topic.hits:
        if cutoff and rank > cutoff:
            break
        if grade > 0:
            gain += grade / log2(rank + 1)
    return gain / ideal


def _found(topic: Judged, rel: int, cutoff: int) -> int:
    """How many relevant documents stand above the cutoff."""
    return sum(1 for rank, grade in topic.hits if grade >= rel and (not cutoff or rank <= cutoff))


def _precision(topic: Judged, rel: int, cutoff: int) -> float:
    depth = cutoff or topic.retrieved
    return _found(topic, rel, cutoff) / depth if depth else 0.0


def _recall(topic: Judged, rel: int, cutoff: int) -> float:
    relevant = _relevant(topic, rel)
    return _found(topic, rel, cutoff) / relevant if relevant else 0.0


def _ap(topic: Judged, rel: int, cutoff: int) -> float:
    relevant, found, total = _relevant(topic, rel), 0, 0.0
    for rank, grade in topic.hits:
        if cutoff and rank > cutoff:
            break
        if grade >= rel:
            found += 1
            total += found / rank
    return total / relevant if relevant else 0.0


def _rr(topic: Judged, rel: int, cutoff: int) -> float:
    for rank, grade in topic.hits:
        if grade >= rel:
            return 1.0 / rank if not cutoff or rank <= cutoff else 0.0
    return 0.0


def _success(topic: Judged, rel: int, cutoff: int) -> float:
    return 1.0 if _found(topic, rel, cutoff) else 0.0


def _rprec(topic: Judged, rel: int, cutoff: int) -> float:
    relevant = _relevant(topic, rel)
    return _found(topic, rel, relevant) / relevant if relevant else 0.0


def _bpref(topic: Judged, rel: int, cutoff: int) -> float:
    """Buckley and Voorhees, SIGIR 2004, as in trec_eval: judged non-relevant ones above each relevant one."""
    relevant = _relevant(topic, rel)
    nonrelevant = sum(1 for grade in topic.grades if 0 <= grade < rel)
    bound, above, total = min(relevant, nonrelevant), 0, 0.0
    for _, grade in topic.hits:
        if grade >= rel:
            total += 1.0 - min(above, relevant) / bound if above else 1.0
        elif grade >= 0:
            above += 1
    return total / relevant if relevant else 0.0


def _judged(topic: Judged, rel: int, cutoff: int) -> float:
    depth = min(cutoff, topic.retrieved) if cutoff else topic.retrieved
    return sum(1 for rank, _ in topic.hits if rank <= depth) / depth if depth else 0.0


def _num_ret(topic: Judged, rel: int, cutoff: int) -> float:
    return float(_found(topic, rel, 0) if rel else topic.retrieved)


def _num_rel(topic: Judged, rel: int, cutoff: int) -> float:
    return float(_relevant(topic, rel))


def _num_q(topic: Judged, rel: int, cutoff: int) -> float:
    return 1.0


class _Own(NamedTuple):
    compute: Callable[[Judged, int, int], float]
    cutoff: str  # "must", "may", "no"
    rel: int | None = 1  # default; None: takes no rel
    total: bool = False  # summed over topics, not averaged


_OWN: dict[str, _Own] = {
    "nDCG": _Own(_ndcg, "may", None),
    "P": _Own(_precision, "must"),
    "R": _Own(_recall, "must"),
    "AP": _Own(_ap, "may"),
    "RR": _Own(_rr, "may"),
    "Success": _Own(_success, "must"),
    "Rprec": _Own(_rprec, "no"),
    "Bpref": _Own(_bpref, "no"),
    "Judged": _Own(_judged, "may", None),
    "NumRet": _Own(_num_ret, "no", 0, total=True),
    "NumRelRet": _Own(_num_ret, "no", 1, total=True),
    "NumRel": _Own(_num_rel, "no", 1, total=True),
    "NumQ": _Own(_num_q, "no", None, total=True),
}


class Measure:
    """A measure by its ir-measures string. ``own`` tells those computed here from those of ir_measures.

    ``first`` is the k of ``condensed nDCG@k``, which needs the first k documents by the rank column, else 0.
    Raises :class:`EvaluatorError` if the string is not a measure.
    """

    __slots__ = ("_cutoff", "_foreign", "_own", "_rel", "first", "text", "total")

    def __init__(self, text: str) -> None:
        self.text = text
        self._own: _Own | None = None
        self._foreign: Any = None
        self._cutoff = self._rel = 0
        self.first = condensed_cutoff(text)
        self.total = False
        if self.first:
            return
        match = _STRING.fullmatch(text.strip())
        if match is not None:
            own = _OWN.get(_ALIASES.get(match["name"], match["name"]))
            cutoff, rel = match["cutoff"], match["rel"]
            if own is not None and not (
                (own.cutoff == "must" and cutoff is None)
                or (own.cutoff == "no" and cutoff is not None)
                or (own.rel is None and rel is not None)
                or (cutoff is not None and int(cutoff) < 1)
                or (rel is not None and (int(rel) < 1 or match["name"] in ("NumRelRet",)))
            ):
                self._own = own
                self._cutoff = int(cutoff or 0)
                self._rel = int(rel) if rel is not None else (own.rel or 0)
        if self._own is not None:
            self.total = self._own.total
        else:
            self._foreign = _parsed(text)
            self.total = type(self._foreign.aggregator()).__name__ == "SumAgg"

    @property
    def own(self) -> bool:
        """Whether the measure is computed here, without ir_measures."""
        return self._own is not None or self.first > 0

    def value(self, topic: Judged) -> float:
        """The measure's value for one topic that the run answers (own measures only)."""
        assert self._own is not None
        return self._own.compute(topic, self._rel, self._cutoff)

    @property
    def foreign(self) -> Any:
        """The object that stands for this measure in ir_measures."""
        if self._foreign is None:
            self._foreign = _parsed(self.text)
        return self._foreign


def _parsed(text: str) -> Any:
    from evaluator.measures import foreign

    return foreign.parse(text)


def require(measures: Iterable[Measure]) -> None:
    """Raise :class:`EvaluatorError` if measures cannot be computed here, whatever the run: it names them, and the fix."""
    others = {m.text: m.foreign for m in measures if not m.own}
    if others:
        from evaluator.measures import foreign

        problems = [
            p for text, measure in others.items() if (p := foreign.problem(text, measure)) is not None
        ]
        if problems:
            raise foreign.gathered(problems)


def judged_topic(ranked: Ranked, grades: Mapping[bytes, int]) -> Judged:
    """Bring what a run retrieved for a topic together with the topic's grades."""
    hits = sorted((rank, grades[doc]) for doc, rank in ranked.ranks.items() if doc in grades)
    return Judged(ranked.retrieved, hits, sorted(grades.values(), reverse=True))


def evaluate(measures: Iterable[Measure], qrels: Qrels, topics: Mapping[bytes, Ranked]) -> dict[str, Values]:
    """Return ``{measure: {topic: value}}`` with a value for every judged topic: 0 where the run has no answer.

    Measures with ``first`` have values for some topics only; they need a scan whose rules asked for as many.
    Raises :class:`EvaluatorError` if a measure cannot be computed from these judgements.
    """
    wanted = list(measures)
    own = [m for m in wanted if m.own]
    others = [m for m in wanted if not m.own]
    if own and qrels.repeated:
        from evaluator.measures import foreign

        raise foreign.not_by_subtopic(own[0].text, qrels)
    out: dict[str, Values] = {m.text: {} for m in wanted}
    for topic, grades in qrels.grades.items() if own else ():
        ranked = topics.get(topic)
        judged = judged_topic(ranked, grades) if ranked is not None and ranked.retrieved else None
        for m in own:
            if not m.first:
                out[m.text][topic] = 0.0 if judged is None else m.value(judged)
            elif ranked is not None and (v := condensed_ndcg(ranked.first, grades, m.first)) is not None:
                out[m.text][topic] = v
    if others:
        from evaluator.measures import foreign

        out.update(foreign.evaluate({m.text: m.foreign for m in others}, qrels, topics))
    return out


def aggregate(measure: Measure, values: Values) -> float:
    """The value over all topics that have one: the mean, or the sum for counts; 0 if no topic has one."""
    total = fsum(values.values())
    return total if measure.total or not values else total / len(values)


def first_wanted(measures: Iterable[Measure]) -> int:
    """How many documents of a topic, by the rank column, these measures look at (for :class:`Rules`)."""
    return max((m.first for m in measures), default=0)
