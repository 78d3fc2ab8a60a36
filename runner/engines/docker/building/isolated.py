"""Build the Dockerfile of a team that is not trusted: every RUN step runs in the sandbox.

The engine's builder cannot limit processes and disk or mask files of the kernel, and its ADD has the engine's network. So
it gets only instructions that run and fetch nothing (COPY, ENV, …), as short Dockerfiles without a cache. A RUN step
runs between two of them in a container of its own, which is committed. Every instruction that is not listed here is refused.
"""

from __future__ import annotations

import io
import itertools
import re
import secrets
import tarfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from runner.engines.base import BuildSpec
from runner.engines.docker.building.builder import BuildLog, builder_limits, run_builder
from runner.engines.docker.building.step import BuildStep, remove_triggers
from runner.engines.docker.client import TookTooLong, ignoring
from runner.engines.docker.images import DockerImages
from runner.engines.dockerfile_syntax import (
    ESCAPE_DIRECTIVE,
    UnclearError,
    copied_paths,
    declared,
    expanded,
    instructions,
    json_words,
    read_dockerfile,
    split_word,
)
from runner.engines.text import printable
from runner.model.errors import RunnerError
from runner.model.limits import in_units

MAX_INSTRUCTION = 30_000  # an argument of a program has at most 128 KiB, a character at most 4 bytes
DEFAULT_SHELL = ("/bin/sh", "-c")
FOR_BUILDER = (
    *("copy", "env", "workdir", "user", "shell", "cmd", "entrypoint", "label", "expose"),
    *("stopsignal", "healthcheck", "maintainer"),
)  # fmt: skip
OWN = ("from", "arg", "run", "add", "volume", "onbuild")
_ARCHIVES = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
_TAR_MAGIC_OFFSET = 257
_PATTERN = re.compile(r"[$*?\[\]\\\"']")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass
class _Stage:
    """A stage of the Dockerfile: its image so far (empty: nothing yet), and instructions that wait for the builder.

    Volumes and triggers wait until the end. A step could fill a volume, and each FROM would carry out the triggers.
    """

    name: str
    image: str
    arguments: dict[str, str] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)
    triggers: list[str] = field(default_factory=list)
    size: int = 0

    @property
    def head(self) -> str:
        """The instruction that begins the stage with its image."""
        return f"FROM {self.image or 'scratch'}" + (f" AS {self.name}" if self.name else "")


class IsolatedBuild:
    """One build."""

    def __init__(
        self, engine: DockerImages, spec: BuildSpec, context: IO[bytes], attempt: str, log: BuildLog
    ) -> None:
        if spec.target is not None:
            raise ValueError("an isolated build has no target")
        self._engine, self._spec, self._context = engine, spec, context
        self._attempt, self._log = attempt, log
        self._ends_at = time.monotonic() + spec.timeout
        self._globals: dict[str, str] = {}
        self._stages: list[_Stage] = []
        self._written = 0  # bytes in addition to the base images, of all stages
        self._made: list[str] = []  # images
        self._finishing = False
        self._context_size: int | None = None  # bytes of the files in the context

    def run(self) -> str:
        """Return the identity of the image. Raises E203, and TookTooLong when the time is over."""
        final = ""
        if not self._engine.local:
            self._log.write("Warning: on a remote engine, open files without a name have no limit.\n")
        try:
            for number, instruction in self._read():
                try:
                    self._carry_out(instruction)
                except UnclearError as error:
                    raise self._refusal(number, instruction, f"{error}") from error
            final = self._finish()
            return final
        finally:
            for image in reversed(self._made):
                if image != final:
                    with (
                        self._engine.clients.calling("removing an image of a build") as api,
                        ignoring(404, 409),
                    ):
                        api.remove_image(image, noprune=True)

    def _read(self) -> list[tuple[int, str]]:
        """Return the instructions. Raises E203 if one is not known."""
        try:
            text = read_dockerfile(self._spec.context / self._spec.dockerfile).removeprefix("\ufeff")
        except UnclearError as error:
            raise self._log.failure(f"Line {error.line}: {error}. End every line with LF or CRLF.") from error
        if "`" in ESCAPE_DIRECTIVE.findall(text):
            raise self._log.failure("The directive escape=` is not supported.")
        steps = list(instructions(text, "\\", doubled=True, indented=True))
        for number, instruction in steps:
            self._check(number, instruction)
        if not any(split_word(instruction)[0].lower() == "from" for _, instruction in steps):
            raise self._log.failure("The Dockerfile has no FROM.")
        return steps

    def _check(self, number: int, instruction: str) -> None:
        word, rest = split_word(instruction)
        if word.lower() not in (*OWN, *FOR_BUILDER):
            raise self._refusal(number, instruction, "the instruction is not known")
        if len(instruction) > MAX_INSTRUCTION:
            raise self._refusal(number, instruction, f"it has more than {MAX_INSTRUCTION} characters")
        if instruction.endswith("\\"):
            raise self._refusal(number, instruction, "the line is continued, but nothing follows")
        if word.lower() == "run" and (rest.startswith("--") or not rest):
            raise self._refusal(
                number, instruction, "options of RUN require BuildKit" if rest else "it is empty"
            )

    def _refusal(self, number: int, instruction: str, why: str) -> RunnerError:
        return self._log.failure(f"Line {number}, {printable(instruction, 100)}: {why}.")

    def _carry_out(self, instruction: str) -> None:
        word, rest = split_word(instruction)
        kind = word.lower()
        if kind == "arg" and not self._stages:
            self._globals |= declared(rest, self._globals, self._spec.args)
            return
        if kind == "from":
            self._begin_stage(rest)
            return
        if not self._stages:
            raise UnclearError("it stands before the first FROM")
        stage = self._stages[-1]
        if kind == "arg":
            self._declare(stage, rest)
        elif kind == "run":
            self._run(stage, rest)
        elif kind == "volume":
            stage.volumes.append(instruction)
        elif kind == "onbuild":
            stage.triggers.append(rest)
        elif kind == "add":
            stage.waiting.append(f"COPY {self._local_addition(rest)}")
        else:
            stage.waiting.append(f"{word.upper()} {rest}")

    def _begin_stage(self, rest: str) -> None:
        """Begin a stage, with the triggers of its base image as its first instructions."""
        if self._stages:
            self._flush(self._stages[-1])
        words = rest.split()
        flags = [word for word in words if word.startswith("--")]
        names = [word for word in words if not word.startswith("--")]
        if any(flag != f"--platform={self._engine.info().platform}" for flag in flags):
            raise UnclearError("only --platform of this engine is supported")
        if len(names) not in (1, 3) or (len(names) == 3 and names[1].lower() != "as"):
            raise UnclearError("FROM needs one image, and AS with one name")
        base = expanded(names[0], self._globals)
        image, volumes, triggers = self._base(base)
        name = names[2] if len(names) == 3 else ""
        stage = _Stage(name, image, volumes=volumes, size=self._size(image))
        self._stages.append(stage)
        for number, trigger in enumerate(triggers, 1):
            self._check(number, trigger)
            if split_word(trigger)[0].lower() in ("onbuild", "from", "maintainer"):
                raise UnclearError("a trigger of the base image is not allowed there")
            self._carry_out(trigger)

    def _base(self, name: str) -> tuple[str, list[str], list[str]]:
        """Return an image by its name, without triggers, its volumes that wait, and its triggers."""
        for stage in reversed(self._stages):
            if stage.name and stage.name.lower() == name.lower():
                return stage.image, list(stage.volumes), list(stage.triggers)
        if name == "scratch":
            return "", [], []
        try:
            base = self._engine.resolve(name)
        except RunnerError as error:
            if error.code != "E204":
                raise
            base = self._engine.pull(name)
        if not base.onbuild:
            return base.id, [], []
        image = remove_triggers(self._engine, self._attempt, base.id)
        self._made.append(image)
        return image, [], list(base.onbuild)

    def _declare(self, stage: _Stage, rest: str) -> None:
        """Give the arguments of an ARG their values: the build argument, the default, or the value before the first FROM."""
        self._flush(stage)
        without_default = {word for word in rest.split() if "=" not in word}
        values = {**stage.arguments, **environment(self._config(stage))}
        for name, value in declared(rest, values, self._spec.args).items():
            if not _NAME.fullmatch(name):
                raise UnclearError(f"{printable(name)} is not a name of an argument")
            if name in without_default and name not in self._spec.args:
                if name not in self._globals:
                    continue
                value = self._globals[name]
            if "\0" in value:
                raise UnclearError("its default is not clear: write it as it is")
            stage.arguments[name] = value

    def _run(self, stage: _Stage, rest: str) -> None:
        self._flush(stage)
        if not stage.image:
            raise UnclearError("the stage has no image to run it on")
        config = self._config(stage)
        command = json_words(rest)
        if command is None:
            command = [*(config.get("Shell") or DEFAULT_SHELL), rest]
        assignments = [
            f"{name}={value}"
            for name, value in sorted(stage.arguments.items())
            if name not in environment(config)
        ]
        if assignments:  # in the container's own environment they would become part of the image
            command = ["/usr/bin/env", *assignments, *command]
        self._log.write(f"RUN {printable(rest, 200)}\n")
        step = BuildStep(
            self._engine, self._spec, self._attempt, stage.image, config, command, printable(rest, 200)
        )
        left = self._spec.disk - self._written
        self._advance(stage, step.run(disk=left, seconds=self._seconds_left(), log=self._log))

    def _local_addition(self, rest: str) -> str:
        """Return the operands of the COPY that has the effect of an ADD. Raises UnclearError if there is none."""
        paths = rest
        while paths.startswith("--"):
            paths = split_word(paths)[1]
        for source in copied_paths(paths)[:-1]:
            if _PATTERN.search(source):
                raise UnclearError("name the files of ADD as they are, or use COPY")
            if _is_archive(self._spec.context, source):
                raise UnclearError("ADD does not unpack archives here: use COPY, and RUN tar")
        return rest

    def _flush(self, stage: _Stage) -> None:
        """Let the builder carry out what waits for it."""
        if not stage.waiting and not (self._finishing and self._spec.labels):
            return
        lines = [each.head for each in self._stages]
        lines += [f"ARG {name}" for name in stage.arguments]
        lines += stage.waiting
        text = ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")
        needs_files = any(_copies_from_context(line) for line in stage.waiting)
        context, dockerfile = self._context_with(text) if needs_files else _context_of(text)
        earlier_images = [each.image.removeprefix("sha256:") for each in self._stages]

        def measure(image: str) -> None:
            if not any(earlier.startswith(image) for earlier in earlier_images):
                self._made.append(self._engine.resolve(image).id)
                self._check_disk(self._written + max(0, self._size(image) - stage.size))

        image = run_builder(
            self._engine.clients,
            context,
            {
                "dockerfile": dockerfile,
                "buildargs": dict(stage.arguments),
                "labels": dict(self._spec.labels) if self._finishing else {},
                "network_mode": "none",
                "nocache": True,
                "container_limits": builder_limits(self._spec),
            },
            self._log,
            self._seconds_left(),
            measure,
        )
        stage.waiting.clear()
        self._advance(stage, image)

    def _finish(self) -> str:
        """Return the image of the last stage, with its triggers, labels and tag."""
        stage = self._stages[-1]
        stage.waiting += stage.volumes
        stage.waiting += [f"ONBUILD {trigger}" for trigger in stage.triggers]
        self._finishing = True
        self._flush(stage)
        if not stage.image:
            raise self._log.failure("The last stage has no image.")
        if self._spec.tag:
            self._engine.keep(self._engine.resolve(stage.image), self._spec.tag)
        return stage.image

    def _advance(self, stage: _Stage, image: str) -> None:
        """Make ``image`` the image of the stage."""
        if image not in (stage.image, *self._made):
            self._made.append(image)
        size = self._size(image)
        self._written += max(0, size - stage.size)
        stage.image, stage.size = image, size
        self._check_disk(self._written)

    def _check_disk(self, written: int) -> None:
        if written > self._spec.disk:
            raise self._log.failure(
                f"The image adds {in_units(written)} to its base images; {in_units(self._spec.disk)} are allowed."
            )

    def _size(self, image: str) -> int:
        if not image:
            return 0
        with self._engine.clients.calling("measuring an image") as api:
            return int(api.inspect_image(image).get("Size") or 0)

    def _config(self, stage: _Stage) -> dict[str, Any]:
        if not stage.image:
            return {}
        with self._engine.clients.calling("reading an image's configuration") as api:
            return dict(api.inspect_image(stage.image).get("Config") or {})

    def _seconds_left(self) -> float:
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise TookTooLong("building an image")
        return left

    def _context_with(self, dockerfile: bytes) -> tuple[IO[bytes], str]:
        """Return the build context with a Dockerfile that cannot be copied into the image, and that file's name."""
        name = f".proctor-{secrets.token_hex(8)}"
        ignore = self._spec.context / ".dockerignore"
        patterns = ignore.read_bytes() if ignore.is_file() else b".dockerignore"
        if self._context_size is None:
            self._context.seek(0)
            with tarfile.open(fileobj=self._context, mode="a") as tar:
                self._context_size = tar.offset
        self._context.truncate(self._context_size)
        self._context.seek(self._context_size)
        with tarfile.open(fileobj=self._context, mode="w") as tar:
            _add(tar, name, dockerfile)
            _add(tar, ".dockerignore", patterns + f"\n{name}\n".encode())
        self._context.seek(0)
        return self._context, name


def environment(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment variables of an image's configuration."""
    return dict(entry.split("=", 1) for entry in config.get("Env") or [] if "=" in entry)


def _context_of(dockerfile: bytes) -> tuple[IO[bytes], str]:
    """Return a build context with nothing but a Dockerfile, and that file's name."""
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        _add(tar, "Dockerfile", dockerfile)
    context.seek(0)
    return context, "Dockerfile"


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def _copies_from_context(line: str) -> bool:
    words = line.split()
    if words[0] != "COPY":
        return False
    flags = itertools.takewhile(lambda word: word.startswith("--"), words[1:])
    return not any(flag.lower().startswith("--from=") for flag in flags)


def _is_archive(context: Path, source: str) -> bool:
    """True if the builder would unpack a file of the context."""
    path = context / source.lstrip("/")
    if not path.resolve().is_relative_to(context.resolve()) or not path.is_file():
        return False
    with path.open("rb") as file:
        begin = file.read(512)
    return begin.startswith(_ARCHIVES) or begin[_TAR_MAGIC_OFFSET:].startswith(b"ustar")
