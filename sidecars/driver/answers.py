"""Reading what a software answered: strictly, within bounds, and without ever failing otherwise than by name."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from schemas.words import blank, count_words
from sidecars.peer import Failure

MAX_DEPTH = 32  # of an answer; it is put five levels deep into a line that readers take to 64
MAX_DIGITS = 40
EXACT = 2**53  # up to here a float holds every whole number
SHOWN_IDS = 50  # argument ids kept in a turn's record
ID_CHARACTERS = 200

_SURROGATE = re.compile("[\ud800-\udfff]")
_TYPES = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
}


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
        raise _failure("wrong-type", f'"content" is {_type(content)}, not text', body)
    if blank(content):
        raise _failure("empty", '"content" is empty', body)
    arguments = data.get("arguments")
    ids = _argument_ids(arguments, body) if arguments is not None else []
    kept = tuple(safe(one[:ID_CHARACTERS]) for one in ids[:SHOWN_IDS])
    return Answer(safe(content), encode(data), len(body), count_words(content), len(ids), kept)


def _argument_ids(arguments: Any, body: bytes) -> list[str]:
    if not isinstance(arguments, list):
        raise _failure("wrong-type", f'"arguments" is {_type(arguments)}, not a list', body)
    for number, argument in enumerate(arguments, 1):
        if not isinstance(argument, dict):
            raise _failure("wrong-type", f"argument {number} is {_type(argument)}, not an object", body)
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
        raise _failure("wrong-type", f'"score" is {_type(score)}, neither a number nor null', body)
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
    refuse = _refuser(body)
    try:
        data = json.loads(text, parse_constant=refuse, parse_float=_float(refuse), parse_int=_int(refuse))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}: {error.msg}"
        start = text.strip()[:60]
        raise _failure("not-json", f"the answer is not JSON ({where}); it starts {start!r}", body) from None
    except RecursionError:
        raise _failure("not-json", f"the answer is nested more than {MAX_DEPTH} levels deep", body) from None
    if not isinstance(data, dict):
        raise _failure("wrong-type", f"the answer is {_type(data)}, not an object", body)
    _check_depth(data, body)
    return data


def _check_depth(data: Any, body: bytes) -> None:
    level = [data]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for value in level
            for child in (value.values() if isinstance(value, dict) else value)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return
    raise _failure("not-json", f"the answer is nested more than {MAX_DEPTH} levels deep", body)


def _refuser(body: bytes) -> Callable[[str], NoReturn]:
    def refuse(text: str) -> NoReturn:
        raise _failure("not-json", f"the answer has the number {text[:20]}, which cannot be kept", body)

    return refuse


def _float(refuse: Callable[[str], NoReturn]) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            refuse(text)
        # GenIRSim, like all of JavaScript, writes 1.0 as 1; a reader may mind which type it gets.
        return int(value) if value.is_integer() and abs(value) <= EXACT else value

    return read


def _int(refuse: Callable[[str], NoReturn]) -> Callable[[str], int]:
    def read(text: str) -> int:
        return int(text) if len(text) <= MAX_DIGITS else refuse(text)

    return read


def _type(value: object) -> str:
    return "null" if value is None else _TYPES.get(type(value), "something else")


def _failure(kind: Any, detail: str, body: bytes) -> Failure:
    return Failure(kind, detail, status=200, size=len(body))
