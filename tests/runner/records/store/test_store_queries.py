"""What queries of the store give in a dictionary is in the order of its names, whatever happened first."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.records.store import decisions, queries
from tests.worlds.records import TASK, World

pytestmark = pytest.mark.usefixtures("either")


def test_what_is_shown_in_order_is_in_the_order_of_names_and_not_of_events(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    for dataset in ("test", "dev", "B", "a"):
        world.commit("dataset-paused", task=TASK, dataset=dataset, reason="wrong")
        world.commit("dataset-published", task=TASK, dataset=dataset)
        world.commit("display-name-set", team=dataset, display_name="X")
        world.commit("policy-changed", task=dataset, policy={}, changes=[])
    with world.store.read() as connection:
        publications = queries.publications_in(connection, TASK)
        names = queries.display_names_in(connection)
    named = [
        [dataset for _, dataset in queries.pauses(world.store)],
        list(publications),
        [team for team, _ in names],
        list(decisions.policies(world.store)),
    ]
    assert named == [["B", "a", "dev", "test"]] * 4
    world.store.close()
