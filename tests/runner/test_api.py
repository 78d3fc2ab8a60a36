"""The DataFrames for notebooks: their columns and dtypes, and that no audience finds more in them than at the command line."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from runner.api import Home, open_home
from runner.cli.app import app
from runner.cli.main import load_commands
from runner.model.errors import RunnerError
from runner.views.audience import ORGANISER
from runner.views.leaderboard import frames
from runner.views.leaderboard.export import export
from runner.views.leaderboard.table import build
from tests.worlds import records
from tests.worlds.records import World, write_project

CANARY = "CANARY"
ALPHA, BETA = "team:alpha", "team:beta"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Runs of two teams on public and hidden data, with a canary in all that the software and the evaluator wrote."""
    made = World.make(tmp_path_factory.mktemp("project"))
    write_project(made.config.root)
    made.scored("baselines", "bm25", mean=0.4, topics=5)
    made.scored("beta", "y", mean=0.6, topics=5, datasets=("dev", "test"))
    submission = made.register("alpha", "x")
    for dataset in ("dev", "test"):
        attempt = made.attempt(
            submission,
            dataset=dataset,
            warnings=[CANARY],
            refused=[(f"{CANARY}.txt", "a link")],
            log=CANARY.encode(),
        )
        made.evaluation(
            attempt,
            {m: {f"{CANARY}\x1b1": 0.5, "q2": 1.0} for m in records.MEASURES},
            codes={"F012": ("error", 17), "F018": ("warning", 3), CANARY: ("warning", 99)},
            message=CANARY,
        )
    made.attempt(made.register("alpha", "broken"), verdict="run-error", detail=f"exit code 77 {CANARY}")
    made.store.close()
    return made


def home(world: World, audience: str) -> Home:
    return open_home(world.config.home, audience)


def every_frame(seen: Home) -> dict[str, pd.DataFrame]:
    return {
        "leaderboard": seen.leaderboard(records.TASK),
        "runs": seen.runs(),
        "topic_scores": seen.topic_scores(),
        "findings": seen.findings(),
    }


def printed(world: World, *words: str) -> str:
    load_commands()
    where = {"RUNNER_ROOT": str(world.config.root), "RUNNER_HOME": str(world.config.home)}
    result = CliRunner().invoke(app, list(words), env=where)
    assert result.exit_code == 0, result.output
    return result.stdout


SPECS = {
    "leaderboard": frames.LEADERBOARD,
    "runs": frames.RUNS,
    "topic_scores": frames.TOPIC_SCORES,
    "findings": frames.FINDINGS,
}


@pytest.mark.parametrize("audience", ["organiser", ALPHA, "public"])
def test_frames_have_the_columns_and_dtypes_that_are_documented_empty_ones_too(
    world: World, audience: str
) -> None:
    for name, frame in every_frame(home(world, audience)).items():
        found = {column: str(dtype) for column, dtype in frame.dtypes.items()}
        wanted = {c.name: c.dtype for c in SPECS[name] if not c.name.startswith("<")}
        if name == "leaderboard":
            wanted |= {f"{m}{end}": frames.FLOAT for m in records.MEASURES for end in ("", "_low", "_high")}
        assert found == wanted, name
        assert (len(frame) == 0) == (audience == "public" and name != "leaderboard"), name


@pytest.mark.parametrize("name", SPECS)
def test_docstrings_name_every_column(name: str) -> None:
    doc = getattr(Home, name).__doc__
    assert all(f"| `{c.name}` | `{c.dtype}` | {c.says} |" in doc for c in SPECS[name])


@pytest.mark.parametrize("audience", ["organiser", ALPHA, BETA, "public"])
def test_the_runs_are_those_that_the_command_line_lists_with_the_same_figures(
    world: World, audience: str
) -> None:
    listed = json.loads(printed(world, "runs", "--json", "--as", audience))
    runs = home(world, audience).runs()
    assert list(runs["run"]) == [one["run"] for one in listed]
    for one, (_, row) in zip(listed, runs.iterrows(), strict=True):
        for name in ("wall_seconds", "cpu_seconds", "memory_peak"):
            assert (None if pd.isna(row[name]) else row[name]) == one["resources"][name]
        assert (row["outcome"], row["reason"]) == (one["outcome"]["name"], one["outcome"]["reason"])
        assert str(row["started"])[:10] == one["started"][:10]


@pytest.mark.parametrize("audience", ["organiser", ALPHA, BETA])
def test_findings_and_topics_are_those_that_the_command_line_shows(world: World, audience: str) -> None:
    seen = home(world, audience)
    findings, topics = seen.findings(), seen.topic_scores()
    for run in seen.runs()["run"]:
        shown = json.loads(printed(world, "show", run, "--json", "--as", audience))
        mine = findings[findings["run"] == run]
        told = {
            (code, one["severity"], one["count"], one["amount"])
            for code, one in shown["findings"]["codes"].items()
        }
        assert told == {
            (row.code, row.severity, *(None if pd.isna(v) else v for v in (row.count_, row.amount)))
            for row in mine.rename(columns={"count": "count_"}).itertuples()
        }
        by_topic = topics[topics["run"] == run]
        assert {
            measure: dict(zip(part["topic"], part["value"], strict=True))
            for measure, part in by_topic.groupby("measure")
        } == shown["topic_scores"]


def test_a_team_finds_nothing_of_what_its_software_wrote_on_hidden_data(world: World) -> None:
    for audience in (ALPHA, BETA, "public"):
        for name, frame in every_frame(home(world, audience)).items():
            hidden = frame if name == "leaderboard" else frame[frame["dataset"] == "test"]
            text = hidden.to_csv() + json.dumps(hidden.attrs)
            assert CANARY not in text and "exit code" not in text, (audience, name)
    mine = home(world, ALPHA)
    findings = mine.findings().set_index("run")
    assert set(mine.topic_scores()["dataset"]) == {"dev"}
    (hidden,) = findings[findings["dataset"] == "test"].itertuples()
    assert (hidden.code, hidden.amount) == ("F012", "many")
    runs = mine.runs()
    blinded = runs[runs["dataset"] == "test"]
    assert blinded["wall_seconds"].isna().all() and blinded["attempts"].isna().all()
    assert set(blinded["time_step"]) == {"under 1 min"}
    assert set(blinded["started"].dt.hour) == {0}
    assert "alpha" not in set(home(world, BETA).runs()["team"])


def test_no_text_holds_control_characters(world: World) -> None:
    for frame in every_frame(home(world, "organiser")).values():
        for name in frame.select_dtypes("string").columns:
            assert all(value.isprintable() for value in frame[name].dropna()), name


def test_a_leaderboard_is_closed_to_those_who_may_not_see_its_scores(tmp_path: Path) -> None:
    made = World.make(tmp_path)
    write_project(tmp_path, scores="organiser")
    made.scored("alpha", "x", topics=5)
    made.store.close()
    assert len(home(made, "organiser").leaderboard(records.TASK)) == 1
    for audience in (ALPHA, "public"):
        with pytest.raises(RunnerError) as caught:
            home(made, audience).leaderboard(records.TASK)
        assert caught.value.code == "E103"


def test_the_best_or_the_latest_counts_by_choice(tmp_path: Path) -> None:
    made = World.make(tmp_path)
    write_project(made.config.root)
    for version, value in ((1, 0.9), (2, 0.5)):
        made.scored("a", "x", version=version, scores={"1": value, "2": value})
    made.scored("a", "y", scores={"1": 0.6, "2": 0.6})
    made.store.close()
    of = home(made, "organiser")
    assert list(of.leaderboard(records.TASK)["ndcg"]) == [0.6, 0.5]
    best = of.leaderboard(records.TASK, unit="team", pick="best")
    assert list(best["ndcg"]) == [0.9] and list(best["pick"]) == ["best"] and list(best["unit"]) == ["team"]
    with pytest.raises(RunnerError) as caught:
        of.leaderboard(records.TASK, pick="worst")
    assert caught.value.code == "E101"


def test_a_leaderboard_has_the_figures_of_its_csv(world: World) -> None:
    board = home(world, "organiser").leaderboard(records.TASK)
    rows = list(csv.DictReader(io.StringIO(printed(world, "leaderboard", records.TASK, "--format", "csv"))))
    assert len(board) == len(rows) == 4
    for (_, row), line in zip(board.iterrows(), rows, strict=True):
        assert line["team"] == row["team"] and line["rank"] == (
            "" if pd.isna(row["rank"]) else str(row["rank"])
        )
        for name in ("ndcg", "ndcg_low", "ndcg_high", "wall_seconds"):
            assert line[name] == ("" if pd.isna(row[name]) else repr(float(row[name])))
    assert board.attrs["rank_by"] == "ndcg" and board.attrs["notes"] is not None
    assert board["runs"].iloc[0].split() == [f"{board['submission'].iloc[0]}.test"]


def test_a_measure_with_the_name_of_another_column_keeps_its_figures(tmp_path: Path) -> None:
    """A measure called p stood under the p-value of the comparison, in the CSV file too."""
    made = World.make(tmp_path)
    task = records.task()
    task = replace(
        task,
        measures={**task.measures, "p": replace(task.measures["rr"], id="p")},
        tables={"main": replace(task.tables["main"], measures=("ndcg", "p"))},
    )
    made.by = task
    for team, software, value in (("baselines", "bm25", 0.25), ("alpha", "x", 0.75)):
        values = {str(n): value for n in range(5)}
        made.evaluation(made.attempt(made.register(team, software)), {"ndcg": values, "p": values})
    table = build(made.store, task, "main", ORGANISER)
    frame = frames.leaderboard(table)
    assert list(frame["measure_p"]) == [0.75, 0.25]
    assert 0 < frame["p"].iloc[0] < 0.2
    head, first, *_ = csv.reader(io.StringIO(export(table, "csv")))
    measured, compared = [n for n, name in enumerate(head) if name == "p"]
    assert (float(first[measured]), float(first[compared])) == (0.75, frame["p"].iloc[0])


def test_only_a_data_directory_can_be_opened(tmp_path: Path, world: World) -> None:
    for path, audience, code in ((tmp_path, "organiser", "E102"), (world.config.home, "everybody", "E101")):
        with pytest.raises(RunnerError) as caught:
            open_home(path, audience)
        assert caught.value.code == code
    assert not list(tmp_path.iterdir())


def test_a_task_that_cannot_be_loaded_is_said_and_its_runs_stay_with_the_organiser(tmp_path: Path) -> None:
    made = World.make(tmp_path)
    write_project(tmp_path)
    made.scored("alpha", "x", datasets=("dev",), topics=5)
    made.store.close()
    (tmp_path / "tasks" / records.TASK / "task.yaml").write_text("not: a task")
    for audience, rows in (("organiser", 10), (ALPHA, 0)):
        with pytest.warns(UserWarning) as warned:
            assert len(home(made, audience).topic_scores()) == rows
        assert all("E401" in str(one.message) for one in warned)
