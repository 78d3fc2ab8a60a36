"""A room on a Docker engine, beside what real ones show in tests/contracts/: an engine that is slow to hand over."""

from __future__ import annotations

import io
import tarfile
import time
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from runner.engines.base import ContainerSpec, RoomRun
from runner.engines.docker import room as rooms
from runner.engines.docker.client import STDOUT
from runner.engines.docker.meter import GroupMeter, Meter, StatsMeter
from runner.engines.docker.program import Program
from runner.model.container import ImageRef
from runner.model.errors import PlatformError
from runner.model.limits import Limits

WAITING = 7  # the user of what waits in the room


class Slow(Program):
    """A program that has ended, and the second half of whose output arrives later than a moment."""

    later = 2.0

    def _read(self) -> None:
        with io.BytesIO() as file:
            with tarfile.open(fileobj=file, mode="w") as tar:
                for name in ("one", "two"):
                    info = tarfile.TarInfo(f"./{name}")
                    info.size = 512
                    tar.addfile(info, io.BytesIO(name[0].encode() * 512))
            output = file.getvalue()
        self._hear(STDOUT, self._mark + output[:1024])
        time.sleep(self.later)
        self._hear(STDOUT, output[1024:])

    def exit_code(self) -> int | None:
        return 0


def run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, users: set[int]
) -> tuple[RoomRun, rooms.DockerRoom, MagicMock]:
    monkeypatch.setattr(rooms, "Program", Slow)
    clients, handle = MagicMock(), MagicMock()
    clients.streaming.return_value.__enter__.return_value = (MagicMock(), None)
    handle.ended.return_value = handle.over_processor_limit.return_value = False
    handle.meter.processor_time.return_value = handle.meter.oom_kills.return_value = 0
    handle.meter.users.return_value, handle.meter.delay = users, 0.0
    spec = ContainerSpec("evaluator", ImageRef(id="sha256:" + "0" * 64), None, Limits())
    users_left = MagicMock(left=[1, 2])
    room = rooms.DockerRoom(clients, handle, spec, users_left, WAITING, 1 << 20, uid_base=0)
    done = room.run(
        ("true",), {}, folder, env={}, deadline=30, cancelled=lambda: False, allowed=lambda _: True, max_bytes=10_000, max_files=9
    )  # fmt: skip
    return done, room, handle


@pytest.mark.slow
def test_all_that_a_program_left_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that is cut between two files reads as one that has ended."""
    done, room, handle = run(tmp_path / "out", monkeypatch, {WAITING})
    assert done.collected.files == ("one", "two")
    assert room.usable and not handle.stop.called


@pytest.mark.slow
def test_whoever_holds_its_streams_ends_with_the_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, room, handle = run(tmp_path / "out", monkeypatch, {WAITING, 1})
    assert done.collected.files == ("one", "two")
    assert not room.usable and handle.stop.called


def test_what_never_comes_whole_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "KILL_GRACE", 0.1)
    monkeypatch.setattr(Slow, "later", 4.0)
    with pytest.raises(PlatformError) as error:
        run(tmp_path / "out", monkeypatch, {WAITING})
    assert error.value.code == "E303" and error.traceback[-1].name == "run"
    assert not (tmp_path / "out").exists(), "nothing was collected"


@pytest.mark.parametrize(
    ("meter", "used"), [(GroupMeter(driver="cgroupfs", version="2"), 0.0), (StatsMeter(MagicMock()), 4.0)]
)
def test_processor_time_that_is_heard_of_late_is_not_the_next_ones(
    meter: Meter, used: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sampled once a second, a program's last seconds come to light while the next one runs in its room."""
    limits, handle = Limits(cpus=2.0, cpu_time=5.0), MagicMock(meter=meter)
    monkeypatch.setattr(meter, "processor_time", lambda: 30.0)
    spec = ContainerSpec("evaluator", ImageRef(id="sha256:" + "0" * 64), None, limits)
    room = rooms.DockerRoom(MagicMock(), handle, spec, MagicMock(left=[1]), WAITING, 1, uid_base=0)
    room._bound(limits.cpu_time)
    assert handle.processor_limit == 30.0 + 5.0 + used
    room._bound(None)
    assert handle.processor_limit is None
