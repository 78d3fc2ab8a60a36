"""For notebooks: a data directory as pandas DataFrames, as one audience may see it.

    from runner.api import open_home

    home = open_home(".runner", "organiser")
    home.leaderboard("vaswani").head()

:func:`connect` gives the same of a server, for whom a token says.

The rules are those of the command line (:mod:`runner.views.audience`): what it would not print for the same
audience (option ``--as``) is in no frame. They decide what is shown, they are no lock: who can read the data directory can
read all of it.
"""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from runner.model import config
from runner.model.errors import PlatformError, RunnerError, no_such
from runner.model.task import Task
from runner.views.audience import Audience, not_for
from runner.views.leaderboard import frames

if TYPE_CHECKING:
    import pandas as pd

    from runner.exchange.client import Server
    from runner.model.run import Run
    from runner.records.store.connect import Store
    from runner.views.listing import ListedRun

__all__ = ["Home", "Remote", "connect", "open_home"]

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _with(*columns: frames.Column) -> Callable[[_Method], _Method]:
    """Append a table of the columns of the frame that a method returns to its docstring."""

    def documented(method: _Method) -> _Method:
        method.__doc__ = f"{inspect.cleandoc(method.__doc__ or '')}\n\n{frames.table_of(columns)}\n"
        return method

    return documented


def open_home(path: str | Path, audience: str | Audience, *, root: str | Path | None = None) -> Home:
    """The data directory ``path`` (``RUNNER_HOME``, by default ``.runner`` in the project) for one audience.

    Args:
        path: the data directory; it must be there.
        audience: ``organiser``, ``team:NAME`` or ``public``.
        root: the project with ``tasks/``; default: the nearest folder above ``path`` that has ``tasks/`` and
            ``submissions/``, or else what the command line would take (``RUNNER_ROOT``, the current folder).

    Raises RunnerError: E101 for another audience or without a project, E102 when there is no such data directory.
    """
    home = Path(path).absolute()
    who = audience if isinstance(audience, Audience) else Audience.parse(audience)
    if not (home / "events.jsonl").is_file():
        raise RunnerError(
            "E102",
            f"there is no data directory at {home}",
            why="It holds no events.jsonl.",
            fix="name the folder that RUNNER_HOME names, by default .runner in the project",
        )
    # The path says where; the environment says the rest, such as the database.
    rest = {key: value for key, value in os.environ.items() if key not in ("RUNNER_ROOT", "RUNNER_HOME")}
    if root is not None:
        return Home(replace(config.load(rest | {"RUNNER_ROOT": str(root)}), home=home), who)
    try:
        found = config.load(rest, home)
    except RunnerError:
        found = config.load()
    return Home(replace(found, home=home), who)


def connect(url: str, token: str | None = None) -> Remote:
    """The server at ``url``, for whom ``token`` says; without one for everybody.

    It has the methods of :class:`Home`, with the same columns and dtypes: of leaderboards those of the table as it is and of
    frozen rounds. An organiser is given what the front of a server may have: leaderboards as everybody sees them, and what
    teams see of their own runs. What has not changed since it was asked last is not sent again.

    Args:
        url: its address, such as ``https://task.example.org``; ``http`` only for this machine.
        token: as the organiser gave it (``proctor_…``).

    Raises RunnerError: E101 for another address, E105 for no right token, E309 when no such server answers.
    """
    from runner.exchange.client import Server

    server = Server(url, token)
    return Remote(server, server.get("me")["audience"] if token else "public")


class Home:
    """A data directory as one audience may see it. Each method reads it anew and returns a frame of its own.

    A task that cannot be loaded is left out, with a warning. Methods raise RunnerError: E306 or E307 when the store or
    the archive cannot be used.
    """

    def __init__(self, where: config.Config, audience: Audience) -> None:
        self.where = where
        self.audience = audience

    def __repr__(self) -> str:
        return f"Home({str(self.where.home)!r}, {str(self.audience)!r})"

    @_with(*frames.LEADERBOARD)
    def leaderboard(
        self,
        task: str,
        table: str | None = None,
        round: str | None = None,
        *,
        unit: str | None = None,
        pick: str | None = None,
        topics: str | None = None,
        against: str | None = None,
    ) -> pd.DataFrame:
        """A leaderboard: one row a ranked software (or team), then those that do not rank, with the reason.

        Args:
            task: a task's id.
            table: one of its tables; default: the first.
            round: one of its rounds, as it was frozen; default: everything up to now.
            unit: what a row is, ``software`` or ``team``; default: as the table says.
            pick: what counts of it in each cell, its ``latest``, ``best`` or ``chosen`` submission; default: as the table says.
            topics: over which part of split topics, ``public``, ``private`` or ``all``; default: those that are open, for the
                organiser the private ones.
            against: the row that all others are tested against, by its software or one of its runs; default: the table's baseline.

        Returns a frame whose ``attrs`` name the task, table, audience and ranking measure, and hold the notes that the
        leaderboard prints below its rows. A measure whose id is the name of another column stands as ``measure_ID``.

        Raises RunnerError: E101 for another unit or pick, E102 for an unknown task, table or round, E103 when its scores are not open to the audience.
        """
        from runner.tasks.load import load_task
        from runner.views.leaderboard.rounds import board
        from runner.views.leaderboard.table import build

        loaded = load_task(self.where, task)
        choices: dict[str, Any] = {"unit": unit, "pick": pick, "topics": topics, "against": against}
        with self._store() as store:
            running = list(store.archive.live())
            if round is None:
                built = build(store, loaded, table, self.audience, running=running, **choices)
            else:
                built = board(store, loaded, round, table, self.audience, running=running, **choices)
        return frames.leaderboard(built)

    @_with(*frames.RUNS)
    def runs(self, task: str | None = None) -> pd.DataFrame:
        """The runs of ``task`` (None: of all tasks): one row a run, also those that are still to be done."""
        with self._store() as store:
            return frames.runs(one.view for one in self._listed(store, task))

    @_with(*frames.TOPIC_SCORES)
    def topic_scores(self, task: str | None = None) -> pd.DataFrame:
        """Scores topic by topic in long form: one row a run, measure and topic.

        Only of runs whose single topics are open to the audience: for a team its own on public data, for the public none.
        Values by a definition that the task no longer has are left out.
        """
        from runner.records.store import results
        from runner.views.audience import topics_open
        from runner.views.redact import topics_escaped
        from runner.views.scores import topics_rounded

        tasks = {} if self.audience.kind == "organiser" else self._tasks()

        def shown(store: Store, run: Run) -> dict[str, dict[str, float]]:
            scores, task = results.all_topic_scores(store, run), tasks.get(run.submission.task)
            return topics_escaped(topics_rounded(scores, {} if task is None else task.decimals(scores)))

        with self._store() as store:
            return frames.topic_scores(
                (one.view, shown(store, one.run))
                for one in self._listed(store, task)
                if topics_open(one.run, self.audience, one.dataset, one.published)
            )

    @_with(*frames.FINDINGS)
    def findings(self, task: str | None = None) -> pd.DataFrame:
        """What the evaluator found in the output of runs: one row a run and code; on hidden data only the gravest one."""
        from runner.records.store import results
        from runner.views.redact import redact_findings

        with self._store() as store:
            return frames.findings(
                (
                    one.view,
                    redact_findings(
                        one.run, results.findings(store, one.run), self.audience, one.dataset, one.published
                    ),
                )
                for one in self._listed(store, task)
            )

    @_with(*frames.COMPARISON)
    def comparison(self, task: str, runs: Sequence[str]) -> pd.DataFrame:
        """Two runs compared: one row a measure, over the topics that both have.

        Args:
            task: a task's id.
            runs: two runs on one of its datasets, each by its id or the beginning of it.

        Returns a frame whose ``attrs`` name the task, dataset and runs, and hold the notes.

        Raises RunnerError: E101 for runs that cannot be compared, E102 for an unknown task or run and one without scores, E103 when scores by
        topic are not open to the audience.
        """
        from runner.tasks.load import load_task
        from runner.views.comparison.topics import check_count, compare_found, named
        from runner.views.listing import looked_up

        check_count(runs)
        loaded, tasks = load_task(self.where, task), self._tasks()
        with self._store() as store:
            ids = named((one.run for one in self._listed(store, loaded.id)), runs)
            found = [looked_up(store, tasks, self.audience, run)[:2] for run in ids]
            return frames.comparison(compare_found(found, loaded, self.audience).as_dict())

    @contextmanager
    def _store(self) -> Iterator[Store]:
        """The open store."""
        from runner.records.store.connect import open_store

        with open_store(self.where) as store:
            yield store

    def _listed(self, store: Store, task: str | None) -> Iterator[ListedRun]:
        """The runs of a task (None: of all) that the audience may know of."""
        from runner.views.listing import listed_runs

        for one in listed_runs(store, self._tasks(), self.audience):
            if task in (None, one.run.submission.task):
                yield one

    def _tasks(self) -> dict[str, Task]:
        """The tasks that can be loaded, by id."""
        from runner.tasks.load import load_tasks

        found, errors = load_tasks(self.where)
        for error in errors:
            warnings.warn(f"{error.code}: {error.what}", stacklevel=4)
        return found


class Remote:
    """A server as one audience may see it. Methods raise RunnerError: E105 when the token was taken away, E309 when nobody answers."""

    def __init__(self, server: Server, audience: str) -> None:
        self.server = server
        self.audience = audience

    def __repr__(self) -> str:
        return f"Remote({self.server.url!r}, {self.audience!r})"

    @_with(*frames.LEADERBOARD)
    def leaderboard(
        self,
        task: str,
        table: str | None = None,
        round: str | None = None,
        *,
        unit: str | None = None,
        pick: str | None = None,
        topics: str | None = None,
        against: str | None = None,
    ) -> pd.DataFrame:
        """As :meth:`Home.leaderboard`: of frozen rounds, and with the ``unit``, ``pick`` and ``topics`` of the table alone.

        Raises RunnerError: E101 for another unit, pick or topics, or a row that a round was not tested against, E102 for an unknown task, table or round, or one that is not
        frozen, E103 when its scores are not open to the audience.
        """
        from runner.views.leaderboard.comparing import row_of
        from runner.views.leaderboard.export import from_dict
        from runner.views.leaderboard.rows import software_of

        of = self.server.get("tasks", task)
        where, name = _place(of, task, table, round)
        if name not in where["open"]:
            raise not_for(Audience.parse(self.audience), f"the table {name} of {task}")
        path = ("tasks", task, *where["path"], "boards", name)
        data = self.server.get(*path)
        self._check(data, "leaderboard")
        of_team = self.audience.startswith("team:")  # to whom boards are shown that are everybody's
        made = from_dict(data, self.audience if of_team else data["audience"])
        parts = set(made.parts.values())
        has = {"unit": made.unit, "pick": made.pick, "topics": ", ".join(sorted(parts)) or "all"}
        for choice, asked in {"unit": unit, "pick": pick, "topics": topics}.items():
            if asked not in (None, has[choice]):
                what, why = (
                    f"the server has no {choice}={asked} of it",
                    f"It was published with {has[choice]}.",
                )
                raise RunnerError("E101", what, why=why, fix=f"leave {choice} away")
        if against is not None:
            if round is not None:
                what, why = f"the round {round} is frozen", "Its tests were kept with it."
                raise RunnerError("E101", what, why=why, fix="leave against away")
            row = software_of(made.rows[row_of(made.rows, against)])
            made = from_dict(self.server.get(*path, against=row), made.audience)
        return frames.leaderboard(made)

    @_with(*frames.RUNS)
    def runs(self, task: str | None = None) -> pd.DataFrame:
        """As :meth:`Home.runs`."""
        return frames.runs(self._listed(task))

    @_with(*frames.TOPIC_SCORES)
    def topic_scores(self, task: str | None = None) -> pd.DataFrame:
        """As :meth:`Home.topic_scores`; asks for each run."""
        return frames.topic_scores((one, found["topic_scores"]) for one, found in self._each(task))

    @_with(*frames.FINDINGS)
    def findings(self, task: str | None = None) -> pd.DataFrame:
        """As :meth:`Home.findings`; asks for each run."""
        return frames.findings((one, found["findings"]["codes"]) for one, found in self._each(task))

    @_with(*frames.COMPARISON)
    def comparison(self, task: str, runs: Sequence[str]) -> pd.DataFrame:
        """As :meth:`Home.comparison`, of runs by their whole ids; a server tests by resamples where both runs have
        the same, with an interval, else by signs.

        Raises RunnerError: E101 for runs that cannot be compared, E102 for an unknown task or run.
        """
        data = self.server.get("tasks", task, "comparison", run=list(runs))
        self._check(data, "comparison")
        return frames.comparison(data)

    def _check(self, data: Any, schema: str) -> None:
        """Whether the server gave what this program knows. Raises E309."""
        import schemas

        if schemas.validate(data, schema, more_keys=True):
            what, fix = f"{self.server.url} is of another version", "use the version of the server here"
            raise PlatformError(what, fix=fix, code="E309")

    def _listed(self, task: str | None) -> Iterator[dict[str, Any]]:
        return self.server.all("runs", **({} if task is None else {"task": task}))

    def _each(self, task: str | None) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Each run in its row, and all that may be seen of it."""
        for one in self._listed(task):
            try:
                yield one, self.server.get("runs", one["run"])
            except RunnerError as error:  # what is damaged there has a row alone
                if error.code != "E102":
                    raise


def _place(
    of: Mapping[str, Any], task: str, table: str | None, round: str | None
) -> tuple[dict[str, Any], str]:
    """Where a server has the tables of a task or round, and which of them is meant. Raises E102."""
    known = [one["id"] for one in of["tables"]]
    where: dict[str, Any] = {"path": (), "open": [one["id"] for one in of["boards"]]}
    if round is not None:
        dates = [one["id"] for one in of["dates"]["rounds"]]
        if round not in dates:
            raise no_such("round", round, dates, of=task)
        found = [one["tables"] for one in of["rounds"] if one["id"] == round]
        if not found:
            what, why = f"the server has no round {round} of {task}", "It is not frozen yet, or not open."
            raise RunnerError("E102", what, why=why, fix="come again once it is frozen")
        where = {"path": ("rounds", round), "open": found[0]}
    name = table if table is not None else known[0]
    if name not in known:
        raise no_such("table", name, known, of=task)
    return where, name
