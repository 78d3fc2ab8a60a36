"""What may still be spent. Taken before a call by its upper bound, settled after it by what was really used."""

from __future__ import annotations

from dataclasses import dataclass

from sidecars.gateway.config import Config
from sidecars.gateway.question import Question
from sidecars.http import HttpError

PER = 1_000_000  # prices are for so many tokens


@dataclass
class Hold:
    """What one open call may use at most: tokens of the question and of the reply, and what both cost."""

    prompt: int
    reply: int
    cost: float

    @property
    def tokens(self) -> int:
        """Tokens of prompt and reply together."""
        return self.prompt + self.reply


class Budget:
    """Calls, tokens and cost: spent, and held by calls that are open. Never more than the limits together."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.calls, self.tokens, self.cost = config.spent.calls, config.spent.tokens, config.spent.cost
        self.held_tokens, self.held_cost = 0, 0.0

    def price(self, prompt: int, completion: int) -> float:
        """The cost of so many tokens."""
        return (prompt * self.config.price_input + completion * self.config.price_output) / PER

    def take(self, question: Question) -> Hold:
        """Hold what one call may use at most. Raises :class:`HttpError` (``budget_exceeded``) if that is too much."""
        most = question.most_prompt, question.most_reply
        hold = Hold(*most, self.price(*most))
        tokens, cost = self.tokens + self.held_tokens + hold.tokens, self.cost + self.held_cost + hold.cost
        limits = self.config
        for name, wanted, limit in (
            ("calls", self.calls + 1, limits.calls),
            ("tokens", tokens, limits.tokens),
            ("cost", cost, limits.cost),
        ):
            if limit is not None and wanted > limit:
                why = f"the budget of {limit:g} {name} does not suffice for one more call"
                raise HttpError(429, "budget_exceeded", why)
        self.calls += 1
        self.held_tokens += hold.tokens
        self.held_cost += hold.cost
        return hold

    def settle(self, hold: Hold, prompt: int, completion: int) -> None:
        """The call has used so many tokens: none if it was refused, all it might have if nobody said how many.

        Whatever was counted, never less than nothing nor more than was held is booked: what was held has room.
        """
        prompt, completion = (max(0, min(n, m)) for n, m in ((prompt, hold.prompt), (completion, hold.reply)))
        self.held_tokens -= hold.tokens
        self.held_cost = self.held_cost - hold.cost if self.held_tokens else 0.0
        self.tokens += prompt + completion
        self.cost += self.price(prompt, completion)
