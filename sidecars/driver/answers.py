"""Reading what a software answered: strictly, within bounds, and without ever failing otherwise than by name."""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import dataclass
from typing import Any, NoReturn

from schemas.jsonl import kind_of
from schemas.words import blank, count_words
from sidecars.peer import Failure

MAX_DEPTH = 32  # of an answer; it is put five levels deep into a line that readers take to 64
MAX_DIGITS = 40
EXACT = 2**53  # up to here a float holds every whole number
SHOWN_IDS = 50  # argument ids kept in a turn's record
ID_CHARACTERS = 200

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Answer:
    """A usable answer of a debating software.

    ``encoded`` is its whole JSON in compact form, ``words`` the number of words in the utterance (:mod:`schemas.words`). ``argument_ids`` are the first ones only; ``arguments`` counts all of them.
    """

    utterance: str
    encoded: str
    size: int  # bytes received
    words: int
    arguments: int
    argument_ids: tuple[str, ...]


@dataclass(frozen=True)
class Judgment:
    """A usable answer of a judge: the score in [0, 1], or None when it does not judge this."""

    score: float | None
    data: dict[str, Any]
    size: int


class Share:
    """How many bytes one debate's answers may still add to the output."""

    def __init__(self, bytes: int) -> None:
        self.left = bytes

    def take(self, size: int, answer: Answer | Judgment, what: str) -> None:
        """Count ``size`` bytes for an answer. Raises :class:`Failure` when they are too many; ``what`` names them all."""
        if size > self.left:
            detail = f"the {what} of this debate together take more than their share of the output"
            raise Failure("too-large", f"{detail} ({size} bytes)", status=200, size=answer.size)
        self.left -= size


def milliseconds(since: float) -> float:
    """The time that has passed since ``since``, of :func:`time.perf_counter`."""
    return (time.perf_counter() - since) * 1000


def encode(data: Any) -> str:
    """Compact JSON, other scripts as they are; halves of surrogate pairs become U+FFFD."""
    return safe(json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False))


def safe(text: str) -> str:
    """``text`` with halves of surrogate pairs, which no file can hold, replaced by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def read_answer(body: bytes) -> Answer:
    """The answer to a chat request: an object with the text ``content``. Raises :class:`Failure`."""
    data = _object(body)
    content = data.get("content")
    if content is None:
        raise _failure("no-content", 'the answer has no "content"', body)
    if not isinstance(content, str):
        raise _failure("wrong-type", f'"content" is {kind_of(content)}, not text', body)
    if blank(content):
        raise _failure("empty", '"content" is empty', body)
    arguments = data.get("arguments")
    ids = _argument_ids(arguments, body) if arguments is not None else []
    kept = tuple(safe(one[:ID_CHARACTERS]) for one in ids[:SHOWN_IDS])
    return Answer(safe(content), encode(data), len(body), count_words(content), len(ids), kept)


def _argument_ids(arguments: Any, body: bytes) -> list[str]:
    if not isinstance(arguments, list):
        raise _failure("wrong-type", f'"arguments" is {kind_of(arguments)}, not a list', body)
    for number, argument in enumerate(arguments, 1):
        if not isinstance(argument, dict):
            raise _failure("wrong-type", f"argument {number} is {kind_of(argument)}, not an object", body)
        if not isinstance(argument.get("id"), str):
            raise _failure("wrong-type", f'argument {number} has no text "id"', body)
        if not isinstance(argument.get("text", ""), str):
            raise _failure("wrong-type", f'argument {number} has a "text" that is not text', body)
    return [argument["id"] for argument in arguments]


def read_judgment(body: bytes) -> Judgment:
    """The answer to a judging request: an object with ``score``, a number or null. Raises :class:`Failure`."""
    data = _object(body)
    if "score" not in data:
        raise _failure("no-content", 'the answer has no "score"', body)
    score = data["score"]
    if score is None:
        return Judgment(None, data, len(body))
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        raise _failure("wrong-type", f'"score" is {kind_of(score)}, neither a number nor null', body)
    if not 0 <= score <= 1:
        raise _failure("wrong-type", f'"score" is {score:g}, not between 0 and 1', body)
    return Judgment(float(score), data, len(body))


def _object(body: bytes) -> dict[str, Any]:
    if not body.strip():
        raise _failure("empty", "the answer is empty", body)
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _failure("not-json", "the answer is not UTF-8 text", body) from None

    too_deep = _failure("not-json", f"the answer is nested more than {MAX_DEPTH} levels deep", body)
    try:
        data = _decoder(body).decode(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}: {error.msg}"
        start = text.strip()[:60]
        raise _failure("not-json", f"the answer is not JSON ({where}); it starts {start!r}", body) from None
    except RecursionError:
        raise too_deep from None
    if not isinstance(data, dict):
        raise _failure("wrong-type", f"the answer is {kind_of(data)}, not an object", body)
    if _beyond_depth(data):
        raise too_deep
    return data


def _decoder(body: bytes) -> json.JSONDecoder:
    """A reader of JSON that raises :class:`Failure` for numbers that cannot be kept."""

    def refuse(text: str) -> NoReturn:
        raise _failure("not-json", f"the answer has the number {text[:20]}, which cannot be kept", body)

    def read_float(text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            refuse(text)
        # GenIRSim, like all of JavaScript, writes 1.0 as 1; a reader may mind which type it gets.
        return int(value) if value.is_integer() and abs(value) <= EXACT else value

    def read_int(text: str) -> int:
        return int(text) if len(text) <= MAX_DIGITS else refuse(text)

    return json.JSONDecoder(parse_constant=refuse, parse_float=read_float, parse_int=read_int)


def _beyond_depth(data: Any) -> bool:
    level = [data]
    for _ in range(MAX_DEPTH):
        inner = (value.values() if isinstance(value, dict) else value for value in level)
        level = [child for children in inner for child in children if isinstance(child, dict | list)]
    return bool(level)


def _failure(kind: Any, detail: str, body: bytes) -> Failure:
    return Failure(kind, detail, status=200, size=len(body))
