"""What helps when a software or its build failed: one table from what logs say to what to do.

Logs are hostile: a pattern only chooses one of our own sentences, and no word of a log is ever in a hint.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from runner.model.limits import Limits, in_units

MAX_LINE = 2000  # characters of a line that are looked at

_NO_NETWORK = "there is no network here: put what the software fetches (packages, models, data) into its image, in the Dockerfile"
_NO_BUILD_NETWORK = (
    "builds have no network unless submission.yaml asks for one: write `network: true` below `build:`"
)
_WRITABLE = (
    "only $outputDir, /tmp and /dev/shm can be written: write the run to $outputDir. The software is not root: what it "
    "reads of its image has to be readable for everybody"
)
_REGISTRY = "that registry does not answer: correct the image's name, or look whether this machine reaches the registry"


_CARRIAGE_RETURN = r"(?:\\r|\\x0d|\r|\^M)"
_WINDOWS = (
    "a script or a file with names has Windows line ends, so that a name ends with a carriage return: save it with Unix line "
    "ends, or write `RUN sed -i 's/\\r$//' FILE` into the Dockerfile"
)


@dataclass(frozen=True)
class Row:
    """A row of the table: what a line of a log says, and the hint for a ``run`` and for a ``build`` (empty: none).

    Attributes:
        key: The name of the row.
        says: What a line of a log says.
        run: The hint for a run. Limits of the run in braces are filled in.
        build: The hint for a build.
        inputs: True if the hint for a run also describes the inputs.
        unless: A limit that makes the hint untrue if it is true for the run.
    """

    key: str
    says: re.Pattern[str]
    run: str
    build: str
    inputs: bool = False
    unless: str = ""


def _row(key: str, says: str, run: str, build: str = "", *, inputs: bool = False, unless: str = "") -> Row:
    return Row(key, re.compile(says, re.IGNORECASE), run, build, inputs, unless)


# The first row that fits a line decides.
TABLE: tuple[Row, ...] = (
    _row("registry", r'Get "?https?://[^/\s]+/v[12]/', "", _REGISTRY),
    _row(
        "loopback",
        r"address family not supported|protocol family (?:unavailable|not supported)|EAFNOSUPPORT|errno:? 97\b|\(97\b",
        "there are no TCP or UDP sockets here, not even between programs of one run, since limits.loopback of the task is off: use "
        "pipes, files or Unix sockets (Java: no RMI or JMX; PyTorch: init_method file://), or ask the organiser for it",
        unless="loopback",
    ),
    _row(
        "model",
        r"OfflineModeIsEnabled|offline mode is enabled|outgoing traffic has been disabled|LocalEntryNotFound|in the cached files|"
        r"(?:no such file|FileNotFound|NoSuchFile).*(?:/tmp/\.|/tmp/nltk_data)|use the NLTK Downloader",
        "a model or file is not in the home folder: HOME is /tmp here unless the image sets it, and there is no network. Write "
        "`ENV HOME=/root` (the home folder of the build) into the Dockerfile, or download to a folder of its own (HF_HOME, NLTK_DATA)",
    ),
    _row(
        "network",
        r"name resolution|failure resolving|could ?n[o']t (?:be )?resolve|failed to resolve|service not known|UnknownHost|"
        r"bad (?:hostname|address)|no such host|network is unreachable|network unreachable|getaddrinfo|"
        r"no matching distribution found|unable to locate package|connect to 'https?://|NewConnectionError",
        _NO_NETWORK,
        _NO_BUILD_NETWORK,
    ),
    _row(
        "buildkit",
        r"requires? BuildKit",
        "",
        "images are built without BuildKit here: write `RUN chmod` for `COPY --chmod`, and RUN without --mount; or build the image "
        "yourself, and name it with `image:` in submission.yaml",
    ),
    _row(
        "no-command",
        r"^could not be started: No command specified",
        "the image does not say what to start: write ENTRYPOINT or CMD into the Dockerfile, or command into submission.yaml",
    ),
    _row(
        "mounts",
        r"^could not be started: the image has a link, a file or a VOLUME",
        "see what the image has there: docker run --rm --entrypoint ls IMAGE -l / and docker image inspect IMAGE show links and VOLUMEs",
    ),
    _row(
        "volume",
        r"^could not be started: the image has a VOLUME or a home",
        "take the VOLUME out of the Dockerfile of the image: the sandbox copies what lies below it",
    ),
    _row("start", r"^could not be started: .*: correct (?:WORKDIR|it)", "correct the Dockerfile, or command in submission.yaml"),
    _row(
        "line-ends",
        rf"""{_CARRIAGE_RETURN}['’"`)]*:|{_CARRIAGE_RETURN}['’"`]|(?:^refused file: |can't cd to |option -).*{_CARRIAGE_RETURN}$""",
        _WINDOWS,
        _WINDOWS,
    ),
    _row(
        "arguments",
        r"^\S*sh: (?:\d+: |line \d+: |-c: )*(?:Illegal option -|-{1,2}[\w-]*: (?:not found|command not found|invalid option))|"
        r"^\[FATAL tini \(\d+\)\] exec -",
        "command in submission.yaml begins with an option: it replaces the ENTRYPOINT of the image, unlike the arguments of docker run. "
        "Write the whole command line: the program, then its options",
    ),
    _row(  # the engine's init process
        "not-executable",
        r"^\[FATAL tini \(\d+\)\] exec .*: Permission denied",
        "the command may not be executed, or is a folder: write `RUN chmod 755` and its file into the Dockerfile",
    ),
    _row(
        "not-there",
        r"^\[FATAL tini \(\d+\)\] exec ",
        "the command is not in the image, or its first line names a program that is not there, as a script with Windows line ends "
        "does: correct command in submission.yaml, the Dockerfile, or the script",
    ),
    _row(
        "processor",
        r"\x7fELF|\\x7fELF|exec format error",
        "a program of the image is built for another kind of processor: build the image for that of this platform, mostly "
        "`docker build --platform linux/amd64`, and look that it copies no program from another machine",
    ),
    _row(
        "threads",
        r"can't start new thread|unable to create (?:new )?native thread|failed to create new OS thread|failed to spawn thread|"
        r"pthread_create|cannot fork|fork: |resource temporarily unavailable|uv_thread_create|ThreadPoolBuildError|errno 11\]",
        "a run may have {pids} threads and processes at a time (limits.pids): start fewer, for example with OMP_NUM_THREADS, "
        "OPENBLAS_NUM_THREADS or RAYON_NUM_THREADS in the Dockerfile",
    ),
    _row(
        "space",
        r"no space left on device|ENOSPC|file too large|EFBIG|insufficient shared memory|\(shm\)|unexpected bus error|"
        r"disk (?:is )?full|disk quota exceeded",
        "a memory file system is full: /dev/shm holds {shm} (limits.shm), /tmp {tmp} (limits.tmp) and $outputDir {output} "
        "(limits.output). PyTorch data loaders with workers use /dev/shm: write num_workers=0",
    ),
    _row(
        "tmp-exec",
        r"failed to map segment|UnsatisfiedLinkError.*/tmp|(?:permission denied|EACCES|cannot execute|operation not permitted).*/tmp\b|"
        r"/tmp/\S*: (?:cannot execute|permission denied|operation not permitted)|loading shared librar.*/tmp/",
        "programs and libraries in /tmp cannot be executed (noexec), since limits.tmp_exec of the task is off: unpack them in "
        "the Dockerfile into a folder of the image, or ask the organiser for limits.tmp_exec",
        unless="tmp_exec",
    ),
    _row(
        "sqlite",
        r"unable to open database file|readonly database|read-only database|SQLITE_(?:CANTOPEN|READONLY)",
        "SQLite cannot write next to a database of the image, whose root is read-only, and its WAL mode must: open it with "
        "`file:PATH?immutable=1` (uri=True), set `PRAGMA journal_mode=DELETE` in the Dockerfile, or copy it to /tmp",
    ),
    _row(
        "root",
        r"chown|changing (?:ownership|group)|\bset(?:re|res|e)?[ug]id\b|setgroups|operation not permitted|EPERM|"
        r"(?:must be|not running as|needs?|are you) root|\bsudo\b|\bsu: |gosu|no new privileges",
        "the system is not root and cannot become another user: take chown, su, sudo and gosu out of its start, do that in the "
        "Dockerfile, and make files readable there with `RUN chmod -R a+rX`",
    ),
    _row(
        "ascii",
        r"'ascii' codec|(?:unmappable|malformed) (?:input|character)|US-ASCII|invalid multibyte|ANSI_X3",
        "the image has an ASCII locale: write `ENV LANG=C.UTF-8 PYTHONUTF8=1` into the Dockerfile (Java: -Dfile.encoding=UTF-8), "
        "or open files with encoding=\"utf-8\"",
    ),
    _row(
        "user",
        r"uid not found|cannot find name for user|no passwd entry|I have no name|no such user|unknown user",
        "the user of a run has no entry in /etc/passwd, since that of the image is a link: make it a file in the Dockerfile, or "
        "use the variable USER",
    ),
    _row("write", r"read-only file ?system|EROFS|errno 30\]", _WRITABLE),
    _row("permission", r"permission ?(?:denied|error)|AccessDenied|EACCES", _WRITABLE),
    _row("package", r"ModuleNotFoundError|No module named", "a package is not in the image: install it in the Dockerfile"),
    _row(
        "file",
        r"FileNotFound|NoSuchFile|no such file or directory",
        "a file is not there: the software reads $inputDataset and what is in its image",
        "a file is not in the build's folder: COPY takes what lies beside the Dockerfile only",
        inputs=True,
    ),
    _row("field", r"\bKeyError\b", "a field or name is not there", inputs=True),
)  # fmt: skip


def row_of_log(lines: Iterable[str], limits: Mapping[str, Any] | None = None) -> Row | None:
    """Return the row of the table that fits the last line which any row fits, or None.

    Args:
        lines: The end of the log of a run.
        limits: The limits of the run, by name (default: those of a task that sets none).
    """
    limits = asdict(Limits()) if limits is None else limits
    for line in reversed(list(lines)):
        for row in TABLE:
            if row.run and not limits.get(row.unless) and row.says.search(line[:MAX_LINE]):
                return row
    return None


def of_log(lines: Iterable[str], inputs: str = "", limits: Mapping[str, Any] | None = None) -> str:
    """Return the hint for a system that failed with this log, from :func:`row_of_log`.

    Args:
        lines: The end of its log.
        inputs: A description of the inputs, from public data, for rows that add it.
        limits: The limits of the run, by name (default: those of a task that sets none).

    Returns:
        One or two sentences, or nothing when no row fits.
    """
    row = row_of_log(lines, limits)
    if row is None:
        return ""
    limits = asdict(Limits()) | dict(limits or {})
    sizes = {key: in_units(limits[key]) for key in ("tmp", "shm", "output")}
    text = row.run
    for key, value in {"pids": str(limits["pids"]), **sizes}.items():
        text = text.replace(f"{{{key}}}", value)
    return f"{text}. {inputs}".rstrip(". ") if row.inputs and inputs else text


def of_build(text: str, *, network: bool, carried: bool) -> str:
    """The hint for a build that failed with this ``text`` of the engine; empty when no row of the table fits.

    Args:
        text: What the engine said, with the last lines.
        network: Whether submission.yaml asks for a network.
        carried: Whether builds on this machine have no network, whatever they ask for (packages are carried in).
    """
    for line in reversed(text.splitlines()):
        for row in TABLE:
            if row.build and row.says.search(line[:MAX_LINE]):
                return (
                    _with_network(carried)
                    if row.build == _NO_BUILD_NETWORK and (network or carried)
                    else row.build
                )
    return ""


def of_pull(text: str) -> tuple[str, str]:
    """Why a registry did not give an image, by what the engine said of it (``text``), and what helps: two sentences of ours."""
    if re.search(r"manifest unknown|not found", text, re.IGNORECASE):
        return "The registry has no image of that digest.", "push it again, and hand it in again"
    if re.search(r"unauthorized|denied|no basic auth", text, re.IGNORECASE):
        why = "The registry gives it only to who signs in, or has none of that name."
        return why, (
            "let everybody read it; or build it, by a Dockerfile of one line: FROM and that name; then the image itself is sent. The "
            "organiser can also sign in there (docker login, as the user of the server)"
        )
    return "The registry does not answer this machine as it should.", "hand it in again later"


def _with_network(carried: bool) -> str:
    if carried:
        return (
            "builds on this machine have no network: name packages in requirements.txt beside the Dockerfile, whose "
            "wheels are carried in as wheels/, or put wheels/ there"
        )
    return "the build has a network, but the name was not found there: correct it, or look at this machine's network"


def of_time(cpu_seconds: float | None, wall_seconds: float | None) -> str:
    """The hint for a software that was killed at the wall clock: that it hardly worked, where that is so.

    It is empty when it used a quarter of that time on a processor or more, and when nobody measured it.
    """
    if cpu_seconds is None or wall_seconds is None or cpu_seconds >= wall_seconds / 4:
        return ""
    return (
        f"it used {cpu_seconds:.1f} s of processor time in {wall_seconds:.1f} s: either this machine was busy (try it "
        "again when it is idle), or the software waited for something that does not come, such as a network"
    )
