"""Who sees mean scores on a blinded dataset, and when: every view is walked through with a score that stands for itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from runner.api import Home
from runner.cli.app import app
from runner.cli.main import load_commands
from runner.model.errors import RunnerError
from runner.views.audience import ORGANISER, Audience
from tests.worlds import records
from tests.worlds.records import World

ALPHA, BETA, PUBLIC = "team:alpha", "team:beta", "public"
EVERYBODY = (ALPHA, BETA, PUBLIC)
OF_ALPHA, OF_BETA = "0.4242", "0.7373"  # their means
# Scores by topic, which are the bounds of the intervals, too.
BOUNDS = ("0.3242", "0.5242", "0.6373", "0.8373")


class Views:
    """A project whose blinded dataset has ``scores``, with a scored run of each team, and everything that can be looked at."""

    def __init__(self, root: Path, scores: str) -> None:
        load_commands()
        records.write_project(root, scores=scores)
        self.world, self.root = World.make(root), root
        self.runs = [
            f"{self.world.scored(team, 'x', scores={'1': mean - 0.1, '2': mean + 0.1})}.test"
            for team, mean in (("alpha", 0.4242), ("beta", 0.7373))
        ]

    def command(self, *words: str) -> str:
        """What a command prints, or its error."""
        where = {"RUNNER_ROOT": str(self.root), "RUNNER_HOME": str(self.world.config.home), "COLUMNS": "200"}
        result = CliRunner().invoke(app, list(words), env=where)
        error = result.exception
        assert error is None or isinstance(error, RunnerError | SystemExit), error
        told = f"{error.code} {error.what} {error.why} {error.fix}" if isinstance(error, RunnerError) else ""
        return result.output + told

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
        for frame in (home.runs, home.topic_scores, home.findings, lambda: home.leaderboard(records.TASK)):
            try:
                yield frame().to_csv()
            except RunnerError as error:
                yield f"{error.code} {error.what} {error.why} {error.fix}"


@pytest.mark.parametrize("scores", ["organiser", "team"])
def test_closed_scores_are_in_no_view(tmp_path: Path, scores: str) -> None:
    views = Views(tmp_path, scores)
    organisers = views.all(str(ORGANISER))
    assert all(figure in organisers for figure in (OF_ALPHA, OF_BETA, *BOUNDS)), "it would be seen"
    seen = {audience: views.all(audience) for audience in EVERYBODY}
    own = {ALPHA: {OF_ALPHA, *BOUNDS[:2]}, BETA: {OF_BETA, *BOUNDS[2:]}} if scores == "team" else {}
    for audience, text in seen.items():
        found = {figure for figure in (OF_ALPHA, OF_BETA, *BOUNDS) if figure in text}
        assert found == own.get(audience, set()), audience
        assert "E103" in text


def test_a_team_whose_own_scores_are_open_is_told_where_they_are(tmp_path: Path) -> None:
    views = Views(tmp_path, "team")
    assert "runner show RUN" in views.command("leaderboard", records.TASK, "--as", ALPHA)
    assert "runner show RUN" not in views.command("leaderboard", records.TASK, "--as", PUBLIC)
    shown = views.command("show", views.runs[0], "--as", ALPHA)
    assert OF_ALPHA in shown and "not shown to team:alpha" in shown


def test_published_scores_are_everybodys(tmp_path: Path) -> None:
    views = Views(tmp_path, "team")
    views.command("publish", records.TASK, "test")
    for audience in EVERYBODY:
        boards = views.boards(audience)
        assert OF_ALPHA in boards and OF_BETA in boards
