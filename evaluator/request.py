"""``request.json``: what the runner asks for. Checked by hand, so that a small run costs no imports.

``schemas/request.schema.json`` says the same in full, for those who write an evaluator of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.errors import EvaluatorError
from evaluator.findings import CODES, SEVERITIES
from evaluator.formats.files import Damaged, TooLarge, Unreadable, read_all

MAX_REQUEST = 1 << 20
DEFAULT_MAX_BYTES = 4 << 30
DEFAULT_MAX_FINDINGS = 1000


class MeasureRequest(NamedTuple):
    """A measure of the task: its id in the task, the kind's name for it, and the truths it needs."""

    id: str
    measure: str
    truths: str
    direction: str
    options: Mapping[str, Any]


class Request(NamedTuple):
    """A request with every field checked. Paths are folders; ``topics`` and ``corpus`` are names in ``inputs``."""

    kind: str
    task: str
    dataset: str
    scenario: str
    public: bool
    run: Path
    inputs: Path
    truths: Path
    output: Path
    run_file: str
    topics: str | None
    corpus: str | None
    measures: tuple[MeasureRequest, ...]
    severities: Mapping[str, str]
    options: Mapping[str, Any]
    double: bool
    max_findings: int
    max_bytes: int
    services: Path | None = None  # folder with the data of the task's services
    gateway: Path | None = None  # Unix socket behind which a model can be asked
    records: bool = False  # whether the files beside the run's own are the platform's records of it


def load(path: Path) -> Request:
    """Read and check a request. Raises :class:`EvaluatorError` naming the field that is wrong."""
    try:
        data = json.loads(read_all(path, MAX_REQUEST))
    except (Unreadable, Damaged) as error:
        raise EvaluatorError(f"the request {path.name} cannot be read", str(error)) from None
    except (TooLarge, ValueError, RecursionError) as error:
        raise EvaluatorError(f"the request {path.name} is not JSON", str(error)[:200]) from None
    return parse(data)


def parse(data: Any) -> Request:
    """Check a request that was read already. Raises :class:`EvaluatorError` naming the field that is wrong."""
    if not isinstance(data, dict) or data.get("schema_version") != 1:
        raise EvaluatorError(
            "the request has an unknown schema_version", fix="this evaluator reads version 1"
        )
    paths = _field(data, "paths", dict)
    limits = _field(data, "limits", dict, {})
    measures = []
    for i, one in enumerate(_field(data, "measures", list)):
        if not isinstance(one, dict):
            raise _wrong(f"measures/{i}", "an object")
        measures.append(
            MeasureRequest(
                _field(one, "id", str),
                _field(one, "measure", str),
                _name(_field(one, "truths", str), f"measures/{i}/truths"),
                _field(one, "direction", str, "higher"),
                _field(one, "options", dict, {}),
            )
        )
    severities = _field(data, "severities", dict, {})
    for code, severity in severities.items():
        if code not in CODES:
            raise EvaluatorError(
                f"the request names an unknown finding code {str(code)[:40]!r}", fix="see evaluator codes"
            )
        if severity not in SEVERITIES:
            raise _wrong(f"severities/{code}", "one of " + ", ".join(SEVERITIES))
    precision = _field(data, "score_precision", str, "float32")
    if precision not in ("float32", "double"):
        raise _wrong("score_precision", "float32 or double")
    topics, corpus = _field(data, "topics", str, None), _field(data, "corpus", str, None)
    return Request(
        kind=_field(data, "kind", str),
        task=_field(data, "task", str, ""),
        dataset=_field(data, "dataset", str, ""),
        scenario=_field(data, "scenario", str, "default"),
        public=_field(data, "visibility", str, "blinded") == "public",
        run=Path(_field(paths, "run", str)),
        inputs=Path(_field(paths, "inputs", str)),
        truths=Path(_field(paths, "truths", str)),
        output=Path(_field(paths, "output", str)),
        run_file=_name(_field(data, "run_file", str), "run_file"),
        topics=None if topics is None else _name(topics, "topics"),
        corpus=None if corpus is None else _name(corpus, "corpus"),
        measures=tuple(measures),
        severities=severities,
        options=_field(data, "options", dict, {}),
        double=precision == "double",
        max_findings=max(0, _field(limits, "max_findings", int, DEFAULT_MAX_FINDINGS)),
        max_bytes=max(1, _field(limits, "max_bytes", int, DEFAULT_MAX_BYTES)),
        services=_path(paths, "services"),
        gateway=_path(paths, "gateway"),
        records=_field(data, "records", bool, False),
    )


_REQUIRED = object()


def _field(data: Mapping[str, Any], key: str, kind: type, default: Any = _REQUIRED) -> Any:
    value = data.get(key)
    if value is None:
        if default is _REQUIRED:
            raise EvaluatorError(f"the request lacks {key}")
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        names = {bool: "true or false", str: "a string", dict: "an object", list: "a list", int: "an integer"}
        raise _wrong(key, names.get(kind, kind.__name__))
    return value


def _path(paths: Mapping[str, Any], key: str) -> Path | None:
    value = _field(paths, key, str, None)
    return None if value is None else Path(value)


def _name(value: str, field: str) -> str:
    """A relative path that stays inside its folder."""
    if not value or value.startswith("/") or "\0" in value or ".." in value.split("/"):
        raise _wrong(field, "the name of a file inside its folder")
    return value


def _wrong(field: str, expected: str) -> EvaluatorError:
    return EvaluatorError(f"the request's {field} is wrong", f"it has to be {expected}")
