"""Where the files of a submission come from: the git repository, its commit, and whether they are as they were committed.

Whoever packs may have been given the folder by a stranger, and a repository can name programs for git to run (filters,
monitors, helpers for remotes). So git is only asked for names and digests, and the files are compared with these here.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from schemas import show

SECONDS = 30.0
HISTORY_SECONDS = 900.0
MOST_OF_A_FILE, MOST_OF_ALL = 16 * 1024 * 1024, 1024**3  # bytes of a history that are read
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_URL = re.compile(r"[!-?A-~]{1,400}")  # printable, and no @
_SCHEME = re.compile(r"(?:https?|ssh|git)://")
# What the repository's own settings cannot change.
_SETTINGS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "safe.directory=*",
    "transfer.fsckObjects=true",
)
GIT = ("git", *(word for setting in _SETTINGS for word in ("-c", setting)))
_NOTHING = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # of a repository that lacks objects: they are not fetched
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


def source_of(folder: Path) -> dict[str, Any] | None:
    """The source of the files in ``folder``, as bundle.json says it; None when git knows none of them, or is not here.

    ``remote`` is the address of the repository without what could be a secret (None: there is none, or it is a folder of
    somebody's machine), ``commit`` the commit that is checked out, ``dirty`` whether any file is not as it was committed: other
    bytes (also where a filter such as LFS or of line ends made them), missing, or new and not ignored.
    """
    commit = _git(folder, "rev-parse", "--verify", "-q", "HEAD^{commit}").strip()
    committed = list(_committed(folder))
    if not _COMMIT.fullmatch(commit) or not committed:
        return None
    new = _git(folder, "ls-files", "-z", "--others", "--exclude-standard")
    hashing = "sha1" if len(commit) == 40 else "sha256"
    dirty = bool(new) or any(
        _changed(folder / path, mode, digest, hashing) for mode, digest, path in committed
    )
    return {"remote": _remote(folder), "commit": commit, "dirty": dirty}


def history(folder: Path) -> Iterator[tuple[str, bytes | None]]:
    """What a clone of the repository around ``folder`` brings beside the files of today: its commits, and every version of every file.

    Yields names (paths in the repository; commits have none) with contents, None for contents of over 16 MiB and for what
    comes after a GiB. Raises OSError when git is not here or cannot read the repository; yields nothing where there is none.
    """
    if not _git(folder, "rev-parse", "--git-dir"):
        if any((one / ".git").exists() for one in (folder, *folder.parents)):
            raise OSError("git cannot read the repository")
        return
    listed = _asked(folder, ["rev-list", "--objects", "--all"]).decode("utf-8", "replace").splitlines()
    names = {digest: name for digest, _, name in (line.partition(" ") for line in listed)}
    known = _asked(folder, ["cat-file", "--batch-check"], "\n".join(names).encode())
    batch: list[str] = []
    size = read = 0
    for line in known.decode().splitlines():
        digest, kind, length = line.split(" ")
        if kind == "tree":
            continue
        if int(length) > MOST_OF_A_FILE or read > MOST_OF_ALL:
            yield names[digest], None
            continue
        batch.append(digest)
        size, read = size + int(length), read + int(length)
        if size > MOST_OF_A_FILE:
            yield from _contents(folder, batch, names)
            batch, size = [], 0
    yield from _contents(folder, batch, names)


def _contents(folder: Path, digests: Sequence[str], names: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """The names and contents of some objects. Raises OSError."""
    data = _asked(folder, ["cat-file", "--batch"], "\n".join(digests).encode())
    at = 0
    for digest in digests:
        end = data.index(b"\n", at)
        length = int(data[at:end].rpartition(b" ")[2])
        yield names[digest], data[end + 1 : end + 1 + length]
        at = end + length + 2


def _asked(folder: Path, words: Sequence[str], given: bytes = b"") -> bytes:
    """What git says. Raises OSError when it fails or takes too long."""
    try:
        done = _run(folder, words, HISTORY_SECONDS, {}, given)
    except subprocess.TimeoutExpired as error:
        raise OSError("git takes too long") from error
    if done.returncode != 0:
        raise OSError(f"git said: {show(' '.join(done.stderr.decode('utf-8', 'replace').split()), 200)}")
    return done.stdout


def _committed(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Mode, digest and path of every file in ``folder`` that the commit has."""
    for line in _git(folder, "ls-tree", "-r", "-z", "HEAD").split("\0"):
        facts, _, path = line.partition("\t")
        if path:
            mode, _, digest = facts.split(" ")
            yield mode, digest, path


def _changed(path: Path, mode: str, digest: str, hashing: str) -> bool:
    """Whether a file is not the one with this mode and digest; so is what lies in another repository (a submodule)."""
    made = hashlib.new(hashing, usedforsecurity=False)
    try:
        if mode == "120000":
            target = os.fsencode(path.readlink())
            made.update(b"blob %d\0%s" % (len(target), target))
        elif mode in ("100644", "100755") and path.is_file() and not path.is_symlink():
            status = path.stat()
            if bool(status.st_mode & 0o100) is not (mode == "100755"):
                return True
            made.update(b"blob %d\0" % status.st_size)
            with path.open("rb") as stream:
                while part := stream.read(1024 * 1024):
                    made.update(part)
        else:
            return True
    except OSError:
        return True
    return made.hexdigest() != digest


def _remote(folder: Path) -> str | None:
    """The address of ``origin``, or of the first remote; None where it is none that others can use."""
    lines = _git(folder, "config", "--local", "-z", "--get-regexp", r"^remote\..*\.url$").split("\0")
    found = dict(reversed([line.partition("\n")[::2] for line in lines if "\n" in line]))
    return public_address(found.get("remote.origin.url") or next(reversed(found.values()), ""))


def public_address(url: str) -> str | None:
    """The address of a repository without user, password, query and fragment; None for what is no address on a network."""
    if _SCHEME.match(url):
        scheme, _, rest = re.split(r"[?#]", url)[0].partition("://")
        host, slash, path = rest.partition("/")
        url = f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
    else:  # as ssh has it: user@host:path
        host, colon, path = url.rpartition("@")[2].partition(":")
        if not colon or "/" in host or len(host) < 2 or path.startswith(("/", ":", "\\")):
            return None
        url = f"{host}:{re.split(r'[?#]', path)[0]}"
    return url if _URL.fullmatch(url) else None


def _git(folder: Path, *words: str) -> str:
    """What git says in ``folder``; empty when it fails, takes too long, or is not here."""
    try:
        done = _run(folder, words, SECONDS, {})
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return os.fsdecode(done.stdout) if done.returncode == 0 else ""


def environment(more: Mapping[str, str] = {}) -> dict[str, str]:
    """The environment in which git finds nobody's settings and fetches nothing, with ``more``."""
    return {"PATH": os.environ.get("PATH", ""), **_NOTHING, **more}


def _run(
    folder: Path, words: Sequence[str], seconds: float, more: Mapping[str, str], given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run git without anybody's settings. Raises OSError where there is none, TimeoutExpired after ``seconds``."""
    return subprocess.run(
        [*GIT, *words],
        cwd=folder,
        env=environment(more),
        input=given,
        capture_output=True,
        timeout=seconds,
        check=False,
    )
