"""What a request says: the opening of a debate, or a dialogue that waits for the user's next utterance."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import schemas
from sidecars.http import HttpError
from sidecars.search.analysis import tokens
from sidecars.surrogates import with_whole_pairs

MESSAGES, CHARACTERS = 200, 64 * 1024
LAST, ANY = "base-user", "any-user"
MODELS = {
    LAST: "attacks the last answer",
    ANY: "attacks any of the answers so far, chosen by the seed and the dialogue",
}


@dataclass(frozen=True)
class Dialogue:
    """The utterances so far. ``said`` are the user's, ``answers`` the software's; as many of each, except at the start.

    Before the first turn both are empty, and ``claim`` and ``description`` are what the user is to say (None: the user
    may choose). Later the claim is the user's first utterance.
    """

    model: str
    claim: str | None = None
    description: str = ""
    said: tuple[str, ...] = ()
    answers: tuple[str, ...] = field(default=())

    @property
    def turn(self) -> int:
        """The number (from 1) of the utterance that is wanted."""
        return len(self.said) + 1

    def target(self, seed: int) -> int | None:
        """The number (from 1) of the answer to attack: of any answer so far, but never one that says nothing.

        ``base-user`` takes the last one; ``any-user`` takes number SHA-256(seed, dialogue) modulo their count, so
        that U2 attacks S1, U3 S1 or S2, U4 S1 to S3, and so on. None when no answer says anything.
        """
        usable = [number for number, answer in enumerate(self.answers, 1) if tokens(answer)]
        if not usable:
            return None
        if self.model == LAST:
            return usable[-1]
        dialogue = schemas.canonical(
            [seed, [list(pair) for pair in zip(self.said, self.answers, strict=True)]]
        )
        return usable[int.from_bytes(hashlib.sha256(dialogue).digest(), "big") % len(usable)]


def read(body: bytes, models: Collection[str], max_bytes: int) -> Dialogue:
    """The dialogue in a request's body. Raises :class:`~sidecars.http.HttpError`; keys that nobody knows are passed over."""
    doc = schemas.load_json(with_whole_pairs(body), "the body", max_bytes=max_bytes)
    if doc.problems:
        raise _malformed(str(doc.problems[0]))
    if not isinstance(doc.data, dict):
        raise _malformed("the body must be an object")
    model = doc.data.get("model")
    if not isinstance(model, str):
        raise _malformed("model must be the name of a simulated user")
    if model not in models:
        known = ", ".join(models)
        raise HttpError(404, "not_found", f"there is no model {schemas.show(model)}; there are: {known}")
    messages = doc.data.get("messages")
    if messages is None or messages == []:
        return _opening(model, doc.data.get("options"))
    return _follow_up(model, messages)


def _malformed(message: str) -> HttpError:
    return HttpError(400, "invalid_request", message)


def _opening(model: str, options: Any) -> Dialogue:
    if options is None:
        return Dialogue(model)
    if not isinstance(options, dict):
        raise _malformed("options must be an object with a claim")
    claim, description = options.get("claim"), options.get("description")
    if claim is None:
        return Dialogue(model)
    if not isinstance(claim, str) or not claim.strip() or len(claim) > CHARACTERS:
        raise _malformed(f"options.claim must be a text of 1 to {CHARACTERS} characters")
    if description is not None and (not isinstance(description, str) or len(description) > CHARACTERS):
        raise _malformed(f"options.description must be a text of at most {CHARACTERS} characters")
    return Dialogue(model, claim, description or "")


def _follow_up(model: str, messages: Any) -> Dialogue:
    if not isinstance(messages, list) or len(messages) > MESSAGES:
        raise _malformed(f"messages must be a list of at most {MESSAGES} messages")
    contents = []
    for number, message in enumerate(messages):
        role = ("assistant", "user")[number % 2]
        if not isinstance(message, dict) or message.get("role") != role:
            raise _malformed(
                f'messages[{number}].role must be "{role}": the simulated user (assistant) begins, then '
                "the software (user) answers, and so on",
            )
        content = message.get("content")
        if not isinstance(content, str) or len(content) > CHARACTERS:
            raise _malformed(f"messages[{number}].content must be a text of at most {CHARACTERS} characters")
        contents.append(content)
    if len(contents) % 2:
        raise _malformed("messages must end with an answer of the software (role user)")
    return Dialogue(model, contents[0], "", tuple(contents[::2]), tuple(contents[1::2]))
