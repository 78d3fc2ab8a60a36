"""The command line in this process: a fixture for tests that call it often."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tests.worlds.mini import Project, Said, call_here

Cli = Callable[..., Said]


@pytest.fixture
def cli(project: Project, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Return ``run("team", "list", expect=0, env={})`` for the mini project; ``expect=None`` accepts any exit code."""

    def run(*arguments: str, expect: int | None = 0, env: Mapping[str, str] = {}) -> Said:
        old = dict(project.env)
        project.env |= env
        try:
            result = call_here(project, arguments, capsys)
        finally:
            project.env = old
        assert expect is None or result.code == expect, result.all
        return result

    return run
