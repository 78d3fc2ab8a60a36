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
from math import fsum, isfinite, log2
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.errors import EvaluatorError
from evaluator.formats.qrels import Qrels
from evaluator.formats.trec import Ranked
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
# Lower grades (such as -2, spam, in Touché) go to ir_measures as this one: pytrec_eval 0.5 ends now and then with a
# segmentation fault on them. To its measures -1 means the same: not relevant, without gain.
_LOWEST = -1

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
            self._foreign = _parse_foreign(text)
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
            self._foreign = _parse_foreign(self.text)
        return self._foreign


def _parse_foreign(text: str) -> Any:
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ir_measures

            measure: Any = ir_measures.parse_measure(text)
            measure.validate_params()
            if any(isinstance(v, int) and v < 1 for k, v in measure.params.items() if k == "cutoff"):
                raise ValueError("the cutoff has to be at least 1")
    except ImportError:
        raise EvaluatorError(
            f"the measure {text} needs the package ir-measures", fix="pip install ir-measures"
        ) from None
    except (
        ValueError,
        NameError,
        KeyError,
        TypeError,
        AssertionError,
        AttributeError,
        RecursionError,
        MemoryError,
    ) as error:
        names = ", ".join(("nDCG@10", "AP", "RR@10", "P@5", "R@1000", "Judged@10"))
        raise EvaluatorError(
            f"there is no measure {text[:60]!r}",
            str(error)[:200].replace("\n", " "),
            f"use names such as {names}",
            usage=True,
        ) from None
    return measure


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
    foreign = [m for m in wanted if not m.own]
    if own and qrels.subtopics:
        raise EvaluatorError(
            f"{own[0].text} cannot use judgements by subtopic",
            f"{qrels.name} judges documents more than once",
            "name truths with one grade per topic and document, or a measure for subtopics such as alpha_nDCG@10",
        )
    out: dict[str, Values] = {m.text: {} for m in wanted}
    for m in (m for m in own if m.first):
        for topic, grades in qrels.grades.items():
            ranked = topics.get(topic)
            value = None if ranked is None else condensed_ndcg(ranked.first, grades, m.first)
            if value is not None:
                out[m.text][topic] = value
    own = [m for m in own if not m.first]
    if own:
        for topic, grades in qrels.grades.items():
            ranked = topics.get(topic)
            if ranked is None or not ranked.retrieved:
                for m in own:
                    out[m.text][topic] = 0.0
            else:
                judged = judged_topic(ranked, grades)
                for m in own:
                    out[m.text][topic] = m.value(judged)
    if foreign:
        out.update(_evaluate_foreign(foreign, qrels, topics))
    return out


def _evaluate_foreign(
    measures: list[Measure], qrels: Qrels, topics: Mapping[bytes, Ranked]
) -> dict[str, Values]:
    """Let ir_measures compute from a canonical run: judged documents at their ranks, invented ones between."""
    import warnings

    import ir_measures

    run: dict[str, dict[str, float]] = {}
    for topic in qrels.grades:
        ranked = topics.get(topic)
        if ranked is None or not ranked.retrieved:
            continue
        n = ranked.retrieved
        names = {rank: doc.decode("utf-8") for doc, rank in ranked.ranks.items()}
        # An id in a run holds no blank, so invented ids cannot meet a judged one.
        run[topic.decode("utf-8")] = {
            names.get(r, f"unjudged {r}"): float(n - r + 1) for r in range(1, n + 1)
        }
    rows: Iterable[tuple[bytes, bytes, bytes, int]] = qrels.subtopics or (
        (topic, b"0", doc, grade) for topic, grades in qrels.grades.items() for doc, grade in grades.items()
    )
    judgements = [
        ir_measures.Qrel(t.decode(), d.decode(), max(g, _LOWEST), i.decode()) for t, i, d, g in rows
    ]
    out: dict[str, Values] = {m.text: dict.fromkeys(qrels.grades, 0.0) for m in measures}
    by_object = {m.foreign: m for m in measures}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for metric in ir_measures.iter_calc(list(by_object), judgements, run):
                out[by_object[metric.measure].text][metric.query_id.encode()] = float(metric.value)
    except (ValueError, RuntimeError, TypeError, OSError, AssertionError, KeyError) as error:
        names_ = ", ".join(m.text for m in measures)
        raise EvaluatorError(f"ir_measures cannot compute {names_}", type(error).__name__) from None
    for text, values in out.items():
        if not all(isfinite(v) for v in values.values()):
            raise EvaluatorError(f"ir_measures gives values of {text} that are not finite numbers")
    return out


def aggregate(measure: Measure, values: Values) -> float:
    """The value over all topics that have one: the mean, or the sum for counts; 0 if no topic has one."""
    total = fsum(values.values())
    return total if measure.total or not values else total / len(values)


def first_wanted(measures: Iterable[Measure]) -> int:
    """How many documents of a topic, by the rank column, these measures look at (for :class:`Rules`)."""
    return max((m.first for m in measures), default=0)


def cross_check(
    measures: Iterable[Measure], qrels: Qrels, run: Path, ours: Mapping[str, Values], tolerance: float = 1e-9
) -> str | None:
    """Let ir_measures score the original file; return the first difference over ``tolerance``, or None.

    RR@k and Judged@k are left out: there ir_measures orders ties differently. So is what it does not have.
    """
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ir_measures

        ir: Any = ir_measures
        checked = {m.foreign: m for m in measures if not (m.first or _other_ties(m))}
        if not checked:
            return None
        read = ir.read_trec_qrels(str(qrels.path))
        judgements = [row._replace(relevance=max(row.relevance, _LOWEST)) for row in read]
        results = ir.read_trec_run(str(run))
        theirs = list(ir.iter_calc(list(checked), judgements, results))
    for metric in theirs:
        measure = checked[metric.measure]
        value = ours[measure.text].get(metric.query_id.encode())
        if value is None:
            return f"{measure.text}: ir_measures has a topic that we do not have"
        if abs(value - float(metric.value)) > tolerance:
            return f"{measure.text}: {value!r} here and {metric.value!r} from ir_measures for one topic"
    return None


def _other_ties(measure: Measure) -> bool:
    """Whether ir_measures leaves the measure to a provider that orders ties in another way."""
    name = re.split(r"[(@]", measure.text, maxsplit=1)[0]
    return name == "Judged" or (name in ("RR", "MRR") and "@" in measure.text)
