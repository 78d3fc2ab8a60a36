"""Where things are: the project's root, the data directory and the hidden truths.

Settings come from the environment only, so that a run is described by its command line and its environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from runner.model.errors import RunnerError

BASES = ("python:3.11-slim", "proctor/base:bookworm")  # of a registry, and the one that is made without


@dataclass(frozen=True)
class Config:
    """Paths and switches of one invocation.

    ``root`` holds ``tasks/`` and ``submissions/`` (``RUNNER_ROOT``; default: the nearest folder upward that
    has both). ``home`` is the data directory (``RUNNER_HOME``). ``truths`` holds the truths of blinded
    datasets as ``<task>/<dataset>/`` (``RUNNER_TRUTHS``). ``base_image`` is the switch for machines without a
    registry (``RUNNER_BASE``: ``auto``, ``registry`` or ``local``). ``engine_for`` says which runs the engine is for
    (``RUNNER_ENGINE_FOR``, see :mod:`runner.engines.turns`). ``bases`` are images that every team may name and
    build on (the two base images, and what ``RUNNER_BASES`` lists). ``handing_in`` says that this invocation takes
    submissions in, so that what teams wrote is a stranger's.
    """

    root: Path
    home: Path
    truths: Path | None
    base_image: str = "auto"
    engine_for: EngineFor = "both"
    bases: tuple[str, ...] = BASES
    handing_in: bool = False

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


def load(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Config:
    """The configuration of this invocation. Raises E101 when no project root can be found."""
    env = os.environ if environ is None else environ
    here = Path.cwd() if cwd is None else cwd
    if env.get("RUNNER_ROOT"):
        root = Path(env["RUNNER_ROOT"]).absolute()
    else:
        found = next(
            (p for p in (here, *here.parents) if (p / "tasks").is_dir() and (p / "submissions").is_dir()),
            None,
        )
        if found is None:
            raise RunnerError(
                "E101",
                "this folder is not inside a project",
                why=f"{here} and the folders above it hold no tasks/ and submissions/.",
                fix="change into the project's folder, or set RUNNER_ROOT to it",
            )
        root = found
    base = env.get("RUNNER_BASE", "auto")
    if base not in ("auto", "registry", "local"):
        raise RunnerError(
            "E101",
            f"RUNNER_BASE is {base!r}",
            why="It chooses the base image of builds.",
            fix="set it to auto, registry or local",
        )
    engine_for = env.get("RUNNER_ENGINE_FOR", "both")
    if engine_for not in get_args(EngineFor):
        raise RunnerError(
            "E101",
            f"RUNNER_ENGINE_FOR is {engine_for!r}",
            why="It says which runs the container engine is for.",
            fix=f"set it to {', '.join(get_args(EngineFor)[:-1])} or {get_args(EngineFor)[-1]}",
        )
    truths = env.get("RUNNER_TRUTHS")
    return Config(
        root=root,
        home=Path(env.get("RUNNER_HOME") or root / ".runner").absolute(),
        truths=Path(truths).absolute() if truths else None,
        base_image=base,
        engine_for=cast(EngineFor, engine_for),
        bases=(*BASES, *(name for name in re.split(r"[,\s]+", env.get("RUNNER_BASES", "")) if name)),
    )


EngineFor = Literal["both", "public", "blinded", "both-without-eviction"]
