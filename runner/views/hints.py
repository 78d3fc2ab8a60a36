"""The hint on a failed run: what its team can do, in one sentence, made of what the audience sees already.

It is chosen by the log, the verdict with its detail and the figures of a view that was redacted before, and of the public description of
the inputs. Where an audience sees no log there is no hint: which sentence it is would carry bits of hidden inputs out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from runner.views.audience import escape
from runner.views.overview.inputs import first_object, seen
from runner.views.text import listed

if TYPE_CHECKING:
    from runner.model.task import Dataset, Scenario, Task

FAILED = ("run-error", "no-output", "unhealthy", "signal", "output-limit")
MOST = 6  # files and fields that are named


def hint(view: Mapping[str, Any], task: Task | None) -> str:
    """What helps, for a view of a run that :func:`runner.views.redact.redact_run` made; empty when nothing is known.

    ``task`` is its task, while there is one.
    """
    from runner.submissions.hints import of_log, of_time

    verdict = (view["verdict"] or {}).get("name")
    if verdict == "time-limit":
        return of_time(view["resources"]["cpu_seconds"], view["resources"]["wall_seconds"])
    if verdict not in FAILED:
        return ""
    told = str(view["verdict"]["detail"])  # why it could not be started, where this audience is told
    log = [*view["log"].get("stdout", ()), *view["log"].get("stderr", ())]
    refused = (view["output"] or {}).get("refused")
    refused = refused if isinstance(refused, list) else []  # a number where the audience sees no names
    names = [f"refused file: {name}" for name, _ in refused]  # such as one with a carriage return at its end
    inputs = "" if task is None or not log else inputs_hold(task, view["dataset"], view["scenario"])
    return of_log([told, *names, *log], inputs, view["limits"])


def inputs_hold(task: Task, dataset: str, scenario: str) -> str:
    """What the inputs hold in a scenario, from public data: files, and the fields of their first lines.

    Of a hidden dataset nothing is said but what the task's public one holds; empty where there is none, or it is not here.
    """
    wanted = task.datasets.get(dataset)
    shown = wanted if wanted is not None and wanted.visibility == "public" else task.public_dataset()
    if shown is None:
        return ""
    names = list(_described(shown, task.scenarios.get(scenario)))
    which = "The inputs hold" if shown is wanted else f"The inputs are like those of {shown.id}, which hold"
    return f"{which} {escape(listed(names, MOST), 600)}" if names else ""


def _described(dataset: Dataset, scenario: Scenario | None) -> Iterator[str]:
    for shown in seen(dataset, scenario):
        fields = list(first_object(shown))
        yield f"{shown.name} ({listed(fields, MOST)})" if fields else str(shown.name)
