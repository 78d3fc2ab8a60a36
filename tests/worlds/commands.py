"""Commands of ``runner`` in a project of made-up runs: what they print, and their error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from runner.cli.app import app
from runner.cli.main import load_commands
from runner.model.errors import RunnerError
from runner.records.store.queries import submissions
from tests.worlds.records import World


@dataclass(frozen=True)
class Answer:
    """What a command printed, and how it ended."""

    out: str
    err: str
    exit_code: int
    failed: RunnerError | None

    @property
    def error(self) -> RunnerError:
        """The error that it ended with, which it must have."""
        assert self.failed is not None, self.out + self.err
        return self.failed

    @property
    def text(self) -> str:
        """All that was told, the error too."""
        error = self.failed
        more = "" if error is None else f"{error.code} {error.what} {error.why} {error.fix}"
        return f"{self.out}{self.err}{more}"


@dataclass(frozen=True)
class At:
    """A project at ``root`` with the data directory of ``world``."""

    root: Path
    world: World

    def run(self, *words: str, env: Mapping[str, str] = {}) -> Answer:
        """Give a command."""
        load_commands()
        where = {"RUNNER_ROOT": str(self.root), "RUNNER_HOME": str(self.world.config.home), "COLUMNS": "200"}
        result = CliRunner().invoke(app, list(words), env={**where, **env})
        error = result.exception
        assert error is None or isinstance(error, RunnerError | SystemExit), error
        failed = error if isinstance(error, RunnerError) else None
        return Answer(result.stdout, result.stderr, result.exit_code, failed)

    def submission(self, team: str) -> str:
        """The last submission of a team."""
        self.world.store.catch_up()
        return [one.id for one in submissions(self.world.store) if one.team == team][-1]

    def run_of(self, team: str, dataset: str = "test") -> str:
        """The run of the last submission of a team on a dataset."""
        return f"{self.submission(team)}.{dataset}"
