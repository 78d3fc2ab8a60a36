"""Orders at a host: servers need no file of the task, and no order names files outside its output."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.engines.fake import Mounts, identity
from runner.engines.lending import Rooms
from runner.execution.cluster import carrying
from runner.execution.cluster.carrying import Hands
from runner.execution.cluster.evaluations import Evaluations
from runner.execution.cluster.order import Bringing, EvaluationOrder, Order, OrderedImage, load
from runner.execution.cluster.roles import job_travels
from runner.execution.cluster.software import Software
from runner.execution.cluster.storage.artefacts import Artefacts
from runner.execution.cluster.storage.cache import Cache
from runner.execution.cluster.storage.stores import Stores
from runner.execution.executors.base import Host
from runner.execution.executors.local import LocalExecutor
from runner.execution.job import Job
from runner.execution.plan import Planned, plan
from runner.execution.pool import Control
from runner.execution.stop import Stop
from runner.execution.workflows.beside import Sizes, with_files
from runner.model.errors import PlatformError, RunnerError
from runner.model.run import Selection
from runner.model.sidecars import Service
from runner.tasks.services import services_of_run
from tests.runner.execution.cluster.test_evaluation_hosts import Delivered
from tests.runner.execution.test_pool import World
from tests.worlds.interactive_jobs import OURS, engine, make_job, serves, stays, writes


def test_a_server_is_executed_where_no_file_of_its_task_is(tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    def search(mounts: Mounts) -> None:
        seen["search"] = (mounts["/data"] / "arguments.jsonl").read_text()
        serves(mounts)

    def user(mounts: Mounts) -> None:
        seen["user"] = (mounts["/data"] / "arguments.jsonl").read_text()
        stays(mounts)

    def driver(mounts: Mounts) -> None:
        seen["driver"] = (mounts["/inputs"] / "claims.jsonl").read_text()
        writes()(mounts)

    host = engine(search=search, user=user, driver=driver)
    folder, store = tmp_path / "task", Artefacts(f"file://{tmp_path / 'store'}")
    job = with_files(make_job(folder))
    data = Bringing(store).data(job)
    assert job.image is not None
    beside = (OrderedImage(identity(OURS)),)
    made = Order("home/one~1", 1, job, None, OrderedImage(job.image), data, beside).dump()
    assert str(folder).encode() not in made, "nothing of the coordinator's folders is told"
    arguments, claims = (
        path.read_text() for path in (folder / "arguments/arguments.jsonl", folder / "inputs/claims.jsonl")
    )
    sizes = Sizes.of(job)
    shutil.rmtree(folder)
    order = load(made)
    assert isinstance(order, Order) and Sizes.of(order.job) == sizes
    (work := tmp_path / "host" / "work").mkdir(parents=True)
    hands = Hands(host, Cache(tmp_path / "cache", store, 1 << 20), store, store, Rooms(host))
    record = hands.carry_out(order, work, Stop())["record"]
    assert record["verdict"]["name"] == "ok", record
    assert seen == {"search": arguments, "user": arguments, "driver": claims}
    output = {one["name"] for one in record["output"]["files"]}
    assert output == {"simulations.jsonl", "turns.jsonl", "served.jsonl"}
    assert json.loads((work / "logs" / "driver.json").read_text())["ready"]


def test_a_newer_image_beside_servers_takes_the_name_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What loses its name can be cleaned up, as the images of ours that are built anew elsewhere."""
    host, kept = engine(), dict[str, str]()
    monkeypatch.setattr(host, "keep", lambda image, name: kept.update({name: image.id}))
    monkeypatch.setattr(carrying, "perform", lambda *_, **__: {})
    store = Artefacts(f"file://{tmp_path / 'store'}")
    hands = Hands(host, Cache(tmp_path / "cache", store, 1 << 20), store, store, Rooms(host))
    job = with_files(make_job(tmp_path / "task"))
    assert job.image is not None
    # Any other image that is there stands for another version of ours, and for one that a task names.
    ours, other = identity(OURS), job.image

    def carry_out(job: Job, *beside: str) -> None:
        images = tuple(OrderedImage(one) for one in beside)
        order = Order("home/one~1", 1, job, None, OrderedImage(other), {}, images)
        hands.carry_out(order, tmp_path, Stop())

    carry_out(job, ours)
    before = {**kept}
    carry_out(job, other)
    assert kept.keys() == before.keys() and ours in before.values() and ours not in kept.values()
    services = {**job.services, "user": replace(job.services["user"], image=other)}
    carry_out(replace(job, services=services), ours, other)
    assert sorted(kept.values()) == sorted([ours, other, other]), "those of services have names of their own"


@pytest.mark.parametrize(("llm", "travels"), [(False, True), (True, False)])
def test_software_stays_where_keys_are_that_models_are_asked_with(
    tmp_path: Path, llm: bool, travels: bool
) -> None:
    job = make_job(tmp_path)
    options = {"llm": {"model": "m"}} if llm else {}
    services = {
        **job.services,
        "user": replace(job.services["user"], options=options),
        "gateway": Service("gateway", options={"models": ["m"]}),
    }
    assert job_travels("interactive", services_of_run(services)) is travels
    assert job_travels("batch", {}) and not job_travels("upload", {})


def local(world: World, **task: Any) -> tuple[Planned, LocalExecutor]:
    """A run that is planned, and the executor of the machine that gives it away; ``task``: what is another with its task."""
    world.hand_in("team0")
    desk = world.desk()
    (planned,) = plan(desk, Selection()).work
    desk = replace(desk, tasks={"mini": replace(desk.tasks["mini"], **task)})
    return planned, LocalExecutor(world.engine, desk, Control.of(world.project.config))


def test_software_that_stays_is_not_prepared_for_a_host_that_was_chosen_in_error(
    world: World, tmp_path: Path
) -> None:
    store = Artefacts(f"file://{tmp_path / 'store'}")
    planned, here = local(world)
    world.engine.script[OURS] = stays
    services = {"gateway": Service("gateway", options={"models": ["m"]})}
    job = here.workspace.job(planned.run)
    job = replace(job, workflow="interactive", services=services, sidecars=identity(OURS))
    host = Host("h", 1e12, 8, 2, role="software")
    with pytest.raises(RunnerError) as caught:
        Software(here, Stores(store)).prepare(replace(planned, job=job), host)
    assert caught.value.code == "E101" and "team0/one" in caught.value.what and caught.value.fix
    assert not world.store.archive.live() and not [*(tmp_path / "store").rglob("*")]


def test_an_evaluation_that_stays_is_not_prepared_for_a_host_that_was_chosen_in_error(
    world: World, tmp_path: Path
) -> None:
    store = Artefacts(f"file://{tmp_path / 'store'}")
    gateway = {"gateway": Service("gateway", options={"models": ["m"]})}
    planned, here = local(world, evaluator_gateway=True, services=gateway)
    planned = replace(planned, step="evaluate")
    with pytest.raises(RunnerError) as caught:
        Evaluations(here, Stores(store)).prepare(planned, Host("h", 1e12, 8, 2, role="evaluations"))
    assert caught.value.code == "E101" and planned.run.id in caught.value.what and caught.value.fix
    assert not world.store.archive.live() and not [*(tmp_path / "store").rglob("*")]


@pytest.mark.parametrize("name", ["{}/taken.txt", "../taken.txt", "a/taken.txt", ".."])
def test_an_order_names_files_of_an_output_alone(world: World, tmp_path: Path, name: str) -> None:
    made, engine = Delivered(world, tmp_path), world.engine
    store, file = made.store, name.format(tmp_path)
    content = store.put(b"of the order")
    image, folder = OrderedImage(made.evaluator.image.id), tmp_path / "host" / "work"
    folder.mkdir(parents=True)
    of, output = (made.evaluator, made.dataset, "full"), ((file, content),)
    order = EvaluationOrder("home/one", 1, made.run, 1, *of, file, False, output, image, {}, "asked")
    hands = Hands(engine, Cache(tmp_path / "cache", store, 1 << 20), store, store, Rooms(engine))
    with pytest.raises(PlatformError) as error:
        hands.carry_out(order, folder, Stop())
    assert error.value.code == "E307" and not list(tmp_path.rglob("taken.txt"))
