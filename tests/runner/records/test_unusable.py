"""A data directory or database that cannot be used: what is wrong and what helps is said, whatever SQLite calls it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.worlds.mini import Project, Said


@pytest.mark.parametrize(
    ("url", "why", "fix"),
    [
        ("postgresql+nosuch://u:secret@host/db", "SQLAlchemy cannot use", "RUNNER_DATABASE"),
        ("postgresql+asyncpg://u:secret@host/db", "needs the Python package asyncpg", "pip install asyncpg"),
        ("postgresql://u:secret@host:secret/db", "SQLAlchemy cannot use", "RUNNER_DATABASE"),
        ("secret", "no address", "RUNNER_DATABASE"),
    ],
)
def test_an_address_without_its_driver(
    project: Project, runner_cli: Callable[..., Said], url: str, why: str, fix: str
) -> None:
    """It is no defect of this program, and no word of the address is repeated: it may hold a password."""
    said = runner_cli("runs", env={"RUNNER_DATABASE": url}, expect=3)
    assert "E306" in said.err and why in said.err and fix in said.err
    assert "secret" not in said.all and "defect" not in said.all
