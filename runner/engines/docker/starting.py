"""Why a container did not start: what engines and runtimes say that is the doing of its image or command.

What stands in a container's log is the software's, whatever it looks like: a line of the init process can be written by any program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MOUNTS = (
    "the image has a link, a file or a VOLUME where the platform mounts something (its inputs, its output, /tmp, /dev, /proc, "
    "/sys, /sbin/docker-init, files of /etc): take it out of the image"
)
COMMAND = "the command or ENTRYPOINT of the image cannot be executed: correct it"
WORKDIR = "its working directory is no folder and cannot be made: correct WORKDIR"
DIRECTIVE = "a directive of the image is not valid: correct it in the Dockerfile"

# What is said, and what a team reads before it. The first row that fits decides; what fits none is our side's failure.
_THEIRS = tuple(
    (re.compile(says, re.IGNORECASE | re.DOTALL), reads)
    for says, reads in (
        (r"no command specified", ""),  # says all there is to say
        (r"^cannot mkdir: |working directory .* is invalid|chdir to cwd", WORKDIR),
        (r"container init: mkdir (/(proc|dev)\b|[^\"]*read-only)", WORKDIR),
        # A link that leads a mount over the engine's init process.
        (r"stat /sbin/docker-init: no such file", MOUNTS),
        # A mount that nobody may write to, over the folder where the engine lays files of its own.
        (
            r"to rootfs at \"/etc/(resolv\.conf|hostname|hosts|passwd|group)\": .*read-only file system",
            MOUNTS,
        ),
        (
            r"open \S*/merged/etc/(passwd|group): (no such (file|device)|(not|is) a directory|file exists|"
            r"read-only|too many|invalid arg)",
            MOUNTS,
        ),
        (r"because it is (inside /proc|not of type proc)|change mount propagation through procfd", MOUNTS),
        (r"container init: (error reopening|open) /(proc|dev)\b", MOUNTS),
        (r"error mounting \"tmpfs\" to rootfs at .*: (mkdir|open)|merged/.*: invalid argument", MOUNTS),
        (r"mount destination|mkdir .*(read-only|file exists)|too many (levels of symbolic )?links", MOUNTS),
        (r"(to rootfs at|^mount /).*not a directory", MOUNTS),
        (r"invalid (mount|volume) specification|invalid mount path|destination can't be", DIRECTIVE),
        (r"environment variable name can't|null byte", DIRECTIVE),
        (r"executable file not found|exec format error|is a directory|not a directory", COMMAND),
        (r"exec: .*(permission denied|no such file)", COMMAND),
        # A data volume that is missing is not the fault of an image.
        (r"^(?!.*(error mounting|bind source|/_data/)).*stat .*no such file or directory", COMMAND),
    )
)

# Of the engine's words: how it came to say them, and its own folders on this machine.
_AROUND = re.compile(
    r"^failed to create shim task: |OCI runtime create failed: |runc create failed: |unable to start container process: "
    r"|error during container init: |: unknown(: Are you trying .*)?$|[^\s\":]*/(overlay2|volumes|containers)/[\w-]+(/merged|/_data)?",
    re.DOTALL,
)

# What the kernel says in the log of a container in the place of the init process, and why.
_INIT = re.compile(rb"\Aexec /sbin/docker-init: (argument list too long|invalid argument)\n?\Z")
WORDS = {
    b"argument list too long": "the command and the environment of the image are too large: a word or variable may have 128 KiB, "
    "all of them together 2 MiB",
    b"invalid argument": "the command or the environment of the image holds a null byte: take it out",
}
_WORD, _TOGETHER, _POINTER = 128 << 10, 2 << 20, 8  # bytes that the kernel takes
_OF_OTHERS = 4 << 10  # bytes, at most, of words that the engine adds


def their_fault(said: str) -> str | None:
    """What to tell of an image or command whose container the engine could not start; None where that was not their doing.

    ``said`` are the engine's own words, printable. Its folders on this machine are left out.
    """
    for says, reads in _THEIRS:
        if says.search(said):
            short = _AROUND.sub("", said)
            return f"{reads}. The engine says: {short}" if reads else short
    return None


def not_begun(code: int, facts: Mapping[str, Any], stdout: bytes, stderr: bytes) -> str | None:
    """Why a container that ended with this ``code`` and log cannot have begun its command; None where it can.

    Its command and environment have to bear it out, as ``facts``, what the engine says of it, has them: the log alone proves nothing.
    """
    found = _INIT.match(stderr)
    if code != 1 or stdout or found is None:
        return None
    words = [facts["Path"], *(facts["Args"] or ()), *(facts["Config"].get("Env") or ())]
    sizes = [len(word.encode(errors="replace")) + 1 for word in words]
    together = sum(sizes) + _POINTER * len(sizes) + _OF_OTHERS
    too_large = max(sizes) > _WORD or together > _TOGETHER
    borne_out = too_large if found[1].startswith(b"argument") else any("\0" in word for word in words)
    return WORDS[found[1]] if borne_out else None
