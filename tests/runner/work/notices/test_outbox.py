"""Nobody is told twice, whatever happens in between."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from runner.model.config import Config
from runner.work.notices.due import Notice
from runner.work.notices.outbox import PAUSES, Outbox
from tests.worlds import records
from tests.worlds.postgres import Server

NOW = datetime(2031, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def config(tmp_path: Path, either: str) -> Config:
    return Config(root=tmp_path, home=tmp_path, truths=None, database_url=records.database_for(tmp_path))


def notice(n: int, about: str = "done") -> Notice:
    return Notice(f"{about}:{n}", about, "alpha", f"run {n}", f"/runs/{n}")


def waiting(box: Outbox, at: datetime = NOW) -> list[str]:
    found = []
    while (one := box.next(at)) is not None:
        found.append(one[1].key)
        box.sent(one[0], one[1].key)
    return found


def test_the_same_is_told_once_also_after_a_restart(config: Config) -> None:
    box = Outbox(config)
    box.add("hook:a", [], NOW)
    box.add("hook:a", [notice(1), notice(1)], NOW)
    assert waiting(box) == ["done:1"]
    box.add("hook:a", [notice(1), notice(2)], NOW)
    box.close()
    box = Outbox(config)
    box.add("hook:a", [notice(1), notice(2)], NOW)
    assert waiting(box) == ["done:2"]
    box.close()
    file = config.home / "notices.sqlite"
    assert not file.exists() if config.database_url else file.stat().st_mode & 0o077 == 0


def test_who_is_new_is_told_of_deadlines_but_not_of_what_happened_before(config: Config) -> None:
    box = Outbox(config)
    box.add("mail:organisers", [notice(1), notice(2, "held"), notice(3, "deadline")], NOW)
    assert waiting(box) == ["deadline:3"]
    box.add("mail:organisers", [notice(n) for n in (1, 4)], NOW)
    assert waiting(box) == ["done:4"]
    box.close()


def test_killed_while_it_sends_it_is_not_sent_again(config: Config) -> None:
    box = Outbox(config)
    box.add("hook:a", [], NOW)
    box.add("hook:a", [notice(1)], NOW)
    assert box.next(NOW) is not None
    box.close()  # as if killed here
    box = Outbox(config)
    box.add("hook:a", [notice(1)], NOW)
    assert waiting(box, NOW + 100 * PAUSES[-1]) == []
    box.close()


def test_what_fails_is_tried_again_later_and_then_given_up(config: Config) -> None:
    box, now, tries = Outbox(config), NOW, 0
    box.add("hook:a", [], now)
    box.add("hook:a", [notice(1)], now)
    while (found := box.next(now)) is not None:
        tries += 1
        if not box.failed("hook:a", found[1].key, now):
            break
        assert box.next(now) is None, "not at once"
        now += PAUSES[tries - 1]
    assert tries == len(PAUSES) + 1 and box.next(now + 100 * PAUSES[-1]) is None
    box.close()


def test_what_was_told_moves_to_the_server_that_is_named(tmp_path: Path, postgres: Server) -> None:
    here = Config(root=tmp_path, home=tmp_path, truths=None)
    box = Outbox(here)
    box.add("hook:a", [], NOW)
    box.add("hook:a", [notice(1)], NOW)
    assert waiting(box) == ["done:1"]
    box.add("hook:a", [notice(2)], NOW)
    box.close()
    for _ in range(2):
        box = Outbox(replace(here, database_url=postgres.database_for(tmp_path)))
        box.add("hook:a", [notice(1), notice(2)], NOW)
        box.add("hook:new", [notice(3, "deadline")], NOW)
        box.close()
    box = Outbox(replace(here, database_url=postgres.database_for(tmp_path)))
    assert sorted(waiting(box)) == ["deadline:3", "done:2"] and not (tmp_path / "notices.sqlite").exists()
    box.close()
