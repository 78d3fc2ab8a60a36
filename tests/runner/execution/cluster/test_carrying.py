"""A host writes no file elsewhere, whatever an order calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.engines.lending import Rooms
from runner.execution.attempt import NotStoppable
from runner.execution.cluster.carrying import Hands
from runner.execution.cluster.order import EvaluationOrder, OrderedImage
from runner.execution.cluster.storage.cache import Cache
from runner.model.errors import PlatformError
from tests.runner.execution.cluster.test_evaluation_hosts import Delivered
from tests.runner.execution.test_pool import World


@pytest.mark.parametrize("name", ["{}/taken.txt", "../taken.txt", "a/taken.txt", ".."])
def test_an_order_names_files_of_an_output_alone(world: World, tmp_path: Path, name: str) -> None:
    made, engine = Delivered(world, tmp_path), world.engine
    store, file = made.store, name.format(tmp_path)
    content = store.put_bytes(b"of the order")
    image, folder = OrderedImage(made.evaluator.image.id), tmp_path / "host" / "work"
    folder.mkdir(parents=True)
    of, output = (made.evaluator, made.dataset, "full"), ((file, content),)
    order = EvaluationOrder("home/one", 1, made.run, 1, *of, file, False, output, image, {}, "asked")
    hands = Hands(engine, Cache(tmp_path / "cache", store, 1 << 20), store, store, Rooms(engine))
    with pytest.raises(PlatformError) as error:
        hands.carry_out(order, folder, NotStoppable())
    assert error.value.code == "E307" and not list(tmp_path.rglob("taken.txt"))
