"""Leaderboards for tools around TREC: what they hold, who gets scores by topic, and that the evaluator reads them back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.findings import Log
from evaluator.formats.leaderboards import read_board
from runner.model.errors import RunnerError
from runner.views.audience import ORGANISER
from runner.views.leaderboard.formats.trec import FORMATS, to_trec
from runner.views.leaderboard.table import LeaderboardTable, build
from tests.worlds import records
from tests.worlds.records import World


@pytest.fixture
def table(tmp_path: Path) -> LeaderboardTable:
    world = World.make(tmp_path)
    task = records.task()
    for team, software in (("alpha", "dense"), ("beta", "sparse")):
        id = world.register(team, software, cells=[["dev", "default"], ["test", "default"]])
        for cell in ("dev", "test"):
            values = {m: records.per_topic(f"{team}{cell}{m}", topics=5) for m in task.measures}
            world.evaluation(world.attempt(id, dataset=cell), values)
    return build(world.store, task, None, ORGANISER)


def topics(table: LeaderboardTable) -> dict[tuple[str, str], dict[str, float]]:
    first = table.columns[0].id
    return {(row.submission, first): {"a": 0.1 + 0.2, "b c": 0.5} for row in table.rows}


def test_every_format_has_the_same_values_and_the_evaluator_reads_them(
    table: LeaderboardTable, tmp_path: Path
) -> None:
    assert len(table.rows) >= 2
    found = []
    for form in sorted({*FORMATS} - {"trec_eval"}):
        path = tmp_path / f"board.{form}"
        path.write_text(to_trec(table, form, topics(table)))
        log = Log(path.name)
        board = read_board(path, form, log)
        assert not log.kept, [*map(str, log.sorted())]
        found.append(sorted((r.run, r.topic, r.measure, r.value) for r in board.rows()))
    assert found[0] == found[1] == found[2]
    values = {(run, measure): value for run, topic, measure, value in found[0] if topic == "all"}
    assert len(values) == len(table.rows) * len(table.columns)
    assert sorted(values.values(), key=str) == sorted(
        (v.mean for row in table.rows for v in row.values.values()), key=str
    )
    assert {topic for _, topic, _, _ in found[0]} == {"all", "a", "b_c"}


def test_without_topics_there_are_only_values_over_all(table: LeaderboardTable) -> None:
    rows = [json.loads(line) for line in to_trec(table, "jsonl").splitlines()]
    assert {row["topic_id"] for row in rows} == {"all"}
    assert {*rows[0]} == {"run_id", "topic_id", "measure", "value"}


def test_runs_have_their_tags_if_these_tell_them_apart(table: LeaderboardTable) -> None:
    def names(changed: LeaderboardTable) -> set[str]:
        return {line.split()[0] for line in to_trec(changed, "ir_measures").splitlines()}

    one, *others = table.rows
    tagged = [replace(row, tag=f"run {n}") for n, row in enumerate(table.rows)]
    assert names(replace(table, rows=tuple(tagged))) == {f"run_{n}" for n in range(len(table.rows))}
    same = [replace(row, tag="x") for row in table.rows]
    assert names(replace(table, rows=tuple(same))) == {f"{r.team}.{r.software}" for r in table.rows}
    assert names(replace(table, rows=(replace(one, tag=""), *others))) == {
        f"{r.team}.{r.software}" for r in table.rows
    }


def test_two_softwares_never_share_a_name(table: LeaderboardTable) -> None:
    first, second = (
        replace(row, tag="x", team=team, software=software)
        for row, (team, software) in zip(table.rows, (("a.b", "c"), ("a", "b.c")), strict=True)
    )
    lines = to_trec(replace(table, rows=(first, second)), "ir_measures").splitlines()
    assert {line.split()[0] for line in lines} == {first.submission, second.submission}


def test_trec_eval_holds_one_run(table: LeaderboardTable, tmp_path: Path) -> None:
    with pytest.raises(RunnerError) as caught:
        to_trec(table, "trec_eval")
    assert caught.value.code == "E101"
    path = tmp_path / "x"
    path.write_text(to_trec(replace(table, rows=table.rows[:1]), "trec_eval", topics(table)))
    assert path.read_text().startswith("runid\tall\t")
    board = read_board(path, "trec_eval", Log("x"))
    assert len(board.runs) == 1 and table.columns[0].id in board.measures


def test_a_measure_that_is_not_there_yet_is_left_out(table: LeaderboardTable) -> None:
    first = table.columns[0].id
    bare = replace(table.rows[0], values={})
    made = to_trec(replace(table, rows=(bare, *table.rows[1:])), "ir_measures")
    assert len([line for line in made.splitlines() if f" {first} " in line]) == len(table.rows) - 1
