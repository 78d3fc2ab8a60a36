"""A started container on a Docker engine: waiting for its end, ending it, and what it left."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from runner.engines import sandbox
from runner.engines.base import ContainerSpec
from runner.engines.docker import meter
from runner.engines.docker.client import Clients, ignoring, streams
from runner.engines.docker.starting import not_begun
from runner.engines.text import printable
from runner.engines.witness import PAUSED, Witness, recorded_event
from runner.model.container import Exit, Killed, Resources
from runner.model.errors import PlatformError

POLL = 0.5  # seconds between looks at cancellation and the clock
OUTAGE = 20.0  # seconds that an engine may be away while a container runs
KILL_GRACE = 30.0
LINGER = 1.5  # seconds after the end in which an engine that did not record the end may record what it was asked to do
ASKING = 20.0  # seconds for the engine to say what it was asked to do
# How close to its limit of memory a SIGKILL that nobody else sent counts as one for memory.
FAR_BELOW = 0.9
CANCELLED = "-cancelled"  # a container renamed to end in this was cancelled from another process


@dataclass(frozen=True)
class _Logs:
    stdout: bytes
    stderr: bytes
    truncated: bool


class DockerHandle:
    """See :class:`runner.engines.base.Handle`."""

    def __init__(
        self,
        clients: Clients,
        spec: ContainerSpec,
        gauge: meter.Meter,
        name: str,
        witness: Witness | None = None,
    ) -> None:
        self.id = ""
        self.name = name
        self.meter = gauge
        self.witness = witness
        self.clock = time.monotonic()
        self.start_error: str | None = None
        self._clients = clients
        self._spec = spec
        self._exit: Exit | None = None
        self._logs: _Logs | None = None
        self._stopping = False
        self._over = False
        self._killed: Killed | None = None
        self._idle: float | None = None
        self._paused = False  # by somebody else, at the wall clock
        self.processor_limit = spec.limits.cpu_time  # seconds of all that ever ran in it; None: none
        self._spent = False  # killed at that limit
        self._lock = threading.Lock()

    def wait(self, deadline: float, cancelled: Callable[[], bool] | None = None) -> Exit:
        """How it ended; killed as a whole after ``deadline`` seconds from the start or when ``cancelled``."""
        if self._exit is None:
            self.over(deadline, cancelled)
            self._conclude(self._killed)
        assert self._exit is not None
        return self._exit

    def over(self, deadline: float, cancelled: Callable[[], bool] | None = None) -> None:
        """Only wait for its end, as :meth:`wait` does."""
        if self._exit is None and self.start_error is None and not self._over:
            self._killed = self._watch(deadline, cancelled)
            self._idle = None if self.witness is None else self.witness.idle()
            self._over = True

    def ended(self) -> bool:
        """Whether it has ended, or never started; does not wait."""
        if self._exit is not None or self.start_error is not None:
            return True
        self._poll()
        self.over_processor_limit()
        return not self.alive()

    def stop(self, grace: float = 2.0) -> Exit:
        """SIGTERM, then SIGKILL after ``grace`` seconds; an end that came earlier stays what it was."""
        if self._exit is None and self.start_error is None:
            self._stopping = True  # before the signal: another thread may be waiting for the end
            self._stopping = self._signal("SIGTERM")
            if self._stopping and not self._ended(grace):
                self._kill()
            self._conclude(None)
        return self.wait(0)

    def _conclude(self, killed: Killed | None) -> None:
        """Read the end once, whoever asks first."""
        with self._lock:
            if self._exit is None:
                if self.start_error is not None:
                    self._exit = Exit(code=None, start_error=self.start_error)
                else:
                    spent: Killed | None = "processor" if self._spent else None
                    self._exit = self._read_exit(spent or killed or ("stop" if self._stopping else None))

    def logs(self, stream: Literal["stdout", "stderr"], cap: int) -> bytes:
        """The last ``cap`` bytes of one stream (of what the engine kept)."""
        if not self.id or self.start_error is not None or cap <= 0:
            return b""
        if self._logs is not None and cap <= self._spec.limits.log:
            return getattr(self._logs, stream)[-cap:]  # type: ignore[no-any-return]
        return self._fetch()[stream][-cap:]

    def alive(self) -> bool:
        """Whether the container runs now."""
        return bool(self._state()["Running"])

    def _state(self) -> dict[str, Any]:
        with self._clients.calling("looking at a container") as api:
            return dict(api.inspect_container(self.id)["State"])

    def _watch(self, deadline: float, cancelled: Callable[[], bool] | None) -> Killed | None:
        away_since: float | None = None
        while True:
            left = deadline - (time.monotonic() - self.clock)
            if cancelled is not None and cancelled():
                return "cancel" if self._kill() else None
            if left <= 0:
                self._paused = bool(self._state().get("Paused"))
                return "time" if self._kill() else None
            try:
                self.over_processor_limit()
                if self._ended(min(POLL, left)):
                    if away_since is not None:
                        raise PlatformError(
                            "the container engine was away while the software ran",
                            why="It answers again now, but whether it ended the software meanwhile cannot be known.",
                        )
                    return None
            except PlatformError as error:
                if error.code != "E301":
                    raise
                away_since = away_since or time.monotonic()
                if time.monotonic() - away_since > OUTAGE:
                    raise
                time.sleep(POLL)
            self._poll()

    def _poll(self) -> None:
        self.meter.poll()
        if self.witness is not None:
            self.witness.poll()

    def over_processor_limit(self) -> bool:
        """Kill it when all its processes together have used what it may, as of the last look; whether it was killed so."""
        limit = self.processor_limit
        if limit is not None and not self._spent and (self.meter.processor_time() or 0.0) >= limit:
            self._spent = self._kill()
        return self._spent

    def _ended(self, seconds: float) -> bool:
        """Wait at most ``seconds`` for the end."""
        import requests.exceptions

        with self._clients.calling("waiting for a container") as api:
            try:
                api.wait(self.id, timeout=max(seconds, 0.01))
            except requests.exceptions.Timeout:
                return False
            except requests.exceptions.ConnectionError as error:
                if "timed out" in str(error):
                    return False
                raise
        return True

    def _kill(self) -> bool:
        """Kill everything in the container. False when it had ended by itself already."""
        if not self._signal("SIGKILL"):
            return False
        end = time.monotonic() + KILL_GRACE
        while not self._ended(POLL):
            if time.monotonic() > end:
                raise PlatformError("a container cannot be killed", why="It still runs after SIGKILL.")
        return True

    def _signal(self, signal: str) -> bool:
        """Send a signal to the container's first process. False when there is none any more."""
        with self._clients.calling("killing a container") as api, ignoring(409):
            api.kill(self.id, signal)
            return True
        return False

    def _read_exit(self, killed: Killed | None) -> Exit:
        if not self._over and self.witness is not None:
            self._idle = self.witness.idle()
        with self._clients.calling("reading how a container ended") as api:
            facts = api.inspect_container(self.id)
        state = facts["State"]
        if state["Running"] or state["Status"] not in ("exited", "dead"):
            raise PlatformError(
                "the engine lost a container", why=f"Its state is {printable(str(state['Status']))}."
            )
        if killed in (None, "stop") and facts["Name"].endswith(CANCELLED):
            killed = "cancel"
        code = int(state["ExitCode"])
        memory, cpu, source = self.meter.finish()
        oom = bool(state["OOMKilled"]) or self.meter.oom_kills() > 0
        # The engine misses the flag now and then (once in 40 kills here). A SIGKILL that is not ours, at the
        # very limit of memory, is one.
        if code == 137 and killed is None and source == "exact" and memory is not None:
            oom = oom or memory >= self._spec.limits.memory
        started, finished = str(state["StartedAt"]), str(state["FinishedAt"])
        outside = self._outside(killed, code, oom, memory, (started, finished))
        self._logs = logs = self._all_logs()
        start_error = not_begun(code, facts, logs.stdout, logs.stderr)
        return Exit(
            code=None if start_error is not None else code,
            oom_killed=oom,
            killed=killed,
            start_error=start_error,
            started=started,
            finished=finished,
            resources=Resources(seconds_between(started, finished), cpu, memory, source),
            log_truncated=logs.truncated,
            outside=outside,
            idle=self._idle,
            waited=self.meter.waited(),
        )

    def _outside(
        self, killed: Killed | None, code: int, oom: bool, memory: int | None, times: tuple[str, str]
    ) -> str | None:
        """How something else than us, its limits and its own processes ended it; None where that is not certain."""
        if killed in ("cancel", "stop", "processor"):
            return None
        recorded = None
        with (
            suppress(PlatformError),  # an engine that does not remember says nothing
            self._clients.streaming("asking for the engine's events", ASKING) as (api, _),
        ):
            if killed == "time":
                recorded = PAUSED if self._paused else recorded_event(api, self.id, "pause", *times, 0.0)
            else:
                recorded = recorded_event(api, self.id, "kill", *times, LINGER)
        if recorded is not None or killed == "time" or self.witness is None:
            return recorded
        far_below = memory is not None and memory < FAR_BELOW * self._spec.limits.memory
        if code == 137 and far_below and self.witness.machine_out_of_memory(self.id):
            return "the machine was out of memory, and its kernel chose this container"
        if code == 137 and far_below and not oom and self.witness.first_process_killed():
            return "its first process was killed by a signal from the machine"
        return None

    def close(self) -> None:
        """Give up what watches the container; it has ended, or is removed by its session."""
        self.meter.close()
        if self.witness is not None:
            self.witness.close()

    def _all_logs(self) -> _Logs:
        cap = self._spec.limits.log
        kept = self._fetch()
        # About what the engine's own format adds to every entry of at most 16 KiB.
        stored = sum(len(s) + 24 * (s.count(b"\n") + len(s) // 16384) for s in kept.values())
        truncated = stored >= sandbox.log_file_size(cap) * 0.9 or any(len(s) > cap for s in kept.values())
        return _Logs(kept["stdout"][-cap:], kept["stderr"][-cap:], truncated)

    def _fetch(self) -> dict[str, bytes]:
        """What the engine kept of both streams: one call."""
        with self._clients.calling("reading a log") as api:
            url = f"{api.base_url}/v{api.api_version}/containers/{self.id}/logs"
            answer = api.get(url, params={"stdout": 1, "stderr": 1}, timeout=api.timeout)
            answer.raise_for_status()
            return streams(answer.content)


def seconds_between(started: str, finished: str) -> float:
    """Seconds between two time stamps of the engine (RFC 3339, nanoseconds); 0 when one is missing."""

    def parse(text: str) -> float:
        found = re.fullmatch(r"(.{19})(\.\d+)?(Z|[+-]\d\d:\d\d)", text)
        if found is None:
            raise ValueError(text)
        whole = datetime.fromisoformat(found[1] + found[3].replace("Z", "+00:00")).timestamp()
        return whole + float(found[2] or 0)

    try:
        return max(0.0, round(parse(finished) - parse(started), 6))
    except ValueError:
        return 0.0
