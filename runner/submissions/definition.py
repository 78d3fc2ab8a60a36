"""What a submission.yaml says, as frozen data. Loading is :mod:`runner.submissions.load`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from runner.model.task import Workflow


@dataclass(frozen=True)
class Build:
    """How to build the image: folder and Dockerfile inside the submission's folder.

    ``shared`` are files of other softwares of the team; the build finds copies of them in the context. With ``git`` (an
    address, or a folder relative to the submission's) folder and Dockerfile lie in that repository, at ``commit``.
    """

    context: Path
    dockerfile: str = "Dockerfile"
    network: bool = False
    args: Mapping[str, str] = field(default_factory=dict)
    shared: tuple[Path, ...] = ()
    git: str = ""
    commit: str = ""


@dataclass(frozen=True)
class Upload:
    """A run file that is handed in, and what it is for. ``dataset`` is empty only when its task cannot be loaded."""

    path: Path
    dataset: str = ""
    scenario: str = "default"


@dataclass(frozen=True)
class SubmissionFile:
    """A submission.yaml, loaded and checked. Exactly one of ``image``, ``build`` and ``run`` is set.

    ``folder`` holds the file; ``build.context`` and the run files are paths inside it. ``tag`` is the run tag (the
    software's name unless given); ``display_name`` and ``team_display_name`` are for leaderboards (empty: none). ``command`` is a list (run directly), a string (run by the image's ``sh -c``), or None (the image's own
    entrypoint). ``run`` are run files to upload, at most one for each dataset and scenario; a list of files can be
    several softwares, so that ``software`` need not be the folder's name. ``datasets`` are those it takes part in
    (None: all). ``workflow`` is its choice where the task offers several (None: the task's first),
    ``limits`` what it asks for in the task's frame (bytes, seconds, processors).
    """

    team: str
    software: str
    task: str
    folder: Path
    scenarios: tuple[str, ...] = ("default",)
    image: str | None = None
    build: Build | None = None
    run: tuple[Upload, ...] = ()
    datasets: tuple[str, ...] | None = None
    command: str | tuple[str, ...] | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    tag: str = ""
    display_name: str = ""
    team_display_name: str = ""
    description: str = ""
    paper: str = ""  # an address
    affiliation: str = ""
    method: Literal["automatic", "manual"] = "automatic"
    workflow: Workflow | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    definition: Mapping[str, Any] = field(default_factory=dict)
