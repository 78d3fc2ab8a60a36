"""What stands beside the scores of debates: who judged and how reliably, what was not counted, and what that says."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum
from typing import Any

from evaluator.findings import plain
from evaluator.formats.dialogue import turn_key
from evaluator.judges import criteria
from evaluator.judges.addressing import speaks_to_the_judge
from evaluator.judges.criteria import Judgments
from evaluator.kinds.debate.measures import Criterion
from evaluator.kinds.debate.run import Run
from evaluator.kinds.debate.sources import Sources
from evaluator.scores import Sink

_FACTS_FIRST = ("llm", "heuristic", "software", "human")  # whose facts stand beside the scores


def remarks(measures: Mapping[str, Criterion], run: Run, sources: Sources, sink: Sink) -> None:
    """Note who judged, and what was counted. ``measures`` are those that need a judge, by id."""
    turns = run.examined.all
    if failed := sum(not turn.answered for turn in turns):
        sink.note("turns-unanswered", failed=failed, turns=len(turns))
    if run.index is not None and run.rules.served is None:
        sink.note("index-unnoted")
    used = {measure.source for measure in measures.values()}
    for source in (s for s in _FACTS_FIRST if s in used):
        judged = sources.of(Criterion("score", source))
        of_source = {i: m for i, m in sorted(measures.items()) if m.source == source}
        facts = {key: value for key, value in judged.facts.items() if value is not None}
        if source != "human" and (figures := criteria.reliability(judged, sources.human)):
            facts["reliability"] = figures
        if source == "llm" and sources.worthless:
            facts |= _worthless(of_source, sources.worthless, facts.get("reliability", {}))
        if sink.judge is None and judged.values:
            sink.judge = {**facts, "measures": list(of_source)}
        answers = run.examined.answers
        if source in ("human", "software") and answers:
            who = "people" if source == "human" else "judges"
            looked = sum(answer.place in judged.looked for answer in answers)
            sink.note(f"{who}-judged", judged=looked, answers=len(answers))
        if source == "llm" and judged.values:
            _read_by_the_model(run, sink)
        _unjudged(judged, run, sink)


def _unjudged(judged: Judgments, run: Run, sink: Sink) -> None:
    """Name the answers that the judge's endpoint refused, or that it gave no verdict on."""
    if judged.refused:
        sink.note("refused-as-no", refused=len(judged.refused), asked=judged.asked)
    for code, places, what in (
        ("F226", judged.refused, "the judge's endpoint refused the question about {} of turn {}"),
        ("F223", judged.missing, "the judge said neither yes nor no about {} of turn {}"),
    ):
        for (claim, turn), criterion in places:
            sink.findings.add(code, None, what.format(criterion, turn), turn_key(run.topics[claim], turn))


def _read_by_the_model(run: Run, sink: Sink) -> None:
    """Name the answers that were cut for the model, and those that seem to speak to it."""
    most = criteria.ANSWER_CHARACTERS
    for answer in run.examined.answers:
        if len(answer.text) > most:
            turn = answer.place[1]
            message = f"the judge saw {most:,} of {len(answer.text):,} characters of turn {turn}"
            sink.findings.add("F224", None, message, turn_key(run.topics[answer.place[0]], turn))
    for answer in run.examined.answers:
        if (words := speaks_to_the_judge(answer.text)) is not None:
            turn = answer.place[1]
            message = f"the answer of turn {turn} seems to speak to the judge: {plain(words, 80)}"
            sink.findings.add("F227", None, message, turn_key(run.topics[answer.place[0]], turn))


def _worthless(
    measures: Mapping[str, Criterion],
    given: Mapping[str, Mapping[str, float]],
    reliability: Mapping[str, float],
) -> dict[str, Any]:
    """What the judge gives for answers without worth: of each sort for people, and the best by measure."""
    best = {
        i: max(fsum(by[c] for c in measure.criteria) / len(measure.criteria) for by in given.values())
        for i, measure in measures.items()
    }
    shown = {f"yes to an {sort}": fsum(by.values()) / len(by) for sort, by in given.items()}
    return {"reliability": {**reliability, **shown}, "canaries": best}
