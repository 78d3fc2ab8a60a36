"""What the pool asks of many runs at once, and several things that are committed together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from runner.model.errors import RunnerError
from runner.records.commit import commit, commit_orphans
from runner.records.store.queries import find_run, find_runs
from tests.worlds import records
from tests.worlds.records import World

pytestmark = pytest.mark.usefixtures("either")


def statements(world: World, do: Callable[[], Any]) -> int:
    """How many statements the database was sent meanwhile."""
    sent: list[str] = []

    def heard(_: object, __: object, statement: str, *___: object) -> None:
        sent.append(statement)

    sa.event.listen(world.store.engine, "before_cursor_execute", heard)
    try:
        do()
    finally:
        sa.event.remove(world.store.engine, "before_cursor_execute", heard)
    return len(sent)


def attempts(world: World, number: int) -> Sequence[Any]:
    """Sealed attempts of as many softwares, none of them committed."""
    softwares = [world.register("alpha" if n % 2 else "beta", f"s{n}") for n in range(number)]
    return [world.attempt(software, commit=False) for software in softwares]


def test_many_runs_are_found_by_as_few_questions_as_one(tmp_path: Path) -> None:
    world, tasks = World.make(tmp_path), [records.task()]
    sealed = attempts(world, 12)
    commit(world.store, *sealed)
    ids = [one.run_id for one in sealed]
    assert find_runs(world.store, ids, tasks) == {id: find_run(world.store, id, tasks) for id in ids}
    one, many = (statements(world, lambda: find_runs(world.store, ids[:n], tasks)) for n in (1, 12))
    assert one == many
    with pytest.raises(RunnerError) as caught:
        find_runs(world.store, [*ids, "nobody.x.0.test"], tasks)
    assert caught.value.code == "E102" and "nobody.x.0.test" in caught.value.what
    world.store.close()


def test_what_ended_together_is_committed_by_one_transaction(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    sealed = attempts(world, 12)
    before = world.store.log.end()
    # What one takes, and a savepoint: what is written of attempts (whether their runs are known, runs, attempts) is written together.
    one = statements(world, lambda: commit(world.store, sealed[0]))
    assert statements(world, lambda: commit(world.store, *sealed[1:])) == one + 2
    assert [event.data["run"] for event, _ in world.store.log.after(before)] == [one.run_id for one in sealed]
    assert commit_orphans(world.store) == 0
    world.store.close()


def test_a_refused_batch_is_committed_after_its_repair(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    good, bad = attempts(world, 2)
    record = bad.path / "run.json"
    text = record.read_bytes()
    record.chmod(0o644)
    record.write_bytes(b"no JSON")
    before = world.store.log.end()
    with pytest.raises(RunnerError, check=lambda error: error.code == "E307"):
        commit(world.store, good, bad)
    assert world.store.log.end() == before
    record.write_bytes(text)
    assert commit_orphans(world.store) == 2
    for one in (good, bad):
        assert find_run(world.store, one.run_id).outcome.attempt == 1
    world.store.close()
