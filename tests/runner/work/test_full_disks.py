"""Disks that are full under work and front: hand-ins are kept or refused whole, nothing is charged twice, and it goes on afterwards."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from runner.exchange.access import Token
from runner.exchange.inbox import Inbox, answered
from runner.exchange.published import Published
from runner.records.store.charges import quota
from tests.e2e.test_uploads_scored import run_text
from tests.runner.execution.test_pool import World
from tests.runner.work.test_loop import ask, at_work, outcomes, team, until
from tests.worlds.mini import Project
from tests.worlds.site import serving
from tests.worlds.small_disk import SmallDisk, small_disk

FIELDS = {"software": "one", "dataset": "dev"}


class Disks(ExitStack):
    """A project whose data directory, ``published/``, ``inbox/`` and front's state are small disks of their own."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.project = Project(root / "project", root / "home", root / "truths")
        self.project.write_task(uploads=True)
        self.state_folder = root / "state"

    def mount(self) -> None:
        config = self.project.config
        self.home = self.enter_context(small_disk(config.home, 64))
        self.published = self.enter_context(small_disk(config.published, 16))
        self.inbox = self.enter_context(small_disk(config.inbox, 16))
        self.state = self.enter_context(small_disk(self.state_folder, 16))
        self.world = World(self.project)
        self.callback(self.world.close)

    def events(self, kind: str) -> int:
        return sum(event.type == kind for event in self.world.store.log)

    def used(self) -> int:
        use = quota(self.world.store, self.world.tasks["mini"], "alpha")
        return use.used + use.open


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[Disks]:
    with Disks(tmp_path) as made:
        made.mount()
        yield made


def hand_in(client: httpx2.Client, token: Token) -> httpx2.Response:
    return client.post(
        "/tasks/mini/hand-in",
        data=FIELDS,
        files={"file": ("run.txt", io.BytesIO(run_text("dev", "x").encode()))},
        headers={"authorization": f"Bearer {token}"},
    )


@pytest.mark.slow
@pytest.mark.parametrize("which", ["published", "home"])
def test_work_waits_for_its_disk_and_does_everything_once(disks: Disks, which: str) -> None:
    config, token = disks.project.config, team(disks.world)
    full: SmallDisk = getattr(disks, which)
    with at_work(disks.world) as notes:
        until(lambda: "team:alpha" in Published(config.published).pointer())
        full.fill()
        request = ask(disks.world, token)
        until(lambda: "E306" in notes.problems or any("waits" in line for line in notes.lines))
        assert answered(config.published, request.id) is None
        full.free()
    with at_work(disks.world):  # begun again, it does not wait for its next try
        found = until(lambda: answered(config.published, request.id))
        assert found["accepted"] is True
        until(lambda: outcomes(disks.world) == ["scored"])
        until(lambda: not Inbox(config.inbox).waiting())
    disks.world.store.catch_up()
    assert [disks.events(one) for one in ("request-decided", "submission-registered")] == [1, 1]
    assert disks.used() == 1


def test_a_full_inbox_takes_nothing_and_says_so(disks: Disks) -> None:
    config, token = disks.project.config, team(disks.world)
    with (
        serving(config.exchange, disks.state_folder) as url,
        httpx2.Client(base_url=url, trust_env=False, timeout=30) as client,
    ):
        disks.inbox.fill()
        said = hand_in(client, token)
        assert said.status_code == 507
        assert [path.name for path in config.inbox.iterdir()] == [".filler"]
        disks.inbox.free()
        assert hand_in(client, token).status_code == 202


def test_a_front_whose_own_disk_is_full_accepts_uploads(disks: Disks) -> None:
    config, token = disks.project.config, team(disks.world)
    with (
        serving(config.exchange, disks.state_folder) as url,
        httpx2.Client(base_url=url, trust_env=False, timeout=30) as client,
    ):
        disks.state.fill()
        assert hand_in(client, token).status_code == 202
        assert len(Inbox(config.inbox).waiting()) == 1 and client.get("/").status_code == 200
        disks.state.free()
        assert hand_in(client, token).status_code == 202
