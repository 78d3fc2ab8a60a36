"""What a record breaks of its schema, in words: what was expected, what was found, and what was probably meant."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from schemas import closest, show

MAX_NAMES = 10  # values of an enum, and keys of one record, that are told
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
    """The errors of a validator of jsonschema-rs in words. ``schema`` is what the validator was made of."""
    for error in errors:
        at = tuple(error.instance_path)
        say = _SAY.get(error.kind.name)
        if say is None:
            yield Violation(at, f"{_found(error.instance)} breaks the rule {error.kind.name} of the schema")
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


def _const(error: Any, schema: Any) -> _Said:
    return _expected(value_of(error.kind.expected_value), error)


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


def _unknown_items(error: Any, schema: Any) -> _Said:
    yield (), f"{len(error.kind.unexpected):,} entries more than expected"


def _limit(words: str) -> Callable[[Any, Any], _Said]:
    return lambda error, _: _expected(words.format(value_of(error.kind.limit)), error)


def _count(words: str) -> Callable[[Any, Any], _Said]:
    def say(error: Any, _: Any) -> _Said:
        yield (), f"expected {words.format(error.kind.limit)}, found {len(error.instance):,}"

    return say


def _any_of(error: Any, schema: Any) -> _Said:
    """Alternatives that ask for types only are said together; of others the one that fits best."""
    found = error.kind.context
    if error.kind.name == "oneOf" and not all(found):
        return _too_many(error, schema)
    if found and all(
        len(one) == 1 and one[0].kind.name == "type" and one[0].instance_path == error.instance_path
        for one in found
    ):
        names = dict.fromkeys(_TYPES.get(name, name) for one in found for name in one[0].kind.types)
        return _expected(" or ".join(names), error)
    return _nearest(error, schema, [one for one in found if one])


def _nearest(error: Any, schema: Any, found: Sequence[Any]) -> _Said:
    best: Sequence[Any] = min(found, key=len, default=[])
    said = next(violations(iter(best[:1]), schema), None)
    more = f"; of the nearest one: {said.what}" if said is not None else ""
    yield (), f"{_found(error.instance)} is none of the {len(error.kind.context):,} alternatives{more}"


def _too_many(error: Any, schema: Any) -> _Said:
    yield (), f"{_found(error.instance)} fits several of the alternatives, and has to fit exactly one"


def _forbidden(error: Any, schema: Any) -> _Said:
    yield (), f"{_found(error.instance)} is what the schema forbids here"


def _name(error: Any, schema: Any) -> _Said:
    for said in violations(iter([error.kind.error]), schema):
        yield (), f"a key's name: {said.what}"


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
    "const": _const,
    "required": _required,
    "additionalProperties": _unknown,
    "unevaluatedProperties": _unknown,
    "unevaluatedItems": _unknown_items,
    "pattern": lambda error, _: _expected(f"text that matches {show(error.kind.pattern)}", error),
    "minimum": _limit("at least {}"),
    "maximum": _limit("at most {}"),
    "exclusiveMinimum": _limit("more than {}"),
    "exclusiveMaximum": _limit("less than {}"),
    "multipleOf": lambda error, _: _expected(f"a multiple of {value_of(error.kind.multiple_of)}", error),
    "minLength": _count("at least {} characters"),
    "maxLength": _count("at most {} characters"),
    "minItems": _count("at least {} entries"),
    "maxItems": _count("at most {} entries"),
    "minProperties": _count("at least {} keys"),
    "maxProperties": _count("at most {} keys"),
    "uniqueItems": lambda error, _: _expected("entries that differ", error),
    "int64": lambda error, _: _expected("whole numbers of at most 64 bits beside uniqueItems", error),
    "contains": lambda error, _: _expected("an entry of the form that the schema asks for", error),
    "anyOf": _any_of,
    "oneOf": _any_of,
    "not": _forbidden,
    "falseSchema": _forbidden,
    "propertyNames": _name,
}
