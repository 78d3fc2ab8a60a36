"""Take a run out of the archive: its files as they are, and the exchange formats other tools read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from runner.model.errors import RunnerError
from runner.records.archive import Attempt, Evaluation
from runner.records.store.run_detail import RunDetail
from runner.views.irmetadata import NAME, written
from runner.views.redact import RunView
from schemas.files import atomic_folder


def export_run(found: RunDetail, view: RunView, target: Path, names: Mapping[str, str] | None = None) -> int:
    """Copy the attempt that decided, its evaluation, ``run.view.json``, ``evaluation.prototext`` and ``ir-metadata.yml`` to ``target``.

    ``names`` gives the measure strings of the task by id: the keys of the prototext. Logs of our own containers are
    left out unless the organiser looks. As a whole or not at all; returns the number of files. Raises E101 when ``target`` is not empty, E102 when
    the run was never executed.
    """
    from runner.views.audience import may_take
    from runner.views.leaderboard.export import to_prototext

    if found.attempt is None:
        raise RunnerError("E102", f"{found.run.id} has not been executed", fix="runner evaluate")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise RunnerError(
            "E101", f"{target} is not empty", why="An export never overwrites.", fix="name a new folder"
        )
    count = 0
    with atomic_folder(target) as staging:
        parts: list[tuple[Attempt | Evaluation, Path]] = [(found.attempt, staging)]
        if found.evaluation is not None:
            parts.append((found.evaluation, staging / "evaluation"))
        for sealed, place in parts:
            for name, file in sealed.files().items():
                path = (place / name).relative_to(staging).as_posix()
                if not may_take(view.audience, path, rounded=bool(found.decimals)):
                    continue
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                file.copy(place / name)
                count += 1
        (staging / "run.view.json").write_text(json.dumps(dict(view), indent=1, sort_keys=True) + "\n")
        (staging / "evaluation.prototext").write_text(to_prototext(view, names))
        (staging / NAME).write_text(written(found))
    return count + 3
