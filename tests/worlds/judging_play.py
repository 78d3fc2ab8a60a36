"""A small play for judging: a report, nuggets and documents, a judge that remembers what it was asked, and the command line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from evaluator.argue.asking import Question, Verdict
from evaluator.argue.formats.nuggets import bank_of
from evaluator.argue.formats.report import Report
from evaluator.argue.judging import Flow, Judging
from evaluator.argue.models import Bank, JudgedReport, JudgmentType

T = JudgmentType
SAMPLES = Path(__file__).parents[2] / "evaluator" / "argue" / "samples" / "assets" / "sample-inputs"
REPORT = SAMPLES / "sample_report.jsonl"
NUGGETS = SAMPLES / "sample_nuggets_388.v3.json"
LOOKUP = SAMPLES / "sample-docs-lookup"
PROMPTS = SAMPLES / "sample_prompt_config.json"

DOCUMENTS = {"d1": "The bridge was opened in 1901.", "d2": "It cost two million.", "d9": "Bees make honey."}


def bank(questions: Mapping[str, tuple[str, Mapping[str, list[str]]]], topic: str = "t") -> Bank:
    """``{question: (aggregator, {answer: [documents]})}``."""
    made = {
        q: {
            "question": q,
            "aggregator_type": kind,
            "answers": {a: {"answer": a, "references": [{"doc_id": d} for d in docs]} for a, docs in answers.items()},
        }
        for q, (kind, answers) in questions.items()
    }  # fmt: skip
    found, problems = bank_of({"query_id": topic, "nugget_bank": made})
    assert found is not None, list(map(str, problems))
    return found


BANK = bank(
    {
        "When?": ("OR", {"1901": ["d1"], "the start of the century": ["d1", "d2"], "1910": []}),
        "How much?": ("AND", {"two million": ["d2"]}),
        "Who?": ("OR", {"nobody knows": []}),
    }
)


def report(*sentences: tuple[str, list[str]], topic: str = "t") -> Report:
    return Report.model_validate(
        {
            "metadata": {"team_id": "team", "run_id": "run", "topic_id": topic},
            "responses": [{"text": text, "citations": cited} for text, cited in sentences],
            "references": sorted({d for _, cited in sentences for d in cited}),
        }
    )


class Recording:
    """Says what ``says`` says, and remembers what it was asked. ``unreadable`` types count as defaults."""

    name = "recording"

    def __init__(
        self,
        says: Callable[[Question], bool] | bool = True,
        *,
        width: int = 5,
        unreadable: Iterable[JudgmentType] = (),
        backwards: bool = False,
    ) -> None:
        self.width = width
        self.asked: list[Question] = []
        self.open = self.most = 0
        self._says = says if callable(says) else lambda _: bool(says)
        self._unreadable = frozenset(unreadable)
        self._backwards = backwards

    async def decide(self, question: Question) -> Verdict:
        self.asked.append(question)
        self.open += 1
        self.most = max(self.most, self.open)
        # The first that is asked is the last that is answered, if backwards.
        await asyncio.sleep(0.02 / len(self.asked) if self._backwards else 0)
        self.open -= 1
        return Verdict(self._says(question), question.type not in self._unreadable)

    def identity(self) -> Mapping[str, Any]:
        return {"model": "m"}

    def facts(self) -> dict[str, Any]:
        return {"name": "recording"}

    async def close(self) -> None:
        pass

    def types(self) -> list[JudgmentType]:
        return [q.type for q in self.asked]


def judge(
    judge: Any,
    *sentences: tuple[str, list[str]],
    nuggets: Bank = BANK,
    flow: Flow | None = None,
    documents: Mapping[str, str] = DOCUMENTS,
) -> JudgedReport:
    """The judged report on these sentences."""
    return asyncio.run(Judging(judge, flow).report(report(*sentences), nuggets, documents.get))


def rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
