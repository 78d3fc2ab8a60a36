"""Builds of Dockerfiles that are not trusted: what a step can do, and what the image holds in the end."""

from __future__ import annotations

import io
import os
import secrets
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest

from runner.engines import build_sandbox
from runner.engines.base import BuildSpec
from runner.engines.docker.building import step as build_step
from runner.engines.docker.client import ignoring
from runner.engines.docker.engine import DockerEngine
from runner.engines.dockerfile_syntax import UnclearError, read_dockerfile
from runner.engines.masks import masked
from runner.model.container import ImageRef
from runner.model.errors import RunnerError
from runner.model.limits import GIB, MIB
from runner.submissions.dockerfile import sources

pytestmark = pytest.mark.engine

Build = Callable[..., ImageRef]


@pytest.fixture
def build(engine: DockerEngine, base_image: ImageRef, tmp_path: Path) -> Iterator[Build]:
    """Build an isolated image of ``FROM base`` and these lines, or of a whole text. Files of the context are in tmp_path."""
    images: list[str] = []

    def go(*lines: str, on_line: Callable[[str], None] | None = None, **options: Any) -> ImageRef:
        text = "\n".join(lines) if lines[0].startswith("ARG BASE") else "\n".join(["FROM base", *lines])
        text = text.replace("FROM base", f"FROM {base_image.id}") + "\n"
        (tmp_path / "Dockerfile").write_text(text, newline="")
        spec = BuildSpec(tmp_path, **{"timeout": 120, "isolated": True, **options})
        image = engine.build(spec, on_line)
        images.append(image.id)
        return image

    yield go
    with engine.clients.calling("removing the images of a test") as api:
        for image in dict.fromkeys(reversed(images)):
            with ignoring(404):
                api.remove_image(image, force=True)


def refusal(build: Build, *lines: str, **options: Any) -> RunnerError:
    """Return the error of a build that must fail."""
    with pytest.raises(RunnerError) as caught:
        build(*lines, **options)
    assert caught.value.code == "E203"
    return caught.value


def output(build: Build, program: str, **options: Any) -> str:
    """Return what a Python program prints in a RUN step."""
    lines: list[str] = []
    (Path(options.pop("folder")) / "program.py").write_text(program)
    build("COPY program.py /", "RUN python3 /program.py", on_line=lines.append, **options)
    return "\n".join(lines)


FORKS = """
import os, time
count = 0
try:
    while count < 400:
        if os.fork() == 0:
            time.sleep(60)
        count += 1
except OSError:
    pass
print("CHILDREN", count)
"""


def test_a_step_has_few_processes(build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = output(build, FORKS, folder=tmp_path, pids=50)
    assert 0 < int(printed.split("CHILDREN ")[1].split()[0]) < 50
    monkeypatch.setattr(build_step, "step_options", without("PidsLimit"))
    assert "CHILDREN 400" in output(build, FORKS, folder=tmp_path, pids=50)


def without(*options: str) -> Callable[..., dict[str, Any]]:
    """Return a function that makes the options of a step without these of the engine."""

    def make(*arguments: Any, **keywords: Any) -> dict[str, Any]:
        body = build_sandbox.step_options(*arguments, **keywords)
        for option in options:
            del body["HostConfig"][option]
        return body

    return make


def test_a_step_has_little_memory(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "RUN python3 -c 'bytearray(300 << 20)'"
    assert "137" in refusal(build, line, memory=64 * MIB).why
    monkeypatch.setattr(build_step, "step_options", without("Memory", "MemorySwap"))
    build(line, memory=64 * MIB)


@pytest.mark.slow
@pytest.mark.parametrize("line", [
    "RUN dd if=/dev/zero of=/fill bs=1M count=300",
    "RUN for n in 1 2 3 4 5 6 7 8 9; do dd if=/dev/zero of=/fill$n bs=1M count=30; done; sleep 60",
    "RUN python3 -c \"import os; [open(f'/many/{n}', 'w') for n in range(3000) if n or not os.mkdir('/many')]\"",
])  # fmt: skip
def test_a_step_has_little_disk(
    build: Build, marked: Marked, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    refusal(build, marked.head, line, disk=100 * MIB, files=1000, timeout=50)
    assert not marked.rest()
    monkeypatch.setattr(build_step.LayerWatch, "check", lambda _, **__: None)
    build(line.replace("; sleep 60", ""), disk=GIB, files=1000)


DEEP = """
import os
for _ in range({depth}):
    os.mkdir({name!r})
    os.chdir({name!r})
for n in range(3000):
    open(str(n), "w").close()
for n in range(6):
    open(f"large{{n}}", "w").write("x" * (4 << 20))
"""


# The name of each folder, how many lie in one another, and the limit.
TREES: dict[str, tuple[str, int, dict[str, int]]] = {
    "long paths": ("d" * 200, 40, {"disk": 10 * MIB}),
    "files with long paths": ("d" * 200, 40, {"files": 1000}),
    "files in many folders": ("d", build_step.MAX_DEPTH + 20, {"files": 1000}),
}


@pytest.mark.slow
@pytest.mark.parametrize("tree", TREES)
def test_deep_folders_evade_no_limit(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tree: str
) -> None:
    """The engine cannot measure paths of more than 4096 bytes."""
    name, depth, limits = TREES[tree]
    (tmp_path / "program.py").write_text(DEEP.format(name=name, depth=depth))
    lines = ("COPY program.py /", "RUN python3 /program.py")
    refusal(build, *lines, **limits)
    monkeypatch.setattr(build_step.LayerWatch, "check", lambda _, **__: None)
    build(*lines, **{"disk": GIB, **limits} if "files" in limits else {})


@pytest.mark.parametrize("size", [{}, {"SizeRw": -1, "SizeRootFs": 1}, {"SizeRw": 5}, None])
def test_a_step_that_cannot_be_measured_is_stopped(
    build: Build, monkeypatch: pytest.MonkeyPatch, size: dict[str, int] | None
) -> None:
    listed = [] if size is None else [size]
    monkeypatch.setattr(docker.APIClient, "containers", lambda *_, **__: listed)
    assert build_step.UNMEASURED in refusal(build, "RUN sleep 60", timeout=10).why


def test_folders_that_are_replaced_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Software may replace a folder by a pipe or a link before the runner opens it."""
    for name in ("pipe", "link", "gone", "kept"):
        (tmp_path / name).mkdir()
    (tmp_path / "kept" / "file").touch()
    original = os.open

    def replace_and_open(path: Any, flags: int, *args: Any, dir_fd: int | None = None) -> int:
        if path in ("pipe", "link", "gone"):
            (tmp_path / path).rmdir()
        if path == "pipe":
            os.mkfifo(tmp_path / path)
        if path == "link":
            (tmp_path / path).symlink_to("/")
        return original(path, flags, *args, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", replace_and_open)
    assert not build_step.has_more_files(tmp_path, 5)
    assert build_step.has_more_files(tmp_path, 1)


@pytest.mark.slow
def test_files_without_a_name_do_not_fill_the_disk(
    engine: DockerEngine, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not a part of the layer's size."""
    write = "exec 3> /fill && rm /fill && head -c 800M /dev/zero >&3"
    root = engine.info().data_root
    assert root is not None
    monkeypatch.setattr(build_step, "MIN_FREE_BYTES", build_step.free_bytes(root) - 400 * MIB)
    refusal(build, f"RUN {write} && sleep 60", disk=GIB, timeout=50)
    monkeypatch.setattr(build_step, "MIN_FREE_BYTES", 0)
    build(f"RUN {write}", disk=GIB)


@pytest.mark.slow
def test_an_engine_elsewhere_counts_files(
    far_engine: DockerEngine, base_image: ImageRef, tmp_path: Path
) -> None:
    """The runner asks the engine if it cannot read the file system."""
    (tmp_path / "Dockerfile").write_text(
        f"FROM {base_image.id}\nRUN mkdir /many && cd /many && for n in $(seq 2000); do : > $n; done; sleep 60\n"
    )
    with pytest.raises(RunnerError) as caught:
        far_engine.build(BuildSpec(tmp_path, isolated=True, files=1000, timeout=50))
    assert caught.value.code == "E203" and "1000" in caught.value.why


@dataclass
class Marked:
    """An image with a random label, which every image that is built from it has, too."""

    engine: DockerEngine
    image: ImageRef
    label: str

    @property
    def head(self) -> str:
        """The lines that begin a Dockerfile from this image. (The first one tells ``build`` to add no FROM.)"""
        return f"ARG BASE=none\nFROM {self.image.id}"

    def rest(self) -> set[str]:
        """Return the images that were built from it and are still there, also those without a name."""
        with self.engine.clients.calling("listing images") as api:
            listed = api.images(quiet=True, all=True, filters={"label": self.label})
        return {*listed} - {self.image.id}


@pytest.fixture
def marked(engine: DockerEngine, build: Build) -> Marked:
    label = f"test={secrets.token_hex(8)}"
    return Marked(engine, build(f"LABEL {label}"), label)


@pytest.mark.slow
@pytest.mark.parametrize(
    "lines",
    [
        tuple(f"COPY large /{n}" for n in range(8)),  # files of the context count
        ("COPY program.py /", "ENV A=1", "COPY missing /"),
        ("ENV A=1", "USER nobody", "RUN exit 3"),
        ("ARG A=1", "ENV A=1", "COPY --from=0 /missing /"),
        ("RUN echo 1 > /x", "FROM {image}", "COPY --from=0 /x /y", "RUN exit 3"),
    ],
)
def test_a_failed_build_leaves_nothing(
    build: Build, marked: Marked, engine: DockerEngine, tmp_path: Path, lines: tuple[str, ...]
) -> None:
    (tmp_path / "program.py").touch()
    (tmp_path / "large").write_bytes(b"x" * 40 * MIB)
    refusal(build, marked.head, *(line.format(image=marked.image.id) for line in lines), disk=100 * MIB)
    assert not marked.rest()
    with engine.clients.calling("listing containers") as api:
        assert not api.containers(all=True, filters={"label": ["proctor.role=build"]})


def test_removing_the_images_of_a_build_keeps_its_result(build: Build, marked: Marked) -> None:
    image = build(
        marked.head, "RUN echo 1 > /x", "FROM base", "ENV A=1", "COPY --from=0 /x /y", "USER nobody"
    )
    assert marked.engine.resolve(image.id).id == image.id
    assert not marked.rest()


@pytest.mark.slow
@pytest.mark.parametrize("ignored", [None, "ignored\n"])
def test_files_of_the_build_itself_are_not_copied(build: Build, tmp_path: Path, ignored: str | None) -> None:
    """Each COPY between two RUN steps sends the context with another Dockerfile."""
    (tmp_path / "file").touch()
    if ignored is not None:
        (tmp_path / ".dockerignore").write_text(ignored)
        (tmp_path / "ignored").touch()
    steps = [f"COPY . /copies/{n}\nRUN true" for n in range(3)]
    lines: list[str] = []
    build(*steps, "RUN find /copies -type f | sort", on_line=lines.append)
    copied = [line for line in lines if line.startswith("/copies/")]
    names = sorted({"Dockerfile", "file"} | ({".dockerignore"} if ignored else set()))
    assert copied == [f"/copies/{n}/{name}" for n in range(3) for name in names]


@pytest.mark.slow
def test_volumes_have_little_room(build: Build) -> None:
    """A volume of a base image is not a part of the container's layer; one of the Dockerfile is none until the end."""
    fill = "dd if=/dev/zero of=/data/fill bs=1M count=300"
    base = build(
        "RUN mkdir /data && echo kept > /data/file", "VOLUME /data", "RUN test $(cat /data/file) = kept"
    )
    assert base.volumes == ("/data",)
    assert "non-zero code" in refusal(build, f"FROM {base.id}", f"RUN {fill}", disk=400 * MIB).why


@pytest.mark.slow
def test_files_of_the_kernel_are_masked(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = f"""
import os
readable = []
for path in {masked()!r}:
    try:
        if os.path.isdir(path):
            is_shown = bool(os.listdir(path))
        else:
            with open(path, 'rb') as file:
                is_shown = bool(file.read(1))
    except OSError:
        is_shown = False
    if is_shown:
        readable.append(path)
print('READABLE', *readable)
"""
    assert _readable(output(build, program, folder=tmp_path)) == []
    monkeypatch.setattr(build_step, "step_options", without("MaskedPaths"))
    assert {"/proc/buddyinfo", "/proc/locks"} <= set(_readable(output(build, program, folder=tmp_path)))


def _readable(printed: str) -> list[str]:
    """Return the paths that the program of the test could read."""
    [line] = [line for line in printed.split("\n") if line.startswith("READABLE")]
    return line.split()[1:]


@pytest.mark.slow
def test_a_step_of_another_build_is_not_used(build: Build, engine: DockerEngine, tmp_path: Path) -> None:
    """The classic builder takes the same step of another team from its cache, where its time can be read."""
    mark = secrets.token_hex(8)
    lines = (f"RUN echo {mark} && cat /proc/sys/kernel/random/uuid > /drawn", "CMD true")
    assert build(*lines, isolated=False).id == build(*lines, isolated=False).id
    heard: list[str] = []
    first, second = (build(*lines, on_line=heard.append) for _ in range(2))
    layers = [_inspect(engine, image)["RootFS"]["Layers"][-1] for image in (first, second)]
    assert layers[0] != layers[1]
    assert not any("cache" in line for line in heard)


def _inspect(engine: DockerEngine, image: ImageRef) -> dict[str, Any]:
    with engine.clients.calling("looking at an image") as api:
        return dict(api.inspect_image(image.id))


WHOLE = """ARG BASE=base
ARG GREETING=hello
FROM base AS one
ARG GREETING
ARG NAME=world
RUN echo "$GREETING $NAME" > /one
FROM one AS two
ENV LEVEL=2
WORKDIR /work
COPY --from=one /one first
# a comment
RUN cat first > second && \\
    # a comment inside
    echo $LEVEL >> second
SHELL ["/bin/bash", "-c"]
RUN [[ $LEVEL = 2 ]] && echo bash >> second
RUN ["/bin/sh", "-c", "echo json >> second"]
COPY . all
RUN useradd -m alice && chown alice second && setpriv --reuid=alice --clear-groups touch second
USER alice
RUN whoami >> second
LABEL purpose=test
ONBUILD RUN true
VOLUME /kept
CMD ["cat", "second"]
"""


@pytest.mark.slow
def test_the_image_is_that_of_the_classic_builder(build: Build, engine: DockerEngine, tmp_path: Path) -> None:
    """Configuration and files are equal, with both ways to build."""
    (tmp_path / "file").write_text("content")
    (tmp_path / ".dockerignore").write_text("ignored\n")
    (tmp_path / "ignored").write_text("ignored")
    images = [
        build(WHOLE, isolated=isolated, args={"GREETING": "bye"}, labels={"proctor.test": "yes"})
        for isolated in (False, True)
    ]
    classic, isolated = (_inspect(engine, image)["Config"] for image in images)
    for label in build_sandbox.HIDDEN_LABELS:
        assert isolated["Labels"].pop(label) == ""
    for key in ("Image", "Hostname"):
        classic.pop(key, None)
        isolated.pop(key, None)
    assert {k: v or None for k, v in classic.items()} == {k: v or None for k, v in isolated.items()}
    trees = [_files(engine, image) for image in images]
    assert trees[1] == trees[0]
    assert trees[1]["work/second"][1] == b"bye world\n2\nbash\njson\nalice\n"


def _files(engine: DockerEngine, image: ImageRef) -> dict[str, tuple[Any, ...]]:
    """Return mode, owner and content of the files that the Dockerfile makes."""
    with engine.clients.calling("reading the files of an image") as api:
        container = api.create_container(image.id, ["true"])["Id"]
        files = {}
        for path in ("/one", "/work", "/home", "/kept"):
            data = b"".join(api.get_archive(container, path)[0])
            with tarfile.open(fileobj=io.BytesIO(data)) as tar:
                for member in tar:
                    file = tar.extractfile(member) if member.isfile() else None
                    content = file.read() if file else b""
                    if member.name.endswith("Dockerfile") or member.name.endswith(".dockerignore"):
                        content = b""
                    files[member.name] = ((member.mode, member.uid, member.gid), content)
        api.remove_container(container, v=True)
    return files


@pytest.mark.slow
def test_triggers_of_a_base_image_are_isolated_too(
    build: Build, engine: DockerEngine, tmp_path: Path
) -> None:
    base = build(
        "ONBUILD COPY file /file",
        "ONBUILD RUN test $(ls /sys/class/net) = lo && cat /file /proc/locks > /made",
    )
    (tmp_path / "file").write_text("content")
    (tmp_path / "Dockerfile").write_text(
        f"FROM {base.id}\nRUN grep -q '^content$' /made || grep -q content /made\n"
    )
    image = engine.build(BuildSpec(tmp_path, isolated=True, timeout=60))
    assert image.onbuild == ()
    with engine.clients.calling("removing the image of a test") as api:
        api.remove_image(image.id, force=True)


@pytest.mark.parametrize("line", [
    "RUN --mount=type=bind,from=base,target=/x ls /x",
    "RUN --network=host true",
    "RUN <<EOF\nRUN true\nEOF",
    "NOTHING x",
    "ADD archive.tar.gz /x",
    "ADD archive* /x",
    "ADD http://127.0.0.1:1/x /x",
    "FROM scratch\nRUN true",
    "COPY file /x \\",
    "RUN exit 3",
    "RUN true " + "x" * 200_000,
    'RUN ["/nowhere"]',
])  # fmt: skip
def test_instructions_that_are_refused(build: Build, tmp_path: Path, line: str) -> None:
    (tmp_path / "archive.tar.gz").write_bytes(b"\x1f\x8b\x08" + bytes(20))
    refusal(build, line)


@pytest.mark.slow
@pytest.mark.parametrize("separator", ["\r", "\v", "\f", "\x1c", "\x85", "\u2028"])
def test_no_instruction_is_hidden_from_the_check(build: Build, tmp_path: Path, separator: str) -> None:
    """The check of a team's Dockerfile and the build read the same instructions."""
    secret = build("RUN echo secret > /secret").id
    hidden = f"RUN true #{separator}COPY --from={secret} /secret /stolen"
    lines: list[str] = []
    if separator == "\r":
        assert "Line 2" in refusal(build, hidden, "RUN ls /").why
        with pytest.raises(UnclearError):
            read_dockerfile(tmp_path / "Dockerfile")
        return
    build(hidden, "RUN ls /", on_line=lines.append)
    assert secret not in [source.name for source in sources(read_dockerfile(tmp_path / "Dockerfile"))]
    assert "etc" in lines and "stolen" not in lines


def test_lines_may_end_with_crlf(build: Build) -> None:
    lines: list[str] = []
    build("ENV NAME=x\r\nRUN echo \\\r\n  begin-$NAME-end\r", on_line=lines.append)
    assert "begin-x-end" in lines


@pytest.mark.slow
def test_a_build_that_takes_too_long(build: Build) -> None:
    assert "2 s" in refusal(build, "RUN sleep 60", timeout=2).why
