"""Asking a judge outside of a judging: which questions there are, a sample of them, and all answers in their order."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.argue.arguments import Parser, add_judge_options, add_report_options
from evaluator.argue.asking import Judge, Question, Verdict
from evaluator.argue.formats.nugget_formats import load_nuggets
from evaluator.argue.judges.model import Estimating, ModelJudge
from evaluator.argue.judging import Flow, Judging
from evaluator.argue.models import JudgmentType
from evaluator.argue.terminal import Progress
from evaluator.argue.work import Work, allowed, choice_of, flow_of, open_judge, work_of
from evaluator.errors import EvaluatorError

T = JudgmentType
SAMPLE = 25  # questions of a type
OnAnswer = Callable[[], None]


class ProbeQuestion(NamedTuple):
    """A question, and the right answer where that is known."""

    question: Question
    right: bool | None = None


def parser_of(name: str, description: str) -> Parser:
    """The arguments that both commands have."""
    parser = Parser(prog=f"evaluator argue {name}", description=description)
    parser.add_argument(
        "places",
        nargs="*",
        metavar="INPUT NUGGETS",
        help="reports and nuggets (default: the labelled pairs that come with the evaluator)",
    )
    add_judge_options(parser)
    add_report_options(parser)
    parser.option("--sample", type=int, default=SAMPLE, metavar="N",
                  help=f"questions of each type, the same ones each time (default {SAMPLE}; 0: all)")  # fmt: skip
    parser.option("--max-calls", type=int, metavar="N", help="do not begin if more calls may be needed")
    parser.flags({"--dry-run": "only say what it would take"})
    return parser


def questions(args: argparse.Namespace) -> list[ProbeQuestion] | None:
    """What can be asked about the reports that are named, or the labelled pairs. None if the reports are invalid, which was said.

    Raises :class:`EvaluatorError`.
    """
    if len(args.places) not in (0, 2):
        raise EvaluatorError("give INPUT and NUGGETS, or neither", usage=True)
    if choice_of(args).provider == "human":
        raise EvaluatorError(
            "people cannot be asked again here",
            fix="compare people's judgments with evaluator argue agreement",
            usage=True,
        )
    if not args.places:
        return labelled()
    args.input, args.nuggets = args.places
    work = work_of(args, load_nuggets(Path(args.nuggets)))
    return None if work is None else [ProbeQuestion(q) for q in possible(work, flow_of(args))]


def labelled() -> list[ProbeQuestion]:
    """The labelled pairs that come with the evaluator."""
    from evaluator.argue.judges.tuning import read_pairs

    return [ProbeQuestion(pair.question, pair.label) for pair in read_pairs()]


class _Noting(Estimating):
    """Answers so that as much as possible is asked, and keeps the questions."""

    def __init__(self) -> None:
        super().__init__(None)
        self.noted: dict[Question, None] = {}

    async def decide(self, question: Question) -> Verdict:
        """Keep the question."""
        self.noted[question._replace(topic="", doc_id="")] = None
        return await super().decide(question)


def possible(work: Iterable[Work], flow: Flow) -> list[Question]:
    """Every question that judging may ask, each once, in their order."""
    noting = _Noting()
    for result in asyncio.run(Judging(noting, flow).reports(work)):
        if isinstance(result, EvaluatorError):
            raise result
    return list(noting.noted)


def sample(found: Sequence[ProbeQuestion], size: int) -> list[ProbeQuestion]:
    """At most ``size`` of each type (all with 0), chosen by their content alone, in their order."""
    if size <= 0:
        return list(found)
    by_type: dict[JudgmentType, list[ProbeQuestion]] = {}
    for probe in found:
        by_type.setdefault(probe.question.type, []).append(probe)
    chosen = {p for some in by_type.values() for p in sorted(some, key=_digest)[:size]}
    return [p for p in found if p in chosen]


def _digest(probe: ProbeQuestion) -> str:
    return hashlib.sha256("\0".join(map(str, probe.question)).encode("utf-8", "replace")).hexdigest()


def measured(
    args: argparse.Namespace,
    most: Sequence[Question],
    ask: Callable[[Judge, OnAnswer], Awaitable[dict[str, Any]]],
    times: int = 1,
) -> dict[str, Any] | None:
    """What ``ask`` finds out from the judge of the options, with the judge; None for ``--dry-run``.

    ``most`` are the questions that it asks at most, each ``times`` times. Raises :class:`EvaluatorError` if they are more
    than ``--max-calls`` allows, and if the judge cannot be asked.
    """
    with open_judge(choice_of(args)) as judge:
        counting = Estimating(judge if isinstance(judge, ModelJudge) else None)
        asyncio.run(answers(counting, most))
        if allowed(args, judge, counting, what="this", times=times) is None:
            return None
        with Progress(len(most) * times, "asking") as progress:
            found = asyncio.run(_closing(judge, ask(judge, progress.tick)))
        return {"judge": {"name": judge.name, **judge.identity()}, **found}


async def _closing(judge: Judge, found: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    try:
        return await found
    finally:
        await judge.close()


async def answers(
    judge: Judge, asked: Sequence[Question], on_answer: OnAnswer | None = None
) -> list[Verdict]:
    """The judge's answers in the order of the questions. Raises what the judge raises first; nothing is asked after that."""
    slots = asyncio.Semaphore(max(1, judge.width) * 2)
    given_up: list[BaseException] = []

    async def one(question: Question) -> Verdict | None:
        async with slots:
            if given_up:
                return None
            try:
                said = await judge.decide(question)
            except EvaluatorError as error:
                given_up.append(error)
                return None
        if on_answer is not None:
            on_answer()
        return said

    found = await asyncio.gather(*(one(q) for q in asked))
    if given_up:
        raise given_up[0]
    return [v for v in found if v is not None]
