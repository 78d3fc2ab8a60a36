"""Which parts of a document are returned: ``_source`` in all its forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sidecars.search.errors import illegal, malformed, quote

MAX_PATTERNS, MAX_PATTERN = 128, 256


@dataclass(frozen=True)
class Source:
    """What of ``_source`` is wanted. Patterns are names of fields, in which ``*`` stands for any characters."""

    wanted: bool = True
    includes: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    _known: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)

    def has(self, name: str) -> bool:
        """Whether the field is returned."""
        if name not in self._known:
            included = not self.includes or any(matches(name, pattern) for pattern in self.includes)
            excluded = any(matches(name, pattern) for pattern in self.excludes)
            self._known[name] = self.wanted and included and not excluded
        return self._known[name]


def matches(name: str, pattern: str) -> bool:
    """Whether ``pattern`` (``*`` for any characters) is ``name`` as a whole. Never more than quadratic in time."""
    pieces = pattern.split("*")
    if len(pieces) == 1:
        return name == pattern
    first, *middle, last = pieces
    if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
        return False
    position, end = len(first), len(name) - len(last)
    for piece in middle:
        found = name.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True


def from_body(value: Any) -> Source:
    """``_source`` of a request's body: true, false, a name, a list of names, or an object."""
    if isinstance(value, bool):
        return Source(wanted=value)
    if isinstance(value, str | list):
        return Source(includes=_patterns(value, "_source"))
    if not isinstance(value, dict):
        raise malformed("[_source] has to be true, false, a field, a list of fields, or an object")
    found: dict[str, tuple[str, ...]] = {"includes": (), "excludes": ()}
    for key, patterns in value.items():
        name = {"include": "includes", "exclude": "excludes"}.get(key, key)
        if name not in found:
            raise malformed(f"Unknown key [{quote(key)}] in [_source]; known: includes, excludes")
        found[name] = _patterns(patterns, f"_source.{name}")
    return Source(includes=found["includes"], excludes=found["excludes"])


def from_address(parameters: Mapping[str, str], body: Source) -> Source:
    """``_source``, ``_source_includes`` and ``_source_excludes`` of the address; they replace those of the body."""
    names = ("_source", "_source_includes", "_source_excludes")
    if not any(name in parameters for name in names):
        return body
    whole, includes, excludes = (parameters.get(name) for name in names)
    if whole in ("true", "false", ""):
        wanted, whole = whole != "false", None
    else:
        wanted = True
    return Source(
        wanted=wanted,
        includes=_patterns((includes or whole or "").split(","), "_source_includes"),
        excludes=_patterns((excludes or "").split(","), "_source_excludes"),
    )


def _patterns(value: Any, what: str) -> tuple[str, ...]:
    found: Sequence[Any] = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(pattern, str) for pattern in found):
        raise malformed(f"[{what}] has to be the name of a field or a list of names")
    if len(found) > MAX_PATTERNS or any(len(pattern) > MAX_PATTERN for pattern in found):
        raise illegal(f"[{what}] may have {MAX_PATTERNS} names of {MAX_PATTERN} characters")
    return tuple(pattern for pattern in found if pattern)
