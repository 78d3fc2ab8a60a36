"""Logs of a run, escaped: of the software for those who may see its words, of our containers for the organiser."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from runner.model.errors import RunnerError
from runner.views.audience import OF_THE_SOFTWARE, Audience, check_log, escape

if TYPE_CHECKING:
    from runner.model.task import Dataset
    from runner.records.store.run_detail import RunDetail

LOG_LINES = 50
_LOG_WINDOW = 64 * 1024
_LOG_NAME = re.compile(r"[a-z][a-z-]{0,39}\.(log|json)")


def log_lines(
    found: RunDetail,
    audience: Audience,
    dataset: Dataset,
    stream: str = "stdout",
    *,
    evaluator: bool = False,
    sidecar: str | None = None,
) -> Iterator[str]:
    """The whole log of a run, line by line and escaped: of the software, or for the organiser of the evaluator or of
    ``sidecar`` (a container of ours beside the software, see :func:`sidecar_logs`; then ``stream`` has no meaning).

    Raises E103 when this audience may not read it, E102 when there is none.
    """
    check_log(found, audience, dataset, evaluator=evaluator, sidecar=sidecar)
    source = found.newest if evaluator else found.attempt
    path = None if source is None else source.path / "logs" / f"{stream}.log"
    fix = "runner show tells how far the run is"
    if sidecar is not None:
        known = sidecar_logs(found)
        path = known.get(sidecar)
        fix = f"name one of {', '.join(known)}" if known else fix
    if path is None or not path.is_file():
        raise RunnerError("E102", f"{found.run.id} has no such log", fix=fix)
    return _stream(path)


def sidecar_logs(found: RunDetail) -> dict[str, Path]:
    """The logs of the containers of ours beside the software by name (``search``, ``driver``, …), and ``driver.json``."""
    folder = None if found.attempt is None else found.attempt.path / "logs"
    if folder is None or not folder.is_dir():
        return {}
    return {
        path.name.removesuffix(".log"): path
        for path in sorted(folder.iterdir())
        if _LOG_NAME.fullmatch(path.name) and path.name not in OF_THE_SOFTWARE and path.is_file()
    }


def last_lines(found: RunDetail) -> dict[str, list[str]]:
    """The last lines that the software wrote to ``stdout`` and ``stderr``; for those who may see its words."""
    if found.attempt is None:
        return {}
    return {name: _tail(found.attempt.log(name), LOG_LINES) for name in ("stdout", "stderr")}


def _tail(path: Path, lines: int) -> list[str]:
    if not path.is_file():
        return []
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - _LOG_WINDOW))
        data = stream.read(_LOG_WINDOW)
    if size > _LOG_WINDOW:
        data = data.partition(b"\n")[2] or data
    kept = deque(data.decode("utf-8", "replace").splitlines(), maxlen=lines)
    return [escape(line) for line in kept]


def _stream(path: Path) -> Iterator[str]:
    with path.open("rb") as stream:
        while line := stream.readline(_LOG_WINDOW):
            yield escape(line.decode("utf-8", "replace").rstrip("\r\n"), _LOG_WINDOW)
