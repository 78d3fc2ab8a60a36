"""Checking data against a schema, with every error in words a person can act on."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from schemas.documents import MAX_PROBLEMS, Document, Pointer, Problem, capped, closest, show
from schemas.external import external_kinds, options_schema


@lru_cache(maxsize=64)
def schema(name: str) -> dict[str, Any]:
    """The schema of that name, for example ``task`` or ``kinds/adhoc``; not to be changed. Raises KeyError."""
    if not re.fullmatch(r"(?:(?:kinds|services)/)?[a-z0-9][a-z0-9-]{0,39}", name):
        raise KeyError(name)
    path = Path(__file__).parent / f"{name}.schema.json"
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        kind = name.removeprefix("kinds/")
        if kind == name or kind not in external_kinds():
            raise KeyError(name) from None
        found = options_schema(kind)
    # Each service of task.yaml has a file of its own, whose references are to the task's definitions.
    if name == "task":
        found["properties"]["services"]["properties"] = {
            file.name.partition(".")[0]: json.loads(file.read_text("utf-8"))
            for file in sorted((path.parent / "services").glob("*.schema.json"))
        }
    elif name.startswith("services/"):
        found["$defs"] = schema("task")["$defs"]
    return found


def kinds() -> list[str]:
    """The kinds of task that have a schema for their options."""
    ours = (
        p.name.removesuffix(".schema.json") for p in (Path(__file__).parent / "kinds").glob("*.schema.json")
    )
    return sorted({*ours, *external_kinds()})


def of_kind(kind: str) -> list[str]:
    """The schemas of what softwares write for a kind: those called ``<kind>-…``."""
    return sorted(
        p.name.removesuffix(".schema.json") for p in Path(__file__).parent.glob(f"{kind}-*.schema.json")
    )


@lru_cache(maxsize=64)
def _validator(name: str) -> Any:
    import jsonschema

    base = jsonschema.Draft202012Validator
    strict = base.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )

    last = re.compile(r"(?<!\\)((?:\\\\)*)\$\Z")  # not where it is escaped

    def pattern(_: Any, wanted: str, value: Any, __: Any) -> Iterator[Any]:
        # In Python "$" also matches before a last line feed, in JSON Schema it does not: names must not end in one.
        if isinstance(value, str) and not re.search(last.sub(r"\1\\Z", wanted), value):
            yield jsonschema.ValidationError("pattern")

    made: Any = jsonschema.validators
    return made.extend(base, {"pattern": pattern}, type_checker=strict)(schema(name))


def validate(
    document: Document | Any, name: str, *, at: Sequence[str | int] = (), more_keys: bool = False
) -> list[Problem]:
    """Every problem of a document (or of plain data) with the schema called ``name``; empty when it is fine.

    Problems from reading the document come first. ``at`` validates only the value at that place; with
    ``more_keys`` keys that the schema does not know are fine. At most 50 problems are kept, with a closing one that counts the rest. Raises KeyError for an unknown schema.
    """
    doc = document if isinstance(document, Document) else Document(name, document)
    validator = _validator(name)
    found = list(doc.problems)
    data = doc.data
    for key in at:
        data = data[key]
    if not (doc.problems and doc.data is None):
        seen: set[tuple[str, str]] = set()
        for error in validator.iter_errors(data):
            if more_keys and error.validator == "additionalProperties":
                continue
            for problem in _explain(doc, tuple(at), error):
                if (problem.pointer, problem.what) not in seen:
                    seen.add((problem.pointer, problem.what))
                    found.append(problem)
            if len(found) > 20 * MAX_PROBLEMS:
                break
    found.sort(key=lambda problem: problem.line or 0)
    return capped(found, doc.name)


# What breaks one of these can be read all the same: it has too much, too little, or is there twice.
_READABLE = {
    "required", "additionalProperties", "unevaluatedProperties", "minItems", "maxItems", "minProperties",
    "maxProperties", "uniqueItems", "oneOf", "anyOf", "not",
}  # fmt: skip


def usable(document: Document, name: str) -> Any:
    """The data of a document without the values that do not have the form that the schema called ``name`` asks for.

    So rules that no schema can express are checked in the same go, without asking each value for its type. An entry of
    a list that is left out is None; keys that are required may be missing. {} when the document is no mapping.
    """
    data = copy.deepcopy(document.data)
    if not isinstance(data, dict):
        return {}
    for error in _validator(name).iter_errors(document.data):
        path = list(error.absolute_path)
        if "propertyNames" in error.absolute_schema_path and isinstance(error.instance, str):
            path.append(error.instance)
        elif error.validator in _READABLE or not path:
            continue
        holder: Any = data
        for key in path[:-1]:
            holder = holder[key] if isinstance(holder, list) else (holder or {}).get(key)
        if isinstance(holder, dict):
            holder.pop(path[-1], None)
        elif isinstance(holder, list):
            holder[path[-1]] = None
    return data


_TYPES = {
    "object": "a mapping (key: value)", "array": "a list", "string": "text", "integer": "a whole number",
    "number": "a number", "boolean": "true or false", "null": "empty",
}  # fmt: skip


def _type(value: object) -> str:
    if isinstance(value, bool):
        return f"{str(value).lower()} (true/false)"
    if value is None:
        return "empty"
    if isinstance(value, (int, float)):
        return f"the number {show(repr(value))}"
    if isinstance(value, str):
        return f'"{show(value)}"'
    return "a list" if isinstance(value, list) else "a mapping"


@dataclass(frozen=True)
class _Broken:
    """A rule of a schema that a value breaks: the rule's name and argument, the value, its place, and the schema there."""

    doc: Document
    path: Pointer
    rule: str
    wanted: Any
    value: Any
    node: Mapping[str, Any]

    @property
    def subject(self) -> str:
        """What messages call the value."""
        last = next((key for key in reversed(self.path) if isinstance(key, str)), None)
        subject = f'"{show(last)}"' if last is not None else "the file"
        if self.path and isinstance(self.path[-1], int):
            return f"entry {self.path[-1] + 1} of {subject}"
        return subject

    def says(self, default: str) -> str:
        """What the schema says that the value should be."""
        return str(self.node.get("x-says") or default)

    def problem(self, what: str, fix: str = "") -> Problem:
        """A problem of the value, with the schema's fix or else ``fix``."""
        return self.doc.problem(self.path, f"{self.subject} {what}", self.node.get("x-fix") or fix)


def _explain(doc: Document, at: Pointer, error: Any) -> Iterator[Problem]:
    """What a schema error means, in words a person can act on."""
    node = error.schema if isinstance(error.schema, dict) else {}
    path: Pointer = (*at, *error.absolute_path)
    broken = _Broken(doc, path, error.validator, error.validator_value, error.instance, node)
    if "propertyNames" in error.absolute_schema_path and isinstance(broken.value, str):
        what = f'has the key "{show(broken.value)}", which is not {broken.says("allowed")}'
        yield doc.problem((*path, broken.value), f"{broken.subject} {what}", node.get("x-fix", ""))
    else:
        yield from _EXPLAIN.get(error.validator, _other)(broken)


def _other(broken: _Broken) -> Iterator[Problem]:
    yield broken.problem(f"is not {broken.says('what the schema allows')}")


def _required(broken: _Broken) -> Iterator[Problem]:
    value = broken.value if isinstance(broken.value, dict) else dict.fromkeys(broken.wanted)
    unknown = [key for key in value if key not in broken.node.get("properties", {})]
    for key in broken.wanted:
        if key not in value:
            what, fix = f'{broken.subject} lacks the key "{key}"', f"add {key}: …{closest(key, unknown)}"
            yield broken.doc.problem(broken.path, what, fix)


def _unknown(broken: _Broken) -> Iterator[Problem]:
    known = list(broken.node.get("properties", {}))
    patterns = [re.compile(p) for p in broken.node.get("patternProperties", {})]
    free = [key for key in known if key not in broken.value]
    listed = f"known keys: {', '.join(known)}" if 0 < len(known) <= 24 else ""
    for key in list(broken.value)[: 2 * MAX_PROBLEMS]:
        if key not in known and not any(p.search(key) for p in patterns):
            what = f'unknown key "{show(key)}" in {broken.subject}'
            yield broken.doc.problem((*broken.path, key), what, closest(key, free).strip() or listed)


def _wrong_type(broken: _Broken) -> Iterator[Problem]:
    names = [broken.wanted] if isinstance(broken.wanted, str) else broken.wanted
    plain = "string" in names and isinstance(broken.value, bool | int | float)
    expected = " or ".join(_TYPES.get(name, name) for name in names)
    what = f"must be {expected}, not {_type(broken.value)}"
    yield broken.problem(what, "put it in quotes" if plain else "")


def _not_among(broken: _Broken) -> Iterator[Problem]:
    wanted = broken.wanted if isinstance(broken.wanted, list) else [broken.wanted]
    options = [str(value).lower() if isinstance(value, bool) else str(value) for value in wanted]
    near = closest(broken.value, options).strip() if isinstance(broken.value, str) else ""
    one_of = "one of " if len(options) > 1 else ""
    yield broken.problem(f"must be {one_of}{', '.join(options)}, not {_type(broken.value)}", near)


def _pattern(broken: _Broken) -> Iterator[Problem]:
    expected = broken.says("of the form that is expected")
    yield broken.problem(f"is {_type(broken.value)}, which is not {expected}")


def _out_of_range(broken: _Broken) -> Iterator[Problem]:
    words = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most"}
    word = words.get(broken.rule, "less than")
    yield broken.problem(f"must be {word} {broken.wanted}, not {_type(broken.value)}")


def _too_few(broken: _Broken) -> Iterator[Problem]:
    few = f"needs at least {broken.wanted} entries"
    yield broken.problem("must not be empty" if broken.wanted == 1 else few)


def _too_many(broken: _Broken) -> Iterator[Problem]:
    noun = "characters" if broken.rule == "maxLength" else "entries"
    yield broken.problem(f"has {len(broken.value)} {noun}; at most {broken.wanted} are allowed")


def _doubled(broken: _Broken) -> Iterator[Problem]:
    yield broken.problem("has an entry twice", "keep one of them")


def _combination(broken: _Broken) -> Iterator[Problem]:
    keys = [o["required"][0] for o in broken.wanted if isinstance(o, dict) and o.get("required")]
    if keys and isinstance(broken.value, dict):
        given = ", ".join(key for key in keys if key in broken.value) or "none"
        much = "exactly" if broken.rule == "oneOf" else "at least"
        yield broken.problem(f"needs {much} one of {', '.join(keys)}, and has {given}")
    else:
        expected = broken.says("of a form that is accepted")
        yield broken.problem(f"is {_type(broken.value)}, which is not {expected}")


_EXPLAIN: Mapping[str, Callable[[_Broken], Iterator[Problem]]] = {
    "required": _required,
    "type": _wrong_type,
    "pattern": _pattern,
    "uniqueItems": _doubled,
    **dict.fromkeys(("additionalProperties", "unevaluatedProperties"), _unknown),
    **dict.fromkeys(("enum", "const"), _not_among),
    **dict.fromkeys(("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"), _out_of_range),
    **dict.fromkeys(("minLength", "minItems", "minProperties"), _too_few),
    **dict.fromkeys(("maxLength", "maxItems", "maxProperties"), _too_many),
    **dict.fromkeys(("oneOf", "anyOf"), _combination),
}
