"""Judging the reports of a run: by the offline judge, a model or people, as the task says."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.argue.asking import Judge, Question, Unjudged, Verdict
from evaluator.argue.judging import MAX_READ, Flow, Judging, characters_at_most, questions_at_most
from evaluator.argue.models import Bank, JudgedReport
from evaluator.errors import EvaluatorError
from evaluator.findings import Log, plain
from evaluator.kinds.report.reading import Kept, Reading
from evaluator.measures.agreement import with_people
from evaluator.request import Request


def affordable(
    reports: Sequence[Kept], banks: Mapping[str, Bank], flow: Flow, most: int, log: Log
) -> list[Kept]:
    """Reports that take at most ``most`` questions to judge, of topics that have nuggets; the others are in the log."""
    kept = []
    for one in reports:
        topic = one.report.topic_id
        if topic not in banks:
            continue
        count = questions_at_most(one.report, banks[topic], flow)
        size = characters_at_most(one.report, banks[topic], flow)
        if count > most:
            why = f"{count:,} questions to judge, {most:,} are allowed"
        elif size > MAX_READ:
            why = f"questions that repeat {size:,} of its characters, {MAX_READ:,} are allowed"
        else:
            kept.append(one)
            continue
        log.add("F340", one.report.line, f"the report takes {why}", topic.encode())
    return kept


class Outcome(NamedTuple):
    """What the judge has said. ``reason`` is why there are no scores yet."""

    judged: list[JudgedReport]
    facts: dict[str, Any]
    reason: str | None
    judging: Judging


class _Compared:
    """A judge whose verdicts are kept with those of people (``pairs``), where there are some."""

    def __init__(self, judge: Judge, people: Any) -> None:
        self._judge, self._people = judge, people
        self.name, self.width = judge.name, judge.width
        self.identity, self.facts, self.close = judge.identity, judge.facts, judge.close
        self.pairs: dict[Question, tuple[bool, bool]] = {}

    async def decide(self, question: Question) -> Verdict:
        """The judge's answer."""
        said = await self._judge.decide(question)
        known = self._people.says(question)
        if known is not None:
            self.pairs[question] = (known, said.value)
        return said


def judge(
    kept: Sequence[Kept], banks: Mapping[str, Bank], reading: Reading, flow: Flow, truths: Path
) -> Outcome:
    """Let the task's judge judge the reports ``kept``. Raises :class:`EvaluatorError` for wrong files in ``truths``."""
    options: Mapping[str, Any] = reading.options["judge"]
    asked, reason = _judge(truths, reading.request, options)
    known: dict[str, float] = {}
    if "reliability" in options:
        from evaluator.argue.trust.figures import read_reliability

        known = read_reliability(truths / options["reliability"], asked.identity())
    compared: _Compared | None = None
    if options["type"] != "human" and (truths / options["labels"]).exists():
        from evaluator.argue.judges.human import read_annotators

        asked = compared = _Compared(asked, read_annotators(truths / options["labels"]))

    async def everything() -> tuple[Judging, list[JudgedReport | EvaluatorError]]:
        judging = Judging(asked, flow)
        if reason is not None:
            return judging, []
        try:
            wanted = ((one.report, banks[one.report.topic_id], reading.text(one.report)) for one in kept)
            return judging, await judging.reports(wanted)
        finally:
            await asked.close()

    judging, results = asyncio.run(everything())
    judged = [r for r in results if isinstance(r, JudgedReport)]
    failed = [r for r in results if not isinstance(r, JudgedReport)]
    if failed:
        reason = _why(failed, len(results))
    elif (why := judging.counts.failure) is not None:
        reason = why
    facts = asked.facts()
    figures = known | (with_people(list(compared.pairs.values()), "judgments") if compared else {})
    if figures:
        facts["reliability"] = {**facts.get("reliability", {}), **figures}
    return Outcome(judged, facts, reason, judging)


def _judge(truths: Path, request: Request, options: Mapping[str, Any]) -> tuple[Judge, str | None]:
    """The judge of the task, and why it cannot be asked."""
    if options["type"] == "human":
        from evaluator.argue.judges.human import HumanJudge, read_annotators

        if not (truths / options["labels"]).exists():
            return HumanJudge({}), "people have not judged yet"
        return read_annotators(truths / options["labels"]), None
    if options["type"] == "lexical":
        from evaluator.argue.judges.lexical import LexicalJudge

        return LexicalJudge(), None
    if options["type"] in ("nli", "lexical+nli"):
        from evaluator.argue.judges.nli import NliJudge

        return NliJudge(options["type"], truths / options["folder"]), None
    from evaluator.argue.judges.model import ModelJudge
    from evaluator.argue.prompting import read_prompts
    from evaluator.judges.chat import Chat

    prompts = read_prompts(truths / options["prompts"] if "prompts" in options else None)
    parameters = dict(options.get("parameters", {}))
    if "max_tokens" in options:
        parameters["max_tokens"] = options["max_tokens"]
    chat = Chat(model=options["model"], socket=request.gateway, parameters=parameters)
    reason = None if request.gateway is not None else "no model can be asked here: there is no gateway"
    return ModelJudge(chat, prompts, name="openai"), reason


def _why(failed: Sequence[EvaluatorError], count: int) -> str:
    first = failed[0]
    if isinstance(first, Unjudged):
        return f"people have judged {count - len(failed):,} of {count:,} reports completely"
    return (
        f"the judge could not be asked about {len(failed):,} of {count:,} reports: {plain(first.what, 150)}"
    )
