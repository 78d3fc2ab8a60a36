"""Debian's PostgreSQL for tests: one server for each process of tests, one schema for each data directory of a test. A pytest plugin.

The server speaks through a Unix socket, and on loopback with whoever has a password; it runs as another user than root, and lies in a folder of its own. The role of the
tests owns its databases and may do nothing else, as ``docs/how-to/postgres.md`` says it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.worlds import records
from tests.worlds.debian import program
from tests.worlds.ports import free_port

ROLE = "proctor"


@dataclass
class Server:
    """A running server; ``folder`` is where its socket is."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]
    made: dict[Path, str] = field(default_factory=dict)

    def url(self, schema: str = "", *, role: str = ROLE, database: str = "proctor") -> str:
        """The address of a database, with a schema of it where one is given."""
        path = f"&options=-csearch_path%3D{schema}" if schema else ""
        return f"postgresql://{role}@/{database}?host={self.folder}&port={self.port}{path}"

    def by_network(self, role: str, password: str, database: str) -> str:
        """The address of a database for a role that has a password, on loopback."""
        return f"postgresql://{role}:{password}@127.0.0.1:{self.port}/{database}"

    def sql(self, *commands: str, database: str = "proctor") -> None:
        """Do something as the administrator, each outside of a transaction."""
        import psycopg

        with psycopg.connect(self.url(role="postgres", database=database), autocommit=True) as connection:
            for command in commands:
                connection.execute(command.encode())

    def database_for(self, place: Path) -> str:
        """The address of the schema that belongs to a data directory; made where there is none yet."""
        if place not in self.made:
            self.made[place] = f"of_{len(self.made)}"
            self.sql(f"CREATE SCHEMA {self.made[place]} AUTHORIZATION {ROLE}")
        return self.url(self.made[place])

    def forget(self, place: Path) -> None:
        """Remove what :meth:`database_for` made for a data directory."""
        own = self.made[place]  # and those of work and front, which are made where they are needed
        self.sql(
            *(f"DROP SCHEMA IF EXISTS {own}{of} CASCADE" for of in ("", "_accounts", "_notices", "_front"))
        )

    def end(self) -> None:
        """Stop it, and remove its folder."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(60)
        shutil.rmtree(self.folder)


def _as_its_user(command: list[str], *options: str) -> list[str]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() == 0:
        options = (*options, "--reuid=postgres", "--regid=postgres", "--clear-groups")
    return ["setpriv", *options, *command] if options else command


def start() -> Server:
    """Start a server of its own."""
    program("pg_lsclusters", "postgresql")
    home = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    folder = Path(tempfile.mkdtemp(prefix="proctor-postgres-", dir="/tmp"))
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
    data = f"{folder}/data"
    # Another collation than the one that is wanted: whoever leaves it to the server is found out.
    init = [
        str(home / "initdb"), "-D", data, "-U", "postgres", "--auth-local=trust", "--auth-host=scram-sha-256", "-E", "UTF8", "--locale=C.UTF-8",
        "--locale-provider=icu", "--icu-locale=en-US", "-N",
    ]  # fmt: skip
    made = subprocess.run(
        _as_its_user(init), cwd="/", capture_output=True, text=True, timeout=120, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    port = free_port()
    options = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "max_connections=60")
    serve = [
        str(home / "postgres"),
        "-D",
        data,
        "-k",
        str(folder),
        "-h",
        "127.0.0.1",
        "-p",
        str(port),
        *(f"-c{one}" for one in options),
    ]
    with Path(folder, "log").open("wb") as log:
        # Tests that are killed take it with them.
        process = subprocess.Popen(
            _as_its_user(serve, "--pdeathsig=QUIT"), cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    server = Server(folder, port, process)
    ready = [str(home / "pg_isready"), "-q", "-h", str(folder), "-p", str(port)]
    end = time.monotonic() + 60
    while subprocess.run(ready, check=False).returncode != 0:
        assert process.poll() is None and time.monotonic() < end, Path(folder, "log").read_text()
        time.sleep(0.05)
    server.sql(f"CREATE ROLE {ROLE} LOGIN", f"CREATE DATABASE proctor OWNER {ROLE}", database="postgres")
    return server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server for this process of tests."""
    server = start()
    yield server
    server.end()


@pytest.fixture(params=["sqlite", "postgresql"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run the test with the store in a file of SQLite, and once more with it in PostgreSQL: worlds of records have it there."""
    if request.param == "sqlite":
        yield request.param
        return
    server: Server = request.getfixturevalue("postgres")
    before = set(server.made)
    monkeypatch.setattr(records, "database_for", server.database_for)
    yield request.param
    for place in set(server.made) - before:
        server.forget(place)
