"""The checks of ``runner doctor``: each on a machine that is fine and on one that is not."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runner import doctor
from runner.doctor import engine as doctor_engine
from runner.doctor import home, tasks
from runner.doctor.checks import Check
from runner.engines.base import EngineInfo
from runner.engines.docker import owner
from runner.engines.docker.engine import DockerEngine
from runner.engines.fake import FakeEngine
from runner.model.clock import FixedClock
from runner.model.config import Config, load
from runner.model.limits import GIB
from runner.provision import engine as provision
from runner.tasks.load import load_task
from runner.tasks.scaffold import hide
from tests.worlds.definitions import project, write_task

ROOT = Path(__file__).resolve().parents[3]
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
GOOD = EngineInfo(
    name="docker",
    version="20.10.24",
    api_version="1.41",
    cgroup_version="2",
    cgroup_driver="systemd",
    cpus=2,
    memory=8 * GIB,
    platform="linux/amd64",
    storage_driver="overlay2",
    user_namespaces=True,
)


def make_config(home: Path, root: Path = ROOT, truths: Path | None = None) -> Config:
    return Config(root=root, home=home, truths=truths)


def status(checks: list[Check], name: str) -> str:
    return next(check.status for check in checks if check.name == name)


@pytest.mark.engine
def test_a_machine_that_was_set_up_is_fine() -> None:
    """No FAIL on the machine that runs these tests, and every line is one a person can use."""
    checks = doctor.diagnose(load(cwd=ROOT))
    assert [c for c in checks if c.status == "FAIL"] == []
    names = {check.name for check in checks}
    assert {"container engine", "limits", "control groups", "seccomp", "images", "base image"} <= names
    assert {"database", "clock", "tasks", "hidden data"} <= names
    assert any(name.startswith("disk ") for name in names)
    for check in checks:
        assert check.detail and "\n" not in check.detail
        assert set(check.as_dict()) == {"status", "name", "detail", "fix"}


@pytest.mark.parametrize(
    ("options", "networks", "forwards", "key", "says"),
    [
        ({"network": "bridge"}, {"bridge", "host"}, True, False, ""),
        ({"network": "host", "key": "A_KEY"}, {"host"}, False, True, ""),
        ({"network": "bridge"}, {"host", "none"}, False, True, "bridge"),
        ({"network": "bridge"}, {"bridge", "host"}, False, True, "forwards"),
        ({"network": "bridge", "key": "A_KEY"}, {"bridge"}, True, False, "A_KEY"),
    ],
)
def test_gateways_that_can_and_cannot_reach_their_endpoint(
    options: dict[str, str], networks: set[str], forwards: bool, key: bool, says: str
) -> None:
    check = tasks.gateway_check("t", {"base_url": "https://x/v1", **options}, networks, forwards, key=key)
    assert check.status == ("CAUTION" if says else "PASS")
    assert says in check.detail and bool(check.fix) == bool(says)


@pytest.mark.parametrize("address", ["unix://{}/nobody.sock", None], ids=["silent", "none"])
def test_without_an_engine_the_other_checks_still_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str | None
) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setattr(provision, "DEFAULT_SOCKET", f"unix://{tmp_path}/absent.sock")
    config = replace(make_config(tmp_path / "home"), engine=address and address.format(tmp_path))
    checks = doctor.diagnose(config, FixedClock(NOW))
    assert status(checks, "container engine") == doctor.worst(checks) == "FAIL"
    assert next(c.fix for c in checks if c.name == "container engine")
    assert status(checks, "database") == "PASS"
    assert not (tmp_path / "home").exists(), "looking changes nothing"


@pytest.mark.parametrize("missing", ["altair", "vl_convert", ""])
def test_pages_that_will_have_no_plots_are_named(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(tmp_path / "home")
    if missing:
        monkeypatch.setitem(sys.modules, missing, None)  # as where it is not installed
    assert home.plots_checks(config) == [], "nothing is published from here"
    config.published.mkdir(parents=True)
    (check,) = home.plots_checks(config)
    assert check.status == ("CAUTION" if missing else "PASS")
    assert not missing or (missing in check.detail and "proctor-ir[plots]" in check.fix)


@pytest.mark.parametrize(
    ("change", "name", "expected"),
    [
        ({}, "limits", "PASS"),
        ({"missing": ("memory limits",)}, "limits", "FAIL"),
        ({"swap": False}, "swap accounting", "FAIL"),
        ({"exact_memory": False}, "control groups", "CAUTION"),
        ({"seccomp": False}, "seccomp", "CAUTION"),
        ({"seccomp": False, "filters_calls": False}, "seccomp", "FAIL"),
        ({"user_namespaces": False}, "user namespaces", "CAUTION"),
        ({"counts_sockets": False}, "memory of sockets", "CAUTION"),
        ({"storage_driver": "vfs"}, "storage driver", "CAUTION"),
    ],
)
def test_what_an_engine_lacks_is_named(change: dict[str, Any], name: str, expected: str) -> None:
    checks = doctor_engine.limit_checks(replace(GOOD, **change))
    assert status(checks, name) == expected
    assert [c.name for c in checks if c.status != "PASS"] == ([name] if change else [])
    assert doctor.worst(checks) == expected and doctor.worst([]) == "PASS"


@pytest.mark.engine
def test_what_dead_processes_left_is_counted(engine: DockerEngine) -> None:
    host, tag = socket.gethostname(), secrets.token_hex(6)
    dead, elsewhere = f"{host}|another boot|1|2", "another-host|x|1|2"
    before = set(engine.reap(dry_run=True))
    try:
        with engine.clients.calling("leaving volumes of others") as api:
            for name, who in (("living", owner.me()), ("elsewhere", elsewhere), ("dead", dead)):
                labels = {"proctor.attempt": f"{tag}-{name}", "proctor.owner": who}
                api.create_volume(f"proctor-test-{tag}-{name}", driver="local", labels=labels)
        # Others' tests on the same engine may remove it meanwhile: it is left behind, after all.
        assert set(engine.reap(dry_run=True)) - before <= {f"{tag}-dead"}
        assert doctor_engine.leftover_check(engine).status in ("PASS", "CAUTION")
        assert f"{tag}-living" in {one.get("proctor.attempt") for one in engine.clients.labelled(owner=None)}
    finally:
        for name, who in (("living", owner.me()), ("elsewhere", elsewhere), ("dead", dead)):
            engine.clients.remove(attempt=f"{tag}-{name}", owner=who)


def test_left_over_attempts_are_a_caution(tmp_path: Path) -> None:
    class Left(FakeEngine):
        def reap(self, *, prefix: str = "", dry_run: bool = False) -> list[str]:
            assert dry_run, "looking changes nothing"
            return ["a#1"]

    for engine, expected in ((FakeEngine({}), "PASS"), (Left({}), "CAUTION")):
        check = doctor_engine.leftover_check(engine)
        assert check.status == expected and check.detail.startswith("1 ") == (expected == "CAUTION")
        engine.close()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("2026-11-21T12:00:10.123456789Z", "PASS"),
        ("2026-11-21T13:00:10.123456789+01:00", "PASS"),
        ("2026-11-21T12:05:00Z", "CAUTION"),
        ("2026-11-21T12:00:00+01:00", "CAUTION"),
        ("", "CAUTION"),
        ("yesterday", "CAUTION"),
    ],
)
def test_the_engines_clock(said: str, expected: str) -> None:
    assert doctor_engine.engine_clock_check(said, NOW).status == expected


def test_time_may_not_go_back_behind_the_last_event(tmp_path: Path) -> None:
    config = make_config(tmp_path)
    assert home.clock_check(config, NOW).status == "PASS"
    config.events.write_text('{"time": "2026-11-21T11:59:00Z"}\n{"time": "2026-11-21T12:10:00Z"}\n{"torn')
    assert home.clock_check(config, NOW).status == "FAIL"
    config.events.write_text('{"time": "2026-11-21T12:00:30Z"}\n')
    assert home.clock_check(config, NOW).status == "PASS"
    config.events.write_bytes(b"\xff\n[]\n7\n")
    assert home.clock_check(config, NOW).status == "PASS"
    assert home.clock_check(config, NOW.replace(year=1970)).status == "FAIL"


@pytest.mark.parametrize(
    ("free", "expected"), [(100 * GIB, "PASS"), (3 * GIB, "CAUTION"), (GIB // 2, "FAIL")]
)
def test_room_on_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, expected: str) -> None:
    monkeypatch.setattr(home.shutil, "disk_usage", lambda _: type("Usage", (), {"free": free}))
    check = home.disk_check("disk", tmp_path / "not" / "yet", "make room")
    assert (check.status, check.fix) == (expected, "" if expected == "PASS" else "make room")


def test_the_database_needs_a_folder_that_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(tmp_path / "home")
    assert home.database_check(config).status == "PASS"
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert home.database_check(config).status == "FAIL"


def test_damaged_records_are_found_with_their_remedy(tmp_path: Path) -> None:
    config = replace(make_config(tmp_path / "home"), engine=f"unix://{tmp_path}/nobody.sock")
    assert home.records_check(config).status == "PASS"
    assert not config.home.exists()

    def records() -> Check:
        return next(check for check in doctor.diagnose(config) if check.name == "records")

    config.home.mkdir()
    config.database.write_bytes(b"no database" * 400)
    assert records().status == "FAIL" and "store rebuild" in records().fix
    config.database.unlink()
    config.events.write_text('{"time": "2026-11-21T11:59:00Z"}\n')
    assert records().status == "FAIL" and "backup" in records().fix


def test_where_hidden_data_lie_and_who_may_read_them(tmp_path: Path) -> None:
    root, private = tmp_path / "root", tmp_path / "private"
    bare = project(root)
    write_task(bare, demo=None)

    def check(config: Config, *names: str) -> Check:
        return tasks.hidden_check(config, [load_task(config, name) for name in names])

    assert check(bare).status == "PASS"
    unset = check(bare, "toy")
    assert unset.status == "CAUTION" and "toy/test" in unset.detail
    config = replace(bare, private=private)
    assert check(config).status == "FAIL"
    private.mkdir()
    private.chmod(0o755)
    assert check(config).fix == f"chmod 700 {private}"
    private.chmod(0o700)
    assert check(config).status == "PASS"
    assert "hide toy" in check(config, "toy").fix
    hide(config, "toy")
    assert check(config, "toy").status == "PASS"
    shutil.rmtree(private / "toy" / "test" / "truths")
    assert check(config, "toy").status == "CAUTION"
    inside = root / "private"
    inside.mkdir(mode=0o700)
    for place in (inside, root, tmp_path):
        for wrong in (replace(bare, private=place), replace(bare, truths=place)):
            assert check(wrong).status == "FAIL"
    (tmp_path / "link").symlink_to(inside)
    assert check(replace(bare, private=tmp_path / "link")).status == "FAIL"
