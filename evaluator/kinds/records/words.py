"""What a record breaks of its schema, in words: what was expected, what was found, and what was probably meant."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from schemas import closest, show

MAX_NAMES = 10  # values of an enum, and keys of one record, that are told
MAX_MESSAGE = 160  # characters of a message of jsonschema-rs
_TYPES = {
    "object": "an object", "array": "a list", "string": "text", "integer": "a whole number",
    "number": "a number", "boolean": "true or false", "null": "null",
}  # fmt: skip


_NUMBER = re.compile(r" {0,9}\+?-?(?:0|[1-9][0-9]{0,18})(?:[.,][0-9]{1,18})? {0,9}")


class Violation(NamedTuple):
    """One rule that a record breaks: where (the keys from its root), and what was expected and found."""

    pointer: tuple[str | int, ...]
    what: str


def violations(errors: Iterator[Any], schema: Any) -> Iterator[Violation]:
    """The errors of a validator in words: those of jsonschema-rs, or ours that suggest what was probably meant.

    ``schema`` is what the validator was made of.
    """
    for error in errors:
        at = tuple(error.instance_path)
        say = _SAY.get(error.kind.name)
        if say is None:
            yield Violation(at, f"{show(error.message, MAX_MESSAGE)}, found {_found(error.instance)}")
        else:
            yield from (Violation((*at, *below), what) for below, what in say(error, schema))


_Said = Iterator[tuple[tuple[str, ...], str]]


def _expected(words: str, error: Any, more: str = "") -> _Said:
    yield (), f"expected {words}, found {_found(error.instance)}{more}"


def _found(value: Any) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value):,}"
    return value_of(value)


def value_of(value: Any) -> str:
    """A value as JSON, shortened and safe to print."""
    if isinstance(value, str):
        return f'"{show(value)}"'
    return show(
        json.dumps(value, ensure_ascii=False)
        if not isinstance(value, dict | list)
        else json.dumps(value)[:100]
    )


def _type(error: Any, schema: Any) -> _Said:
    types = error.kind.types
    near = _number_in(error.instance) if {"number", "integer"} & {*types} else ""
    return _expected(" or ".join(_TYPES.get(name, name) for name in types), error, near)


def _number_in(value: Any) -> str:
    """The number that text probably means: one in quotes, or with a decimal comma."""
    if not isinstance(value, str) or not _NUMBER.fullmatch(value):
        return ""
    return f" (did you mean {value.strip().lstrip('+').replace(',', '.')}?)"


def _among(error: Any, schema: Any) -> _Said:
    options = error.kind.options
    texts = [one for one in options if isinstance(one, str)]
    near = closest(error.instance, texts) if isinstance(error.instance, str) else ""
    more = f" and {len(options) - MAX_NAMES:,} others" if len(options) > MAX_NAMES else ""
    named = ", ".join(map(value_of, options[:MAX_NAMES]))
    return _expected(f"one of {named}{more}" if len(options) > 1 else named, error, did_you_mean(near))


def did_you_mean(near: str) -> str:
    """What :func:`schemas.closest` says, in brackets."""
    return f" (did{near.removeprefix(' Did')})" if near else ""


def _required(error: Any, schema: Any) -> _Said:
    name = error.kind.property
    known = _node(schema, error.schema_path[:-1]).get("properties", {})
    others = [key for key in error.instance if key not in known][:100]
    yield (), f'the key "{show(name)}" is missing{did_you_mean(closest(name, others))}'


def _unknown(error: Any, schema: Any) -> _Said:
    known = [
        key
        for key in _node(schema, error.schema_path[:-1]).get("properties", {})
        if key not in error.instance
    ]
    for key in error.kind.unexpected[:MAX_NAMES]:
        yield (str(key),), f'unknown key "{show(str(key))}"{did_you_mean(closest(str(key), known))}'
    if (rest := len(error.kind.unexpected) - MAX_NAMES) > 0:
        yield (), f"{rest:,} more unknown keys"


def _node(schema: Any, path: Sequence[str | int]) -> Mapping[str, Any]:
    """The subschema that an error is about; an empty one where its path does not lead there."""
    for key in path:
        if key == "$ref" and isinstance(schema, dict):
            return {}
        try:
            schema = schema[key]
        except (KeyError, IndexError, TypeError):
            return {}
    return schema if isinstance(schema, dict) else {}


_SAY: Mapping[str, Callable[[Any, Any], _Said]] = {
    "type": _type,
    "enum": _among,
    "required": _required,
    "additionalProperties": _unknown,
    "unevaluatedProperties": _unknown,
}
