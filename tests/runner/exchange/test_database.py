"""A small database is the same in a file and at a server; what goes wrong is said without a password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from runner.exchange.database import Database, DatabaseError, at_server, copied, files_of, moved
from tests.worlds import records
from tests.worlds.postgres import Server

TABLES = ("CREATE TABLE things (name TEXT PRIMARY KEY, about TEXT, ends DOUBLE PRECISION, bytes BYTEA)",)
MORE = (
    *TABLES,
    "CREATE TABLE others (name TEXT REFERENCES things (name)); CREATE INDEX named ON others (name)",
)


@pytest.fixture
def place(tmp_path: Path, either: str) -> Path | str:
    return records.database_for(tmp_path) or tmp_path / "own/small.sqlite"


@pytest.fixture
def database(place: Path | str) -> Iterator[Database]:
    with closing(Database(place, "small")) as made:
        made.follow(TABLES)
        yield made


def names(database: Database) -> list[str]:
    return [row[0] for row in database.execute("SELECT name FROM things ORDER BY rowid")]


def put(database: Database, *given: str) -> None:
    for name in given:
        database.execute("INSERT INTO things VALUES (?, NULL, 0, NULL)", (name,))


def test_rows_come_in_the_order_in_which_they_came_with_their_values(database: Database) -> None:
    row = ("b 100 % ?", "é\n", 1924905600.123456, b"\x00\xff")
    database.execute("INSERT INTO things VALUES (?, ?, ?, ?)", row)
    put(database, "a", "B")
    found = database.execute("SELECT name, about, ends, bytes FROM things WHERE name LIKE ?", ("b%",))
    assert [bytes(one) if isinstance(one, memoryview) else one for one in found.fetchall()[0]] == list(row)
    assert names(database) == ["b 100 % ?", "a", "B"]
    ordered = database.execute("SELECT name FROM things WHERE name <> 'x%' ORDER BY name").fetchall()
    assert [one[0] for one in ordered] == ["B", "a", "b 100 % ?"], "byte by byte"
    absent = database.execute("SELECT 1 FROM things WHERE name = 'c'")
    assert absent.fetchone() is None
    deleted = database.execute("DELETE FROM things WHERE name <> ?", ("a",))
    assert deleted.rowcount == 2


def test_a_transaction_is_done_as_a_whole_or_not_at_all(database: Database, place: Path | str) -> None:
    with pytest.raises(ZeroDivisionError), database:
        put(database, "a")
        with database:
            put(database, "b")
        assert names(database) == ["a", "b"] and 1 / 0
    assert names(database) == []
    with pytest.raises(DatabaseError), database:
        put(database, "a", "a")
    with closing(Database(place, "small")) as other:
        with database:
            put(database, "a")
            assert names(other) == []
        assert names(other) == ["a"]


def test_changes_are_done_once_and_a_newer_program_is_noticed(database: Database, place: Path | str) -> None:
    put(database, "a")
    with closing(Database(place, "small")) as other:
        assert [other.follow(MORE) for _ in range(2)] == [1, 2]
        assert other.follow(TABLES) == 2 and names(other) == ["a"]
        with pytest.raises(DatabaseError):
            other.execute("INSERT INTO others VALUES (?)", ("of nobody",))


def test_all_of_it_goes_into_a_file_and_back(database: Database, place: Path | str, tmp_path: Path) -> None:
    database.follow(MORE)
    put(database, "z", "a")
    database.execute("INSERT INTO others VALUES ('a')")
    with closing(Database(tmp_path / "copy", "small")) as copy:
        copy.follow(MORE)
        copied(database, copy)
        assert names(copy) == ["z", "a"]
        database.execute("DELETE FROM others")
        database.execute("DELETE FROM things")
        copied(copy, database)
    others = database.execute("SELECT name FROM others").fetchall()
    assert names(database) == ["z", "a"] and len(others) == 1


def test_a_connection_that_was_lost_is_made_again_but_not_within_a_transaction(
    postgres: Server, tmp_path: Path
) -> None:
    def cut() -> None:
        postgres.sql(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'proctor'"
        )

    with closing(Database(postgres.database_for(tmp_path), "small")) as database:
        database.follow(TABLES)
        cut()
        assert names(database) == []
        cut()
        with database:
            put(database, "a")
        with pytest.raises(DatabaseError), database:
            put(database, "b")
            cut()
            put(database, "c")
        assert names(database) == ["a"], "nothing of what was cut off"


@pytest.mark.parametrize("broken", ["no file", "no database", "folder"])
def test_a_file_that_cannot_be_used_is_said(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "small"
    if broken == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"no database" * 500)
        path = path / "small" if broken == "no file" else path
    with pytest.raises(DatabaseError) as error, closing(Database(path)) as database:
        database.follow(TABLES)
    assert str(path) in str(error.value) and error.value.damaged is (broken == "no database")


def test_a_server_that_cannot_be_used_is_said_without_its_password(postgres: Server) -> None:
    address = postgres.by_network("nobody", "se-cr-et", "proctor")
    for one in (
        address,
        address.replace("proctor", "none"),
        address.replace("se-cr-et", "se-cr-et%zz"),
        address.replace("se-cr-et", "p@se-cr-et"),
        address + "?se-cr-et=1",
        address.replace(str(postgres.port), "1"),
        postgres.url("no_schema"),
    ):
        with pytest.raises(DatabaseError) as error:
            Database(one, "small")
        assert "se-cr-et" not in str(error.value), str(error.value)


def test_what_is_an_address_and_what_its_driver_reads(tmp_path: Path) -> None:
    assert at_server("postgresql://a@b/c") and at_server("postgresql+psycopg://a@b/c")
    assert not any(map(at_server, ("sqlite:///x", "/srv/x", "", "postgresqlx://")))
    (tmp_path / "ca.pem").touch()
    where = f"postgresql://a@b/c?sslmode=verify-full&sslrootcert={tmp_path}/ca.pem&sslkey={tmp_path}/none"
    assert tmp_path / "ca.pem" in files_of(where) and tmp_path / "none" not in files_of(where)


def test_who_waited_too_long_for_its_turn_gets_the_next(database: Database, place: Path | str) -> None:
    with closing(Database(place, "small")) as other:
        if isinstance(place, Path):
            other.execute("PRAGMA busy_timeout = 1")
        else:
            other.execute("SET lock_timeout = 1")
        with database, pytest.raises(DatabaseError), other:
            pass
        with other:
            put(other, "a")
    assert names(database) == ["a"]


def test_what_is_held_open_when_a_file_moves_is_not_written_to_any_more(
    postgres: Server, tmp_path: Path
) -> None:
    file = tmp_path / "small"
    with closing(Database(file)) as old, closing(Database(postgres.database_for(tmp_path), "moved")) as new:
        old.follow(TABLES)
        put(old, "z", "a")
        assert moved(file, new, TABLES) and not file.exists()
        assert names(new) == ["z", "a"] and not moved(file, new, TABLES)
        with pytest.raises(DatabaseError) as error, old:
            put(old, "lost")
        assert str(file) in str(error.value)
        with closing(Database(file)) as again:
            again.follow(TABLES)
            put(again, "a", "b")
        with pytest.raises(DatabaseError) as error:
            moved(file, new, TABLES)
        assert str(file) in str(error.value) and file.exists() and moved(file, new, TABLES, more=True)
        assert names(new) == ["z", "a", "b"]
