"""Calls of the engine's builder, and the output of a build."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import IO, Any

from runner.engines.base import BuildSpec
from runner.engines.docker.client import Clients
from runner.engines.text import Lines, plain, printable
from runner.model.errors import RunnerError

LAST_LINES = 20
_STEP = re.compile(r" ---> ([0-9a-f]{12,64})\n?")


class BuildLog:
    """The output of one build: every line is passed on, and the last ones are part of an error."""

    def __init__(self, name: str, on_line: Callable[[str], None] | None) -> None:
        self._name = printable(name)
        self._on_line = on_line
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._lines = Lines()

    def write(self, text: str) -> None:
        """Add text that may end anywhere in a line."""
        for line in self._lines.of(text):
            self._add(line)

    def finish_line(self) -> None:
        """End the last line."""
        for line in self._lines.end():
            self._add(line)

    def _add(self, line: str) -> None:
        self._last.append(line)
        if self._on_line is not None:
            self._on_line(line)

    def failure(self, why: str) -> RunnerError:
        """Return E203 with the last lines."""
        self.finish_line()
        return RunnerError(
            "E203",
            f"building {self._name} failed",
            why=why + ("\n".join((" The last lines were:", *self._last)) if self._last else ""),
            fix="correct the Dockerfile; 'docker build' in the same folder shows the whole output",
        )


def run_builder(
    clients: Clients,
    context: IO[bytes],
    arguments: Mapping[str, Any],
    log: BuildLog,
    seconds: float,
    on_step: Callable[[str], None] = lambda _: None,
) -> str:
    """Have the engine's classic builder carry out a Dockerfile; return the identity of the image.

    Args:
        clients: connections to the engine.
        context: a tar archive of the build context.
        arguments: arguments of the SDK's ``build`` in addition to those that every build has.
        log: the output is written there.
        seconds: time limit.
        on_step: called with the image of every step that is finished.

    Raises:
        RunnerError: E203 if the build fails or names no image.
        TookTooLong: the time is over.
    """
    image = ""
    every = {
        "custom_context": True,
        "rm": True,
        "forcerm": True,
        "decode": True,
        "timeout": math.ceil(seconds),
    }
    with clients.streaming("building an image", seconds) as (api, _):
        for event in api.build(fileobj=context, **every, **arguments):
            text = str(event.get("stream", ""))
            log.write(text)
            if step := _STEP.fullmatch(text):
                on_step(step[1])
            image = str((event.get("aux") or {}).get("ID", image))
            if "error" in event:
                raise log.failure(f"The engine says: {printable(plain(str(event['error'])), 500)}.")
    if not image:
        raise log.failure("The engine named no image at the end.")
    return image


def builder_limits(spec: BuildSpec) -> dict[str, int]:
    """Return the limits of the containers that the builder starts."""
    return {"memory": spec.memory, "memswap": spec.memory}
