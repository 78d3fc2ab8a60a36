"""``request.json``: what the runner asks for, checked by ``schemas/request.schema.json``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.codes import CODES
from evaluator.errors import EvaluatorError
from evaluator.formats.files import Damaged, TooLarge, Unreadable, read_all
from schemas import Problem, validate
from schemas.details import Detail

MAX_REQUEST = 1 << 20
DEFAULT_MAX_BYTES = 4 << 30
DEFAULT_MAX_FINDINGS = 1000


class MeasureRequest(NamedTuple):
    """A measure of the task: its id in the task, the kind's name for it, and the truths it needs."""

    id: str
    measure: str
    truths: str
    direction: str = "higher"
    options: Mapping[str, Any] = {}


class Request(NamedTuple):
    """A request with every field checked. Paths are folders; ``topics`` and ``corpus`` are names in ``inputs``."""

    kind: str
    run: Path
    inputs: Path
    truths: Path
    output: Path
    run_file: str
    task: str = ""
    dataset: str = ""
    scenario: str = "default"
    public: bool = False
    topics: str | None = None
    corpus: str | None = None
    measures: tuple[MeasureRequest, ...] = ()
    severities: Mapping[str, str] = {}
    options: Mapping[str, Any] = {}
    double: bool = False
    max_findings: int = DEFAULT_MAX_FINDINGS
    max_bytes: int = DEFAULT_MAX_BYTES
    services: Path | None = None  # folder with the data of the task's services
    gateway: Path | None = None  # Unix socket behind which a model can be asked
    absent: tuple[str, ...] = ()  # optional files that are not here: inputs/NAME or truths/NAME
    records: bool = False  # whether the files beside the run's own are the platform's records of it

    @property
    def unchecked(self) -> str:
        """What is not checked because an optional file is not here, in words; or ""."""
        gone = self.corpus is not None and f"inputs/{self.corpus}" in self.absent
        return str(Detail("documents-unchecked", corpus=self.corpus)) if gone else ""


def load(path: Path) -> Request:
    """Read and check a request. Raises :class:`EvaluatorError` naming the fields that are wrong."""
    try:
        data = json.loads(read_all(path, MAX_REQUEST))
    except (Unreadable, Damaged) as error:
        raise EvaluatorError(f"the request {path.name} cannot be read", str(error)) from None
    except (TooLarge, ValueError, RecursionError) as error:
        raise EvaluatorError(f"the request {path.name} is not JSON", str(error)[:200]) from None
    return parse(data)


def parse(data: Any) -> Request:
    """Check a request that was read already. Raises :class:`EvaluatorError` naming the fields that are wrong."""
    if not isinstance(data, dict) or data.get("schema_version") != 1:
        raise EvaluatorError(
            "the request has an unknown schema_version", fix="this evaluator reads version 1"
        )
    if problems := validate(data, "request"):
        raise EvaluatorError("the request is wrong", listed(problems))
    for code in data.get("severities", {}):
        if code not in CODES:
            raise EvaluatorError(
                f"the request names an unknown finding code {code!r}", fix="see evaluator codes"
            )
    plain = (
        "kind", "task", "dataset", "scenario", "run_file", "topics", "corpus", "severities", "options", "records",
    )  # fmt: skip
    fields: dict[str, Any] = {key: data[key] for key in plain if key in data}
    fields |= {key: None if path is None else Path(path) for key, path in data["paths"].items()}
    return Request(
        **fields,
        absent=tuple(data.get("absent", ())),
        **data.get("limits", {}),
        public=data["visibility"] == "public",
        measures=tuple(MeasureRequest(**measure) for measure in data["measures"]),
        double=data.get("score_precision") == "double",
    )


def listed(problems: Iterable[Problem], within: str = "") -> str:
    """Problems with a schema on one line, each with the place (``judge.type``) below the pointer ``within``."""
    places = ((p.pointer.removeprefix(within).strip("/").replace("/", "."), p.what) for p in problems)
    return "; ".join(f"{place}: {what}" if place else what for place, what in places)
