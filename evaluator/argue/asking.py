"""What is asked about a sentence, and who can answer: the seam between the flow of ARGUE and its judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from evaluator.argue.models import JudgmentType
from evaluator.errors import EvaluatorError


class Question(NamedTuple):
    """One yes-or-no question about one sentence. Which of the texts are there depends on the type.

    ``topic`` and ``doc_id`` say where the question came up, for people's judgments; a model never sees them.
    """

    type: JudgmentType
    sentence: str
    document: str = ""
    previous: str = ""  # the sentences before it, joined by newlines
    nugget_question: str = ""
    nugget_answer: str = ""
    topic: str = ""
    doc_id: str = ""


class Verdict(NamedTuple):
    """What a judge says. ``readable`` is False where its reply could not be read, and ``value`` is the default.

    ``refused``: there is no reply at all, because its endpoint does not take this question. ``reply`` is one that could not be read.
    """

    value: bool
    readable: bool = True
    refused: bool = False
    reply: str = ""


class Unjudged(EvaluatorError):
    """A judge has nothing to say about a question: people who have not judged it yet."""


class Judge(Protocol):
    """Whoever answers questions.

    ``name`` stands next to every judgment. ``width`` is how many questions may usefully be open at a time.
    """

    name: str
    width: int

    async def decide(self, question: Question) -> Verdict:
        """The answer. Raises :class:`evaluator.judges.chat.JudgeError` or :class:`Unjudged` where there is none."""
        ...

    def identity(self) -> Mapping[str, Any]:
        """What makes two judges the same one: JSON data, never the address of an endpoint."""
        ...

    def facts(self) -> dict[str, Any]:
        """What stands next to every score: ``judge`` of ``result.json``."""
        ...

    async def close(self) -> None:
        """Give back what is open."""
        ...
