"""Following a run that another process is executing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from runner.cli import context
from runner.views.audience import escape

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.records.store.connect import Store


def follow(where: Config, store: Store, run_id: str) -> None:
    """Print what the container of a running run writes, as it writes it, until it ends; for the organiser.

    Control characters are escaped. Returns at once when nothing of this run is running.
    """
    from runner.execution.attempt import engine_attempt

    number = store.archive.live().get(run_id)
    if number is None:
        return
    for line in context.engine(where).follow(engine_attempt(run_id, number)):
        sys.stdout.write(escape(line.decode("utf-8", "replace").rstrip("\r\n"), 64 * 1024) + "\n")
        sys.stdout.flush()
