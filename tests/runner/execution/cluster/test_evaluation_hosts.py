"""Evaluations by hosts of a cluster of their own: truths go nowhere else, and whatever fails, every run is scored exactly once."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import schemas
from runner.execution.attempt import ended_evaluation, execute, ordered_evaluation
from runner.execution.cluster.joining import Wanted, host_of
from runner.execution.cluster.keys import home_of, key_for, key_of
from runner.execution.cluster.storage import taking
from runner.execution.cluster.storage.artefacts import Artefacts
from runner.execution.cluster.storage.stores import Stores
from runner.execution.cluster.storage.taking import take_in_evaluation
from runner.execution.contract import RunFiles
from runner.execution.coordinator import EvaluationRequest
from runner.execution.evaluation import EvaluationJob
from runner.execution.evaluator import Evaluator
from runner.execution.executors.base import Host
from runner.execution.plan import plan
from runner.execution.pool import Control
from runner.execution.schedule import Schedule, lane_of
from runner.model.errors import PlatformError
from runner.model.run import Selection
from runner.records.archive import Evaluation
from runner.records.files import walk
from tests.runner.execution.cluster.storage.test_taking_in import Change
from tests.runner.execution.cluster.test_hosts import at_both, carried_out, coordinated
from tests.runner.execution.test_coordinator import Notes
from tests.runner.execution.test_pool import EVALUATOR, World
from tests.worlds.cluster import PRUNED, Cluster, cluster


def scored_once(world: World, runs: list[str]) -> set[str]:
    """Each run has one attempt with one evaluation, which counts; returns where they were made. Nothing is left begun."""
    archive = world.store.archive
    for run in runs:
        (attempt,) = archive.attempts("mini", run)
        (evaluation,) = attempt.evaluations()
        assert evaluation.record()["status"] == "valid" and world.outcome(run).name == "scored"
    assert archive.live() == {} and not archive.sweep()
    records = [archive.attempt("mini", run, 1).evaluation(1).record() for run in runs]
    return {record["placed"]["host"] for record in records}


def contents(world: Cluster) -> list[bytes]:
    """What was laid down in the store of a cluster."""
    return [path.read_bytes() for path in (world.folder / "store").rglob("*") if path.is_file()]


@pytest.mark.slow
def test_software_and_evaluations_by_hosts_that_have_nothing_in_common(
    world: World, judges: Cluster, tmp_path: Path
) -> None:
    runs = [world.hand_in(f"team{n}", "slow") for n in range(4)]
    judges.hold()
    with cluster(tmp_path / "hosts", "h1", "h2") as hosts:
        carried_out(world, [judges, hosts], lambda: (at_both(hosts), at_both(judges)))
        assert scored_once(world, runs) == {"j1", "j2"}
        placed = {world.store.archive.attempt("mini", run, 1).record()["placed"]["host"] for run in runs}
        assert placed == {"h1", "h2"}
        truths = [path.read_bytes() for path in world.project.truths.rglob("*") if path.is_file()]
        assert truths and all(truth in contents(judges) for truth in truths)
        assert not any(truth in brought for truth in truths for brought in contents(hosts))
        for place in (hosts, judges):
            assert not list((place.folder / "store" / "attempts").glob("*/*")), "deliveries were taken in"
        here = str(world.project.root).encode()
        assert not any(here in brought for brought in contents(judges)), "no order says where truths lie here"


@pytest.mark.slow
def test_a_host_is_brought_an_evaluator_as_often_as_it_lacks_it(world: World, tmp_path: Path) -> None:
    """It was ordered one with the image is no word that it has it: that may not have come, or have been removed since."""
    runs = [world.hand_in(f"team{n}") for n in range(5)]  # more than it takes at once
    with cluster(tmp_path / "judges", PRUNED, role="evaluations") as judges:
        carried_out(world, judges)
    assert scored_once(world, runs) == {PRUNED}


def test_an_image_that_a_host_said_it_has_is_not_brought() -> None:
    said = {"steps": 2, "cpus": 2, "memory": 1e9, "images": ["sha256:ours", 3]}
    host = host_of("tls://host:1", said, Wanted("evaluations", "", Stores(Artefacts("memory://none"))))
    assert host.images == {"sha256:ours"} and not host.holds


@pytest.mark.slow
def test_evaluations_are_stopped_with_everything_and_made_at_the_next_start(
    world: World, judges: Cluster
) -> None:
    runs = [world.hand_in(f"team{n}") for n in range(2)]
    judges.hold()
    control = Control.of(world.project.config)
    with coordinated(world, Notes(), judges) as coordinator, ThreadPoolExecutor(1) as thread:
        todo = coordinator.plan(EvaluationRequest())
        thread.submit(lambda: (judges.begun(2), control.stop.set()))
        with pytest.raises(KeyboardInterrupt):
            coordinator.run(todo, EvaluationRequest(), control=control)
    assert all(not world.store.archive.attempt("mini", run, 1).evaluations() for run in runs)
    judges.go()
    carried_out(world, judges)
    assert scored_once(world, runs) <= {"j1", "j2"}


def test_a_run_that_failed_at_every_host_that_executes_is_tried_there_again(world: World) -> None:
    """Hosts that evaluate are no others for it."""
    run, desk = world.hand_in("team0"), world.desk()
    todo = plan(desk, Selection()).work
    failed = Host("h", 1e12, 8, 2, role="software", avoid={run: "it failed"})
    hosts = [failed, Host("j", 1e12, 8, 2, role="evaluations")]
    found = Schedule(todo, partial(lane_of, desk)).next(hosts, takes=lambda host, _: host is failed)
    assert found is not None and found[1] is failed


class Delivered:
    """An evaluation as a host makes it, which is delivered with some change."""

    def __init__(self, world: World, folder: Path) -> None:
        self.run = world.hand_in("alpha")
        self.world, self.folder = world, folder / "made"
        self.store = Artefacts(f"file://{folder / 'store'}")
        desk = world.desk()
        (planned,) = plan(desk, Selection()).work
        self.attempt = execute(desk.job(planned.run), world.engine, world.store.archive)
        task = desk.tasks["mini"]
        self.dataset = task.datasets["test"]
        self.evaluator = Evaluator.of(task, [self.dataset], world.engine, EVALUATOR)
        self.asked = ordered_evaluation(self.attempt, 1, self.evaluator, self.dataset)
        self.folder.mkdir()
        with self.attempt.output() as output:
            files = RunFiles(output, "run.txt")
            job = EvaluationJob(
                self.evaluator, self.dataset, "full", files, world.engine, "made", self.folder
            )
            self.ended = ended_evaluation(job.assess())

    @property
    def facts(self) -> dict[str, Any]:
        """What a manifest says beside the files."""
        return {"asked": schemas.digest(self.asked), "ended": self.ended, "host": "gone"}

    def deliver(self, change: Change) -> Evaluation:
        """Deliver and take in; what is begun is thrown away where it is not taken."""
        facts = self.facts
        change(self.folder, facts)
        self.store.deliver("home/one", dict(walk(self.folder)), facts, b"key")
        archive = self.world.store.archive
        staging = archive.begin_evaluation(self.attempt)
        try:
            what = (archive, self.attempt, self.asked, self.evaluator.task, "j1")
            return take_in_evaluation(self.store, "home/one", b"key", staging, *what)
        except BaseException:
            archive.discard(staging)
            raise


@pytest.mark.slow
@pytest.mark.parametrize("truths", ["the same", "others"])
def test_what_was_delivered_to_a_coordinator_that_was_killed_is_taken_in(
    world: World, judges: Cluster, tmp_path: Path, truths: str
) -> None:
    """Unless truths have changed since: then it is another evaluation."""
    made, key = Delivered(world, tmp_path), key_of(world.store.archive)
    name = f"{home_of(key)}/e~mini~{made.run}~1~0000abcd"
    store = Artefacts(judges.artefacts)
    store.deliver(name, dict(walk(made.folder)), made.facts, key_for(key, name))
    if truths == "others":
        (world.project.truths / "mini" / "test" / "qrels.txt").write_text("test-1 0 doc-01 1\n")
    carried_out(world, judges)
    where = scored_once(world, [made.run])
    assert where == {"gone"} if truths == "the same" else where <= {"j1", "j2"}
    assert store.delivered(home_of(key)) == []


def ended(**keys: Any) -> Change:
    """Deliver an end with other values under these keys."""

    def change(folder: Path, facts: dict[str, Any]) -> None:
        facts["ended"] = {**facts["ended"], **keys}

    return change


def measured(change: Callable[[dict[str, Any]], object]) -> Change:
    """Deliver a result whose measures were changed."""

    def delivered(folder: Path, facts: dict[str, Any]) -> None:
        result = json.loads((folder / "result.json").read_text())
        change(result["measures"])
        (folder / "result.json").write_text(json.dumps(result))

    return delivered


CODE = {"code": 2**70, "oom_killed": False, "killed": None, "start_error": None, "outside": None}
CHANGES: dict[str, Change] = {
    "of something else": lambda _, facts: facts.update(asked="0" * 64),
    "no end": lambda _, facts: facts.pop("ended"),
    "no scores": lambda folder, _: (folder / "scores.jsonl").unlink(),
    "a file more": lambda folder, _: (folder / "evaluation.json").write_text("{}"),
    "an unknown measure": measured(lambda measures: measures.update(made_up=measures["p_10"])),
    "a score without a mean": measured(lambda measures: measures["p_10"].update(value=1.7e308)),
    "another status": ended(status="invalid"),
    "results of an error": ended(status="error", fault="platform"),
    "an exit that is none": ended(exit={"code": "<script>"}),
    "a code beyond the store": ended(exit=CODE),
    "a limit of 400 digits": ended(detail={"kind": "evaluator-time", "limit": 10**400}),
    "no number": ended(detail={"kind": "evaluator-time", "limit": float("nan")}),
    "no text": ended(detail={"kind": "evaluator-said", "message": "\ud800"}),
    "no time": ended(started="yesterday"),
    "far ahead": ended(finished="9999-12-31T23:59:59Z"),
    "ended before it began": ended(finished="1999-12-31T23:59:59Z"),
    "one time only": ended(started=""),
}


def test_an_evaluation_that_was_asked_for_is_one_as_any_other(world: World, tmp_path: Path) -> None:
    made = Delivered(world, tmp_path)
    record = made.deliver(ended(truths_digest="0" * 64, message="see http://elsewhere")).record()
    assert record["truths_digest"] == made.asked["truths_digest"] and "elsewhere" not in record["message"]
    assert record["status"] == "valid" and record["placed"] == {"host": "j1"}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_evaluation_that_was_not_asked_for_is_not_taken(
    world: World, tmp_path: Path, change: Change
) -> None:
    made = Delivered(world, tmp_path)
    with pytest.raises(PlatformError) as error:
        made.deliver(change)
    assert error.value.code == "E313" and made.attempt.evaluations() == []


def test_an_evaluation_that_the_archive_does_not_read_is_not_taken(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Delivered(world, tmp_path)
    monkeypatch.setattr(taking, "MAX_JSON", 500)
    with pytest.raises(PlatformError) as error:
        made.deliver(lambda *_: None)
    assert error.value.code == "E313" and made.attempt.evaluations() == []
