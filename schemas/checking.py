"""Checking data against a schema, with every error in words a person can act on."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
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

    def pattern(_: Any, wanted: str, value: Any, __: Any) -> Iterator[Any]:
        # In Python "$" also matches before a last line feed, in JSON Schema it does not: names must not end in one.
        if isinstance(value, str) and not re.search(re.sub(r"\$$", r"\\Z", wanted), value):
            yield jsonschema.ValidationError("pattern")

    made: Any = jsonschema.validators
    return made.extend(base, {"pattern": pattern}, type_checker=strict)(schema(name))


def validate(document: Document | Any, name: str, *, at: Sequence[str | int] = ()) -> list[Problem]:
    """Every problem of a document (or of plain data) with the schema called ``name``; empty when it is fine.

    Problems from reading the document come first. ``at`` validates only the value at that place. At most 50
    problems are kept, with a closing one that counts the rest. Raises KeyError for an unknown schema.
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


def _explain(doc: Document, at: Pointer, error: Any) -> Iterator[Problem]:
    """What a schema error means, in words a person can act on."""
    path: Pointer = (*at, *error.absolute_path)
    value, wanted, node = error.instance, error.validator_value, error.schema
    node = node if isinstance(node, dict) else {}
    last = next((key for key in reversed(path) if isinstance(key, str)), None)
    subject = f'"{show(last)}"' if last is not None else "the file"
    if path and isinstance(path[-1], int):
        subject = f"entry {path[-1] + 1} of {subject}"
    says, fix = node.get("x-says", ""), node.get("x-fix", "")
    if "propertyNames" in error.absolute_schema_path and isinstance(value, str):
        yield doc.problem(
            (*path, value), f'{subject} has the key "{show(value)}", which is not {says or "allowed"}', fix
        )
        return
    match error.validator:
        case "required":
            for key in wanted:
                if isinstance(value, dict) and key not in value:
                    there = closest(key, (k for k in value if k not in node.get("properties", {})))
                    yield doc.problem(path, f'{subject} lacks the key "{key}"', f"add {key}: …{there}")
        case "additionalProperties" | "unevaluatedProperties":
            yield from _unknown(doc, path, value, node, subject)
        case "type":
            names = [wanted] if isinstance(wanted, str) else wanted
            expected = " or ".join(_TYPES.get(n, n) for n in names)
            quote = "put it in quotes" if "string" in names and isinstance(value, (bool, int, float)) else ""
            yield doc.problem(path, f"{subject} must be {expected}, not {_type(value)}", fix or quote)
        case "enum" | "const":
            options = [
                str(v).lower() if isinstance(v, bool) else str(v)
                for v in (wanted if isinstance(wanted, list) else [wanted])
            ]
            near = closest(value, options).strip() if isinstance(value, str) else ""
            one_of = "one of " if len(options) > 1 else ""
            yield doc.problem(
                path, f"{subject} must be {one_of}{', '.join(options)}, not {_type(value)}", fix or near
            )
        case "pattern":
            yield doc.problem(
                path,
                f"{subject} is {_type(value)}, which is not {says or 'of the form that is expected'}",
                fix,
            )
        case "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum":
            words = {
                "minimum": "at least",
                "exclusiveMinimum": "more than",
                "maximum": "at most",
                "exclusiveMaximum": "less than",
            }
            yield doc.problem(
                path, f"{subject} must be {words[error.validator]} {wanted}, not {_type(value)}", fix
            )
        case "minLength" | "minItems" | "minProperties":
            yield doc.problem(
                path,
                f"{subject} must not be empty"
                if wanted == 1
                else f"{subject} needs at least {wanted} entries",
                fix,
            )
        case "maxLength":
            yield doc.problem(
                path, f"{subject} has {len(value)} characters; at most {wanted} are allowed", fix
            )
        case "maxItems" | "maxProperties":
            yield doc.problem(path, f"{subject} has {len(value)} entries; at most {wanted} are allowed", fix)
        case "uniqueItems":
            yield doc.problem(path, f"{subject} has an entry twice", fix or "keep one of them")
        case "oneOf" | "anyOf":
            keys = [
                option["required"][0]
                for option in wanted
                if isinstance(option, dict) and option.get("required")
            ]
            if keys and isinstance(value, dict):
                given = [key for key in keys if key in value]
                much = "exactly" if error.validator == "oneOf" else "at least"
                yield doc.problem(
                    path,
                    f"{subject} needs {much} one of {', '.join(keys)}, and has {', '.join(given) or 'none'}",
                    fix,
                )
            else:
                yield doc.problem(
                    path,
                    f"{subject} is {_type(value)}, which is not {says or 'of a form that is accepted'}",
                    fix,
                )
        case _:
            yield doc.problem(path, f"{subject} is not {says or 'what the schema allows'}", fix)


def _unknown(
    doc: Document, path: Pointer, value: Any, node: Mapping[str, Any], subject: str
) -> Iterator[Problem]:
    known = list(node.get("properties", {}))
    patterns = [re.compile(p) for p in node.get("patternProperties", {})]
    free = [key for key in known if key not in value]
    for key in list(value)[: 2 * MAX_PROBLEMS]:
        if key in known or any(p.search(key) for p in patterns):
            continue
        near = closest(key, free).strip() or (
            f"known keys: {', '.join(known)}" if 0 < len(known) <= 24 else ""
        )
        yield doc.problem((*path, key), f'unknown key "{show(key)}" in {subject}', near)
