"""Putting questions to a judge outside of a judging: which there are, a sample of them, and all answers in their order."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from evaluator.argue.arguments import Parser, add_judge_options, add_report_options
from evaluator.argue.asking import Judge, Question, Verdict
from evaluator.argue.judges.model import Estimating, ModelJudge
from evaluator.argue.judging import Flow, Judging
from evaluator.argue.models import JudgmentType
from evaluator.errors import EvaluatorError

if TYPE_CHECKING:
    import argparse

    from evaluator.argue.work import Wanted

T = JudgmentType
SAMPLE = 25  # questions of a type


class Put(NamedTuple):
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
    parser.option("--dry-run", action="store_true", help="only say what it would take")
    return parser


def questions(args: argparse.Namespace) -> list[Put] | None:
    """What can be asked about the reports that are named, or the labelled pairs. None if the reports are invalid, which was said.

    Raises :class:`EvaluatorError`.
    """
    from evaluator.argue.choosing import choice_of, flow_of, wanted_of

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
    from pathlib import Path

    from evaluator.argue.formats.nugget_formats import load_nuggets

    args.input, args.nuggets = args.places
    banks = load_nuggets(Path(args.nuggets))
    wanted = wanted_of(args, banks)
    return None if wanted is None else [Put(q) for q in possible(wanted, flow_of(args))]


def labelled() -> list[Put]:
    """The labelled pairs that come with the evaluator."""
    from evaluator.argue.judges.tuning import read_pairs

    return [Put(pair.question, pair.label) for pair in read_pairs()]


class _Noting(Estimating):
    """Answers so that as much as possible is asked, and keeps the questions."""

    def __init__(self) -> None:
        super().__init__(None)
        self.noted: dict[Question, None] = {}

    async def decide(self, question: Question) -> Verdict:
        """Keep the question."""
        self.noted[question._replace(topic="", doc_id="")] = None
        return await super().decide(question)


def possible(wanted: Iterable[Wanted], flow: Flow) -> list[Question]:
    """Every question that judging may ask, each once, in their order."""
    noting = _Noting()
    failed = [r for r in asyncio.run(Judging(noting, flow).reports(wanted)) if isinstance(r, EvaluatorError)]
    if failed:
        raise failed[0]
    return list(noting.noted)


def sample(found: Sequence[Put], size: int) -> list[Put]:
    """At most ``size`` of each type (all with 0), chosen by their content alone, in their order."""
    if size <= 0:
        return list(found)
    by_type: dict[JudgmentType, list[Put]] = {}
    for put in found:
        by_type.setdefault(put.question.type, []).append(put)
    chosen = {p for some in by_type.values() for p in sorted(some, key=_lot)[:size]}
    return [p for p in found if p in chosen]


def _lot(put: Put) -> str:
    return hashlib.sha256("\0".join(map(str, put.question)).encode("utf-8", "replace")).hexdigest()


def allow(args: argparse.Namespace, judge: Judge, asked: Sequence[Question], times: int = 1) -> bool:
    """Say what asking will take at most; False if only that was wanted.

    Raises :class:`EvaluatorError` if it is more than ``--max-calls`` allows, and if the judge cannot be asked.
    """
    from evaluator.judges import providers

    price = tuple(args.price) if args.price else providers.PRICES.get(str(judge.identity().get("model")))
    counting = Estimating(judge if isinstance(judge, ModelJudge) else None)

    async def count() -> None:
        for question in asked:
            await counting.decide(question)

    asyncio.run(count())
    expected = counting.estimate(price)  # type: ignore[arg-type]
    calls = expected.calls * times
    repeated = "" if times == 1 else f", {times:,} times"
    print(f"{judge.name}: {expected}{repeated}", file=sys.stderr)
    if args.max_calls is not None and calls > args.max_calls:
        raise EvaluatorError(
            f"this may take {calls:,} calls", f"--max-calls allows {args.max_calls:,}", usage=True
        )
    if args.dry_run:
        return False
    lacks = getattr(judge, "lacks", None)
    if lacks is not None and calls:
        raise lacks
    return True


async def answers(
    judge: Judge, asked: Sequence[Question], tell: Callable[[], None] | None = None
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
        if tell is not None:
            tell()
        return said

    found = await asyncio.gather(*(one(q) for q in asked))
    if given_up:
        raise given_up[0]
    return [v for v in found if v is not None]


def about(judge: Judge) -> Mapping[str, Any]:
    """Who judged, for the result."""
    return {"name": judge.name, **judge.identity()}
