"""The values of one measure over the debates of a run, put into the sink: by turn, by debate and over all.

A value over all debates is not the mean of theirs (debates differ in length), so values by debate stand beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum

from evaluator.judges.criteria import Judgments
from evaluator.kinds.debate.measures import Criterion
from evaluator.kinds.debate.run import Run
from evaluator.kinds.debate.sources import Sources
from evaluator.measures import debate as automatic
from evaluator.measures.interval import intervals
from evaluator.scores import Sink


def counted(i: str, name: str, run: Run, sink: Sink) -> None:
    """The measure ``name``, which needs no judge, under its id ``i`` in the task."""
    if name.startswith("provenance") and run.index is None:
        sink.pending[i] = "there is no index that arguments could be compared with"
        return
    if name == "provenance@cited":
        _cited(i, run, sink)
        return
    if name.startswith("latency") and not run.request.records:
        sink.note("own-times")
    measure = automatic.measures(run.rules.word_limit)[name]
    by_topic: list[float] = []
    for topic, facts in zip(run.topics, run.examined.facts, strict=True):
        for n, turn in enumerate(facts, 1):
            if (value := measure.of(turn)) is not None:
                sink.score(i, topic, value, {"turn": n})
        if values := measure.values(facts):
            by_topic.append(measure.join(values))
            sink.score(i, topic, by_topic[-1])
    if values := measure.values(run.examined.all):
        _total(i, measure.join(values), by_topic if measure.share else (), run, sink)
    else:
        sink.pending[i] = "no turn was answered" if name != "latency" else "no turn has a time"


def _cited(i: str, run: Run, sink: Sink) -> None:
    for topic, facts in zip(run.topics, run.examined.facts, strict=True):
        for n, turn in enumerate(facts, 1):
            if (value := automatic.provenance_cited([turn])) is not None:
                sink.score(i, topic, value, {"turn": n})
        if (value := automatic.provenance_cited(facts)) is not None:
            sink.score(i, topic, value)
    _total(i, automatic.provenance_cited(run.examined.all) or 0.0, (), run, sink)


def judged(i: str, measure: Criterion, run: Run, sources: Sources, sink: Sink) -> None:
    """One criterion, or the mean of all four, as one source judges it, under its id ``i`` in the task."""
    judgments, names = sources.of(measure), measure.criteria
    reason = next((why for c in names if (why := _pending(c, measure, judgments, run))), None)
    if reason is not None:
        sink.pending[i] = reason[:300]
        return
    whole: dict[str, list[float]] = {c: [] for c in names}
    by_topic: list[float] = []
    covered = 0
    for claim, topic in enumerate(run.topics):
        debate: dict[str, list[float]] = {c: [] for c in names}
        for n, turn in enumerate(run.examined.facts[claim], 1):
            said = judgments.values.get((claim, n), {})
            values = {c: said.get(c) if turn.answered else 0.0 for c in names}
            known = {c: value for c, value in values.items() if value is not None}
            for c, value in known.items():
                debate[c].append(value)
            if len(known) == len(names):
                sink.score(i, topic, fsum(known.values()) / len(known), {"turn": n})
        for c in names:
            whole[c] += debate[c]
        if all(debate.values()):
            by_topic.append(_mean_of_means(debate))
            sink.score(i, topic, by_topic[-1])
            # A debate without any answer counts 0, and is none that the run has something in.
            covered += any(turn.answered for turn in run.examined.facts[claim])
    _total(i, _mean_of_means(whole), by_topic, run, sink, covered=covered)


def _pending(criterion: str, measure: Criterion, judgments: Judgments, run: Run) -> str | None:
    """Why a criterion has no value yet; None if it has one."""
    if criterion in judgments.pending:
        return judgments.pending[criterion]
    places = [answer.place for answer in run.examined.answers]
    looked = sum(place in judgments.looked for place in places)
    if measure.source in ("human", "software"):
        people = measure.source == "human"
        if not places and not judgments.looked:
            # All its turns count 0, but as long as nobody has judged anything that would be the first place.
            return f"{'nobody has labelled' if people else 'no judge has scored'} this run: it has no answer"
        who, least = "people" if people else "judges", run.options["labels"]["least"]
        if places and looked == 0:
            return f"{who} have not judged this run yet"
        if looked < least * len(places):
            return f"{who} have judged {looked:,} of {len(places):,} answers; at least {least:.0%} are wanted"
    if places and not any(criterion in judgments.values.get(place, {}) for place in places):
        return f"nobody has said yes or no about {criterion}"
    return None


def _total(
    i: str, value: float, by_topic: Sequence[float], run: Run, sink: Sink, *, covered: int | None = None
) -> None:
    spans = intervals({i: by_topic}) if run.options["interval"] and by_topic else {}
    covered = run.covered if covered is None else covered
    sink.aggregate(i, value, topics=len(run.topics), covered=covered, interval=spans.get(i))


def _mean_of_means(values: Mapping[str, Sequence[float]]) -> float:
    means = [fsum(v) / len(v) if v else 0.0 for v in values.values()]
    return fsum(means) / len(means)
