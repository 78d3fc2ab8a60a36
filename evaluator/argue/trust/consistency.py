"""``evaluator argue consistency``: whether a judge says the same when it is asked the same again.

Every question is asked several times and nothing is taken from a cache. ``same`` is the share of questions with the same reply every
time, ``equal`` the mean share of equal replies over all pairs of repetitions, ``kappa`` Cohen's kappa, the mean over these pairs. A
reply that cannot be read is a reply of its own. A deterministic judge has ``same`` and ``equal`` 1; kappa is not defined for one that
only ever says one thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import fsum
from typing import TYPE_CHECKING, Any

from evaluator.argue.asking import Judge, Question, Verdict
from evaluator.argue.judges.model import ModelJudge
from evaluator.argue.models import JudgmentType
from evaluator.argue.trust import figures, probes
from evaluator.errors import EvaluatorError
from evaluator.measures.agreement import kappa

if TYPE_CHECKING:
    from collections.abc import Mapping

T = JudgmentType
REPETITIONS = 3
MOST = 100


def run(words: Sequence[str]) -> int:
    """Do what the words after ``evaluator argue consistency`` say. Raises :class:`EvaluatorError`."""
    parser = probes.parser_of(
        "consistency", "Whether a judge says the same when it is asked again. No replies are kept or reused."
    )
    parser.option("-n", "--repetitions", type=int, default=REPETITIONS, metavar="N",
                  help=f"how often everything is asked (default {REPETITIONS})")  # fmt: skip
    figures.add_output(parser)
    args = parser.parse_args(words)
    if not 2 <= args.repetitions <= MOST:
        raise EvaluatorError(f"--repetitions is 2 to {MOST}", usage=True)
    args.prefix, args.disable_cache = "", True
    found = probes.questions(args)
    if found is None:
        return 1
    asked = [probe.question for probe in probes.sample(found, args.sample)]

    async def ask(judge: Judge, on_answer: probes.OnAnswer) -> dict[str, Any]:
        return consistency(asked, await repeated(judge, asked, args.repetitions, on_answer))

    result = probes.measured(args, asked, ask, args.repetitions)
    if result is not None:
        figures.publish(args, result, reliability(result), lines(result))
    return 0


async def repeated(
    judge: Judge, asked: Sequence[Question], times: int, on_answer: probes.OnAnswer | None = None
) -> list[list[Verdict]]:
    """The replies to all questions, repetition by repetition. The judge forgets what it has said before each."""
    rounds = []
    for _ in range(times):
        if isinstance(judge, ModelJudge):
            from evaluator.judges.replies import Replies

            judge.chat.replies = Replies()
        elif hasattr(judge, "forget"):
            judge.forget()
        rounds.append(await probes.answers(judge, asked, on_answer))
    return rounds


def consistency(asked: Sequence[Question], rounds: Sequence[Sequence[Verdict]]) -> dict[str, Any]:
    """The figures for each type and for ``all``, as data for ``--json``. ``rounds`` are the replies of each repetition."""
    rows: dict[str, list[list[str]]] = {}
    for i, question in enumerate(asked):
        said = [_label(one[i]) for one in rounds]
        rows.setdefault(question.type.value, []).append(said)
    by_type = {kind.value: _figures(rows[kind.value]) for kind in T if kind.value in rows}
    everything = [row for some in rows.values() for row in some]
    return {"repetitions": len(rounds), "types": {**by_type, "all": _figures(everything)}}


def _label(verdict: Verdict) -> str:
    return "unreadable" if not verdict.readable else "yes" if verdict.value else "no"


def _figures(rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    pairs = list(combinations(range(len(rows[0])), 2)) if rows else []
    kappas = [
        k for a, b in pairs if (k := kappa([r[a] for r in rows], [r[b] for r in rows]).value) is not None
    ]
    equal = [sum(r[a] == r[b] for r in rows) / len(rows) for a, b in pairs]
    return {
        "questions": len(rows),
        "same": sum(len(set(r)) == 1 for r in rows) / len(rows) if rows else None,
        "equal": fsum(equal) / len(equal) if equal else None,
        "kappa": fsum(kappas) / len(kappas) if kappas else None,
        "unreadable": sum(label == "unreadable" for r in rows for label in r),
    }


def reliability(result: Mapping[str, Any]) -> dict[str, float]:
    """The figure that stands next to scores."""
    same = result["types"]["all"]["same"]
    return {} if same is None else {"same reply again": same}


def lines(result: Mapping[str, Any]) -> list[str]:
    """The result for people."""
    columns = {name: name for name in ("questions", "same", "equal", "kappa", "unreadable")}
    return [*figures.by_type(result, columns), f"each question was asked {result['repetitions']:,} times"]
