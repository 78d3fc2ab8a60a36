"""Output volumes whose keeper serves several runs one after another: each run's is its own."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.engines.base import ContainerSpec, Mount, Space
from runner.engines.docker.client import labels_filter
from runner.engines.docker.engine import DockerEngine
from runner.engines.docker.memory.outputs import LITTLE
from runner.engines.docker.owner import me
from runner.engines.docker.session import DockerSession
from runner.model.config import EngineFor
from runner.model.container import Collected
from runner.model.limits import MIB, Limits
from tests.contracts.conftest import caches_lock, raises_in

pytestmark = pytest.mark.engine
SPACE = Space(4 * MIB, 64)
# Says what it finds, also beside the files, and leaves what may be left.
LEAVE = """
import os
print(sorted(os.listdir('/out')), os.listxattr('/out'), oct(os.stat('/out').st_mode), sorted(os.listdir('/')))
open('/out/run.txt', 'w').write('x')
open('/out/.note', 'w').write('for you')
os.mkdir('/out/deep'); os.chmod('/out', 0o755)
try: os.setxattr('/out', 'user.note', b'for you')
except OSError: pass
"""


def with_keepers(engine: DockerEngine, engine_for: EngineFor = "both-without-eviction") -> DockerEngine:
    """The same engine for a process that may not mount volumes on its machine."""
    found = DockerEngine(engine.clients.host, engine_for=engine_for)
    found.mounts_memory = False
    return found


class Kept:
    """An engine, and the names of the keepers that it was seen with."""

    def __init__(self, engine: DockerEngine, image: Any, folder: Path) -> None:
        self.engine, self.image, self.folder = engine, image, folder
        self.tag = f"kept-{secrets.token_hex(4)}"
        self.keepers: list[str] = []
        self.volumes: list[str] = []

    def run(self, program: str = LEAVE, space: Space = SPACE) -> tuple[str, Collected]:
        """What a run said and left."""
        number = len(self.keepers)
        limits = Limits(memory=192 * MIB, output=space.bytes, wall_clock=60)
        with self.engine.session(f"{self.tag}-{number}", output=space) as session:
            out = session.output_volume("output", bytes=space.bytes, inodes=space.inodes)
            command, mounts = ("python3", "-c", program), (Mount(out, "/out", read_only=False),)
            handle = session.start(ContainerSpec("software", self.image, command, limits, mounts))
            handle.over(60)
            dest = self.folder / str(number)
            found = session.copy_out(out, dest, allowed="run.txt".__eq__, max_bytes=MIB, max_files=2)
            assert handle.wait(60).code == 0, handle.logs("stderr", 1000)
            said = handle.logs("stdout", 10_000).decode()
            self.keepers.append(self.keeper_of(out.name))
            self.volumes.append(out.name)
        return said, found

    def keeper_of(self, volume: str) -> str:
        """The one keeper that has a volume."""
        with self.engine.clients.calling("looking for a keeper") as api:
            (found,) = api.containers(filters={**labels_filter(role="keeper"), "volume": [volume]})
        return str(found["Id"])

    def left(self) -> list[dict[str, str]]:
        """Return the labels of what this process left, without complete volumes of data: these outlast runs."""
        clients, complete = self.engine.clients, self.engine.markers()
        with clients.calling("listing containers") as api:
            containers = [
                one["Labels"] for one in api.containers(all=True, filters=labels_filter(owner=None))
            ]
        volumes = [labels for name, labels in clients.volumes(owner=None).items() if name not in complete]
        return [labels for labels in containers + volumes if labels["proctor.owner"] == me()]


@pytest.fixture
def kept(engine: DockerEngine, base_image: Any, tmp_path: Path) -> Iterator[Kept]:
    with contextlib.closing(with_keepers(engine)) as used:
        found = Kept(used, base_image, tmp_path)
        with used.keeping(1):
            yield found
        assert found.left() == []


@pytest.mark.slow
def test_nobody_finds_what_another_run_left(kept: Kept) -> None:
    """And one keeper serves more and more of them, as long as its volumes are wanted."""
    runs = 1 + 4 + 2
    said = {kept.run() for _ in range(runs)}
    assert len(said) == 1 and "['.note'" not in str(said), said
    ((first, collected),) = said
    assert first.startswith("[] [] 0o40700"), first
    assert collected.files == ("run.txt",)
    assert len(set(kept.volumes)) == runs
    assert [kept.keepers.count(keeper) for keeper in dict.fromkeys(kept.keepers)] == [1, 4, 2]


@pytest.mark.slow
def test_who_leaves_much_ends_the_keeper(kept: Kept) -> None:
    """What nobody fetches lies in memory until then."""
    space = Space(4 * LITTLE, 64)
    for program in (LEAVE, LEAVE, LEAVE, f"open('/out/junk', 'wb').write(bytes({2 * LITTLE}))", LEAVE, LEAVE):
        kept.run(program, space)
    assert [kept.keepers.count(keeper) for keeper in dict.fromkeys(kept.keepers)] == [1, 3, 1, 1]


# Says that it waits, and that it began.
OTHER = """
import sys
from pathlib import Path
from runner.engines.base import BuildSpec
from runner.engines.docker.engine import DockerEngine
host, kind, attempt, folder = sys.argv[1:]
engine = DockerEngine(host, tell=lambda words: print(words, flush=True))
if kind == "build":
    engine.build(BuildSpec(Path(folder)), lambda line: print("began", flush=True))
else:
    with engine.session(attempt, visibility=kind):
        print("began", flush=True)
"""


class Other:
    """Another process of this user, which wants the engine for the other kind, or builds an image."""

    def __init__(self, engine: DockerEngine, kind: str, image: Any, folder: Path) -> None:
        (folder / "context").mkdir()
        (folder / "context" / "Dockerfile").write_text(f"FROM {image.id}\n")
        self._call = [sys.executable, "-c", OTHER, engine.clients.host, kind, f"other-{secrets.token_hex(4)}"]
        self._call.append(str(folder / "context"))
        self._said = folder / "said"
        self.processes: list[subprocess.Popen[bytes]] = []

    def begins_to_wait(self) -> None:
        """Start it; it has found the engine taken when this returns."""
        with self._said.open("wb") as said:
            self.processes.append(subprocess.Popen(self._call, stdout=said, stderr=said))
        end = time.monotonic() + 120
        while "waiting for" not in self.said():
            assert time.monotonic() < end and self.processes[0].poll() is None, self.said()
            time.sleep(0.05)

    def said(self) -> str:
        """What it wrote until now."""
        return self._said.read_text()


@pytest.fixture(params=[("public", "blinded"), ("blinded", "build")], ids=["run", "build"])
def waiting(
    request: pytest.FixtureRequest, engine: DockerEngine, base_image: Any, tmp_path: Path
) -> Iterator[tuple[Any, Other]]:
    """Sessions on an engine that keeps the rules and keeps output volumes, and what waits for their end."""
    first, second = request.param
    guarded, given_up = with_keepers(engine, "both"), threading.Event()
    other = Other(guarded, second, base_image, tmp_path)
    clock = threading.Timer(240, given_up.set)

    def session() -> Any:
        attempt = f"kept-run-{secrets.token_hex(4)}"
        return guarded.session(attempt, visibility=first, output=SPACE, cancelled=given_up.is_set)

    with caches_lock(), contextlib.closing(guarded):
        clock.start()
        try:
            with guarded.keeping(1):
                yield session, other
            (process,) = other.processes
            assert process.wait(120) == 0, other.said()
        finally:
            clock.cancel()
            for process in other.processes:
                process.kill()
                process.wait()


@pytest.mark.slow
def test_a_keeper_that_waited_for_its_run_keeps_nobody_from_the_engine(
    waiting: tuple[Any, Other], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the turn, and so has the run that it was started for: whoever came meanwhile waits for both."""
    session, other = waiting
    started = DockerSession.outputs

    def slowly(self: DockerSession, *given: Any) -> Any:
        found = started(self, *given)
        other.begins_to_wait()
        return found

    monkeypatch.setattr(DockerSession, "outputs", slowly)
    with session():
        assert "began" not in other.said()
        with raises_in("turns.py"), session():
            pass


@pytest.mark.slow
def test_a_keeper_serves_no_further_run_while_another_kind_waits(waiting: tuple[Any, Other]) -> None:
    session, other = waiting
    with session():
        other.begins_to_wait()
        assert "began" not in other.said()
    with session():
        assert "began" in other.said()
