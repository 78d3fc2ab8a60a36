"""Blinded and public sessions on one engine: never both at once, and empty caches in between. Both engines."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import secrets
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from runner.engines import sandbox, tarstream
from runner.engines.base import Cancelled, Mount, Volume
from runner.engines.docker import turns as docker_turns
from runner.engines.docker.engine import DockerEngine
from runner.engines.docker.evict import PAGES, PROGRAM, evict, judge
from runner.engines.fake import FakeEngine
from runner.engines.turns import Turns, cannot_evict
from runner.model.container import ImageRef
from runner.model.errors import PlatformError
from tests.contracts.conftest import (
    World,
    caches_lock,
    guarded_engine,
    kill_during_blinded_run,
    raises_in,
    run_at_once,
)


@pytest.fixture
def guarded(world: World) -> Iterator[Any]:
    """An engine that keeps the rules."""
    if not isinstance(world.engine, DockerEngine):
        yield world.engine
        return
    with guarded_engine(world.engine) as guarded:
        yield guarded


def board(engine: Any) -> Any:
    return engine.turns.board


@pytest.mark.slow
def test_a_blinded_session_marks_the_engine_and_a_public_one_wipes_it(
    world: World, guarded: Any, attempt: str
) -> None:
    told: list[str] = []
    guarded.turns.tell = told.append
    with guarded.session(f"{attempt}a", visibility="blinded"):
        assert board(guarded).marked()
    assert board(guarded).marked(), "what it read is still in memory"
    assert not any("emptying" in words for words in told)
    with guarded.session(f"{attempt}b"):
        assert any("emptying" in words for words in told)
    if not world.real:  # tests beside this one that do not keep the rules may have marked a real engine again
        assert not board(guarded).marked()


@pytest.mark.slow
@pytest.mark.parametrize("visibility", ["public", "blinded"])
def test_sessions_of_one_visibility_share_the_engine(guarded: Any, attempt: str, visibility: Any) -> None:
    inside = threading.Barrier(3, timeout=60)

    def run(number: int) -> int:
        with guarded.session(f"{attempt}{number}", visibility=visibility):
            inside.wait()
            return number

    assert run_at_once(run) == [0, 1, 2]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), [("public", "blinded"), ("blinded", "public")])
def test_the_other_kind_waits(guarded: Any, attempt: str, first: Any, second: Any) -> None:
    order: list[str] = []
    told: list[str] = []
    guarded.turns.tell = told.append

    def other() -> None:
        with guarded.session(f"{attempt}b", visibility=second):
            order.append("second begins")

    thread = threading.Thread(target=other)
    with guarded.session(f"{attempt}a", visibility=first):
        thread.start()
        end = time.monotonic() + 100
        while not any(f" 1 {first} " in words for words in told):
            assert time.monotonic() < end, told
            time.sleep(0.02)
        time.sleep(0.5)
        order.append("first ends")
    thread.join(60)
    assert order == ["first ends", "second begins"]


@pytest.mark.slow
@pytest.mark.parametrize("visibility", ["public", "blinded"])
def test_a_program_of_ours_without_hidden_data_waits_for_nobody(
    guarded: Any, attempt: str, visibility: Any
) -> None:
    with (
        guarded.session(f"{attempt}a", visibility=visibility),
        guarded.session(f"{attempt}b", visibility=None),
    ):
        present = board(guarded).present("public") + board(guarded).present("blinded")
        assert f"{attempt}a" in present and f"{attempt}b" not in present


@pytest.mark.slow
def test_a_waiting_session_can_be_cancelled(guarded: Any, attempt: str) -> None:
    stop = threading.Event()

    def other() -> None:
        with guarded.session(f"{attempt}b", visibility="blinded", cancelled=stop.is_set):
            pass

    with guarded.session(f"{attempt}a"), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(other)
        stop.set()
        assert isinstance(waiting.exception(100), Cancelled)
        assert board(guarded).present("blinded") == []


def test_a_run_whose_announcement_failed_halfway_keeps_nobody_waiting(guarded: Any, attempt: str) -> None:
    """As when the engine did what it was asked and its answer was lost."""

    class Halfway:
        def __getattr__(self, name: str) -> Any:
            return getattr(board(guarded), name)

        def announce(self, visibility: Any, attempt_id: str) -> None:
            board(guarded).announce(visibility, attempt_id)
            raise PlatformError("no answer", code="E301")

    turns = Turns(Halfway(), guarded.turns._gate)
    with pytest.raises(PlatformError) as caught, turns.take("blinded", attempt):
        pass
    assert caught.value.code == "E301"
    assert attempt not in board(guarded).present("blinded")


def test_no_turn_inside_one_of_the_other_kind(guarded: Any, attempt: str) -> None:
    with (
        guarded.session(f"{attempt}a"),
        raises_in("turns.py"),
        guarded.session(f"{attempt}b", visibility="blinded"),
    ):
        pass
    with guarded.session(f"{attempt}c"), guarded.session(f"{attempt}d"):
        pass


@pytest.mark.parametrize(("engine_for", "refused"), [("public", "blinded"), ("blinded", "public")])
def test_an_engine_for_one_kind_refuses_the_other(
    guarded: Any, attempt: str, engine_for: Any, refused: Any
) -> None:
    turns = Turns(board(guarded), guarded.turns._gate, engine_for)
    with pytest.raises(PlatformError) as caught, turns.take(refused, attempt):
        pass
    assert caught.value.code == "E311" and engine_for in caught.value.why and caught.value.fix
    with turns.take("public", attempt, building=True):
        pass  # images of ours are built everywhere


def test_no_run_begins_where_caches_must_be_emptied_and_cannot(attempt: str) -> None:
    faults = {"evict": [cannot_evict("no") for _ in range(3)]}
    with contextlib.closing(FakeEngine({}, faults=faults)) as engine:
        with pytest.raises(PlatformError) as caught, engine.session(attempt, visibility="blinded"):
            pass
        assert caught.value.code == "E311" and "RUNNER_ENGINE_FOR" in caught.value.fix
        assert not engine.board.marked() and engine.board.present("blinded") == []
        engine.board.mark()
        for _ in range(2):
            with pytest.raises(PlatformError) as caught, engine.session(attempt):
                pass
            assert caught.value.code == "E311" and engine.board.marked()
        with engine.session(attempt):  # it works again
            assert not engine.board.marked()


def test_an_organiser_can_accept_it_and_the_mark_stays(attempt: str) -> None:
    with contextlib.closing(FakeEngine({}, engine_for="both-without-eviction")) as engine:
        with engine.session(f"{attempt}a", visibility="blinded"), engine.session(f"{attempt}b"):
            assert engine.board.marked()
        assert "evict" not in engine.calls and engine.board.marked()


GOOD: dict[str, Any] = {
    "memory": False,
    "tries": {"volume": [0], "image": [0]},
    "volume": [64, 0],
    "image": [100, 0],
    "after": {"volume": 64, "image": 100},
    "seconds": 1,
    "counters": {"processors": 2, "inodes": 2, "memory_inodes": 2},
}


# A change, and what the problem names: a file or a counter, and all numbers.
PROBLEMS: list[tuple[dict[str, Any], str, list[int]]] = [
    ({"error": "[Errno 13] /proc/sys/vm/drop_caches"}, "drop_caches", [13]),
    ({"after": {"volume": 63, "image": 100}}, "volume", [64, 1]),
    ({"after": {"volume": 64, "image": 0}}, "image", [100, 100]),
    ({"volume": [64, 64]}, "volume", [64, 0]),
    ({"image": [0, 0]}, "image", [0, PAGES // 4]),
    ({"counters": {}}, "counters", []),
    ({"counters": GOOD["counters"] | {"inodes": 1}}, "inodes", [1, 2]),
]


@pytest.mark.parametrize(("change", "named", "numbers"), PROBLEMS)
def test_caches_that_are_not_proved_empty(change: dict[str, Any], named: str, numbers: list[int]) -> None:
    problem = judge(GOOD | change)
    assert named in problem
    assert [int(number) for number in re.findall(r"\d+", problem)] == numbers


@pytest.mark.parametrize("change", [{}, {"memory": True, "after": {"volume": 0, "image": 0}}])
def test_caches_that_are_proved_empty(change: dict[str, Any]) -> None:
    assert judge(GOOD | change) == ""


def test_every_session_of_ours_says_on_data_of_which_visibility_it_runs() -> None:
    """The default of the engine's method is for tests: a caller that forgets would run blinded data unmarked."""
    import ast
    from pathlib import Path

    import runner

    found = []
    for path in Path(next(iter(runner.__path__))).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "session":
                found.append((path.name, {k.arg for k in node.keywords}))
    assert len(found) >= 4
    assert [name for name, keywords in found if "visibility" not in keywords] == []


@pytest.mark.slow
@pytest.mark.engine
def test_a_blinded_run_whose_process_was_killed_is_removed_before_a_public_one(
    engine: DockerEngine, scratch_image: ImageRef, attempt: str
) -> None:
    told: list[str] = []
    with guarded_engine(engine, tell=told.append) as guarded:
        kill_during_blinded_run(engine, f"{attempt}a", scratch_image, loopback=False)
        with guarded.session(f"{attempt}b"):
            filters = {"label": [f"proctor.attempt={attempt}a"]}
            assert guarded.clients.get().containers(filters=filters) == []
            assert any("emptying" in words for words in told)


@pytest.mark.slow
@pytest.mark.engine
def test_the_mark_outlives_a_clean_up_of_unused_volumes(engine: DockerEngine) -> None:
    with caches_lock():
        board(engine).mark()
        engine.clients.get().remove_volume("proctor-blinded-since-eviction")
        assert board(engine).marked()
        evict(engine)
        board(engine).unmark()


@pytest.mark.engine
def test_machines_that_share_an_engine_keep_the_latest_record_of_a_loopback(
    engine: DockerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine records a loopback after this one has made its volume, and before it removes older ones."""
    with guarded_engine(engine) as other:
        board(engine).record_loopback()
        [*older] = engine.clients.volumes(mark="loopback")
        create = engine.clients.get().create_volume

        def create_before_other(name: str, **options: Any) -> None:
            create(name, **options)
            board(other).record_loopback()

        with monkeypatch.context() as patch:
            patch.setattr(engine.clients.get(), "create_volume", create_before_other)
            board(engine).record_loopback()
        left = engine.clients.volumes(mark="loopback").keys() - older
        assert len(left) >= 2
        monkeypatch.setattr(docker_turns, "LOOPBACK_RECORD_SECONDS", -60.0)
        board(engine).record_loopback()
        assert not engine.clients.volumes(mark="loopback").keys() & left


@contextlib.contextmanager
def evict_container(engine: DockerEngine, attempt: str, code: str, **changes: Any) -> Iterator[str]:
    """The container that empties caches, with other code in it; ``changes`` replace what it is made with."""
    api = engine.clients.get()
    volume = Volume(f"proctor-evict-{hashlib.sha256(attempt.encode()).hexdigest()[:12]}")
    labels = {"proctor.attempt": attempt}
    api.create_volume(volume.name, labels=labels)
    body = sandbox.evict_options(
        engine.keeper(), ("python3", "-c", code), Mount(volume, "/probe", read_only=False), labels=labels,
        own_profile=engine.own_profile, user_namespaces=engine.user_namespaces,
    )  # fmt: skip
    made = api.create_container_from_config(body | changes, name=f"proctor-{attempt}")["Id"]
    try:
        api.put_archive(made, "/probe", b"".join(tarstream.stream([("file", secrets.token_bytes(1 << 18))])))
        yield made
    finally:
        api.remove_container(made, force=True)
        api.remove_volume(volume.name)


def said(engine: DockerEngine, made: str) -> Any:
    """What the container prints, as JSON."""
    api = engine.clients.get()
    api.start(made)
    assert api.wait(made)["StatusCode"] == 0, api.logs(made)
    return json.loads(api.logs(made, stderr=False))


@pytest.mark.engine
def test_what_the_container_that_empties_caches_may_do(engine: DockerEngine, attempt: str) -> None:
    """Root outside, because the switch is root's; and nothing besides: read back from the container and tried inside."""
    tries = """
import json, os, socket
def tried(path, mode="r+b"):
    try:
        open(path, mode, 0).close()
        return True
    except OSError:
        return False
names = ["/proc/sys/kernel/hostname", "/proc/sys/fs/file-max", "/proc/sys/net/ipv4/ip_default_ttl", "/proc/sysrq-trigger", "/dev/kmsg", "/etc/passwd"]
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
print(json.dumps({"written": [n for n in names if tried(n)], "switch": tried("/proc/sys/vm/drop_caches", "wb"),
    "net": os.listdir("/sys/class/net"), "caps": {status[k].strip() for k in ("CapEff", "CapPrm", "CapBnd")}.pop(), "nnp": status["NoNewPrivs"].strip(),
    "seccomp": status["Seccomp"].strip()}))
"""
    with evict_container(engine, attempt, tries) as made:
        host = engine.clients.get().inspect_container(made)["HostConfig"]
        assert host["NetworkMode"] == "none" and host["IpcMode"] == "none" and host["ReadonlyRootfs"] is True
        assert host["CapDrop"] == ["ALL"] and not host["CapAdd"] and host["Privileged"] is False
        assert not host["Binds"] and len(host["Mounts"]) == 1
        assert not host["Devices"] and not host["PidMode"]
        assert "no-new-privileges" in host["SecurityOpt"]
        found = said(engine, made)
    assert found["written"] == [] and found["switch"] is True
    assert found["net"] == ["lo"] and int(found["caps"], 16) == 0
    assert found["nnp"] == "1" and found["seccomp"] == "2"


@pytest.mark.engine
def test_an_engine_that_may_not_empty_its_caches_is_found_out(engine: DockerEngine, attempt: str) -> None:
    """As where root in a container is nobody outside: the same container under another user."""
    with evict_container(engine, attempt, PROGRAM, User="65534:65534") as made:
        assert "Errno 13" in judge(said(engine, made))
