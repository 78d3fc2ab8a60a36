"""What tests leave on the engine: looked at when all have ended. A pytest plugin.

Images that tests build and the data volumes of their tasks stay for the tests that come after, and are removed at the end
of the session; a container, a network or anything else that is new then fails the session, but for what the set-up makes.
It is only looked at where ``DOCKER_HOST`` names an engine (``make test`` sets it), and no other session of tests used that
engine meanwhile.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from runner.engines.docker.client import ignoring
from runner.engines.docker.engine import DockerEngine
from runner.engines.docker.owner import default_locks, private_folder
from runner.engines.docker.volumes import BASES
from runner.model.errors import RunnerError
from runner.provision.images import IMAGES, tag

KEPT = {"proctor.test": "yes"}  # the label of images that tests build, and so of those built on them
# Images that tests build, those of softwares that tests register, and images without a name (by their identity).
# The front's own image is made for whoever asks for it, so by the tests of its container.
NAMES = ("proctor/test-", "proctor-test/", "proctor-submissions/", "proctor/front:", "sha256:")
# Data, what says that they are complete, and what says that a blinded run came last (the lock folder knows it, too).
VOLUMES = {"proctor.data", "proctor.ready", "proctor.mark"}


class Alone:
    """Whether one session of tests has an engine for itself, from its start to its end."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a+")
        self._at_start = self._try()
        fcntl.flock(self._file, fcntl.LOCK_SH)
        self._file.write(".")
        self._file.flush()
        self._begun = path.stat().st_size
        self._path = path

    def _try(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def still(self) -> bool:
        """Nobody else was there at the start, has begun since, or is there now."""
        return self._at_start and self._path.stat().st_size == self._begun and self._try()

    def close(self) -> None:
        self._file.close()


def things(api: Any) -> dict[str, Mapping[str, str]]:
    """Everything on the engine that is ours or could be: what it is and its name -> its labels.

    Images without a name are looked at where a label of ours says whose they are, and steps of builds go with what was built.
    """
    # One that is being removed has no name any more.
    found = {
        f"container {c['Names'][0].strip('/')}": c["Labels"] for c in api.containers(all=True) if c["Names"]
    }
    found |= {f"volume {v['Name']}": v["Labels"] or {} for v in api.volumes()["Volumes"] or []}
    found |= {f"network {n['Name']}": n["Labels"] or {} for n in api.networks()}
    for image in api.images():
        labels = image["Labels"] or {}
        names = [name for name in image["RepoTags"] or [] if name != "<none>:<none>"]
        if any(label.startswith("proctor.") for label in labels):
            names = names or [image["Id"]]
        found |= {f"image {name}": labels for name in names}
    return found


def kept_for_later(what: str, labels: Mapping[str, str]) -> bool:
    """Whether it is there for other tests: images of tests, and data volumes, which no home may own any more."""
    kind, _, name = what.partition(" ")
    if kind == "image":
        return labels.keys() >= KEPT.keys() or name.startswith(NAMES)
    return kind == "volume" and bool(VOLUMES & labels.keys())


def remove(api: Any, what: str) -> None:
    """Remove an image's name, an image without one, or a volume; what is in use stays, and is seen."""
    kind, _, name = what.partition(" ")
    with ignoring(404, 409):
        api.remove_image(name) if kind == "image" else api.remove_volume(name)


class Leftovers:
    """The engine before and after a session of tests."""

    def __init__(self, engine: DockerEngine) -> None:
        self._engine = engine
        self._before = things(engine.clients.get())
        self._alone = Alone(private_folder(default_locks()) / f"tests-{engine.identity}")

    def clean(self) -> list[str] | None:
        """Remove what was kept for later; returns what else is new, None when it may be somebody else's."""
        try:
            if not self._alone.still():
                return None
            api = self._engine.clients.get()
            for _ in range(3):  # an image that another one was built on goes after it
                for what, labels in list(self._new(api)):
                    if kept_for_later(what, labels):
                        remove(api, what)
            return sorted(what for what, _ in self._new(api))
        finally:
            self._alone.close()
            self._engine.close()

    def _new(self, api: Any) -> Iterator[tuple[str, Mapping[str, str]]]:
        made = {f"image {name}" for name in (*BASES, *(tag(image) for image in IMAGES))}
        for what, labels in things(api).items():
            if what not in self._before and what not in made:
                yield what, labels


_found = pytest.StashKey[Leftovers]()
_said = pytest.StashKey[str]()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Look at the engine, in the process that starts the others."""
    host = os.environ.get("DOCKER_HOST")
    if host and not hasattr(session.config, "workerinput"):
        with suppress(RunnerError):  # the tests that need it say so
            session.config.stash[_found] = Leftovers(DockerEngine(host))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Look again, and fail when something is left."""
    if _found not in session.config.stash:
        return
    left = session.config.stash[_found].clean()
    if left is None:
        session.config.stash[_said] = "not looked at: other tests used the engine at the same time"
    elif left:
        session.config.stash[_said] = f"{len(left)} left behind: " + ", ".join(left)
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what was left."""
    if _said in config.stash:
        terminalreporter.write_line(f"On the container engine: {config.stash[_said]}")
