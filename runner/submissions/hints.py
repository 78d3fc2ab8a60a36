"""What helps when a software or its build failed: one table from what logs say to what to do.

Logs are hostile: a pattern only chooses one of our own sentences, and no word of a log is ever in a hint.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Row:
    """A row of the table: what a line of a log says, and the hint for a ``run`` and for a ``build`` (empty: none).

    ``inputs``: what the inputs hold is added to the hint for a run.
    """

    says: re.Pattern[str]
    run: str
    build: str
    inputs: bool = False


def _row(says: str, run: str, build: str, *, inputs: bool = False) -> Row:
    return Row(re.compile(says, re.IGNORECASE), run, build, inputs)


# The first row that fits a line decides.
TABLE: tuple[Row, ...] = (
    _row(r'Get "?https?://[^/\s]+/v[12]/', "", _REGISTRY),
    _row(
        r"name resolution|failure resolving|could ?n[o']t (?:be )?resolve|failed to resolve|service not known|UnknownHost|"
        r"bad (?:hostname|address)|no such host|network is unreachable|network unreachable|getaddrinfo|"
        r"no matching distribution found|unable to locate package|connect to 'https?://|NewConnectionError",
        _NO_NETWORK,
        _NO_BUILD_NETWORK,
    ),
    _row(
        r"requires? BuildKit",
        "",
        "images are built without BuildKit here: write `RUN chmod` for `COPY --chmod`, and RUN without --mount; or build the image "
        "yourself, and name it with `image:` in submission.yaml",
    ),
    _row(
        r"^could not be started: No command specified",
        "the image does not say what to start: write ENTRYPOINT or CMD into the Dockerfile, or command into submission.yaml",
        "",
    ),
    _row(
        r"^could not be started: the image has a link, a file or a VOLUME",
        "see what the image has there: docker run --rm --entrypoint ls IMAGE -l / and docker image inspect IMAGE show links and VOLUMEs",
        "",
    ),
    _row(r"^could not be started: .*: correct (?:WORKDIR|it)", "correct the Dockerfile, or command in submission.yaml", ""),
    _row(  # the engine's init process
        r"^\[FATAL tini \(\d+\)\] exec .*: Permission denied",
        "the command may not be executed, or is a folder: write `RUN chmod 755` and its file into the Dockerfile",
        "",
    ),
    _row(
        r"^\[FATAL tini \(\d+\)\] exec ",
        "the command is not in the image, or its first line names a program that is not there, as a script with Windows line ends "
        "does: correct command in submission.yaml, the Dockerfile, or the script",
        "",
    ),
    _row(
        r"\x7fELF|\\x7fELF|exec format error",
        "a program of the image is built for another kind of processor: build the image for that of this platform, mostly "
        "`docker build --platform linux/amd64`, and look that it copies no program from another machine",
        "",
    ),
    _row(r"read-only file ?system|EROFS", _WRITABLE, ""),
    _row(r"permission ?(?:denied|error)|AccessDenied|EACCES", _WRITABLE, ""),
    _row(r"ModuleNotFoundError|No module named", "a package is not in the image: install it in the Dockerfile", ""),
    _row(
        r"FileNotFound|NoSuchFile|no such file or directory",
        "a file is not there: the software reads $inputDataset and what is in its image",
        "a file is not in the build's folder: COPY takes what lies beside the Dockerfile only",
        inputs=True,
    ),
    _row(r"\bKeyError\b", "a field or name is not there", "", inputs=True),
)  # fmt: skip


def of_log(lines: Iterable[str], inputs: str = "") -> str:
    """The hint for a software that failed with this log: that of the last line which any row of the table fits.

    Args:
        lines: The end of its log.
        inputs: What the inputs hold, from the public description, for rows that add it.

    Returns:
        One sentence, or nothing when no row fits.
    """
    for line in reversed(list(lines)):
        for row in TABLE:
            if row.run and row.says.search(line[:MAX_LINE]):
                return f"{row.run}. {inputs}".rstrip(". ") if row.inputs and inputs else row.run
    return ""


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
