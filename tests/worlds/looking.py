"""A project whose every view can be looked at by each audience, with a scored run of two teams on a blinded dataset."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from runner.api import Home
from runner.cli.app import app
from runner.cli.main import load_commands
from runner.model.errors import RunnerError
from runner.records.deadlines import publish_due
from runner.records.store.connect import Store
from runner.tasks.load import load_task
from runner.views.audience import Audience
from tests.worlds import records
from tests.worlds.records import World

ALPHA, BETA, PUBLIC = "team:alpha", "team:beta", "public"
EVERYBODY = (ALPHA, BETA, PUBLIC)
OF_ALPHA, OF_BETA = "0.4242", "0.7373"  # their means
DUE = "2026-02-01 12:00 UTC"


class Views:
    """A project whose blinded dataset has ``scores``, with a scored run of each team, and everything that can be looked at."""

    def __init__(
        self,
        root: Path,
        scores: str,
        *,
        by_topic: Mapping[str, Mapping[str, float]] | None = None,
        task: Mapping[str, Any] | None = None,
        **dataset: str,
    ) -> None:
        load_commands()
        records.write_project(root, scores=scores)
        path = root / "tasks" / records.TASK / "task.yaml"
        data = json.loads(path.read_text()) | dict(task or {})
        data["datasets"][1] |= dataset
        path.write_text(json.dumps(data))
        self.world, self.root = World.make(root), root
        means = {"alpha": 0.4242, "beta": 0.7373}
        default = {team: {"1": mean - 0.1, "2": mean + 0.1} for team, mean in means.items()}
        given = default if by_topic is None else by_topic
        self.runs = [f"{self.world.scored(team, 'x', scores=own)}.test" for team, own in given.items()]

    def command(self, *words: str) -> str:
        """What a command prints, or its error."""
        where = {"RUNNER_ROOT": str(self.root), "RUNNER_HOME": str(self.world.config.home), "COLUMNS": "200"}
        result = CliRunner().invoke(app, list(words), env=where)
        error = result.exception
        assert error is None or isinstance(error, RunnerError | SystemExit), error
        told = f"{error.code} {error.what} {error.why} {error.fix}" if isinstance(error, RunnerError) else ""
        return result.output + told

    def publish_due(self, at: str) -> list[str]:
        """What the coordinator publishes when its clock says ``at``: the datasets."""
        self.world.clock.at = datetime.fromisoformat(at)
        with self.home() as store:
            task = load_task(self.world.config, records.TASK)
            return [name for _, name, _ in publish_due(store, [task], self.world.clock)]

    @contextmanager
    def home(self) -> Iterator[Store]:
        """The store with the world's clock, up to date with what commands wrote."""
        self.world.store.catch_up()
        yield self.world.store

    def open(self) -> bool:
        """Whether other teams and the public see scores."""
        board = ("leaderboard", records.TASK, "--as")
        seen = {OF_ALPHA in self.command(*board, audience) for audience in (BETA, PUBLIC)}
        assert len(seen) == 1
        return seen.pop()

    def boards(self, audience: str) -> str:
        """The leaderboard in every format."""
        formats = ("table", "json", "csv", "markdown", "latex", "html", "tira", "trec_eval", "ir_measures")
        return "".join(
            self.command("leaderboard", records.TASK, "--as", audience, "--format", form, *more)
            for form in formats
            for more in ((), ("--unit", "team", "--pick", "best"))
        )

    def all(self, audience: str) -> str:
        """Everything that can be had by ``audience``."""
        return "".join(self._all(audience))

    def _all(self, audience: str) -> Iterator[str]:
        yield self.boards(audience)
        for form in ((), ("--json",)):
            yield self.command("runs", "--as", audience, *form)
            yield self.command("compare", *self.runs, "--as", audience, *form)
        for number, run in enumerate(self.runs):
            for form in ((), ("--json",), ("--format", "html"), ("--topics",)):
                yield self.command("show", run, "--as", audience, *form)
            yield self.command("logs", run, "--as", audience)
            yield self.command("logs", run, "--evaluator", "--as", audience)
            taken = self.root / "taken" / audience / str(number)
            yield self.command("export", run, str(taken), "--as", audience)
            yield from (file.read_text(errors="replace") for file in taken.rglob("*") if file.is_file())
        home = Home(self.world.config, Audience.parse(audience))
        for frame in (
            *(home.runs, home.topic_scores, home.findings),
            *(lambda: home.leaderboard(records.TASK), lambda: home.comparison(records.TASK, self.runs)),
        ):
            try:
                yield frame().to_csv()
            except RunnerError as error:
                yield f"{error.code} {error.what} {error.why} {error.fix}"
