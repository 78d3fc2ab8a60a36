"""A model as a judge: prompts, replies, what a reply that says nothing counts as, and what everything will cost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evaluator.argue.asking import Question, Verdict
from evaluator.argue.models import JudgmentType
from evaluator.argue.prompting import Prompts, reading
from evaluator.errors import EvaluatorError
from evaluator.findings import plain
from schemas.replies import reply_key

if TYPE_CHECKING:
    from evaluator.judges.chat import Chat

T = JudgmentType
MAX_TOKENS = 10  # of a reply: YES or NO. Models that think aloud need more.
CHARACTERS_PER_TOKEN = 4.0  # of English text, roughly


class ModelJudge:
    """Asks a :class:`evaluator.judges.chat.Chat`. ``name`` is the provider's, as it stands in judgments.

    ``lacks`` is why nothing new can be asked (no key): it is raised for the first question that was not answered before.
    ``begin`` is called once before such a question; it starts what is needed and gives the address to ask.
    """

    def __init__(
        self,
        chat: Chat,
        prompts: Prompts,
        *,
        name: str = "llm",
        width: int = 10,
        lacks: EvaluatorError | None = None,
        begin: Callable[[], str] | None = None,
    ) -> None:
        self.chat, self.prompts, self.name, self.width, self.lacks = chat, prompts, name, width, lacks
        self.chat.parameters.setdefault("max_tokens", MAX_TOKENS)
        self._begin, self._beginning = begin, asyncio.Lock()

    async def decide(self, question: Question) -> Verdict:
        """See :class:`evaluator.argue.asking.Judge`. Raises :class:`evaluator.judges.chat.JudgeError`."""
        from evaluator.judges.chat import JudgeError

        prompt = self.prompts.of(question.type)
        messages = prompt.messages(question)
        if (self.lacks or self._begin) and not self.knows(messages):
            await self._ready()
        try:
            reply = await self.chat.ask(messages)
        except JudgeError as error:
            if not error.refused:
                raise
            return Verdict(prompt.default, False, True)
        said = reading(reply.text)
        return Verdict(prompt.default, False, reply=reply.text) if said is None else Verdict(said)

    async def _ready(self) -> None:
        async with self._beginning:
            if self.lacks is None and self._begin is not None:
                try:
                    self.chat.base_url = await asyncio.to_thread(self._begin)
                except EvaluatorError as error:
                    self.lacks = error  # one attempt is enough
                self._begin = None
            if self.lacks is not None:
                raise self.lacks

    def key(self, messages: list[dict[str, str]]) -> str:
        """Under which a reply is kept."""
        return reply_key(self.chat.model, messages, self._parameters())

    def knows(self, messages: list[dict[str, str]]) -> bool:
        """Whether this was answered before."""
        return self.chat.replies.get(self.key(messages)) is not None

    def _parameters(self) -> dict[str, Any]:
        return {k: v for k, v in self.chat.parameters.items() if v is not None}

    def identity(self) -> Mapping[str, Any]:
        """Model, prompts and parameters; never the endpoint."""
        return {
            "model": self.chat.model,
            "prompts": f"sha256:{self.prompts.digest()}",
            "parameters": self._parameters(),
        }

    def facts(self) -> dict[str, Any]:
        """What stands next to every score."""
        return {
            "name": "llm",
            "model": plain(self.chat.model, 100),
            "prompts": f"sha256:{self.prompts.digest()}",
        }

    async def close(self) -> None:
        """Close the connection."""
        await self.chat.close()


@dataclass(frozen=True)
class Estimate:
    """What judging will take at most. ``calls`` are questions that were not answered before; tokens are estimates.

    ``cost`` is in the unit of the price per million tokens, None without a price. ``offline``: no model is asked at all.
    """

    questions: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    offline: bool = False

    def __str__(self) -> str:
        if self.offline:
            return f"{self.questions:,} questions at most; no model is asked"
        if not self.calls:
            return f"{self.questions:,} questions at most, all answered before: nothing is asked"
        money = "" if self.cost is None else f", about ${self.cost:,.{2 if self.cost >= 1 else 4}f} at most"
        tokens = f"about {self.prompt_tokens:,} + {self.completion_tokens:,} tokens"
        return f"{self.questions:,} questions at most, {self.calls:,} calls, {tokens}{money}"


class Estimating:
    """Stands in for a judge and counts. Answers so that as much as possible is asked."""

    name = "estimate"
    width = 1000

    def __init__(self, judge: ModelJudge | None) -> None:
        self._judge = judge
        self._seen: set[str] = set()
        self.questions = self._characters = self._tokens = 0

    async def decide(self, question: Question) -> Verdict:
        """Count the question."""
        self.questions += 1
        if self._judge is not None:
            messages = self._judge.prompts.of(question.type).messages(question)
            key = self._judge.key(messages)
            if key not in self._seen and self._judge.chat.replies.get(key) is None:
                self._seen.add(key)
                self._characters += sum(len(m["content"]) for m in messages)
        return Verdict(question.type in (T.REQUIRES_CITATION, T.NEGATIVE_ASSERTION))

    def identity(self) -> Mapping[str, Any]:
        """Nobody."""
        return {}

    def facts(self) -> dict[str, Any]:
        """Nothing."""
        return {"name": self.name}

    async def close(self) -> None:
        """Nothing is open."""

    def estimate(self, price: tuple[float, float] | None) -> Estimate:
        """The sum. ``price`` is per million tokens read and written."""
        prompt = round(self._characters / CHARACTERS_PER_TOKEN)
        given: Mapping[str, Any] = {} if self._judge is None else self._judge.chat.parameters
        limits = (given.get(name) for name in ("max_completion_tokens", "max_tokens"))
        most = next((n for n in limits if type(n) is int and n > 0), MAX_TOKENS)
        said = len(self._seen) * most
        cost = None if price is None else (prompt * price[0] + said * price[1]) / 1e6
        return Estimate(self.questions, len(self._seen), prompt, said, cost, self._judge is None)
