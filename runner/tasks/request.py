"""The request to an evaluator: the content of request.json."""

from __future__ import annotations

from typing import Any

from runner.model.sidecars import Service, socket_path
from runner.model.task import Dataset, Task
from runner.tasks.files import absent

SERVICES = "/services"


def with_data(task: Task) -> dict[str, Service]:
    """The services of a task whose data the evaluator sees."""
    return {name: service for name, service in task.services.items() if service.data is not None}


def request(
    task: Task,
    dataset: Dataset,
    scenario: str,
    run_file: str,
    *,
    records: bool = False,
    given: str = "/in",
    output: str = "/out",
) -> dict[str, Any]:
    """The content of ``request.json`` for one run (schema ``request``).

    ``records`` says that what lies next to the run file was written by the platform: of interactive runs only.
    ``given`` is the folder of the request in the container, ``output`` that of the results.
    """
    paths: dict[str, str | None] = {"run": f"{given}/run", "inputs": "/inputs", "truths": "/truths"}
    paths["output"] = output
    paths["services"] = SERVICES if with_data(task) else None
    paths["gateway"] = socket_path("gateway") if task.evaluation_gateway else None
    return {
        "schema_version": 1,
        "kind": task.kind,
        "task": task.id,
        "dataset": dataset.id,
        "scenario": scenario,
        "visibility": dataset.visibility,
        "paths": paths,
        "run_file": run_file,
        **({"records": True} if records else {}),
        "topics": dataset.topics,
        "corpus": dataset.corpus,
        **({"absent": missing} if (missing := absent(dataset)) else {}),
        "measures": [
            {
                "id": m.id,
                "measure": m.measure,
                "truths": m.truths,
                "direction": m.direction,
                "options": dict(m.options),
            }
            for m in task.measures.values()
        ],
        "severities": dict(task.severities),
        "options": dict(task.options),
        "score_precision": task.score_precision,
        "limits": {"max_findings": 1000, "max_bytes": 4 * task.limits.output},
    }
