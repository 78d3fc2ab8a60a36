"""What is committed together: evaluations with one statement for each table, and each by itself where one of them cannot be read."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

from sqlalchemy import Table, event, select

from runner.records.archive import Evaluation
from runner.records.commit import commit
from runner.records.store import tables as t
from tests.worlds.records import World

SCORES = {"ndcg": {"1": 0.5, "2": 0.25}, "rr": {"1": 0.5, "2": 1.0}}
TABLES = (t.evaluations, t.measures, t.topic_scores)


def evaluated(world: World, count: int) -> list[Evaluation]:
    attempts = [world.attempt(world.register("alpha", f"x{number}")) for number in range(count)]
    return [world.evaluation(attempt, SCORES, commit=False) for attempt in attempts]


def rows(world: World, tables: tuple[Table, ...] = TABLES) -> list[list[Any]]:
    with world.store.read() as connection:
        return [sorted(map(repr, connection.execute(select(table)))) for table in tables]


def note_statements(world: World, statements: list[str]) -> None:
    def note(*args: Any) -> None:
        statements.append(args[2].split(" (")[0])

    event.listen(world.store.engine, "before_cursor_execute", note)


def test_evaluations_that_come_together_are_one_statement_of_each_table(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    found, said = evaluated(world, 5), list[str]()
    note_statements(world, said)
    commit(world.store, *found)
    assert [said.count(f"INSERT INTO {table.name}") for table in TABLES] == [1, 1, 1]
    together = rows(world)
    assert [len(one) for one in together] == [5, 10, 20]
    world.store.replay()  # which applies one event after the other
    assert rows(world) == together


def test_attempts_that_come_together_are_one_statement_of_each_table(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    known = world.register("alpha", "x0")
    world.attempt(known)
    found = [world.attempt(world.register("alpha", f"x{number}"), commit=False) for number in range(1, 5)]
    found.append(world.attempt(known, commit=False))
    said = list[str]()
    note_statements(world, said)
    commit(world.store, *found)
    assert [said.count(f"INSERT INTO {table.name}") for table in (t.runs, t.attempts)] == [1, 1]

    together = rows(world, (t.runs, t.attempts))
    assert [len(one) for one in together] == [5, 6]
    world.store.replay()  # which applies one event after the other
    assert rows(world, (t.runs, t.attempts)) == together


def test_one_that_cannot_be_read_costs_the_others_nothing(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    found = evaluated(world, 3)
    result = found[1].path / "result.json"
    result.chmod(0o644)
    result.write_text("{}")
    commit(world.store, *found)
    with world.store.read() as connection:
        query = select(t.evaluations.c.status).order_by(t.evaluations.c.seq)
        assert connection.execute(query).scalars().all() == ["valid", "error", "valid"]
    assert len(rows(world)[2]) == 8


def test_of_evaluations_that_come_together_one_result_is_in_memory_at_a_time(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    drawn = {"drawn": "a" * 64, "values": [0.25] * 20_000}
    wide = {"value": 0.5, "topics": 2, "covered": 2, "resamples": drawn}
    attempts = [world.attempt(world.register("alpha", f"x{number}")) for number in range(8)]
    first, second, *rest = (
        world.evaluation(attempt, SCORES, commit=False, more={"measures": {"m1": wide, "m2": wide}})
        for attempt in attempts
    )
    commit(world.store, first)

    def peak(*some: Evaluation) -> int:
        tracemalloc.start()
        try:
            commit(world.store, *some)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(*rest) < 3 * peak(second)
