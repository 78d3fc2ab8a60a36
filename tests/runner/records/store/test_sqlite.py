"""The store in a file of SQLite."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import sqlalchemy as sa

from runner.records.store.database import make_engine, read_recorded
from tests.worlds.records import World

ROOT = Path(__file__).parents[4]


def output_of(code: str) -> list[str]:
    """Run code in another process, and return the words that it prints."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.split()


def test_sqlite_runs_in_wal_mode_with_foreign_keys(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    with world.store.read() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


def test_opening_a_store_that_is_up_to_date_imports_nothing_heavy(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    world.scored("alpha", "x", topics=3)
    code = (
        "import sys\nfrom pathlib import Path\nfrom runner.model.config import Config\n"
        "from runner.records.store.connect import open_store\nassert 'sqlalchemy' not in sys.modules\n"
        f"home = Path({str(tmp_path)!r})\nopen_store(Config(home, home / 'home', None)).close()\n"
        "print(*({'pandas', 'numpy', 'scipy', 'docker'} & set(sys.modules)))\n"
    )
    assert output_of(code) == []


def test_what_a_database_records_is_read_without_opening_a_store(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    world.scored("alpha", "x", topics=3)
    assert read_recorded(world.config).state == "usable"
    with world.store.write() as connection:
        connection.exec_driver_sql("UPDATE meta SET value = '1' WHERE key = 'rules'")
    assert read_recorded(world.config).state == "other"
    with world.store.write() as connection:
        connection.exec_driver_sql("DROP TABLE meta")
    assert read_recorded(world.config).state == "none"
    world.store.close()
    world.config.database.write_bytes(b"no database" * 100)
    assert read_recorded(world.config).state == "unusable"


def test_a_new_store_is_opened_by_several_at_once(tmp_path: Path) -> None:
    """Turning the write-ahead log on does not wait for a lock."""
    for n in range(20):
        engines = [make_engine(f"sqlite:///{tmp_path}/{n}.sqlite") for _ in range(8)]
        together = threading.Barrier(len(engines))

        def opened(engine: sa.Engine, together: threading.Barrier = together) -> object:
            together.wait()
            with engine.connect() as connection:
                return connection.exec_driver_sql("PRAGMA journal_mode").scalar()

        with ThreadPoolExecutor(len(engines)) as pool:
            assert list(pool.map(opened, engines)) == ["wal"] * len(engines)
        for engine in engines:
            engine.dispose()
