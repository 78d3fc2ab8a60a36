"""A container that stays, and the programs that run in it one after another (see :class:`runner.engines.base.Room`).

Programs are started by the engine ("exec"), which changes the user itself, so that the container needs no capability for
it. Between two programs the room is looked at from outside: no process of any program is left, and the only folders that
could be written to are removed and made again by the engine. A room about which this is not certain is not used again.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.engines import collect, moving, sandbox, tarstream
from runner.engines.base import ROOM, ROOM_OUT, ContainerSpec, RoomRun
from runner.engines.docker.client import Clients
from runner.engines.docker.handle import KILL_GRACE, POLL, DockerHandle
from runner.engines.docker.owner import RoomUsers
from runner.engines.docker.program import LEAVING, Program
from runner.model.clock import SystemClock, stamp
from runner.model.container import Collected, Exit, Resources
from runner.model.errors import PlatformError

TRANSFER = 1800.0  # seconds for moving files in or out
LIFETIME = 120.0  # seconds in which programs are started in a room: whoever waits for its turn on the engine waits no longer
FOLDERS = {"in": 0o500, "out": 0o700, "tmp": 0o700}
KILLED = 137  # exit code after SIGKILL
# After a program that ended well its output follows on its standard output, behind a mark: fetching it by another call takes
# the engine as long as starting a program. Both are run by the program's user: it can spoil its own output, and no other.
THEN_OUTPUT = f'mark=$1; shift; "$@"; code=$?; [ $code = 0 ] && printf %s "$mark" && tar -cf - -C {ROOM_OUT} .; exit $code'


class DockerRoom:
    """See :class:`runner.engines.base.Room`. Made by a session's ``room``.

    ``waiting`` is the user id of the process that waits in it, ``size`` that of its volume, ``uid_base`` what the engine's machine
    adds to user ids.
    """

    def __init__(
        self,
        clients: Clients,
        handle: DockerHandle,
        spec: ContainerSpec,
        users: RoomUsers,
        waiting: int,
        size: int,
        *,
        uid_base: int,
    ) -> None:
        self._clients, self._handle, self._spec = clients, handle, spec
        self._users, self._waiting, self._size = users, uid_base + waiting, size
        self._since = time.monotonic()
        self._sound = True
        handle.processor_limit = None  # it is that of one program, not of the room

    @property
    def usable(self) -> bool:
        """Whether nothing unusual happened in it, it is not old, and a user id is left."""
        return self._sound and bool(self._users.left) and time.monotonic() - self._since < LIFETIME

    def retire(self) -> None:
        """Have it not be usable any more."""
        self._sound = False

    def run(
        self,
        command: Sequence[str],
        files: Mapping[str, Path | bytes],
        dest: Path,
        *,
        env: Mapping[str, str],
        deadline: float,
        cancelled: Callable[[], bool],
        allowed: Callable[[str], bool],
        max_bytes: int,
        max_files: int,
    ) -> RoomRun:
        """See :meth:`runner.engines.base.Room.run`."""
        if not self.usable:
            raise ValueError("nothing more may run in this room")
        self._sound = False  # until it was seen that all is as before
        uid = self._users.left.pop(0)
        self._put({f"in/{name}": what for name, what in files.items()}, uid)
        # Ordinary files fit into the volume; only sparse ones can read as more.
        most = max(max_bytes, self._size) + 2048 * (max_files + 1024)
        mark = secrets.token_hex(16)
        with self._clients.calling("starting a program in a room") as api:
            options = sandbox.exec_options(("sh", "-c", THEN_OUTPUT, "sh", mark, *command), uid, env)
            created = api.exec_create(self._handle.id, **options)["Id"]
        with closing(Program(self._clients, created, self._spec.limits.log, mark.encode(), most)) as program:
            ended = self._watch(program, deadline, cancelled)
            collected, talks = Collected(), program.talking()
            if ended.code == 0 and ended.killed is None:
                left = self._left_behind()
                if talks and left:
                    self._handle.stop(0)  # with the room ends whoever holds its streams
                if talks and program.talking(KILL_GRACE):
                    why = "The engine had not handed over all of it."
                    raise PlatformError("what a program left in a room did not come whole", why=why)
                self._sound = not left and not ended.oom_killed
                dest.mkdir(parents=True, exist_ok=True)
                collected = collect.collect(
                    program.output(),
                    dest,
                    allowed=allowed,
                    max_bytes=max_bytes,
                    max_files=max_files,
                    max_stream=most,
                )
            return RoomRun(replace(ended, log_truncated=program.truncated), *program.said(), collected)

    def _put(self, files: Mapping[str, Path | bytes], uid: int) -> None:
        """Let the engine replace the folders of the room by new ones with these files."""
        with self._clients.streaming("copying files into a room", TRANSFER) as (api, _):
            chunks = tarstream.anew(FOLDERS, files, uid=uid)
            with closing(moving.moving(chunks, "copying files into a room", seconds=TRANSFER)) as sent:
                api.put_archive(self._handle.id, ROOM, sent)

    def _watch(self, program: Program, deadline: float, cancelled: Callable[[], bool]) -> Exit:
        """How the program ended. One that was killed takes the room with it."""
        started, clock = stamp(SystemClock().now()), time.monotonic()
        self._bound(self._spec.limits.cpu_time)
        program.start()
        code: int | None = None
        while code is None:
            left = deadline - (time.monotonic() - clock)
            if left <= 0 or cancelled():
                ended = self._handle.wait(0, (lambda: True) if left > 0 else None)
                return self._timed(ended, started, clock)
            self._handle.meter.poll()
            if self._handle.over_processor_limit():
                return self._timed(self._handle.wait(KILL_GRACE), started, clock)
            program.wait(min(POLL, left))
            code = program.exit_code()
        self._bound(None)
        if self._handle.ended():  # somebody else ended the room, and the program with it
            ended = self._handle.wait(KILL_GRACE)
            if ended.code == 0:
                raise PlatformError("a room ended before its program did", why="It was there for too long.")
            return self._timed(ended, started, clock)
        ended = Exit(code, oom_killed=self._handle.meter.oom_kills() > 0)
        if code == KILLED and not ended.oom_killed:
            ended = replace(ended, **self._why_killed())
        return self._timed(ended, started, clock)

    def _bound(self, seconds: float | None) -> None:
        """Let what runs in the room use so much more processor time from now on.

        What an earlier program used, and is not known of yet, is not this one's.
        """
        meter = self._handle.meter
        meter.poll()
        used = (meter.processor_time() or 0.0) + meter.delay * self._spec.limits.cpus
        self._handle.processor_limit = None if seconds is None else used + seconds

    def _why_killed(self) -> dict[str, Any]:
        """What is known of a SIGKILL that we did not send; some engines say only after the container's end."""
        final, witness = self._handle.stop(0), self._handle.witness
        if not final.oom_killed and witness is not None and witness.machine_out_of_memory(self._handle.id):
            return {"outside": "the machine was out of memory, and its kernel chose this container"}
        return {"oom_killed": final.oom_killed}

    def _timed(self, ended: Exit, started: str, clock: float) -> Exit:
        """``ended`` with the times of the program instead of the room's."""
        wall = round(time.monotonic() - clock, 6)
        return replace(
            ended,
            started=started,
            finished=stamp(SystemClock().now()),
            resources=Resources(wall_seconds=wall),
        )

    def _left_behind(self) -> bool:
        """Whether anything but what waits runs in the room. True as well where that cannot be seen."""
        end = time.monotonic() + LEAVING
        while True:
            if self._users_inside() == {self._waiting}:
                return False
            if time.monotonic() > end:
                return True
            time.sleep(POLL / 5)

    def _users_inside(self) -> set[int]:
        """The user ids of all processes in the room, from its control group or else by the engine; empty when not known."""
        if found := self._handle.meter.users():
            return found
        with suppress(PlatformError), self._clients.calling("looking at who is in a room") as api:
            return {int(row[1]) for row in api.top(self._handle.id, "-eo pid,uid")["Processes"]}
        return set()
