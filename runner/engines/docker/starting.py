"""Why a container did not start: what engines, runtimes and the init process say that is the doing of its image or command."""

from __future__ import annotations

import re

from runner.engines.text import printable

_MOUNTS = (
    "the image has a link, a file or a VOLUME where the platform mounts something (its inputs, its output, /tmp, /dev, /proc, "
    "/sys, /sbin/docker-init, files of /etc): take it out of the image"
)
_COMMAND = "the command or ENTRYPOINT of the image cannot be executed: correct it"
_WORKDIR = "its working directory is no folder and cannot be made: correct WORKDIR"
_DIRECTIVE = "a directive of the image is not valid: correct it in the Dockerfile"

# What is said, and what a team reads before it. The first row that fits decides; what fits none is our side's failure.
_THEIRS = tuple(
    (re.compile(says, re.IGNORECASE | re.DOTALL), reads)
    for says, reads in (
        (r"no command specified", ""),  # says all there is to say
        (r"^cannot mkdir: |working directory .* is invalid|chdir to cwd", _WORKDIR),
        (r"container init: mkdir (/(proc|dev)\b|[^\"]*read-only)", _WORKDIR),
        # A link that leads a mount over the engine's init process.
        (r"stat /sbin/docker-init: no such file", _MOUNTS),
        # A mount that nobody may write to, over the folder where the engine lays files of its own.
        (r"to rootfs at \"/etc/(resolv\.conf|hostname|hosts)\": .*read-only file system", _MOUNTS),
        (r"because it is (inside /proc|not of type proc)|change mount propagation through procfd", _MOUNTS),
        (r"container init: (error reopening|open) /(proc|dev)\b", _MOUNTS),
        (r"error mounting \"tmpfs\" to rootfs at .*: (mkdir|open)|merged/.*: invalid argument", _MOUNTS),
        (r"mount destination|mkdir .*(read-only|file exists)|too many (levels of symbolic )?links", _MOUNTS),
        (r"(to rootfs at|^mount /).*not a directory", _MOUNTS),
        (r"invalid (mount|volume) specification|invalid mount path|destination can't be", _DIRECTIVE),
        (r"environment variable name can't|null byte", _DIRECTIVE),
        (r"executable file not found|exec format error|is a directory|not a directory", _COMMAND),
        (r"exec: .*(permission denied|no such file)|stat .*no such file or directory", _COMMAND),
    )
)

# Of the engine's words: how it came to say them, and its own folders on this machine.
_AROUND = re.compile(
    r"^failed to create shim task: |OCI runtime create failed: |runc create failed: |unable to start container process: "
    r"|error during container init: |: unknown(: Are you trying .*)?$|[^\s\":]*/(overlay2|volumes|containers)/[\w-]+(/merged|/_data)?",
    re.DOTALL,
)

# What the init process, or the kernel in its place, says in the log of a container whose command it could not begin.
_TINI = re.compile(rb"\A\[FATAL tini \(\d+\)\] exec (.*) failed: ([^\n]*)\n?\Z", re.DOTALL)
_INIT = re.compile(rb"\Aexec /sbin/docker-init: (argument list too long|invalid argument)\n?\Z")
_WORDS = {
    b"argument list too long": "the command and the environment of the image are too large: a word or variable may have 128 KiB, "
    "all of them together 2 MiB",
    b"invalid argument": "the command or the environment of the image holds a null byte: take it out",
}


def their_fault(said: str) -> str | None:
    """What to tell of an image or command whose container the engine could not start; None where that was not their doing.

    ``said`` are the engine's own words, printable. Its folders on this machine are left out.
    """
    for says, reads in _THEIRS:
        if says.search(said):
            short = _AROUND.sub("", said)
            return f"{reads}. The engine says: {short}" if reads else short
    return None


def not_begun(code: int, stdout: bytes, stderr: bytes) -> str | None:
    """Why a container that ended with this ``code`` and log never began its command; None where it began, or nobody can say."""
    if code not in (1, 126, 127) or stdout:
        return None
    if (found := _TINI.match(stderr)) is not None:
        what, why = (printable(part.decode(errors="backslashreplace")) for part in found.groups())
        return f"{what}: {why}"
    found = _INIT.match(stderr)
    return None if found is None else _WORDS[found[1]]
