"""The store in PostgreSQL: what it has and SQLite has not."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
import sqlalchemy as sa

from runner.doctor import home as doctor
from runner.model.config import Person
from runner.model.errors import RunnerError
from runner.records.commit import commit_orphans, coordinator
from runner.records.store import connect, queries, results
from runner.records.store.database import make_engine
from runner.records.store.tables import submissions
from tests.worlds import records
from tests.worlds.postgres import Server
from tests.worlds.records import TASK, World

REGISTERED = {"submission": "x.y.00000000", "task": TASK, "team": "x", "software": "y"}


@pytest.fixture
def world(tmp_path: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(records, "database_for", postgres.database_for)
    made = World.make(tmp_path)
    yield made
    made.store.close()
    postgres.forget(made.config.home)


def end_connections(postgres: Server) -> None:
    """As a server that is started again, or a line that is cut."""
    postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'proctor'")


def test_two_data_directories_of_one_database_have_one_coordinator(world: World, tmp_path: Path) -> None:
    elsewhere = replace(world.config, home=tmp_path / "elsewhere")
    with connect.open_store(world.config) as other, coordinator(world.config, world.store):
        with pytest.raises(RunnerError) as caught, coordinator(elsewhere, other):
            pass
        assert caught.value.code == "E306" and "coordinator" in caught.value.what
    with connect.open_store(world.config) as other, coordinator(elsewhere, other):
        other.commit("submission-registered", REGISTERED, actor="organiser")


def test_a_coordinator_whose_place_was_taken_commits_nothing_more(
    world: World, postgres: Server, tmp_path: Path
) -> None:
    submission = world.register("alpha", "x")
    attempt = world.attempt(submission, commit=False)
    facts = {"task": TASK, "run": attempt.run_id, "attempt": 1, "manifest": attempt.manifest_digest()}
    elsewhere = replace(world.config, home=tmp_path / "elsewhere")
    with coordinator(world.config, world.store), connect.open_store(world.config) as beside:
        beside.fenced_as(world.store)
        world.store.commit("quota-extended", {"task": TASK, "team": "a", "submissions": 1}, actor="organiser")
        end_connections(postgres)
        # As long as nobody took its place it goes on, on another connection.
        world.store.commit("quota-extended", {"task": TASK, "team": "b", "submissions": 1}, actor="organiser")
        with connect.open_store(world.config) as other, coordinator(elsewhere, other):
            before = world.config.events.read_bytes()
            with pytest.raises(RunnerError) as caught:
                world.store.commit("attempt-committed", facts, actor="runner")
            assert caught.value.code == "E306" and "coordinator" in caught.value.what
            taken_over = caught.value.what
            asked = world.store.asked_for(Person("anna", "account"), "a" * 32)
            for store in (asked, beside):
                with pytest.raises(RunnerError) as caught:
                    store.commit("attempt-committed", facts, actor="runner")
                assert caught.value.what == taken_over
            with pytest.raises(RunnerError) as caught:
                world.store.catch_up()
            assert caught.value.what == taken_over
            assert world.config.events.read_bytes() == before
            assert commit_orphans(other) == 1, "what was sealed is not lost"


def test_readers_see_the_store_before_or_the_new_one_and_nobody_waits_for_the_making(world: World) -> None:
    for n in range(5):
        world.register("alpha", f"x{n}")
    count = sa.select(sa.func.count()).select_from(submissions)
    with world.store.read() as connection:
        assert connection.execute(count).scalar() == 5
        records_of_before = connection.execute(sa.select(submissions)).all()
        world.register("beta", "later")
        assert connection.execute(count).scalar() == 5
        with ThreadPoolExecutor(1) as pool:
            made = pool.submit(connect.rebuild, world.config)
            # It waits for this reader, and lets others read meanwhile.
            for _ in range(5):
                assert len(queries.submissions(world.store)) == 6
            assert not made.done()
            assert connection.execute(sa.select(submissions)).all() == records_of_before
            connection.rollback()
            assert made.result(60).seq == 6
    assert len(queries.submissions(world.store)) == 6


def test_reading_never_meets_an_empty_store_while_it_is_made_again_and_again(world: World) -> None:
    world.scored("alpha", "x", topics=3)
    end = threading.Event()

    def look() -> set[tuple[str, ...]]:
        seen = set()
        while not end.is_set():
            seen.add(tuple(run.outcome.name for run in queries.runs(world.store)))
        return seen

    with ThreadPoolExecutor(2) as pool:
        looking = [pool.submit(look) for _ in range(2)]
        for _ in range(3):
            connect.rebuild(world.config)
        end.set()
        assert [one.result(60) for one in looking] == [{("scored",)}] * 2


def test_a_store_is_made_again_in_a_schema_of_any_name(world: World, postgres: Server) -> None:
    world.register("alpha", "x")
    names = ["x", "x_anew", "n" * 63, "n" * 50 + "_anew", "n" * 49 + '"n', "a%sb", "ä" * 31]
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    postgres.sql(*(f"CREATE SCHEMA {name} AUTHORIZATION proctor" for name in quoted))
    for name in quoted:
        config = replace(world.config, database_url=postgres.url(quote(name)))
        assert connect.rebuild(config).seq == 1
        with connect.open_store(config) as store, store.coordinating():
            assert len(queries.submissions(store)) == 1
            assert connect.rebuild(config).seq == 1
    postgres.sql(*(f"DROP SCHEMA {name} CASCADE" for name in quoted))


def test_what_postgresql_takes_in_no_text_is_kept_and_what_is_too_long_is_refused(world: World) -> None:
    """A participant chooses none of it alone, but nothing may make the store stand still."""
    submission = world.register("alpha", "x", tag="a\0b\x01c\x01\x02", description="\0")
    found = queries.submission(world.store, submission)
    assert (found.tag, found.description) == ("a\0b\x01c\x01\x02", "\0")
    topics = {"b\0": 0.5, "B": 0.25, "a\x01": 0.125, "ä": 1.0, "b": 0.75}
    world.evaluation(world.attempt(submission), {"ndcg": topics})
    (run,) = queries.runs(world.store)
    assert list(results.topic_scores(world.store, run, "ndcg").items()) == sorted(topics.items())
    long = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=9000))
    world.evaluation(world.attempt(world.register("beta", "y")), {"ndcg": {long: 1.0, "2": 0.5}})
    assert [run.outcome.name for run in queries.runs(world.store)] == ["scored", "held"]
    with pytest.raises(RunnerError, check=lambda error: error.code == "E307"):
        world.commit("quota-extended", task=TASK, team="alpha", submissions=2**70)


def test_a_server_that_is_not_there_and_one_that_refuses(world: World, tmp_path: Path) -> None:
    """What is wrong is said in words of the server; the password never is."""
    assert world.config.database_url is not None
    wrong = [
        ("postgresql://proctor:secret@127.0.0.1:1/proctor", "refused"),
        (f"postgresql://proctor:secret@/proctor?host={tmp_path}", "No such file"),
        (world.config.database_url.replace("proctor@/proctor", "nobody:secret@/proctor"), 'role "nobody"'),
    ]
    for url, why in wrong:
        config = replace(world.config, database_url=url)
        with pytest.raises(RunnerError) as caught:
            connect.open_store(config)
        assert caught.value.code == "E306" and why in caught.value.why and "runner doctor" in caught.value.fix
        with pytest.raises(RunnerError):
            doctor.database_check(config)
        assert "secret" not in caught.value.what + caught.value.why + caught.value.fix


def test_a_store_survives_a_server_that_was_started_again(world: World, postgres: Server) -> None:
    world.register("alpha", "x")
    end_connections(postgres)
    assert len(queries.submissions(world.store)) == 1


def test_without_the_driver_it_is_said_how_to_get_it(tmp_path: Path) -> None:
    code = (
        "import sys\nsys.modules['psycopg'] = None\nfrom runner.records.store.database import make_engine\n"
        "try:\n    make_engine('postgresql://me:secret@host/db')\n"
        "except Exception as error:\n    print(error.code, error.why, error.fix)\n"
    )
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert said.stdout.startswith("E306 ") and "psycopg" in said.stdout
    assert "proctor-ir[postgres]" in said.stdout and "secret" not in said.stdout


def test_the_doctor_says_what_database_and_role_lack(world: World, postgres: Server) -> None:
    assert doctor.database_check(world.config).status == "PASS"
    assert doctor.records_check(world.config).status == "PASS"
    postgres.sql(
        "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0", "CREATE ROLE guest LOGIN"
    )
    url = postgres.url(role="guest", database="latin")
    check = doctor.database_check(replace(world.config, database_url=url))
    assert check.status == "FAIL"
    for lacks in ("LATIN1", "schemas", "tables"):
        assert lacks in check.detail
    postgres.sql("DROP DATABASE latin WITH (FORCE)", "DROP ROLE guest")


def test_default_privileges_last_and_views_block_a_rebuild(world: World, postgres: Server) -> None:
    """As docs/how-to/postgres.md says it."""
    runs = f"{postgres.made[world.config.home]}.runs"
    postgres.sql("CREATE ROLE once", "CREATE ROLE always", f"GRANT SELECT ON {runs} TO once")
    postgres.sql("ALTER DEFAULT PRIVILEGES FOR ROLE proctor GRANT SELECT ON TABLES TO always")
    connect.rebuild(world.config)
    query = sa.text(
        "SELECT has_table_privilege('once', 'runs', 'SELECT'), has_table_privilege('always', 'runs', 'SELECT')"
    )
    with world.store.read() as connection:
        assert tuple(connection.execute(query).one()) == (False, True)
    view = f"CREATE VIEW public.mine AS SELECT * FROM {runs}"
    postgres.sql("DROP OWNED BY once, always", "DROP ROLE once, always", view)
    with pytest.raises(RunnerError) as caught:
        connect.rebuild(world.config)
    assert caught.value.code == "E306" and "mine" in caught.value.why and "drop" in caught.value.fix
    postgres.sql("DROP VIEW public.mine")
    connect.rebuild(world.config)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_the_usual_ways_to_write_its_address(world: World, scheme: str) -> None:
    assert world.config.database_url is not None
    engine = make_engine(world.config.database_url.replace("postgresql", scheme, 1))
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT 1")).scalar() == 1
    engine.dispose()


def test_no_server_of_tests_outlives_them() -> None:
    code = (
        "import os, signal\nfrom tests.worlds.postgres import start\nserver = start()\n"
        "print(server.folder, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    root = Path(__file__).parents[4]
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    folder = Path(said.stdout.strip())
    pid_file = folder / "data" / "postmaster.pid"  # the server removes it at its end
    end = time.monotonic() + 100
    while pid_file.exists():
        assert time.monotonic() < end, "it is still there"
        time.sleep(0.05)
    assert (folder / "data").is_dir(), said.stderr
    shutil.rmtree(folder)
