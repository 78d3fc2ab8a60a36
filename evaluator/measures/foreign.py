"""Measures that the ir_measures package computes: which of its providers does, and what that is fed with.

A provider is given a canonical run: as many documents as were retrieved, in the order that the scan settled (ties and
all), with scores n, n-1, ... 1. Of scores that differ only in double precision pytrec_eval gets those in the order of
trec_eval, which holds them in single precision; all other programs, such as gdeval and ndeval, hold them in double. Neither the run's nor the truths' ids go in, because providers parse them: gdeval splits
lines at blanks and wants topics that are numbers. Topics become ``1``, ``2``, ...; judged documents ``d1``, ``d2``, ... in
the order of their ids (pyndeval's ideal lists break ties by id), with leading zeros so that they sort alike; all others
``u`` and their rank; subtopics are numbered as they come. Every measure is computed on its own: asked for several at once, the provider pytrec_eval lets one
measure's ``gains`` and ``judged_only`` act upon others.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import warnings
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from evaluator.errors import EvaluatorError
from evaluator.formats.qrels import Qrels
from evaluator.formats.ranked import Ranked

Values = dict[bytes, float]
_Run = dict[str, dict[str, float]]

# Lower grades (such as -2, spam, in Touché) go to ir_measures as this one: pytrec_eval 0.5 ends now and then with a
# segmentation fault on them. To its measures -1 means the same: not relevant, without gain.
LOWEST = -1
HIGHEST_OF_GDEVAL = 4
SINGLE_PRECISION = "pytrec_eval"  # the provider that compares scores in single precision
# What providers raise when they fail: Python code of all sorts, and a perl script in a process.
FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    subprocess.SubprocessError,
    TypeError,
    ValueError,
)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings of providers: what matters of them is said by us."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def parse(text: str) -> Any:
    """The object that stands for a measure in ir_measures. Raises :class:`EvaluatorError` for what is no measure."""
    try:
        with quiet():
            import ir_measures

            for handler in (
                ir_measures.logger.handlers
            ):  # it would tell the range of the truths' grades for every measure
                handler.setLevel("ERROR")
            measure: Any = ir_measures.parse_measure(text)
            measure.validate_params()
            if any(isinstance(v, bool) for k, v in measure.params.items() if k in ("cutoff", "rel")):
                raise ValueError("the cutoff and rel have to be numbers")
            if any(isinstance(v, int) and v < 1 for k, v in measure.params.items() if k == "cutoff"):
                raise ValueError("the cutoff has to be at least 1")
    except ImportError:
        raise EvaluatorError(
            f"the measure {text} needs the package ir-measures", fix="pip install ir-measures"
        ) from None
    except (*FAILURES, RecursionError, MemoryError) as error:
        names = ", ".join(("nDCG@10", "AP", "RR@10", "P@5", "R@1000", "Judged@10"))
        raise EvaluatorError(
            f"there is no measure {text[:60]!r}",
            str(error)[:200].replace("\n", " "),
            f"use names such as {names}",
            usage=True,
        ) from None
    return measure


def provider_of(measure: Any) -> Any:
    """The provider that computes the measure: the first one that is installed, in ir_measures' own order, or None."""
    import ir_measures

    return next(
        (p for p in ir_measures.DefaultPipeline.providers if p.supports(measure) and p.is_available()), None
    )


def by_subtopic(measure: Any) -> bool:
    """Whether the measure looks at the subtopics for which documents are judged (the second column of qrels)."""
    import ir_measures

    return measure.NAME in {one.NAME for one in ir_measures.pyndeval.SUPPORTED_MEASURES}


def without_subtopics(measures: Mapping[str, Any], qrels: Qrels) -> list[str]:
    """The measures of subtopics among these, if the judgements know one subtopic only: their values mean little."""
    wanted = [text for text, measure in measures.items() if by_subtopic(measure)]
    return wanted if wanted and len({subtopic for _, subtopic, _, _ in qrels.rows}) < 2 else []


def problem(text: str, measure: Any) -> EvaluatorError | None:
    """Why this installation cannot compute the measure for any run, or None if it can: tried on a tiny example."""
    import ir_measures

    with quiet():
        if provider_of(measure) is None:
            able = [p for p in ir_measures.DefaultPipeline.providers if p.supports(measure)]
            if not able:
                return EvaluatorError(
                    f"{text} cannot be computed",
                    "no provider of ir_measures computes it with these parameters",
                    _with_other_parameters(measure) or "take another measure",
                )
            names = " or ".join(p.NAME for p in able)
            return EvaluatorError(
                f"{text} cannot be computed",
                f"it needs {names}, which is not installed with this evaluator",
                f"{' or '.join(p.install_instructions() or p.NAME for p in able)}, in the evaluator's image "
                "(docs/how-to/own-evaluator.md), or take another measure",
            )
    error = _failure(text, measure)
    if error is not None and measure.params.keys().isdisjoint({"cutoff", "judged_only"}):
        with_cutoff = type(measure)(**measure.params, cutoff=10)
        if provider_of(with_cutoff) is not None and _failure(text, with_cutoff) is None:
            fix = f"add a cutoff, such as {with_cutoff}, or take another measure"
            return EvaluatorError(error.what, f"{provider_of(measure).NAME} needs a cutoff", fix)
    return error


def _failure(text: str, measure: Any) -> EvaluatorError | None:
    """The error of the measure on a tiny example, or None."""
    try:
        Feed(_example(measure), _EXAMPLE_RUN).values(text, measure)
    except EvaluatorError as error:
        return error
    return None


def _with_other_parameters(measure: Any) -> str:
    """Return the change of a parameter that makes the measure computable, with an example; empty if none does."""
    import ir_measures

    current = dict(measure.params)
    changes = [
        ("add rel, such as", {**current, "rel": 1}),
        ("add a cutoff, such as", {**current, "cutoff": 10}),
    ]
    changes += [(f"leave {key} out:", {k: v for k, v in current.items() if k != key}) for key in current]
    changes += [
        ("use other parameters, such as", {k: v for k, v in current.items() if k == "p"} | {"rel": 1})
    ]
    for words, params in changes:
        try:
            other = type(measure)(**params)
            other.validate_params()
        except FAILURES:
            continue
        if params != current and any(p.supports(other) for p in ir_measures.DefaultPipeline.providers):
            return f"{words} {other}, or take another measure"
    return ""


def gathered(problems: Sequence[EvaluatorError]) -> EvaluatorError:
    """One error that names every measure which cannot be computed, and no other."""
    if len(problems) == 1:
        return problems[0]
    fixes = dict.fromkeys(p.fix for p in problems if p.fix)
    return EvaluatorError(
        f"{len(problems)} measures cannot be computed",
        "; ".join(f"{p.what}: {p.why}" for p in problems),
        "; ".join(fixes),
    )


def evaluate(measures: Mapping[str, Any], qrels: Qrels, topics: Mapping[bytes, Ranked]) -> dict[str, Values]:
    """Return ``{measure: {topic: value}}`` for every judged topic, 0 where the provider gives none.

    ``measures``: text -> object. Raises :class:`EvaluatorError`, which names the measures that could not be computed.
    """
    out: dict[str, Values] = {}
    problems = []
    feed = Feed(qrels, topics)
    for text, measure in measures.items():
        try:
            out[text] = feed.values(text, measure)
        except EvaluatorError as error:
            problems.append(error)
    if problems:
        raise gathered(problems)
    return out


class Feed:
    """A canonical run and its judgements, for providers."""

    def __init__(self, qrels: Qrels, topics: Mapping[bytes, Ranked]) -> None:
        import ir_measures

        self._qrels = qrels
        self._topics = list(qrels.grades)
        number = {topic: str(i) for i, topic in enumerate(self._topics, 1)}
        docs = sorted({doc for grades in qrels.grades.values() for doc in grades})
        width = len(str(len(docs)))
        names = {doc: f"d{i:0{width}}" for i, doc in enumerate(docs, 1)}
        subtopics: dict[bytes, str] = {}
        self.judgements = [
            ir_measures.Qrel(
                number[topic],
                names[doc],
                max(grade, LOWEST),
                subtopics.setdefault(subtopic, str(len(subtopics))),
            )
            for topic, subtopic, doc, grade in qrels.rows
        ]
        self._single: _Run = {}
        self._double: _Run = {}
        for topic, grades in qrels.grades.items():
            ranked = topics.get(topic)
            if ranked is None or not ranked.retrieved:
                continue

            def canonical(ranks: Mapping[bytes, int], n: int = ranked.retrieved) -> dict[str, float]:
                at = {rank: names[doc] for doc, rank in ranks.items() if doc in grades}  # noqa: B023 (called at once)
                return {at.get(r, f"u{r}"): float(n - r + 1) for r in range(1, n + 1)}

            single = self._single[number[topic]] = canonical(ranked.ranks)
            self._double[number[topic]] = single if ranked.double is None else canonical(ranked.double)

    def values(self, text: str, measure: Any) -> Values:
        """The measure's value for every judged topic. Raises :class:`EvaluatorError` naming it."""
        if self._qrels.repeated and not by_subtopic(measure):
            raise not_by_subtopic(text, self._qrels)
        provider = provider_of(measure)
        assert provider is not None, "a measure without provider was let through"
        out = dict.fromkeys(self._topics, 0.0)
        # An empty list is no answer; without this, trec_eval's code divides 0 by 0 for IPrec(judged_only=True).
        run = self._single if provider.NAME == SINGLE_PRECISION else self._double
        if measure.params.get("judged_only"):
            run = self._only_judged(run)
        try:
            with quiet():
                for metric in provider.iter_calc([measure], self.judgements, run):
                    out[self._topics[int(metric.query_id) - 1]] = float(metric.value)
        except FAILURES as error:
            raise self._failed(text, measure, provider, error) from None
        undefined = [topic for topic, value in out.items() if not isfinite(value)]
        if undefined:
            raise EvaluatorError(
                f"{text} cannot be computed",
                f"{provider.NAME} has no finite value on {len(undefined)} of {len(out)} topics",
                "take another measure, or truths with a relevant document for every topic",
            )
        return out

    def _only_judged(self, run: _Run) -> _Run:
        """The run without topics for which no judged document was retrieved; -1 is not judged, as in trec_eval."""
        judged = {(row.query_id, row.doc_id) for row in self.judgements if row.relevance >= 0}
        return {t: docs for t, docs in run.items() if any((t, doc) in judged for doc in docs)}

    def _failed(self, text: str, measure: Any, provider: Any, error: Exception) -> EvaluatorError:
        """What to say when a provider fails; it got no id of anybody's, so that its words give nothing away."""
        said = f"{type(error).__name__}: {str(error)[:160]}".replace("\n", " ").rstrip(": ")
        fix = "take another measure"
        if isinstance(error, subprocess.SubprocessError):
            said = "its program ended with an error"
            if any(row.relevance > HIGHEST_OF_GDEVAL for row in self.judgements):
                said = f"it takes grades up to {HIGHEST_OF_GDEVAL}, and the truths have higher ones"
                fix = "name truths with lower grades, or take another measure"
            return EvaluatorError(f"{text} cannot be computed", f"{provider.NAME}: {said}", fix)
        if measure.NAME == "Accuracy" and isinstance(error, ZeroDivisionError):
            said += " (it divides by the documents that are not relevant, and the list has none)"
        return EvaluatorError(
            f"{text} cannot be computed",
            f"{provider.NAME} fails: {said}",
            fix,
        )


def not_by_subtopic(text: str, qrels: Qrels) -> EvaluatorError:
    """Return the error for a measure that needs one grade a document, and judgements that have several."""
    if qrels.repeated_lines is not None:
        later, earlier, count = qrels.repeated_lines
        more = f", and {count - 1:,} more lines repeat another" if count > 1 else ""
        return EvaluatorError(
            f"{text} cannot use judgements that are there twice",
            f"{qrels.name}:{later}: the line repeats line {earlier}{more}",
            "remove the repeated lines",
        )
    return EvaluatorError(
        f"{text} cannot use judgements by subtopic",
        f"{qrels.name} judges documents more than once",
        "name truths with one grade per topic and document, or a measure for subtopics such as alpha_nDCG@10",
    )


# One relevant document of three, behind one that is not judged; a subtopic each.
_EXAMPLE_RUN = {b"1": Ranked(3, {b"a": 2, b"b": 3})}


def _example(measure: Any) -> Qrels:
    rel = measure.params.get("rel", 1)
    qrels = Qrels(Path("example"), "the example")
    for subtopic, doc, grade in ((b"1", b"a", max(1, rel)), (b"2", b"b", 0)):
        qrels.add(b"1", subtopic, doc, grade)
    return qrels
