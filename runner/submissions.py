"""What teams hand in: ``submissions/<team>/<software>/submission.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class Build:
    """How to build the image: folder and Dockerfile inside the submission's folder."""

    context: Path
    dockerfile: str = "Dockerfile"
    network: bool = False
    args: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SubmissionFile:
    """A submission.yaml, loaded and checked. Exactly one of ``image``, ``build`` and ``run`` is set.

    ``command`` is a list (run directly), a string (run by the image's ``sh -c``), or None (the image's own
    entrypoint). ``run`` are run files to upload.
    """

    team: str
    software: str
    task: str
    folder: Path
    scenarios: tuple[str, ...] = ("default",)
    image: str | None = None
    build: Build | None = None
    run: tuple[Path, ...] = ()
    command: str | tuple[str, ...] | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    tag: str = ""
    description: str = ""
    method: Literal["automatic", "manual"] = "automatic"
    definition: Mapping[str, Any] = field(default_factory=dict)
