"""Work killed at each of its steps: readers see whole things, and what was asked for is done once.

A child process is ended, as by a kill, at its n-th change of a name, file or folder. ``make soak`` tries every n (of a decision,
every third), the other suites a few.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from runner.exchange.access import Token
from runner.exchange.inbox import Inbox, Request, answered
from runner.exchange.published import Published, Publisher
from runner.model.clock import SystemClock, stamp
from runner.records.store.charges import quota
from runner.records.store.connect import open_store, rebuild
from runner.tasks.load import load_tasks
from runner.work.managing import managing
from runner.work.members.accounts import open_accounts
from runner.work.publishing import Desk
from runner.work.requests import Requests
from tests.runner.execution.test_pool import World
from tests.runner.work.test_loop import ask, team
from tests.worlds.mini import Project

STEPS = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate", "os.chmod"}
KILLED = 9
SLOW, SOAK = pytest.mark.slow, pytest.mark.soak
# Steps from one kill to the next. Publishing has about 200 steps, and a decision 120.
STRIDE_OF_PUBLISHING = pytest.mark.parametrize(
    "stride", [pytest.param(80, marks=SLOW), pytest.param(1, marks=SOAK)]
)
STRIDE_OF_DECIDING = pytest.mark.parametrize(
    "stride", [pytest.param(40, marks=SLOW), pytest.param(3, marks=SOAK)]
)


# Children come of a process that has no threads: one forked in the middle of a test hangs where any library had started threads.
CLEAN = multiprocessing.get_context("forkserver")
CLEAN.set_forkserver_preload(
    [__name__, "jinja2", "jsonschema", "runner.kinds.adhoc.skeleton", "runner.records.store.history"]
)


def killed_at(step: int | None, do: Callable[[], None]) -> None:
    """Do something in this process, which is ended before its ``step``."""
    count = 0

    def watch(event: str, arguments: Any) -> None:
        nonlocal count
        written = (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if event in STEPS or written:
            count += 1
            if count == step:
                os._exit(KILLED)

    try:
        sys.addaudithook(watch)
        do()
        os._exit(0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)


def ended(do: Callable[[], None], step: int | None) -> bool:
    """Whether a child process that does something came to its end; at ``step`` it is killed before."""
    child = CLEAN.Process(target=killed_at, args=(step, do))
    child.start()
    child.join()
    assert child.exitcode in (0, KILLED), "it failed otherwise"
    return child.exitcode == 0


def publish(project: Project) -> None:
    with open_store(project.config) as store:
        problems: list[Exception] = []
        to = Publisher(project.config.published)
        to.clean()
        Desk(store, load_tasks(project.config)[0], to, problems.append).publish(["alpha", "beta"])
        assert problems == []


def decide(project: Project) -> None:
    with open_store(project.config) as store, open_accounts(project.config) as accounts:
        Requests(project.config, store, accounts, lambda text: None).round(load_tasks(project.config)[0])


def each_kill(project: Project, stride: int = 1) -> Iterator[int]:
    """Let children decide, each from the same start and killed at a later step, until one ends; yield the steps."""
    kept = project.home.with_name("kept")
    shutil.copytree(project.home, kept)
    step, done = 1, False
    while not done:
        done = ended(partial(decide, project), step)
        yield step
        shutil.rmtree(project.home)
        shutil.copytree(kept, project.home)
        step += stride


def shown(published: Path) -> dict[str, list[tuple[str, bytes, bytes]]]:
    """Everything that each audience sees. Raises Damaged when anything of it cannot be read."""
    seen = Published(published)
    views = {audience: seen.view(audience) for audience in seen.pointer()}
    return {
        audience: [(one.path, view.read(one.data), view.text(one).encode()) for one in view.below("")]
        for audience, view in views.items()
    }


@STRIDE_OF_PUBLISHING
@pytest.mark.timeout(1200)
def test_readers_see_the_generation_before_or_the_new_one(project: Project, stride: int) -> None:
    world = World(project)
    world.hand_in("alpha")
    world.hand_in("beta", "two")
    world.work()
    publish(project)
    before = shown(project.config.published)
    world.store.commit("dataset-published", {"task": "mini", "dataset": "test"}, actor="organiser")
    world.close()
    kept = project.config.exchange.with_name("kept")
    shutil.copytree(project.config.exchange, kept)
    found: list[bool] = []
    step, done = 1, False
    while not done:
        done = ended(partial(publish, project), step)
        seen = shown(project.config.published)
        found.append(seen != before)
        if done or seen != before:
            shutil.rmtree(project.config.exchange)
            shutil.copytree(kept, project.config.exchange)
        step += stride
    assert found[-1] and step > 10 and sum(found) < len(found), "it was killed before and behind the pointer"
    publish(project)
    new = shown(project.config.published)
    rebuild(project.config)
    publish(project)
    assert shown(project.config.published) == new != before, "a store that is made again shows the same"


@STRIDE_OF_DECIDING
@pytest.mark.timeout(1200)
def test_a_request_is_decided_once_wherever_work_is_killed(project: Project, stride: int) -> None:
    project.write_task(uploads=True)
    world = World(project)
    token: Token = team(world)
    request: Request = ask(world, token)
    world.close()
    for step in each_kill(project, stride):
        assert ended(partial(decide, project), None)
        found = answered(project.config.published, request.id)
        assert found is not None and found["accepted"] is True and found["submission"], step
        assert Inbox(project.config.inbox).waiting() == []
        with open_store(project.config) as store:
            types = [event.type for event in store.log]
            use = quota(store, load_tasks(project.config)[0]["mini"], "alpha")
        assert [types.count(one) for one in ("request-decided", "submission-registered")] == [1, 1], step
        assert use.used + use.open == 1
        assert not list(project.home.glob(".request-*"))
    assert step > 20


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_a_token_that_was_made_stands_in_the_log_wherever_work_is_killed(project: Project) -> None:
    with managing(project.config) as office:
        account, token = office.add("team", "alpha")
    made = Token.new()
    data = {"token": made.id, "key": made.key, "scopes": ["read"], "replaces": False}
    request = Request.new("token", account.id, token.id, "alpha", stamp(SystemClock().now()), data)
    Inbox(project.config.inbox).put(request, token.key)
    between = 0
    for step in each_kill(project):
        with managing(project.config) as office:
            there = office.accounts.known(account.id, made.id) is not None
            between += there and not any(event.type == "token-added" for event in office.store.log)
        assert ended(partial(decide, project), None)
        with open_store(project.config) as store:
            found = [event.data for event in store.log if event.type == "token-added"]
        assert [(one["token"], one["by"]) for one in found] == [(made.id, token.id)], step
    assert between, "work was killed between the account and its event, too"
