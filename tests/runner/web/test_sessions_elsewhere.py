"""The front's sessions in PostgreSQL: a real front, which has closed all files to itself, and a role that may nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from runner.exchange.access import Token
from runner.web.sessions import Sessions
from tests.runner.web.test_routes import Front, front  # noqa: F401  (a fixture)
from tests.worlds.postgres import Server

PASSWORD = "pass-of-the-front"


@pytest.fixture
def address(postgres: Server) -> Iterator[str]:
    postgres.sql(
        f"CREATE ROLE front LOGIN PASSWORD '{PASSWORD}'",
        "CREATE DATABASE front OWNER front",
        database="postgres",
    )
    yield postgres.by_network("front", PASSWORD, "front")
    postgres.sql("DROP DATABASE front WITH (FORCE)", "DROP ROLE front", database="postgres")


@contextmanager
def running(front: Front, state: Path, address: str, log: Path) -> Iterator[Front]:  # noqa: F811
    command = [sys.executable, "-m", "runner", "front", "--bind", "127.0.0.1:0"]
    with log.open("a") as errors:
        process = subprocess.Popen(
            [*command, "--exchange", str(front.exchange), "--state", str(state)],
            env={"PATH": os.environ["PATH"], "RUNNER_FRONT_DATABASE": address},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            assert process.stdout is not None
            said = process.stdout.readline().split()
            assert said, log.read_text()
            yield replace(front, url=said[1])
        finally:
            process.terminate()
            assert process.wait(60) == 0


@pytest.mark.slow
def test_who_signed_in_at_one_front_is_known_to_the_next(
    front: Front,  # noqa: F811
    address: str,
    postgres: Server,
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    with running(front, tmp_path / "one", address, log) as one, one.browser() as team:
        assert team.get("/team").status_code == 200
        postgres.sql(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'front'"
        )  # as when the server is started again
        assert team.get("/team").status_code == 200
        with running(front, tmp_path / "two", address, log) as two:
            team.base_url = two.url
            assert team.get("/team").status_code == 200, "another front of the same task"
            assert team.get("/sign-in").status_code in (200, 303)
    assert not [one for of in ("one", "two") for one in (tmp_path / of).glob("front.sqlite*")]
    assert PASSWORD not in log.read_text()


def test_a_session_is_kept_and_ends_as_in_a_file(address: str, tmp_path: Path) -> None:
    token = Token.new()
    with (
        closing(Sessions(tmp_path, server=address)) as one,
        closing(Sessions(tmp_path, server=address)) as other,
    ):
        secret = one.begin(token.id, token.key)
        found = other.get(secret)
        assert found is not None and (found.token, found.key) == (token.id, token.key)
        assert other.seed("form", "x") == one.seed("form", "x")
        one.replace(token.id, "d" * 32)
        other.replace(token.id, "e" * 32)
        assert one.replaced_by(token.id) == "e" * 32 and one.replaced_by("0") is None
        other.end(secret)
        assert one.get(secret) is None


@pytest.mark.parametrize("wrong", ["sqlite:///x", "postgresql://front:pass-of-the-front@127.0.0.1:1/front"])
def test_a_database_that_cannot_be_used_is_said_without_its_password(
    front: Front,  # noqa: F811
    tmp_path: Path,
    wrong: str,
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "runner", "front", "--bind", "127.0.0.1:0", "--exchange", str(front.exchange)],
        env={"PATH": os.environ["PATH"], "RUNNER_FRONT_DATABASE": wrong},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode in (2, 3) and "RUNNER_FRONT_DATABASE" in said
    assert PASSWORD not in said and "Traceback" not in said, said
