"""What a user says next: the form that every speaker gives, and the one that needs no model.

The offline speaker has no clock and no randomness: the same request gives the same utterance, always.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sidecars.search.analysis import tokens
from sidecars.user.arguments import Arguments
from sidecars.user.dialogue import Dialogue
from sidecars.user.words import WORD_LIMIT, clean, count, fit, quoted

KNOWN_WORDS = 20  # an argument counts as said when its first words were

OPENING = "Here is what I believe:"
FRAMES = (  # of the utterances from the second on; the last one stays
    "I do not agree.",
    "That does not convince me.",
    "I have thought about it, and I still hold on to my view.",
    "To sum up, I remain of my opinion.",
)
EARLIER = "Earlier you said “{quote}”."
NOTHING_FOUND = "You say “{quote}”, but I cannot see how that speaks against what I believe."
NO_ANSWER = "I have not heard an argument against it yet, so I say it again:"


@dataclass(frozen=True)
class Utterance:
    """What the user says, the answer (from 1) that it attacks, and the arguments that were retrieved for it."""

    text: str
    target: int | None = None
    retrieved: Sequence[dict[str, Any]] | None = None


class Speaker(Protocol):
    """Somebody who can hold a debate as the user."""

    async def say(self, dialogue: Dialogue) -> Utterance:
        """The next utterance of the user, of at most 60 words. Raises :class:`Silent` when there is none."""
        ...


class Silent(Exception):
    """The speaker's model gave nothing that could be said; the words say why."""


class OfflineSpeaker:
    """Says arguments of the index, each framed as an opinion of its own."""

    def __init__(self, arguments: Arguments, seed: int = 0) -> None:
        self.arguments, self.seed = arguments, seed

    async def say(self, dialogue: Dialogue) -> Utterance:
        """The next utterance."""
        import asyncio

        return await asyncio.to_thread(self.speak, dialogue)

    def speak(self, dialogue: Dialogue) -> Utterance:
        """The same, for callers without an event loop."""
        if not dialogue.said:
            claim = clean(dialogue.claim or self.arguments.claim(self.seed))
            return Utterance(framed(OPENING, claim))
        target = dialogue.target(self.seed)
        if target is None:
            claim = clean(dialogue.said[0].removeprefix(OPENING))
            return Utterance(framed(NO_ANSWER, claim), None, [])
        answer = dialogue.answers[target - 1]
        retrieved = self.arguments.against(answer, dialogue.said[0].removeprefix(OPENING))
        fresh = unsaid(retrieved, dialogue)
        frame = FRAMES[min(dialogue.turn - 2, len(FRAMES) - 1)]
        if target < len(dialogue.answers):
            frame = f"{EARLIER.format(quote=quoted(answer))} {frame}"
        if fresh:
            return Utterance(framed(frame, clean(fresh[0]["text"])), target, retrieved)
        return Utterance(fit(NOTHING_FOUND.format(quote=quoted(answer)), WORD_LIMIT), target, retrieved)


def framed(frame: str, text: str) -> str:
    """The frame and as much of the text as fits."""
    return f"{frame} {fit(text, WORD_LIMIT - count(frame))}"


def unsaid(retrieved: Sequence[dict[str, Any]], dialogue: Dialogue) -> list[dict[str, Any]]:
    """The arguments that nobody in this debate has used: their first 20 words are in no utterance of it."""
    said = [_line(tokens(text)) for text in (*dialogue.said, *dialogue.answers)]
    fresh = []
    for argument in retrieved:
        text = argument.get("text")
        words = tokens(text)[:KNOWN_WORDS] if isinstance(text, str) else []
        if words and not any(_line(words) in utterance for utterance in said):
            fresh.append(argument)
    return fresh


def _line(words: Sequence[str]) -> str:
    return f" {' '.join(words)} "
