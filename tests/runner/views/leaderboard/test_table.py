"""Who ranks, who is listed below, and what is compared with what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runner.model.errors import RunnerError
from runner.model.task import Cell, Measure, Ranking, Task
from runner.views.audience import ORGANISER, PUBLIC, Audience
from runner.views.leaderboard.rows import LeaderboardTable
from runner.views.leaderboard.table import build
from tests.worlds import records
from tests.worlds.records import World, per_topic, with_scores


def board(world: World, task: Task | None = None, audience: Audience = ORGANISER) -> LeaderboardTable:
    return build(world.store, task or records.task(), "main", audience)


def ranking(table: LeaderboardTable) -> list[tuple[int, str]]:
    return [(r.rank, f"{r.team}/{r.software}") for r in table.rows]


def flat(value: float, n: int = 4) -> dict[str, float]:
    return {str(t): value for t in range(n)}


def test_equal_scores_share_a_rank_at_full_precision(world: World) -> None:
    for team, value in (("e", 0.25), ("d", 0.25000000000001), ("c", 0.5), ("b", 0.5), ("a", 0.75)):
        world.scored(team, "x", scores=flat(value))
    assert ranking(board(world)) == [(1, "a/x"), (2, "b/x"), (2, "c/x"), (4, "d/x"), (5, "e/x")]


def test_lower_can_be_better(world: World) -> None:
    task = records.task(direction="lower")
    world.scored("baselines", "bm25", scores=per_topic("base", 30, 0.6))
    world.scored("a", "x", scores=per_topic("a", 30, 0.2))
    world.scored("b", "x", scores=per_topic("b", 30, 0.95))
    table = board(world, task)
    assert ranking(table) == [(1, "a/x"), (2, "baselines/bm25"), (3, "b/x")]
    assert [r.comparison.mark if r.comparison else None for r in table.rows] == ["†", None, "‡"]


def test_the_latest_scored_submission_ranks_and_a_newer_failure_is_listed(world: World) -> None:
    world.scored("a", "x", version=1, scores=flat(0.9))
    second = world.scored("a", "x", version=2, scores=flat(0.4))
    third = world.register("a", "x", version=3)
    world.attempt(third, verdict="run-error", detail="exit code 1")
    world.register("a", "x", version=4)
    table = board(world)
    assert [(r.submission, r.values["ndcg"].mean) for r in table.rows] == [(second, 0.4)]
    assert [(u.submission, u.outcome, u.blame) for u in table.unranked] == [(third, "failed", "participant")]
    counts = {"ranked": 1, "unranked": 1, "superseded": 1, "withdrawn": 0, "pending": 1, "cancelled": 0}
    assert table.counts == counts


def test_an_older_failure_is_not_listed_and_a_withdrawn_submission_gives_way(world: World) -> None:
    world.attempt(world.register("a", "x", version=1), verdict="time-limit")
    good = world.scored("a", "x", version=2)
    newer = world.scored("a", "x", version=3)
    world.commit("submission-withdrawn", submission=newer)
    table = board(world)
    assert [r.submission for r in table.rows] == [good] and table.unranked == ()
    assert (table.counts["withdrawn"], table.counts["superseded"]) == (1, 1)


def test_softwares_of_a_team_rank_apart_and_baselines_are_marked(world: World) -> None:
    world.scored("a", "x")
    world.scored("a", "y")
    world.scored("baselines", "random")
    baselines = {
        f"{r.team}/{r.software}": r.baseline for r in board(world, records.task(baseline="a/y")).rows
    }
    assert baselines == {"a/x": False, "a/y": True, "baselines/random": True}


def test_held_and_invalid_runs_are_listed_with_blame(world: World) -> None:
    held = world.register("a", "x")
    for _ in range(3):
        world.attempt(held, verdict="platform-error", detail="engine gone")
    world.evaluation(world.attempt(world.register("b", "x")), status="invalid", codes={"F001": ("error", 1)})
    table = board(world)
    listed = [(u.team, u.outcome, u.blame) for u in table.unranked]
    assert listed == [("a", "held", "platform"), ("b", "invalid", "participant")]
    assert "engine gone" in table.unranked[0].reason
    assert "engine gone" not in board(world, audience=PUBLIC).unranked[0].reason


def test_several_cells_are_averaged_and_a_missing_one_keeps_a_run_out(world: World) -> None:
    task = records.task(cells=(Cell("dev"), Cell("test")), baseline=None)
    both = world.register("a", "x")
    for dataset, value in (("dev", 0.2), ("test", 0.6)):
        world.evaluation(world.attempt(both, dataset=dataset), {"ndcg": flat(value), "rr": flat(1.0)})
    half = world.register("b", "x")
    world.evaluation(world.attempt(half, dataset="dev"), {"ndcg": flat(0.9), "rr": flat(1.0)})
    world.attempt(half, dataset="test", verdict="memory-limit")
    world.scored("c", "x", datasets=("dev",))
    table = board(world, task)
    assert [(r.team, r.values["ndcg"].mean, r.values["ndcg"].low) for r in table.rows] == [("a", 0.4, None)]
    (row,) = table.rows
    assert (row.topics, row.covered, row.wall_seconds, len(row.runs)) == (8, 6, 3.0, 2)
    assert [(u.team, u.outcome) for u in table.unranked] == [("b", "failed")]
    assert table.counts["pending"] == 1


def test_a_submission_outside_the_tables_scenario_is_no_part_of_it(world: World) -> None:
    world.register("a", "x", scenarios=("other",))
    assert board(world).counts == dict.fromkeys(board(world).counts, 0)


def test_every_row_is_tested_against_the_baseline_and_marked(world: World) -> None:
    base = per_topic("base", 30, 0.5)
    world.scored("baselines", "bm25", scores=base)
    world.scored("a", "good", mean=0.8)
    world.scored("a", "same", scores={t: v + (0.01 if int(t) % 2 else -0.01) for t, v in base.items()})
    world.scored("a", "bad", mean=0.1)
    table = board(world)
    marks = {r.software: r.comparison.mark if r.comparison else None for r in table.rows}
    assert marks == {"good": "†", "same": "", "bad": "‡", "bm25": None}
    good = next(r.comparison for r in table.rows if r.software == "good")
    assert good is not None and good.topics == 30 and good.difference > 0.2
    assert good.p <= good.p_corrected <= 0.05
    assert table.test is not None and table.notes == ()


def test_notes_name_a_missing_baseline_few_topics_and_different_truths(world: World) -> None:
    world.scored("a", "x", topics=10)
    table = board(world)
    assert table.test is None and any("baselines/bm25" in note for note in table.notes)
    attempt = world.attempt(world.register("baselines", "bm25"))
    scores = per_topic("base", 10)
    world.evaluation(attempt, {"ndcg": scores, "rr": scores})
    (few,) = board(world).notes
    assert " 10 " in few
    world.evaluation(attempt, {"ndcg": scores, "rr": scores}, truths="2" * 64)
    assert len(board(world).notes) == 2


def test_a_run_scored_before_the_ranking_measure_existed_is_held(world: World) -> None:
    world.scored("a", "x")
    task = records.task()
    measures = {**task.measures, "new": Measure("new", "AP", "qrels.txt")}
    main = replace(task.tables["main"], rank_by=Ranking(("new",)), measures=("new", "ndcg"))
    table = board(world, replace(task, measures=measures, tables={"main": main}))
    assert table.rows == ()
    assert [(u.outcome, u.blame) for u in table.unranked] == [("held", "platform")]
    # The other way round a missing column is only a gap.
    wider = replace(task.tables["main"], measures=("ndcg", "new"))
    table = board(world, replace(task, measures=measures, tables={"main": wider}))
    assert list(table.rows[0].values) == ["ndcg"]


def test_scores_that_are_not_published_are_the_organisers(world: World) -> None:
    world.scored("a", "x")
    task = with_scores(records.task(), "test", "organiser")
    assert board(world, task).rows
    for audience in (PUBLIC, Audience("team", "a")):
        with pytest.raises(RunnerError) as caught:
            board(world, task, audience)
        assert caught.value.code == "E103"
    world.commit("dataset-published", task=records.TASK, dataset="test")
    (everybodys,), (organisers,) = board(world, task, PUBLIC).rows, board(world, task).rows
    assert (everybodys.time_step, everybodys.memory_step) == ("under 1 min", "under 256 MiB")
    figures = {"wall_seconds": 1.5, "memory_peak": 50 * 2**20, "memory_source": "exact"}
    assert replace(everybodys, time_step="", memory_step="", **figures) == organisers  # type: ignore[arg-type]


def test_unknown_tables_are_refused(world: World) -> None:
    with pytest.raises(RunnerError) as caught:
        build(world.store, records.task(), "nope\x1b", ORGANISER)
    assert caught.value.code == "E102"
    assert "\x1b" not in caught.value.what
    assert build(world.store, records.task(), None, ORGANISER).table == "main"
