"""Connections to the engine: one client a thread, every call bounded, every failure translated."""

from __future__ import annotations

import os
import struct
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath
from typing import Any

from runner.engines.text import printable
from runner.model.errors import PlatformError

CALL_TIMEOUT = 60
FRAME = struct.Struct(">BxxxL")  # how the engine marks a piece of what a container says: stream, length
STDOUT, STDERR = 1, 2
Labels = Mapping[str, str | None]  # names without our prefix; None: whatever the label says


class Clients:
    """The SDK's clients for one engine.

    A client is a session of ``requests``, which is not promised to be safe between threads, so every thread
    (and every process after a fork) gets its own. They are closed with their thread or by :meth:`close`.
    """

    def __init__(self, docker_host: str | None) -> None:
        self.host = docker_host or os.environ.get("DOCKER_HOST") or ""
        self._local = threading.local()
        self._all: weakref.WeakSet[Any] = weakref.WeakSet()
        self._version: str | None = None

    @property
    def address(self) -> str:
        """Where the engine is, for people."""
        return self.host or "unix:///var/run/docker.sock"

    def get(self) -> Any:
        """The ``docker.APIClient`` of this thread. Raises E301 when nothing answers."""
        if getattr(self._local, "pid", None) != os.getpid():
            self._local.client = self.new()
            self._local.pid = os.getpid()
        return self._local.client

    def new(self, timeout: int = CALL_TIMEOUT) -> Any:
        """A client of its own, for the caller to close; ``timeout`` in seconds a call. Raises E301 when nothing answers."""
        import docker
        from docker.utils import kwargs_from_env

        environment = dict(os.environ)
        if self.host:
            environment["DOCKER_HOST"] = self.host
        try:
            kwargs: dict[str, Any] = dict(kwargs_from_env(environment=environment))
            client = docker.APIClient(version=self._version or "auto", timeout=timeout, **kwargs)
        # AttributeError: the client's own configuration file holds something else than a mapping.
        except (docker.errors.DockerException, ValueError, OSError, AttributeError) as error:
            raise self.unreachable(error) from error
        if client.base_url.startswith(
            "http+"
        ):  # a socket here: requests need not look for proxies and passwords each time
            client.trust_env = False
        self._version = client.api_version
        self._all.add(client)
        return client

    def unreachable(self, error: BaseException) -> PlatformError:
        """E301 with what to do about it."""
        return PlatformError(
            "no container engine answers",
            why=f"Nothing usable answers at {self.address}: {printable(str(error), 300)}",
            fix="run 'make setup' (or start Docker, or set DOCKER_HOST)",
            code="E301",
        )

    def close(self) -> None:
        """Close every connection."""
        for client in list(self._all):
            client.close()
        self._local = threading.local()

    @contextmanager
    def calling(self, doing: str) -> Iterator[Any]:
        """The client of this thread; failures inside become :class:`PlatformError` about ``doing``."""
        with translated(self, doing):
            yield self.get()

    @contextmanager
    def streaming(self, doing: str, seconds: float) -> Iterator[tuple[Any, Deadline]]:
        """A client for one long call, and what cuts its answer off after ``seconds``. Raises :class:`TookTooLong` then."""
        client = self.new()
        deadline = Deadline(client, seconds)
        try:
            with translated(self, doing):
                yield client, deadline
        except PlatformError as error:
            if deadline.passed:
                raise TookTooLong(doing) from error
            raise
        finally:
            deadline.cancel()
            client.close()
        # An answer that is cut off may look like one that is complete.
        if deadline.passed:
            raise TookTooLong(doing)

    def labelled(self, **labels: str | None) -> Iterator[dict[str, str]]:
        """The labels of every container, then every volume, that has these (see :func:`labels_filter`)."""
        with self.calling("looking at what is labelled as ours") as api:
            containers = api.containers(all=True, filters=labels_filter(**labels))
        yield from (container.get("Labels") or {} for container in containers)
        yield from self.volumes(**labels).values()

    def volumes(self, **labels: str | None) -> dict[str, dict[str, str]]:
        """The labels of every volume that has these, by its name."""
        with self.calling("listing volumes") as api:
            found = api.volumes(filters=labels_filter(**labels)).get("Volumes") or []
        return {volume["Name"]: volume["Labels"] for volume in found}

    def mounted(self) -> set[str]:
        """The names of volumes that a container has, running or not; also those of which it has a single file."""
        with self.calling("looking at what containers mount") as api:
            containers = api.containers(all=True)
        mounts = [mount for container in containers for mount in container.get("Mounts") or []]
        files = [PurePosixPath(mount.get("Source") or "").parent for mount in mounts if not mount.get("Name")]
        return {mount["Name"] for mount in mounts if mount.get("Name")} | {
            folder.parent.name for folder in files if folder.name == "_data"
        }

    def remove(self, **labels: str | None) -> None:
        """Remove all containers, then all volumes, that have these labels. Raises E303 when one of the volumes is in use."""
        if self.sweep([labels]):
            raise PlatformError(
                "the container engine failed while removing volumes",
                why="A container that is not among those removed has one of them.",
                fix="run 'runner gc'",
            )

    def sweep(self, left: Sequence[Labels]) -> list[Labels]:
        """Remove the containers of all of these, then their volumes; returns those of which a volume is still in use.

        Containers of one may have volumes of another, and another process may be removing the same ones.

        Raises:
            PlatformError: the engine refused to remove something; everything else is removed.
        """
        if not left:
            return []
        # One list of all, whatever they are: on a machine with much work there are hundreds of them.
        common = left[0] if len(left) == 1 else dict.fromkeys(set.intersection(*map(set, left)))
        refusals: list[PlatformError] = []
        with self.calling("looking for containers to remove") as api:
            listed = api.containers(all=True, filters=labels_filter(**common))
        for container in listed:
            if any(_has(container.get("Labels") or {}, labels) for labels in left):
                with _deferred(refusals), self.calling("removing containers") as api, ignoring(404, 409):
                    # 409: its removal is under way
                    api.remove_container(container["Id"], force=True, v=True)
        in_use = []
        volumes = self.volumes(**common)
        for labels in left:
            for name in [name for name, has in volumes.items() if _has(has, labels)]:
                with _deferred(refusals):
                    if not self.remove_volume(name) and labels not in in_use:
                        in_use.append(labels)
        if refusals:
            raise refusals[0]
        return in_use

    def remove_volume(self, name: str) -> bool:
        """Remove a volume, if it is there; False when it is in use."""
        with self.calling("removing a volume") as api, ignoring(409):
            with ignoring(404):
                api.remove_volume(name)
            return True
        return False


class TookTooLong(PlatformError):
    """The engine did not answer, or not to the end, in the time that it was given."""

    def __init__(self, doing: str, why: str = "") -> None:
        super().__init__(f"the container engine took too long while {doing}", why=why)


class Deadline:
    """Cuts the answer that a client is reading when its time is over; ``passed`` says that it did.

    The timeout of an HTTP library bounds the wait for the next byte, not for the last one.
    """

    def __init__(self, client: Any, seconds: float) -> None:
        self.passed = False
        self._response: Any = None
        self._streams = False
        self._lock = threading.Lock()
        client.hooks["response"].append(self._remember)
        client.timeout = max(1.0, min(seconds, 24 * 3600.0))
        self._timer = threading.Timer(seconds, self.cut)
        self._timer.daemon = True
        self._timer.start()

    def _remember(self, response: Any, *_: object, stream: bool = False, **__: object) -> Any:
        with self._lock:  # before a log is read, the SDK asks about its container
            if stream or not self._streams:
                self._response, self._streams = response, stream
        if self.passed:
            self.cut()
        return response

    def cut(self) -> None:
        """End the answer now; the reader gets an error of the connection."""
        self.passed = True
        with self._lock:
            response = self._response
        if response is not None:
            with suppress(OSError, ValueError, RuntimeError, AttributeError):
                response.raw.shutdown()

    def cancel(self) -> None:
        """Stop the clock and give up the connection."""
        self._timer.cancel()
        if self._response is not None:
            with suppress(OSError):
                self._response.close()


@contextmanager
def translated(clients: Clients, doing: str) -> Iterator[None]:
    """Failures of the SDK and of the connection, as :class:`PlatformError` that says what was being done."""
    import docker.errors
    import requests.exceptions
    import urllib3.exceptions

    try:
        yield
    except docker.errors.APIError as error:
        raise PlatformError(
            f"the container engine failed while {doing}",
            why=explanation(error),
            fix="look at the engine's own log",
        ) from error
    except requests.exceptions.ConnectionError as error:
        if "timed out" in str(error):
            raise TookTooLong(doing, printable(str(error), 300)) from error
        raise clients.unreachable(error) from error
    except (
        docker.errors.DockerException,
        requests.exceptions.RequestException,
        urllib3.exceptions.HTTPError,
    ) as error:
        raise PlatformError(
            f"the container engine failed while {doing}", why=printable(str(error), 300)
        ) from error


@contextmanager
def _deferred(refusals: list[PlatformError]) -> Iterator[None]:
    """Add what the engine refuses to ``refusals``. An engine that does not answer raises at once."""
    import docker.errors

    try:
        yield
    except PlatformError as error:
        if not isinstance(error.__cause__, docker.errors.APIError):
            raise
        refusals.append(error)


@contextmanager
def ignoring(*statuses: int) -> Iterator[None]:
    """Leave the block when the engine answers with one of these: 404 it is not there, 409 its state forbids it."""
    import docker.errors

    try:
        yield
    except docker.errors.APIError as error:
        if error.status_code not in statuses:
            raise


def explanation(error: Any) -> str:
    """The engine's own words in an APIError, made printable."""
    return printable(str(error.explanation or error), 500)


def streams(said: bytes) -> dict[str, bytes]:
    """What a container said, by stream (``stdout``, ``stderr``), from an answer of the engine in which both stand."""
    found, at = {STDOUT: bytearray(), STDERR: bytearray()}, 0
    while at + FRAME.size <= len(said):
        stream, length = FRAME.unpack_from(said, at)
        at += FRAME.size
        if stream in found:
            found[stream] += said[at : at + length]
        at += length
    return {"stdout": bytes(found[STDOUT]), "stderr": bytes(found[STDERR])}


def _has(found: Mapping[str, str], wanted: Labels) -> bool:
    """Whether these labels have what the engine's filter of :func:`labels_filter` would keep."""
    names = ((f"proctor.{name}", said) for name, said in wanted.items())
    return all(name in found and said in (None, found[name]) for name, said in names)


def labels_filter(**labels: str | None) -> Mapping[str, list[str]]:
    """A filter for the engine's lists: ``attempt='x'`` keeps what has the label ``proctor.attempt=x``."""
    return {"label": [f"proctor.{k}" if v is None else f"proctor.{k}={v}" for k, v in labels.items()]}
