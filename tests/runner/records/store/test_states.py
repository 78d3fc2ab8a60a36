"""The digest of what the store holds about a run: another one with each event about it, and with none about other runs."""

from __future__ import annotations

from pathlib import Path

from runner.records.store import tables
from runner.records.store.queries import runs
from runner.records.store.states import FOLLOWING, States
from tests.worlds import records
from tests.worlds.records import World


def states(world: World) -> dict[str, str]:
    now = States(world.store)
    return {run.id: now.of(run.id, run.submission) for run in runs(world.store, [records.task()])}


def test_an_event_changes_the_digests_of_whom_it_is_about(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    one, other = (f"{world.scored(team, 'y')}.test" for team in ("alpha", "beta"))
    before = states(world)
    assert states(world) == before and before[one] != before[other]
    for event, data, both in (
        ("run-commented", {"run": one, "attempt": 1, "text": "well done", "to": "team"}, False),
        ("run-released", {"run": one, "attempt": 1, "reason": ""}, False),
        ("dataset-published", {"dataset": "test"}, True),
        ("key-drawn", {"key": "11" * 32}, True),
    ):
        world.commit(event, task="toy", **data)
        after = states(world)
        assert after[one] != before[one], event
        assert (after[other] != before[other]) == both, event
        before = after
    world.scored("gamma", "y")
    assert {name: states(world)[name] for name in (one, other)} == {n: before[n] for n in (one, other)}


def test_only_what_follows_from_sealed_evaluations_is_left_out() -> None:
    for table in FOLLOWING:
        assert {"run", "attempt", "evaluation"} <= set(table.c.keys()), table.name
    assert "manifest" in tables.evaluations.c and tables.evaluations not in FOLLOWING
