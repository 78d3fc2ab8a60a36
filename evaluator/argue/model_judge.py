"""A model as a judge: prompts, replies, and what a reply that says nothing counts as."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from evaluator.argue.asking import Question, Verdict
from evaluator.argue.config import Prompts, reading
from evaluator.findings import plain

if TYPE_CHECKING:
    from evaluator.judges.chat import Chat

MAX_TOKENS = 10  # of a reply: YES or NO. Models that think aloud need more.


class ModelJudge:
    """Asks a :class:`evaluator.judges.chat.Chat`. ``name`` is the provider's, as it stands in judgments."""

    def __init__(self, chat: Chat, prompts: Prompts, *, name: str = "llm", width: int = 10) -> None:
        self.chat, self.prompts, self.name, self.width = chat, prompts, name, width
        self.chat.parameters.setdefault("max_tokens", MAX_TOKENS)

    async def decide(self, question: Question) -> Verdict:
        """See :class:`evaluator.argue.asking.Judge`. Raises :class:`evaluator.judges.chat.JudgeError`."""
        prompt = self.prompts.of(question.type)
        reply = await self.chat.ask(prompt.messages(question))
        said = reading(reply.text)
        return Verdict(prompt.default, False) if said is None else Verdict(said)

    def prepare(self, questions: Iterable[Question]) -> None:
        """Nothing to prepare."""

    def identity(self) -> Mapping[str, Any]:
        """Model, prompts and parameters; never the endpoint."""
        parameters = {k: v for k, v in self.chat.parameters.items() if v is not None}
        return {
            "model": self.chat.model,
            "prompts": f"sha256:{self.prompts.digest()}",
            "parameters": parameters,
        }

    def facts(self) -> dict[str, Any]:
        """What stands beside every score."""
        return {
            "name": "llm",
            "model": plain(self.chat.model, 100),
            "prompts": f"sha256:{self.prompts.digest()}",
        }

    async def close(self) -> None:
        """Close the connection."""
        await self.chat.close()
