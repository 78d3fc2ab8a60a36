"""Where things are: the project's root, the data directory, what is hidden, the engine and the database.

A setting comes from the environment, else from the file ``proctor.yaml`` in the project's root, else it has its default. An
option of a command, where there is one, goes before all of them.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from runner.model.errors import RunnerError
from runner.model.names import IDENTIFIER, WORDS

if TYPE_CHECKING:
    from schemas import Document

FILE = "proctor.yaml"
BASES = ("python:3.11-slim", "proctor/base:bookworm")  # of a registry, and the one that is made without
REGISTRIES = ("docker.io",)  # where engines look for names without a registry


@dataclass(frozen=True)
class Person:
    """Who gives a command: a plain ``name``, and whether a ``setting`` named it or only the operating ``system`` did; on the web
    the opaque id of an ``account``."""

    name: str
    named_by: Literal["setting", "system", "account"] = "setting"

    def __str__(self) -> str:
        return f"{self.name} (system user)" if self.named_by == "system" else self.name

    @classmethod
    def named(cls, text: str) -> Person:
        """The person that a setting names. Raises E101 for what is no plain name."""
        if not IDENTIFIER.fullmatch(text) or text.lower() in WORDS:
            from schemas import show

            raise RunnerError(
                "E101",
                f'"{show(text)}" is not a name for a person',
                why="The event log names by it who gave a command; some words stand for the platform itself.",
                fix="use letters, digits, _, - and single dots inside, at most 40: --actor anna, or RUNNER_ACTOR=anna",
            )
        return cls(text)

    @classmethod
    def of_the_system(cls) -> Person:
        """The user of this process, as the operating system calls it; one whose name is no plain name by number."""
        import pwd

        number = os.getuid()
        try:
            name = pwd.getpwuid(number).pw_name
        except KeyError:
            name = ""
        return cls(name if IDENTIFIER.fullmatch(name) else f"uid-{number}", "system")


@dataclass(frozen=True)
class Config:
    """Paths and switches of one invocation.

    ``root`` holds ``tasks/`` and ``submissions/`` (``RUNNER_ROOT``; default: the nearest folder upward that
    has both). ``home`` is the data directory (``RUNNER_HOME``). ``private`` holds what is hidden, as
    ``<task>/<dataset>/inputs`` and ``truths`` (``RUNNER_PRIVATE``); ``truths`` is the older form, for truths alone, as
    ``<task>/<dataset>/`` (``RUNNER_TRUTHS``). ``base_image`` is the switch for machines without a
    registry (``RUNNER_BASE``: ``auto``, ``registry`` or ``local``). ``engine_for`` says which runs the engine is for
    (``RUNNER_ENGINE_FOR``, see :mod:`runner.engines.turns`). ``bases`` are images that every team may name and
    build on (the two base images, and what ``RUNNER_BASES`` lists), ``registries`` the hosts (with a port, where it has one) from
    which images of strangers are fetched (:data:`REGISTRIES`, and what ``RUNNER_REGISTRIES`` lists). ``engine`` is the address of the container engine
    (``DOCKER_HOST``; None: the docker client's, see :mod:`runner.provision.engine`), ``database_url`` that of another
    database for the store than SQLite's (``RUNNER_DATABASE``, see :mod:`runner.records.store.postgres`). ``handing_in`` says that this invocation takes submissions in, so that
    what teams wrote is a stranger's. ``person`` is who gives the command (``RUNNER_ACTOR``), for the event log. ``web`` is the folder in which front and work
    meet (``RUNNER_WEB``; None: ``web`` in the data directory). ``news`` says how often the server tells what became of softwares on
    hidden data (``RUNNER_NEWS``, see :mod:`runner.work.news`). ``cluster`` is the address of the scheduler of a cluster on whose hosts
    software is executed (``RUNNER_CLUSTER``; None: on this machine), ``artefacts`` where files are laid down for them
    (``RUNNER_ARTEFACTS``; what concerns hidden inputs in ``blinded_artefacts``, where that is set: ``RUNNER_BLINDED_ARTEFACTS``), ``certificates`` the
    folder with what proves who is who there (``RUNNER_CERTIFICATES``). ``evaluation_cluster``, ``evaluation_artefacts`` and
    ``evaluation_certificates`` (``RUNNER_EVALUATION_CLUSTER`` …) are the same of hosts that evaluate; without, that is done on this machine.
    ``store_credentials`` is the file of what opens artefact stores (``RUNNER_STORE_CREDENTIALS``). ``origins`` are the names of the settings, each with where it comes from, in words.
    """

    root: Path
    home: Path
    truths: Path | None
    base_image: str = "auto"
    engine_for: EngineFor = "both"
    bases: tuple[str, ...] = BASES
    registries: tuple[str, ...] = REGISTRIES
    handing_in: bool = False
    engine: str | None = None
    database_url: str | None = None
    person: Person | None = None
    origins: tuple[tuple[str, str], ...] = ()
    private: Path | None = None
    web: Path | None = None
    news: News = "ten-minutes"
    cluster: str | None = None
    artefacts: str | None = None
    certificates: Path | None = None
    blinded_artefacts: str | None = None
    evaluation_cluster: str | None = None
    evaluation_artefacts: str | None = None
    evaluation_certificates: Path | None = None
    store_credentials: Path | None = None

    @property
    def exchange(self) -> Path:
        """The folder of what front and work give each other."""
        return self.web or self.home / "web"

    @property
    def published(self) -> Path:
        """What each audience may see, as work has published it."""
        return self.exchange / "published"

    @property
    def inbox(self) -> Path:
        """The requests that the front has put there."""
        return self.exchange / "inbox"

    @property
    def tasks(self) -> Path:
        """The folder of the tasks."""
        return self.root / "tasks"

    @property
    def submissions(self) -> Path:
        """The folder of the teams' submissions."""
        return self.root / "submissions"

    @property
    def archive(self) -> Path:
        """The run archive."""
        return self.home / "archive"

    @property
    def registered(self) -> Path:
        """Bundles that were registered."""
        return self.home / "submissions"

    @property
    def events(self) -> Path:
        """The event log."""
        return self.home / "events.jsonl"

    @property
    def database(self) -> Path:
        """The SQLite file of the store."""
        return self.home / "store.sqlite"

    @property
    def locks(self) -> Path:
        """Lock files."""
        return self.home / "locks"


def load(
    environ: Mapping[str, str] | None = None, cwd: Path | None = None, *, actor: str | None = None
) -> Config:
    """The configuration of this invocation.

    Args:
        environ: the environment (default: this process's).
        cwd: where the project's root is looked for (default: the working directory).
        actor: who gives the command, where an option says so.

    Raises:
        RunnerError: E101 when no project root can be found, or a setting is none; what is wrong with the file is in the
            error, with its lines. E405 when it is no YAML.
    """
    env = os.environ if environ is None else environ
    root = Path(env["RUNNER_ROOT"]).absolute() if env.get("RUNNER_ROOT") else _root(cwd or Path.cwd())
    found = _Settings(env, root)
    who = actor or env.get("RUNNER_ACTOR") or None
    return Config(
        root=root,
        home=found.path("home", "RUNNER_HOME") or root / ".runner",
        private=found.path("private", "RUNNER_PRIVATE"),
        truths=found.path("truths", "RUNNER_TRUTHS"),
        base_image=found.choice("base", "RUNNER_BASE", ("auto", "registry", "local")),
        engine_for=cast(EngineFor, found.choice("engine_for", "RUNNER_ENGINE_FOR", get_args(EngineFor))),
        bases=(*BASES, *found.words("bases", "RUNNER_BASES")),
        registries=(*REGISTRIES, *found.words("registries", "RUNNER_REGISTRIES")),
        # A context that the environment names is the environment's word on the engine.
        engine=found.value("engine", "DOCKER_HOST", None, unless="DOCKER_CONTEXT"),
        database_url=found.value("database", "RUNNER_DATABASE", None),
        person=Person.of_the_system() if who is None else Person.named(who),
        web=found.path("web", "RUNNER_WEB"),
        news=cast(News, found.choice("news", "RUNNER_NEWS", get_args(News))),
        cluster=found.value("cluster", "RUNNER_CLUSTER", None),
        artefacts=found.value("artefacts", "RUNNER_ARTEFACTS", None),
        certificates=found.path("certificates", "RUNNER_CERTIFICATES"),
        blinded_artefacts=found.value("blinded_artefacts", "RUNNER_BLINDED_ARTEFACTS", None),
        evaluation_cluster=found.value("evaluation_cluster", "RUNNER_EVALUATION_CLUSTER", None),
        evaluation_artefacts=found.value("evaluation_artefacts", "RUNNER_EVALUATION_ARTEFACTS", None),
        evaluation_certificates=found.path("evaluation_certificates", "RUNNER_EVALUATION_CERTIFICATES"),
        store_credentials=found.path("store_credentials", "RUNNER_STORE_CREDENTIALS"),
        origins=tuple(found.origins.items()),
    )


def wide_mode(folder: Path) -> int | None:
    """Return the mode of a folder that other users of this machine may enter; None if they may not, or if it is missing."""
    try:
        mode = stat.S_IMODE(folder.stat().st_mode)
    except OSError:
        return None
    return mode if mode & 0o077 else None


def wide_mode_text(mode: int) -> str:
    """Return the sentence about a data directory of that mode."""
    return f"other users of this machine may enter the data directory (mode {mode:04o}), which holds hidden scores"


def user_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder of what is this user's, whatever the project: the servers that they logged in to."""
    env = os.environ if environ is None else environ
    base = env.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".config") / "proctor"


def _root(here: Path) -> Path:
    """The nearest folder upward that is a project's. Raises E101."""
    for folder in (here, *here.parents):
        if (folder / "tasks").is_dir() and (folder / "submissions").is_dir():
            return folder
    raise RunnerError(
        "E101",
        "this folder is not inside a project",
        why=f"{here} and the folders above it hold no tasks/ and submissions/.",
        fix="change into the project's folder, or set RUNNER_ROOT to it; a new project begins with: mkdir tasks submissions",
    )


class _Settings:
    """What environment and file say; ``origins`` remembers of each setting that was asked for where it comes from."""

    def __init__(self, env: Mapping[str, str], root: Path) -> None:
        self._env, self._root = env, root
        self._doc = _read(root / FILE)
        self.origins = {"root": "RUNNER_ROOT" if env.get("RUNNER_ROOT") else "the folders upward from here"}

    def value(self, key: str, variable: str, default: Any, *, unless: str = "") -> Any:
        """The value of a setting; the variable ``unless``, where it is set, goes before the file, too."""
        place = self._doc.where((key,)) if self._doc is not None and key in self._doc.data else ""
        for name in (variable, unless):
            if self._env.get(name):
                self.origins[key] = name + (f", which goes before {place}" if place else "")
                return self._env[name] if name == variable else default
        self.origins[key] = place or "default"
        return self._doc.data[key] if place and self._doc is not None else default

    def words(self, key: str, variable: str) -> tuple[str, ...]:
        """Several words: a list in the file, with commas or blanks between them in the environment."""
        given = self.value(key, variable, "")
        return tuple(given) if isinstance(given, list) else tuple(filter(None, re.split(r"[,\s]+", given)))

    def path(self, key: str, variable: str) -> Path | None:
        """A folder; one that the file names is relative to the project."""
        given = self.value(key, variable, None)
        if given is None:
            return None
        return Path(given).absolute() if self._env.get(variable) else self._root / Path(given).expanduser()

    def choice(self, key: str, variable: str, known: tuple[str, ...]) -> str:
        """One of some words, of which the first is the default. Raises E101."""
        given: str = self.value(key, variable, known[0])
        if given not in known:
            fix = f"set it to {', '.join(known[:-1])} or {known[-1]}"
            raise RunnerError("E101", f"{variable} is {given!r}", why=_MEANINGS[key], fix=fix)
        return given


_MEANINGS = {
    "base": "It chooses the base image of builds.",
    "engine_for": "It says which runs the container engine is for.",
    "news": "It says how often the server tells what became of softwares on hidden data.",
}


def without_secrets(address: str) -> str:
    """An address without user, password and what stands behind ``?``; anything else as it is. Of a password that holds ``@``,
    ``/`` or ``?`` nothing is left either; for that, more may be cut."""
    scheme, mark, rest = address.partition("://")
    if not mark:
        return address
    before, at, behind = rest.rpartition("@")
    return f"{scheme}{mark}{'…' if at else ''}" + ("" if "?" in before else f"{at}{behind.partition('?')[0]}")


def _read(path: Path) -> Document | None:
    """The settings file, checked; None when there is none. Raises E101 and E405."""
    if not os.path.lexists(path):
        return None
    import schemas

    doc = schemas.load_yaml(path, FILE)
    problems = [*doc.problems, *(schemas.validate(doc, "settings") if doc.data is not None else ())]
    if problems:
        code = "E405" if doc.data is None else "E101"
        fix = f"correct what is listed, or remove {FILE}; what may stand there: docs/reference/environment.md"
        raise RunnerError(code, f"{FILE} cannot be used", why=f"It is {path}.", fix=fix, problems=problems)
    return doc


EngineFor = Literal["both", "public", "blinded", "both-without-eviction"]
News = Literal["ten-minutes", "minute", "hour", "at-once"]
