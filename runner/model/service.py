"""Interactive runs and the sidecars that a task asks for, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from runner.model.limits import Limits

Mode = Literal["debate", "judge"]


# The file of the inputs that the driver reads, by mode.
INPUT_OF: Mapping[str, str] = {"debate": "claims.jsonl", "judge": "debates.jsonl"}


# What the driver leaves, by mode; the task's ``output`` names it.
OUTPUT_OF: Mapping[str, str] = {"debate": "simulations.jsonl", "judge": "evaluations.jsonl"}


@dataclass(frozen=True)
class Interaction:
    """How the driver talks to a software that is a server.

    ``mode``: ``debate`` or ``judge``. Times in seconds, ``answer_bytes`` in bytes. ``concurrency`` is how many
    debates run at the same time.
    """

    mode: Mode
    port: int = 8080
    ready: float = 60.0
    answer_time: float = 60.0
    answer_bytes: int = 262144
    concurrency: int = 4
    turns: int = 5
    word_limit: int = 60
    seed: int = 0

    @property
    def input(self) -> str:
        """The file of the inputs that the driver reads."""
        return INPUT_OF[self.mode]


@dataclass(frozen=True)
class Service:
    """A sidecar that a task asks for. ``data`` is a folder of the task; ``image`` a foreign server's, by digest.

    ``options`` are the other keys of its block in task.yaml, durations and sizes as they were written.
    ``prompts`` is the folder with the prompts of a user that is a language model.
    """

    name: str
    data: Path | None = None
    image: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    prompts: Path | None = None
