"""Measures over records by their strings: ``Accuracy(label)``, ``F1(label, average=macro)``, ``MAE(/answer/score, truth=gold)``.

What stands in the brackets are parameters, parted by commas. One without a name is the field. Values are numbers, ``true``,
``false``, words, text in quotes (``'a, b'``), and lists of these (``[yes, no]``).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from evaluator.errors import EvaluatorError
from evaluator.findings import plain
from evaluator.measures.records import (
    labels,
    multilabel,
    numbers,
    probabilities,
    ranked,
    spans,
    texts,
    translation,
)
from evaluator.measures.records.base import Measure, Parameter

MODULES = (labels, multilabel, probabilities, numbers, spans, texts, translation, ranked)  # each has MEASURES

_TEXT = re.compile(r"\s*([A-Za-z][A-Za-z0-9_-]{0,39})\s*(?:\((.*)\))?\s*", re.DOTALL)
_SIGNS = r"\[\],='\"()"
_TOKEN = re.compile(
    rf"""\s*(?:(?P<quoted>'[^']*'|"[^"]*")|(?P<sign>[\[\],=])|(?P<word>[^\s{_SIGNS}](?:[^{_SIGNS}]*[^\s{_SIGNS}])?))"""
)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


@cache
def known() -> Mapping[str, type[Measure]]:
    """All measures by name, sorted."""
    found = {one.name: one for module in MODULES for one in module.MEASURES}
    return {name: found[name] for name in sorted(found)}


def measure(text: str) -> Measure:
    """The measure that ``text`` names.

    Raises:
        EvaluatorError: There is no such measure, or its parameters are wrong; it says which there are.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise _wrong(
            text, "it is not a name with parameters in brackets", "write it like F1(label, average=macro)"
        )
    name, inside = match.groups()
    kind = known().get(name)
    if kind is None:
        near = _near(name, known())
        raise EvaluatorError(f"there is no measure {plain(name)}{near}", f"known are {', '.join(known())}")
    parameters = kind.takes()
    given: dict[str, Any] = {}
    for key, value in _arguments(text, inside or ""):
        _take(text, key or "field", value, parameters, given)
    if lacking := [key for key, one in parameters.items() if one.required and key not in given]:
        first = parameters[lacking[0]].says
        raise _wrong(text, f"it needs {', '.join(lacking)}", f"write {name}(…) with {first}")
    return kind(_canonical(name, given), given)


def _take(
    text: str, key: str, value: Any, known_ones: Mapping[str, Parameter], given: dict[str, Any]
) -> None:
    """Put one parameter into ``given``; raises for one that is unknown, there twice, or of a wrong value."""
    one = known_ones.get(key)
    if one is None:
        near = _near(key, known_ones)
        raise _wrong(text, f"it has no parameter {plain(key)}{near}", f"it takes {', '.join(known_ones)}")
    if key in given:
        raise _wrong(text, f"{plain(key)} is there twice", "keep one of them")
    if key in ("field", "truth", "macro") and not isinstance(value, list | bool):
        value = str(value)
    if not one.accepts(value):
        raise _wrong(text, f"{plain(key)} is {plain(str(value))}", f"it has to be {one.says}")
    given[key] = value


def _arguments(text: str, inside: str) -> Iterable[tuple[str, Any]]:
    """Names ("" for none) and values of the parameters."""
    tokens = _tokens(text, inside)
    while tokens:
        key, value = "", _value(text, tokens)
        if tokens and tokens[0] == "=":
            tokens.pop(0)
            key, value = str(value), _value(text, tokens)
        yield key, value
        if tokens and tokens.pop(0) != ",":
            raise _wrong(text, "parameters are parted by commas", "write it like F1(label, average=macro)")


def _tokens(text: str, inside: str) -> list[str]:
    found, at = [], 0
    while at < len(inside.rstrip()):
        match = _TOKEN.match(inside, at)
        if match is None:
            raise _wrong(
                text, f"it cannot be read from {plain(inside[at:], 20)} on", "put text with signs into quotes"
            )
        found.append(match.group("quoted") or match.group("sign") or match.group("word"))
        at = match.end()
    return found


def _value(text: str, tokens: list[str]) -> Any:
    part = tokens.pop(0) if tokens else ","
    if part == "[":
        items: list[Any] = []
        while tokens and tokens[0] != "]":
            items.append(_value(text, tokens))
            if tokens and tokens[0] == ",":
                tokens.pop(0)
        if not tokens:
            raise _wrong(text, "a list does not end", "close it with ]")
        tokens.pop(0)
        return items
    if part in ("]", ",", "="):
        raise _wrong(text, "a value is missing", "write it like F1(label, average=macro)")
    if part[0] in "'\"":
        return part[1:-1]
    if part in ("true", "false"):
        return part == "true"
    if _NUMBER.fullmatch(part):
        return int(part) if part.lstrip("+-").isdigit() and len(part) < 19 else float(part)
    return part


def _canonical(name: str, given: Mapping[str, Any]) -> str:
    parts = [_shown(given["field"]), *(f"{k}={_shown(v)}" for k, v in sorted(given.items()) if k != "field")]
    return f"{name}({', '.join(parts)})"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return repr(value)
    plainly = re.fullmatch(r"[A-Za-z_/][A-Za-z0-9_./-]*", value) and value not in ("true", "false")
    quote = '"' if "'" in value else "'"
    return value if plainly else f"{quote}{value}{quote}"


def _near(name: str, names: Iterable[str]) -> str:
    folded = {one.casefold(): one for one in names}
    close = difflib.get_close_matches(name.casefold()[:60], folded, n=1, cutoff=0.6)
    return f" (did you mean {folded[close[0]]}?)" if close else ""


def _wrong(text: str, why: str, fix: str) -> EvaluatorError:
    return EvaluatorError(f"the measure {plain(text, 80)} is wrong", why, fix)
