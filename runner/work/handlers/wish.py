"""A request as its handler gets it, and what a handler is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.model.clock import Clock
from runner.model.config import Config
from runner.model.task import Task
from runner.records.store.connect import Store
from runner.work.accounts import Account


@dataclass(frozen=True)
class Wish:
    """A request as its handler gets it: rights and proof were checked, nothing else was. ``clock`` stands at its arrival;
    ``scratch`` is an empty folder that goes when the handler returns, ``payload`` a private copy of what was sent."""

    config: Config
    store: Store
    tasks: Mapping[str, Task]
    account: Account
    data: Mapping[str, Any]
    payload: Path | None
    clock: Clock
    scratch: Path


@dataclass(frozen=True)
class Handler:
    """``do`` returns fields of schemas/inbox-answer.schema.json; called again with the same wish it changes nothing more.
    It raises RunnerError: of the team's doing (exit codes 1 and 2) the request is refused, of ours it waits."""

    scope: str
    do: Callable[[Wish], dict[str, Any]]
