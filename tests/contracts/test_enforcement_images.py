"""Images and commands that try to change the sandbox. Real containers, most of them from an image of their own."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from runner.engines import sandbox
from runner.engines.docker import starting
from runner.engines.docker.engine import DockerEngine
from runner.model.container import ImageRef
from runner.model.errors import PlatformError, RunnerError
from runner.model.limits import MIB, Exceptions
from tests.contracts.conftest import LIMITS, Ran, run_software

pytestmark = pytest.mark.engine

Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def run(
    engine: DockerEngine,
    scratch_image: ImageRef,
    build_image: Callable[..., ImageRef],
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    """Run a command under the sandbox, in an image with these further lines."""

    def go(command: Any, *lines: str, tag: str = "misled", limits: Any = LIMITS, **changes: Any) -> Ran:
        image = build_image(f"proctor/test-{tag}", *lines) if lines else scratch_image
        return run_software(engine, image, command, tmp_path_factory.mktemp("out"), limits, **changes)

    return go


@pytest.mark.parametrize(
    "line",
    [
        r"RUN for n in $(seq 20000 29000); do echo $n:x:0:; done >> /etc/group",
        r"RUN printf '\302\24020001:x:6:\n20001 :x:6:\n' >> /etc/group",
        "RUN for n in $(seq 20000 29000); do echo $n:x:0:0::/:/bin/sh; done >> /etc/passwd",
        "RUN mv /etc/group /etc/other && ln -s other /etc/group && echo 24001:x:0: >> /etc/other",
        "RUN rm /etc/group && mkfifo /etc/group",
        "RUN rm /etc/group && ln -s group /etc/group",
        "RUN rm /etc/group && ln -s /dev/zero /etc/group",
        # The daemon looks into the image's own root, below what is mounted at /in and /out.
        "RUN mkdir /in && mv /etc/group /in && ln -s /in/group /etc && echo 24001:x:0: >> /in/group",
        "RUN echo 24001:x:0: >> /etc/group && ln -s /etc /out",
    ],
)
def test_no_image_chooses_the_groups_of_its_software(run: Run, line: str) -> None:
    """The runtime takes our numbers for names, when the image has such names."""
    result = run(("id",), line, tag="groups")
    assert result.exit.code is None and "/etc/" in str(result.exit.start_error), result.stdout
    assert result.stdout == b""


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.parametrize(
    "line",
    [
        "RUN echo 7zip:x:0: >> /etc/group && echo 20001:x:20001: >> /etc/group",
        "RUN rm /etc/group /etc/passwd",
    ],
)
def test_images_with_ordinary_accounts_or_none_run(run: Run, line: str) -> None:
    result = run(("sh", "-c", "id -G"), line, tag="accounts")
    assert result.exit.code == 0 and len(result.stdout.split()) == 1
    assert int(result.stdout) >= sandbox.FIRST_UID


def test_labels_of_an_image_do_not_replace_ours(run: Run) -> None:
    line = (
        "LABEL proctor.attempt=mine proctor.owner='x|y|1|' proctor.role=keeper proctor.data=0 "
        "proctor.more=x other=y"
    )
    labels = run(("true",), line, tag="labels").inspected["Config"]["Labels"]
    assert labels["proctor.role"] == "software" and labels["proctor.attempt"].startswith("test-")
    assert labels["proctor.owner"] != "x|y|1|"
    assert labels["proctor.data"] == labels["proctor.more"] == labels["other"] == ""


@pytest.mark.slow
@pytest.mark.smoke
def test_directives_of_an_image_are_bounded(
    engine: DockerEngine, run: Run, build_image: Callable[..., ImageRef]
) -> None:
    """A VOLUME has a size limit, a HEALTHCHECK does not run, USER is ignored, and ENV is kept."""
    lines = (
        "VOLUME /data /in",
        "HEALTHCHECK --interval=1s CMD touch /data/health",
        "USER root",
        "WORKDIR /work",
        "ENV NVIDIA_VISIBLE_DEVICES=all HOME=/root",
        'ENTRYPOINT ["python3", "-c", "import os, time\\n'
        "try:\\n f = open('/data/x', 'wb', 0)\\n while f.write(bytes(1 << 20)): pass\\n"
        "except OSError as e: print(e.errno)\\n"
        "time.sleep(1.5)\\n"
        "print(f.tell(), os.getuid() > 0, os.path.exists('/data/health'), os.getcwd(), os.listdir('/in'), os.environ['HOME'], os.environ['NVIDIA_VISIBLE_DEVICES'])\"]",
    )
    image = build_image("proctor/test-directives", *lines)
    assert image.volumes == ("/data", "/in") and image.has_healthcheck and image.workdir == "/work"
    result = run(None, *lines, tag="directives", limits=replace(LIMITS, output=64 * MIB))
    assert result.exit.code == 0, result.stderr
    assert result.stdout.decode().split("\n")[:2] == [
        str(errno.ENOSPC),
        f"{sandbox.VOLUME_COVER} True False /work ['queries.txt'] /root void",
    ]
    volumes = {m["Name"] for m in result.inspected["Mounts"] if m["Type"] == "volume"}
    left = {v["Name"] for v in engine.clients.get().volumes().get("Volumes") or []}
    assert not volumes & left


WITHOUT = "FROM scratch\nCOPY --from=0 /etc/hostname /data"  # neither sh nor anything else


ADVICE = (starting.MOUNTS, starting.COMMAND, starting.WORKDIR, starting.DIRECTIVE)

# The image has a link, a file or a VOLUME where the sandbox mounts something.
MOUNTED = [
    "VOLUME /proc",
    "VOLUME /dev",
    "VOLUME /proc/x",
    "VOLUME /in/x",
    "RUN ln -s /proc /in",
    "RUN ln -s /etc /in",
    "RUN ln -s /sbin /in",
    "RUN ln -s /dev /in",
    "RUN ln -s out /out",
    "RUN touch /out",
    "RUN ln -s /etc/hosts /out",
    "RUN rm -rf /tmp && ln -s /proc /tmp",
    "RUN rm -rf /sbin && ln -s /proc/self /sbin",
]


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.parametrize(
    ("line", "advice"),
    [
        *((line, starting.MOUNTS) for line in MOUNTED),
        ("VOLUME data", starting.DIRECTIVE),
        ("WORKDIR /proc/self/fd/6", starting.WORKDIR),
        (WITHOUT, None),
    ],
)
def test_an_image_that_cannot_be_started_is_blamed(run: Run, line: str, advice: str | None) -> None:
    result = run(None if line == WITHOUT else ("true",), line)
    error = str(result.exit.start_error)
    assert result.exit.code is None and result.exit.start_error
    assert [text for text in ADVICE if text in error] == ([advice] if advice else []), error
    assert "/overlay2/" not in error and "/volumes/" not in error, "the folders of the host are not shown"


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.parametrize(
    "line",
    [
        "RUN ln -s /data /in",
        "RUN ln -s /out /in",
        "RUN ln -s /nowhere/there /out",
        "RUN rm -rf /tmp && ln -s /etc /tmp",
        "USER nobody-has-this-name:nor-this",
    ],
)
def test_links_and_users_that_do_no_harm(run: Run, line: str) -> None:
    result = run(("true",), line)
    assert (result.exit.code, result.exit.start_error) == (0, None)


@pytest.mark.parametrize("fd", [6, 7, 8, 9])
def test_no_working_directory_leads_to_the_host(run: Run, fd: int) -> None:
    """A file descriptor that a runtime forgot to close would lead there (CVE-2024-21626)."""
    result = run(("ls", "-a", "/proc/self/cwd/../../../../../../../.."), workdir=f"/proc/self/fd/{fd}")
    assert result.exit.start_error or result.exit.code or b"\nin\n" in result.stdout, result.stdout


def test_granted_exceptions(run: Run, engine: DockerEngine) -> None:
    granted = Exceptions(writable=("/var/cache/model",), writable_bytes=2 * MIB)
    code = "f = open('/var/cache/model/x', 'wb', 0)\nn = f.write(bytes(4 << 20))\nprint(n)"
    assert int(run(code, exceptions=granted).stdout) == 2 * MIB
    with pytest.raises(RunnerError) as caught:
        run("", exceptions=Exceptions(writable=("/in",)))
    assert caught.value.code == "E402"
    if not engine.user_namespaces:
        with pytest.raises(PlatformError) as failed:
            run("", exceptions=Exceptions(root=True))
        assert failed.value.code == "E302"


@pytest.mark.parametrize(
    ("command", "workdir", "advice"),
    [
        (("true",), "/etc/passwd", starting.WORKDIR),
        (("true",), "/in/nothing", starting.WORKDIR),
        (("true", "x" * 200_000), None, starting.WORDS[b"argument list too long"]),
        (("true", *["x" * 110_000] * 20), None, starting.WORDS[b"argument list too long"]),
        # Some engines refuse it, others leave that to the kernel.
        (("true", "a\0b"), None, (starting.DIRECTIVE, starting.WORDS[b"invalid argument"])),
    ],
    ids=["file", "missing", "argument", "arguments", "null"],
)
def test_commands_that_the_engine_refuses(
    run: Run, command: tuple[str, ...], workdir: str | None, advice: str | tuple[str, ...]
) -> None:
    ended = run(command, workdir=workdir).exit
    assert ended.code is None and str(ended.start_error).startswith(advice), ended.start_error


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.parametrize(
    ("command", "lines", "code"),
    [
        (("no-such-program",), (), 127),
        (("/etc/passwd",), (), 126),
        (("/etc",), (), 126),
        (("/loop",), ("RUN ln -s loop /loop",), None),
        (None, (f"{WITHOUT}\nCMD true",), None),
    ],
)
def test_a_command_that_does_not_start_is_in_the_log(
    run: Run, command: tuple[str, ...] | None, lines: tuple[str, ...], code: int | None
) -> None:
    """The init process writes what any program can write, so this is kept in the log of the software."""
    result = run(command, *lines)
    assert result.exit.start_error is None
    assert result.exit.code == code if code else result.exit.code in (1, 127)
    assert (command[0] if command else "/bin/sh").encode() in result.stderr
    assert result.exit.resources.wall_seconds < 40


@pytest.mark.slow
@pytest.mark.smoke
def test_an_output_that_is_mounted_over_everything_is_the_fault_of_the_software(run: Run) -> None:
    """The engine chooses which of two mounts is the first: the second fails, or the command has disappeared."""
    result = run(("true",), "RUN ln -s / /out")
    assert (result.exit.code == 127 and b"true" in result.stderr) or (
        result.exit.code is None and result.exit.start_error
    )


@pytest.mark.parametrize(
    ("says", "code"),
    [
        ("[FATAL tini (7)] exec /run failed: The platform has lost the inputs, run it again", 127),
        ("[FATAL tini (7)] exec /run failed: Permission denied", 126),
        ("exec /sbin/docker-init: argument list too long", 1),
        ("exec /sbin/docker-init: invalid argument", 1),
        ('OCI runtime create failed: runc create failed: exec: "x": executable file not found', 127),
    ],
)
def test_no_software_can_pretend_that_it_was_not_started(run: Run, says: str, code: int) -> None:
    """Its output is its log, and its exit code is its own."""
    result = run(f"import sys; print({says!r}, file=sys.stderr); sys.exit({code})")
    assert (result.exit.code, result.exit.start_error) == (code, None)
    assert result.stderr.decode() == f"{says}\n"
