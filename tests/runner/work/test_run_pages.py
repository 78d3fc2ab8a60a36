"""A story of events: after each, what is published with what was kept is byte for byte what is published from nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runner.exchange.published import Published, Publisher
from runner.model.errors import RunnerError
from runner.records.store.run_detail import detail
from runner.tasks.load import load_tasks
from runner.work import run_pages
from runner.work.publishing import Desk
from runner.work.run_pages import Kept
from tests.worlds import records
from tests.worlds.records import World

TEAMS = tuple(f"team-{n}" for n in range(6))


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World.make(tmp_path)
    records.write_project(made.config.root, scores="organiser")
    write(made, "datasets/dev/inputs/topics.jsonl", "", '{"qid": "1"}\n')
    for n, team in enumerate(TEAMS):
        made.scored(team, "y", mean=0.3 + n / 20, topics=6, datasets=("dev", "test"))
    return made


def write(world: World, name: str, old: str, new: str) -> None:
    path = world.config.root / "tasks/toy" / name
    path.write_text(path.read_text().replace(old, new))


def publish(
    world: World, folder: str, kept: Kept, teams: tuple[str, ...], closed: tuple[str, ...] = ()
) -> tuple[Published, list[str]]:
    """What is published in a folder, and the codes of what could not be made."""
    root, problems = world.config.root / folder, list[RunnerError]()
    tasks = load_tasks(world.config)[0]
    Desk(world.store, tasks, Publisher(root), problems.append, kept=kept).publish(teams, closed)
    return Published(root), [error.code for error in problems]


def pages(seen: Published, team: str) -> dict[str, str]:
    view = seen.view(f"team:{team}")
    return {one.path: view.text(one) for one in view.below("runs/")}


Step = Callable[[World, str, str], object]  # with an open run and a hidden one of team-0
RECORD = "attempts/1/run.json"


def damage(world: World, run: str) -> None:
    path = world.archive.root / "toy" / run / RECORD
    path.chmod(0o644)
    path.write_text("{" + path.read_text())


def repair(world: World, run: str) -> None:
    path = world.archive.root / "toy" / run / RECORD
    path.write_text(path.read_text()[1:])


def declare(world: World, run: str) -> None:
    place = world.config.home / "submissions" / run.rpartition(".")[0] / "bundle"
    place.mkdir(parents=True)
    (place / "ir-metadata.yml").write_text("research goal:\n  description: To find what is asked for\n")


STORY: dict[str, Step] = {
    "another run, which moves medians": lambda w, dev, test: w.scored(
        "team-1", "z", topics=6, datasets=("dev",)
    ),
    "a comment": lambda w, dev, test: w.commit(
        "run-commented", task="toy", run=dev, attempt=1, text="well done", to="team"
    ),
    "it is flagged": lambda w, dev, test: w.commit(
        "run-reviewed", task="toy", run=dev, attempt=1, state="flagged", to="team", reason="look"
    ),
    "a display name": lambda w, dev, test: w.commit(
        "display-name-set", team="team-0", software="", display_name="The First"
    ),
    "it was opened": lambda w, dev, test: w.commit(
        "run-released", task="toy", run=test, attempt=1, reason=""
    ),
    "scores are published": lambda w, dev, test: w.commit("dataset-published", task="toy", dataset="test"),
    "scores are closed again": lambda w, dev, test: w.commit(
        "dataset-unpublished", task="toy", dataset="test", reason="wrong judgments"
    ),
    "it was closed to its team again": lambda w, dev, test: w.commit(
        "run-closed", task="toy", run=test, attempt=1
    ),
    "what its team says of it": lambda w, dev, test: declare(w, dev),
    "a run fails": lambda w, dev, test: w.attempt(
        w.register("team-0", "bad"), dataset="dev", verdict="run-error", log=b"KeyError: x\n"
    ),
    "a record is damaged": lambda w, dev, test: damage(w, dev),
    "it is restored": lambda w, dev, test: repair(w, dev),
    "a later deadline": lambda w, dev, test: w.commit(
        "deadline-extended", task="toy", team="team-0", until="2027-01-01 12:00 UTC"
    ),
    "the data say something else": lambda w, dev, test: write(
        w, "datasets/dev/inputs/topics.jsonl", "qid", "number"
    ),
    "a dataset is open from now on": lambda w, dev, test: write(
        w, "task.yaml", '"visibility": "blinded"', '"visibility": "public"'
    ),
    "both are blinded from now on": lambda w, dev, test: write(
        w, "task.yaml", '"visibility": "public"', '"visibility": "blinded"'
    ),
    "a measure is another one": lambda w, dev, test: write(w, "task.yaml", '"RR"', '"P@5"'),
    "another run was withdrawn": lambda w, dev, test: w.commit(
        "submission-withdrawn", submission=w.scored("team-2", "v", topics=6, datasets=("dev",)), reason=""
    ),
    "it was withdrawn": lambda w, dev, test: w.commit(
        "submission-withdrawn", submission=dev.rpartition(".")[0], reason=""
    ),
}


@pytest.mark.slow
def test_what_is_published_after_each_event_is_what_is_published_from_nothing(world: World) -> None:
    teams, kept = TEAMS, Kept()
    view = publish(world, "kept", kept, teams)[0].view("team:team-0")
    dev, test = (
        next(one.title for one in view.below("runs/") if one.title.endswith(e)) for e in (".dev", ".test")
    )
    before = None
    for number, (what, step) in enumerate(STORY.items()):
        step(world, dev, test)
        if what == "a later deadline":
            teams = TEAMS[:-1]  # and an account was closed
        closed = TEAMS[len(teams) :]
        seen, problems = publish(world, "kept", kept, teams, closed)
        fresh, same = publish(world, f"anew-{number}", {}, teams, closed)
        assert (seen.pointer(), problems) == (fresh.pointer(), same), what
        assert ("E307" in problems) == (what == "a record is damaged"), what
        assert pages(seen, "team-0") == pages(fresh, "team-0"), what
        assert seen.pointer() != before, what
        before = seen.pointer()
    assert f"team:{TEAMS[-1]}" not in seen.pointer()


def test_a_run_of_others_changes_the_medians_and_nothing_else_is_made_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, read = Kept(), list[str]()
    before = pages(publish(world, "kept", kept, TEAMS)[0], "team-0")

    def watched(*of: object, **more: object) -> object:
        read.append(str(of[1]))
        return detail(*of, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(run_pages, "detail", watched)
    publish(world, "kept", kept, TEAMS)
    assert read == []
    new = world.scored("team-1", "z", mean=0.1, topics=6, datasets=("dev",))
    after = pages(publish(world, "kept", kept, TEAMS)[0], "team-0")
    assert set(read) == {f"{new}.dev", f"{new}.test"}, "it waits on the other dataset"
    changed = {path for path in before if before[path] != after[path]}
    assert changed == {path for path in before if path.endswith(".dev")} and changed
    assert all("median of 5" in before[path] and "median of 6" in after[path] for path in changed)


def test_a_page_that_was_damaged_is_made_again(world: World) -> None:
    kept = Kept()
    seen = publish(world, "kept", kept, TEAMS)[0]
    for one in seen.view("team:team-0").below("runs/"):
        place = world.config.root / "kept/files" / str(one.page)[:2] / str(one.page)
        place.chmod(0o644)
        place.write_bytes(b"cut")
    world.scored("team-1", "z", topics=6, datasets=("dev",))
    seen, problems = publish(world, "kept", kept, TEAMS)
    fresh, _ = publish(world, "anew", {}, TEAMS)
    assert not problems and seen.pointer() == fresh.pointer()
    dev = next(path for path in pages(fresh, "team-1") if path.endswith(".dev"))
    assert pages(seen, "team-1")[dev] == pages(fresh, "team-1")[dev]
