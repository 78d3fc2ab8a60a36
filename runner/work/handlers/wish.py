"""A request as its handler gets it, and what a handler is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.engines.base import Engine
from runner.model.clock import Clock
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.model.task import Task
from runner.records.store.connect import Store
from runner.work.checks import Checks
from runner.work.members.accounts import Accounts
from runner.work.members.tokens import Account
from runner.work.news import Told


@dataclass(frozen=True)
class Wish:
    """A request as its handler gets it: rights, proof and the form of ``data`` were checked, nothing else was. ``clock`` stands at its arrival;
    ``scratch`` is an empty folder that goes when the handler returns, ``payload`` a private copy of what was sent, ``sha256`` its
    digest. ``token`` is the id of the one that signed it, ``request`` its own. ``checks`` looks at run files (None: they are taken as they are),
    ``engine`` gives the one that takes images in, ``told`` says what became of runs on hidden data (None: all of it is told)."""

    config: Config
    store: Store
    tasks: Mapping[str, Task]
    account: Account
    data: Mapping[str, Any]
    payload: Path | None
    clock: Clock
    scratch: Path
    accounts: Accounts
    token: str
    request: str
    sha256: str | None = None
    checks: Checks | None = None
    engine: Callable[[], Engine] | None = None
    told: Told | None = None

    def as_told(self) -> AbstractContextManager[Store]:
        """The store as the web tells it, for questions only: an answer shall not say earlier how a run on hidden data ended."""
        return nullcontext(self.store) if self.told is None else self.told.store(self.store, self.tasks)


class NotGood(RunnerError):
    """A refusal with ``more`` fields for its answer."""

    def __init__(self, error: RunnerError, more: Mapping[str, Any]) -> None:
        super().__init__(error.code, error.what, why=error.why, fix=error.fix)
        self.more = dict(more)


@dataclass(frozen=True)
class Handler:
    """``scope`` is what the token has to have; None: ``do`` looks itself. ``strangers``: who asks has no account yet, and proves
    only that the key in ``data`` is theirs; no event is made of it, since anybody could fill the log. ``do`` returns fields of schemas/inbox-answer.schema.json; called again with the same wish it changes nothing more.
    It raises RunnerError: of the team's doing (exit codes 1 and 2) the request is refused, of ours it waits; and ``Later``
    for what has to be looked at first. A :class:`NotGood` tells more than an error does. What is ``slow`` is done beside the clerk
    (:class:`runner.work.checks.Slot`), with a store of its own."""

    scope: str | None
    do: Callable[[Wish], dict[str, Any]]
    strangers: bool = False
    slow: bool = False
    takes_file: bool = False  # requests of other kinds have no payload
    schema: str = ""  # of ``data``, if it is not that of the kind
    takes_away: bool = False  # what others may have seen
