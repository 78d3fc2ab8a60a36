"""The store in PostgreSQL: for coordinators on several machines, or where an organisation keeps its databases there.

Whoever writes holds an advisory lock for the length of the transaction. Whoever reads sees the one snapshot that was taken
when its transaction began, and holds ``meta`` meanwhile, so that tables are put in the place of others between readers only.
All locks are those of one schema: the first one of the connection's search path.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from runner.model.errors import PlatformError
from runner.records.store.sqlite import BUSY_SECONDS, Objects, Role

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine


DRIVER = "postgresql+psycopg"
_CONNECT_SECONDS = 10
_PATIENCE = f"SET LOCAL lock_timeout = '{BUSY_SECONDS}s'"
_WRITE = (
    f"{_PATIENCE}; SELECT pg_advisory_xact_lock(hashtextextended('proctor write ' || current_schema(), 0))"
)
# No snapshot is taken before the lock is there: LOCK is no query.
_READ = f"{_PATIENCE}; LOCK TABLE meta IN ACCESS SHARE MODE"
_ALONE = "SELECT pg_try_advisory_lock(hashtextextended(%s || current_schema(), 0))"
# Whoever waits longer for its turn between readers lets those pass first that wait behind it.
_SWAP = "SAVEPOINT gate; SET LOCAL lock_timeout = '1s'; LOCK TABLE meta IN ACCESS EXCLUSIVE MODE"
_COORDINATORS = "CREATE TABLE IF NOT EXISTS coordinators (role text PRIMARY KEY, number bigint NOT NULL)"
_NO_TABLE, _NO_LOCK, _IN_USE = "42P01", "55P03", "2BP01"  # SQLSTATE
_BROKEN = ("08", "57P")  # beginnings of it: the connection failed, or the server ended it
_TOO_LARGE, _WRONG_SHAPE = "54", ("427", "42P", "42804", "XX")  # beginnings of it


class PostgreSQL:
    """A schema of a database that the role may make schemas in; its methods are those of :class:`runner.records.store.sqlite.SQLite`."""

    reading: Mapping[str, Any] = {
        "begin": _READ,
        "isolation_level": "REPEATABLE READ",
        "postgresql_readonly": True,
    }
    supposing: Mapping[str, Any] = {"begin": _READ, "isolation_level": "REPEATABLE READ"}
    writing: Mapping[str, Any] = {"begin": _WRITE, "isolation_level": "READ COMMITTED"}

    def engine(self, url: URL) -> Engine:
        """The engine of a database. Raises ImportError without psycopg."""
        from sqlalchemy import create_engine, event
        from sqlalchemy.exc import DataError, ProgrammingError

        ours = {"connect_timeout": _CONNECT_SECONDS, "application_name": "proctor"}
        engine = create_engine(
            url.set(drivername=DRIVER),
            pool_pre_ping=True,  # a server that was started again
            hide_parameters=True,
            connect_args={name: value for name, value in ours.items() if name not in url.query},
        )

        @event.listens_for(engine, "begin")
        def on_begin(connection: Connection) -> None:
            begin = connection.get_execution_options().get("begin", "")
            try:
                if begin:
                    connection.exec_driver_sql(begin)
            except ProgrammingError as error:
                if begin != _READ or _state(error.orig) != _NO_TABLE:
                    raise
                connection.connection.rollback()  # a database without a store: nobody can put another in its place

        @event.listens_for(engine, "handle_error")
        def on_error(context: Any) -> None:
            original = context.original_exception
            if _state(original).startswith(_TOO_LARGE):  # a value that no index takes is a wrong value
                raise DataError(context.statement, None, original, hide_parameters=True) from original

        return engine

    def writes_beside_readers(self, connection: Connection) -> bool:
        """Always."""
        return True

    def exists(self, url: URL) -> bool:
        """Only the server can say it."""
        return True

    def schema(self, connection: Connection) -> str:
        """The schema that comes first in the search path, quoted."""
        return str(connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one())

    def objects(self, engine: Engine) -> tuple[Objects, Objects]:
        """Return the objects of a new store, made in a schema that is rolled back, and those of the schema of the store."""
        from runner.records.store.tables import metadata

        with engine.connect().execution_options(**self.supposing) as connection:
            existing = _objects(connection)
            fresh = connection.exec_driver_sql("SELECT 'verify_' || pg_backend_pid()").scalar_one()
            connection.exec_driver_sql(f"CREATE SCHEMA {fresh}; SET LOCAL search_path TO {fresh}")
            metadata.create_all(connection, checkfirst=False)
            if any(name == "coordinators" for _, name in existing):
                connection.exec_driver_sql(_COORDINATORS)
            wanted = _objects(connection)
            connection.rollback()
        return wanted, existing

    @contextmanager
    def anew(self, connection: Connection) -> Iterator[None]:
        """New tables in a schema beside; at its end they are put in the place of the old ones, between readers."""
        from sqlalchemy import inspect

        from runner.records.store.tables import OURS, metadata

        schema = self.schema(connection).replace("%", "%%")  # begins a placeholder of psycopg's
        beside = connection.exec_driver_sql("SELECT 'anew_' || md5(current_schema())").scalar_one()
        connection.exec_driver_sql(f"CREATE SCHEMA {beside}; SET LOCAL search_path TO {beside}")
        metadata.create_all(connection, checkfirst=False)
        yield
        connection.exec_driver_sql(f"SET LOCAL search_path TO {schema}")
        there = [f'"{name}"' for name in inspect(connection).get_table_names() if name in OURS]
        if '"meta"' in there:
            _between_readers(connection)
        moves = [f'ALTER TABLE {beside}."{name}" SET SCHEMA {schema}' for name in metadata.tables]
        drops = [f"DROP TABLE {', '.join(there)}"] if there else []
        connection.exec_driver_sql("; ".join([*drops, *moves, f"DROP SCHEMA {beside}"]))

    def is_rolled_back(self, error: BaseException) -> bool:
        """True if the server reported the error. A connection that breaks may do so after the server has committed."""
        state = _state(getattr(error, "orig", None))
        return bool(state) and not state.startswith(_BROKEN)

    def unusable(self, error: BaseException, engine: Engine | None) -> PlatformError:
        """What server or driver say, in one line; neither says a password."""
        from schemas import show

        fix = (
            "start the server, or correct RUNNER_DATABASE (in proctor.yaml: database); runner doctor tries it"
        )
        if _state(error) == _NO_LOCK:
            fix = "try again; who is connected: SELECT * FROM pg_stat_activity"
        elif _state(error) == _IN_USE:
            fix = "drop what depends on tables of the store: it is made again with new ones"
        elif _state(error).startswith(_WRONG_SHAPE):
            fix = "runner store rebuild makes the store again"
        why = show(" ".join(str(error).split()), 400).rstrip(".?")
        return PlatformError("the store cannot be used", why=f"{why}.", fix=fix, code="E306")

    @contextmanager
    def alone(self, engine: Engine, role: Role) -> Iterator[int]:
        """A lock as long as a connection lives, and one number higher than any had before in that role."""
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as held, ExitStack() as last:
            last.callback(held.invalidate)  # closes the connection, also one that was lost
            # A machine that vanished is noticed within a minute.
            held.exec_driver_sql(
                "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3"
            )
            if not held.exec_driver_sql(_ALONE, (f"proctor {role} ",)).scalar_one():
                raise _taken(
                    f"another {role} is at work on this database",
                    "Another machine, or a command with another data directory, holds its lock.",
                )
            with engine.connect().execution_options(**self.writing) as connection, connection.begin():
                connection.exec_driver_sql(_COORDINATORS)
                number = connection.exec_driver_sql(
                    "INSERT INTO coordinators VALUES (%s, 1) "
                    "ON CONFLICT (role) DO UPDATE SET number = coordinators.number + 1 RETURNING number",
                    (role,),
                ).scalar_one()
            yield int(number)

    def check(self, connection: Connection, role: Role, number: int) -> None:
        """Compare the number with that of whoever began last in that role."""
        query = "SELECT number FROM coordinators WHERE role = %s"
        found = connection.exec_driver_sql(query, (role,)).scalar()
        if found != number:
            raise _taken(
                f"another {role} has taken over",
                f"The connection of this one (number {number}) was lost, and number {found} began after it.",
            )


_OURS = "n.oid = current_schema()::regnamespace"
_EXTENSION = (
    "SELECT FROM pg_depend e WHERE e.deptype = 'e' AND e.classid = '{}'::regclass AND e.objid = {}.oid"
)
_RELATIONS = f"""pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND {_OURS}
  AND NOT EXISTS ({_EXTENSION.format("pg_class", "c")})"""
# Kind, name, and definition without the name of the schema, of all that changes what is written or read.
_OBJECTS = f"""
SELECT CASE c.relkind WHEN 'r' THEN 'table' WHEN 'i' THEN 'index' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
    WHEN 'S' THEN 'sequence' ELSE 'relation of kind ' || c.relkind::text END, c.relname,
  CASE c.relkind WHEN 'i' THEN pg_get_indexdef(c.oid, 0, true) ELSE c.relpersistence::text || c.relrowsecurity || c.relispartition END
  FROM {_RELATIONS}
UNION ALL SELECT 'column', c.relname || '.' || a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod), a.attnotnull,
    a.attgenerated, a.attidentity, (SELECT collname FROM pg_collation l WHERE l.oid = a.attcollation),
    (SELECT pg_get_expr(d.adbin, d.adrelid, true) FROM pg_attrdef d WHERE d.adrelid = c.oid AND d.adnum = a.attnum))
  FROM {_RELATIONS} JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped WHERE c.relkind = 'r'
UNION ALL SELECT 'constraint', c.relname || '.' || o.conname, pg_get_constraintdef(o.oid, true)
  FROM {_RELATIONS} JOIN pg_constraint o ON o.conrelid = c.oid
UNION ALL SELECT 'trigger', c.relname || '.' || t.tgname, pg_get_triggerdef(t.oid, true)
  FROM {_RELATIONS} JOIN pg_trigger t ON t.tgrelid = c.oid WHERE NOT t.tgisinternal
UNION ALL SELECT 'constraint without effect', c.relname || '.' || (SELECT conname FROM pg_constraint o WHERE o.oid = t.tgconstraint), ''
  FROM {_RELATIONS} JOIN pg_trigger t ON t.tgrelid = c.oid WHERE t.tgisinternal AND t.tgenabled <> 'O'
UNION ALL SELECT 'rule', c.relname || '.' || r.rulename, pg_get_ruledef(r.oid, true)
  FROM {_RELATIONS} JOIN pg_rewrite r ON r.ev_class = c.oid WHERE r.rulename <> '_RETURN'
UNION ALL SELECT 'policy', c.relname || '.' || p.polname, ''
  FROM {_RELATIONS} JOIN pg_policy p ON p.polrelid = c.oid
UNION ALL SELECT 'function', p.oid::regprocedure::text, ''
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace AND {_OURS}
  AND NOT EXISTS ({_EXTENSION.format("pg_proc", "p")})
"""  # noqa: S608  (made of constants alone)


def _objects(connection: Connection) -> Objects:
    """Return what the first schema of the search path holds, without the objects of extensions."""
    return {
        (kind, name): text for kind, name, text in connection.exec_driver_sql(_OBJECTS.replace("%", "%%"))
    }


def examine(connection: Connection) -> tuple[str, tuple[str, ...]]:
    """The version of the server, and what the database or the role lacks for a store, in words."""
    version, encoding, schemas, tables = connection.exec_driver_sql(
        "SELECT current_setting('server_version'), current_setting('server_encoding'), "
        "has_database_privilege(current_database(), 'CREATE'), "
        "coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)"
    ).one()
    needed = {
        f"its encoding is {encoding}, not UTF8": encoding == "UTF8",
        "the role may make no schemas in it": schemas,
        "the role may make no tables in the first schema of its search path": tables,
    }
    return str(version), tuple(lack for lack, there in needed.items() if not there)


def _between_readers(connection: Connection) -> None:
    """Wait until nobody reads, and let nobody begin to. Raises DBAPIError after ``BUSY_SECONDS``."""
    from sqlalchemy.exc import DBAPIError

    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.exec_driver_sql(_SWAP)
        except DBAPIError as error:
            if _state(error.orig) != _NO_LOCK or time.monotonic() > end:
                raise
            connection.exec_driver_sql("ROLLBACK TO SAVEPOINT gate")
            time.sleep(0.1)
        else:
            return


def _taken(what: str, why: str) -> PlatformError:
    fix = "leave the work to it; one at a time works on a database"
    return PlatformError(what, why=why, fix=fix, code="E306")


def _state(error: object) -> str:
    """The SQLSTATE of an error of the server; empty for others."""
    return str(getattr(error, "sqlstate", None) or "")
