"""The offline judge: words in common, numbers, denials and the meaning of sentences. No model is asked, no key is needed.

It is weak, and says how weak: its accuracy on labelled pairs that it was not tuned on stands next to every score. It cannot be
talked into anything, since it reads no instructions. English only.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from evaluator.argue.asking import Question, Verdict
from evaluator.argue.models import JudgmentType
from schemas.details import Detail, noted

T = JudgmentType
NAME = "lexical"
RULES = Path(__file__).with_name("data") / "lexical.json"
CODE = ("features.py", "wording.py", "embedding.py")
MEANS_THE_QUESTION = 0.45  # cosine from which a statement of ignorance is about an unanswerable question


@cache
def rules() -> dict[str, Any]:
    """The committed weights and figures."""
    found: dict[str, Any] = json.loads(RULES.read_text("utf-8"))
    return found


@cache
def digest() -> str:
    """The SHA-256 (hex) of the rules that judge: the weights, and the code that computes what they weigh."""
    whole = hashlib.sha256()
    for path in (RULES, *(Path(__file__).with_name(name) for name in CODE)):
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


class LexicalJudge:
    """See the module. The same question has the same answer, always."""

    name = NAME
    width = 64

    def __init__(self) -> None:
        from evaluator.argue.judges.embedding import embedder
        from evaluator.argue.judges.tuning import lexical_numbers

        self._embedder = embedder()
        self.numbers = lexical_numbers()
        self.types: Mapping[str, Any] = rules()["types"]
        self._known: dict[Question, bool] = {}
        self._unread: list[str] = []  # texts of open questions

    async def decide(self, question: Question) -> Verdict:
        """See :class:`evaluator.argue.asking.Judge`. Raises nothing. What is open at a time is embedded at once."""
        asked = _asked(question)
        if asked not in self._known and asked.type in self.numbers:
            self._unread += self.numbers[asked.type].texts(asked)
            await asyncio.sleep(0)
            if self._unread:  # the first of all that waited
                texts, self._unread = self._unread, []
                self._embedder.vectors(texts)
        return Verdict(self.says(question))

    def says(self, question: Question) -> bool:
        """The answer."""
        asked = _asked(question)
        if asked not in self._known:
            self._known[asked] = self._decide(asked)
        return self._known[asked]

    def _decide(self, question: Question) -> bool:
        from evaluator.argue.judges.features import closest, unknown
        from evaluator.argue.judges.tuning import decide

        kind = question.type
        if kind is T.NEGATIVE_ASSERTION:
            return unknown(question.sentence)
        if kind is T.NEGATIVE_ASSERTION_CONFIRMED:
            near = closest(question.sentence, [question.nugget_question], self._embedder)
            return near >= MEANS_THE_QUESTION
        names, _, of, _ = self.numbers[kind]
        rule = self.types[kind.value]
        weights = [rule["weights"][name] for name in names]
        return decide(of(question), rule["constant"], weights)

    def forget(self) -> None:
        """Work everything out anew from here on."""
        self._known.clear()

    def identity(self) -> Mapping[str, Any]:
        """The model and the weights."""
        return {"model": rules()["model"], "rules": f"sha256:{digest()}"}

    def facts(self) -> dict[str, Any]:
        """Name, model, and the measured accuracy by judgment type."""
        return {
            "name": "lexical (offline)",
            "model": rules()["model"],
            "prompts": f"sha256:{digest()}",
            "reliability": reliability(),
            **noted(Detail("embeddings")),
        }

    async def close(self) -> None:
        """Nothing is open."""


def _asked(question: Question) -> Question:
    """What an answer depends on: a wrong answer is looked for like a right one, wherever the question came up."""
    kind = T.SENTENCE_ANSWERS_QUESTION if question.type is T.SENTENCE_GIVES_WRONG_ANSWER else question.type
    return question._replace(type=kind, topic="", doc_id="")


def reliability(
    types: Mapping[str, Any] | None = None, figures: Sequence[str] = ("accuracy",)
) -> dict[str, float]:
    """The measured ``figures`` by name, for each type, and how many pairs they rest on; without ``types`` the offline judge's."""
    rows = rules()["types"] if types is None else types
    measured = {t.lower().replace("_", " "): r["measured"] for t, r in rows.items() if "measured" in r}
    out = {f"{name} {t}": m[name] for t, m in measured.items() for name in figures if m[name] is not None}
    return {**out, "labelled pairs": float(sum(m["pairs"] for m in measured.values()))}
