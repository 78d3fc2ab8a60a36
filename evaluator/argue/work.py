"""Annotating and scoring files, as the command line and the Python interface do it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluator.argue.asking import Judge
from evaluator.argue.formats.lookup import Lookup, open_lookup
from evaluator.argue.formats.report import Report
from evaluator.argue.formats.reports import read_reports
from evaluator.argue.judges.model import MAX_TOKENS, Estimate, Estimating, ModelJudge
from evaluator.argue.judging import Flow, Judging, Tally, fingerprint
from evaluator.argue.models import Bank, JudgedReport
from evaluator.argue.progress import Progress
from evaluator.argue.prompting import read_prompts
from evaluator.errors import EvaluatorError
from evaluator.findings import Log, plain, show
from evaluator.judges import providers

if TYPE_CHECKING:
    from evaluator.judges.replies import Replies

LOOKUP_VARIABLE = "DOC_LOOKUP"
SMALL = 16 << 20  # bytes of a collection whose index is not worth a file beside it
Wanted = tuple[Report, Bank, Callable[[str], str | None]]


@dataclass(frozen=True)
class JudgeChoice:
    """Who judges: a provider's name, ``lexical`` or ``human``, and what belongs to it."""

    provider: str = providers.DEFAULT
    model: str | None = None
    prompts: Path | None = None
    max_tokens: int = MAX_TOKENS
    replies: Path | None = None  # where replies are kept
    human: Path | None = None  # judgments of people
    parameters: Mapping[str, Any] = field(default_factory=dict)


class OpenJudge:
    """The judge of a choice, with what has to be ended after it (a local server). Use it with ``with``."""

    def __init__(self, choice: JudgeChoice, env: Mapping[str, str] | None = None) -> None:
        self.choice = choice
        self._env = env
        self._stack = ExitStack()

    def __enter__(self) -> Judge:
        try:
            return self._open()
        except BaseException:
            self._stack.close()
            raise

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _open(self) -> Judge:
        choice = self.choice
        if choice.provider == "lexical":
            if choice.prompts is not None:
                read_prompts(choice.prompts)  # still say what is wrong with it
            from evaluator.argue.judges.lexical import LexicalJudge

            return LexicalJudge()
        if choice.provider == "human":
            if choice.human is None:
                raise EvaluatorError(
                    "people judge, but their judgments are not named",
                    fix="name the file or folder with --human",
                    usage=True,
                )
            from evaluator.argue.judges.human import read_annotators

            return read_annotators(choice.human)
        from evaluator.judges.chat import Chat
        from evaluator.judges.replies import Replies

        prompts = read_prompts(choice.prompts)
        found = providers.endpoint(choice.provider, model=choice.model, env=self._env)
        model, lacks, begin = found.model, found.lacks, None
        replies: Replies = self._stack.enter_context(Replies(choice.replies))
        if found.provider == "huggingface_local" and found.base_url is None:
            from evaluator.judges.local_server import LocalServer, lacking, served_name

            # A server takes minutes to load a model: not before there is a question that was never answered.
            model, lacks = served_name(found.model), lacking(found.model)

            def begin() -> str:
                return self._stack.enter_context(LocalServer(found.model)).base_url

        chat = Chat(
            model=model,
            base_url=found.base_url,
            api_key=found.key or ("none" if found.base_url else None),
            concurrency=found.concurrency,
            replies=replies,
            parameters={"max_tokens": choice.max_tokens, **choice.parameters},
        )
        return ModelJudge(
            chat, prompts, name=found.provider, width=found.concurrency, lacks=lacks, begin=begin
        )


def documents(
    place: str | Path | None,
    collections: Sequence[str] | None,
    env: Mapping[str, str] | None = None,
) -> Lookup | None:
    """The look-up of ``-C`` and ``-c``, or of DOC_LOOKUP; None if neither names one.

    Raises :class:`EvaluatorError` for a place that is not there or has none of the collections.
    """
    env = providers.environment() if env is None else env
    named = str(place) if place is not None else env.get(LOOKUP_VARIABLE, "").strip()
    if not named:
        return None
    path = Path(named)
    if not path.exists():
        origin = "-C" if place is not None else LOOKUP_VARIABLE
        raise EvaluatorError(f"there is no folder {plain(named, 200)}", f"{origin} names it", usage=True)
    cache = env.get("CACHE_DIR", "").strip()
    return open_lookup(path, collections or None, cache=Path(cache) if cache else None, small=SMALL)


def load(path: Path, log: Log, topics: Sequence[str] = ()) -> list[Report]:
    """The reports of a file, those on ``topics`` only if some are named. Raises :class:`EvaluatorError` for wrong ones.

    A file may hold several runs; a run has one report a topic.
    """
    found: list[Report] = []
    seen: dict[tuple[str, str], int | None] = {}
    for report in read_reports(path, log, follow=True):
        key = report.run_id, report.topic_id
        if key in seen:
            what = f"the topic {show(report.topic_id)} was answered by this run already, in line {seen[key]}"
            log.add("F310", report.line, what, report.topic_id.encode())
            continue
        seen[key] = report.line
        if not topics or report.topic_id in topics:
            found.append(report)
    if log.invalid:
        return []
    if not found:
        raise EvaluatorError(
            f"{path.name} has no report on {', '.join(map(show, topics[:5]))}",
            fix="check --topics",
            usage=True,
        )
    return found


def paired(
    reports: Sequence[Report], banks: Mapping[str, Bank], lookup: Lookup | None, *, carried: bool
) -> list[Wanted]:
    """Every report on a topic with nuggets, with its nuggets and the texts of its documents."""
    return [
        (r, banks[r.topic_id], _texts(r, lookup, carried))
        for r in reports
        if r.topic_id in banks and banks[r.topic_id].nuggets
    ]


def _texts(report: Report, lookup: Lookup | None, carried: bool) -> Callable[[str], str | None]:
    whole = lookup or Lookup([])
    return (whole.within(report) if carried else whole).text


def aligned(reports: Sequence[Report], banks: Mapping[str, Bank]) -> None:
    """Raises :class:`EvaluatorError` unless every report has nuggets and every topic with nuggets a report of every run."""
    problems = [
        f"{show(r.topic_id)} of run {show(r.run_id)} has no nuggets"
        for r in reports
        if r.topic_id not in banks or not banks[r.topic_id].nuggets
    ]
    for run in dict.fromkeys(r.run_id for r in reports):
        there = {r.topic_id for r in reports if r.run_id == run}
        problems += [
            f"run {show(run)} has no report on {show(t)}"
            for t, b in banks.items()
            if b.nuggets and t not in there
        ]
    if problems:
        from evaluator.argue.formats.requests import refused

        raise refused(
            "reports and nuggets are not of the same topics",
            problems,
            "leave --do-nugget-alignment-check out, or complete them",
        )


def estimate(
    wanted: Sequence[Wanted], judge: Judge, flow: Flow, price: tuple[float, float] | None
) -> Estimate:
    """What judging would take at most."""
    counting = Estimating(judge if isinstance(judge, ModelJudge) else None)
    asyncio.run(Judging(counting, flow).reports(wanted))
    return counting.estimate(price)


@dataclass(frozen=True)
class Reused:
    """Stored judgments beside what is wanted: ``kept`` by (run, topic), and why the others are made again."""

    kept: Mapping[tuple[str, str], JudgedReport]
    stale: int
    foreign: int


def reusable(stored: Sequence[JudgedReport], wanted: Sequence[Wanted], judge: Judge, flow: Flow) -> Reused:
    """Those stored judgments that need not be made again.

    Ours say what they were made from; those of Auto-ARGUE do not, and count as long as the sentences are the same.
    """
    by_key = {(j.run_id, j.request_id): j for j in stored}
    kept: dict[tuple[str, str], JudgedReport] = {}
    stale = foreign = 0
    for report, bank, text in wanted:
        key = report.run_id, report.topic_id
        one = by_key.get(key)
        if one is None:
            continue
        made = one.judge.get("fingerprint")
        # Auto-ARGUE holds citations as a set, so its files have them in any order.
        if made is None and [(s.text, set(s.doc_ids)) for s in one.segments] == [
            (s.text, set(s.citations)) for s in report.sentences
        ]:
            kept[key], foreign = one, foreign + 1
        elif made is not None and made == fingerprint(report, bank, text, judge, flow):
            kept[key] = one
        else:
            stale += 1
    return Reused(kept, stale, foreign)


def annotate(
    wanted: Sequence[Wanted], judge: Judge, flow: Flow, total: int
) -> tuple[list[JudgedReport], Tally]:
    """The judged reports. Raises :class:`EvaluatorError` if one could not be judged; replies so far are kept."""

    async def everything(progress: Progress) -> tuple[list[JudgedReport | EvaluatorError], Tally]:
        judging = Judging(judge, flow, tell=progress.tick)
        try:
            return await judging.reports(wanted), judging.tally
        finally:
            await judge.close()

    with Progress(total, "judging") as progress:
        results, tally = asyncio.run(everything(progress))
    failed = [r for r in results if not isinstance(r, JudgedReport)]
    if failed:
        first = failed[0]
        raise EvaluatorError(
            f"{len(failed):,} of {len(results):,} reports could not be judged",
            "; ".join(p for p in (first.what, first.why) if p),
            first.fix or "run it again: what was answered is kept",
            usage=first.usage,
        )
    if (why := tally.mostly_refused) is not None:
        raise EvaluatorError("these would be no judgments", why, "try another model, prompts or --max-tokens")
    return [r for r in results if isinstance(r, JudgedReport)], tally
