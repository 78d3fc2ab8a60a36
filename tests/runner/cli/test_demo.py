"""What ``runner demo`` says at its end."""

from __future__ import annotations

from runner.cli.commands.demo import SHOWN, next_commands
from tests.worlds import records


def test_the_hint_names_a_task_that_was_run() -> None:
    task = records.task()
    for name in SHOWN:
        hint = next_commands({name: task, "another": task})
        assert f"runner leaderboard {name} --as public" in hint
        assert [other for other in SHOWN if f" {other} " in hint] == [name]
    assert "leaderboard" not in next_commands({})
