"""A clean checkout of one commit of somebody's repository, bounded in bytes, files and time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runner.model.errors import RunnerError
from runner.submissions.source import GIT, environment
from schemas import show

# With ulimit a single file cannot grow beyond so many blocks of 512 bytes: the pack that comes, or a file that is unpacked.
_BOUNDED = ("sh", "-c", 'ulimit -f "$0" && exec "$@"')


@dataclass(frozen=True)
class Caps:
    """How large a checkout may be: bytes (of the pack that comes, and of all files), files, and seconds in all."""

    bytes: int = 1024**3
    files: int = 50_000
    seconds: float = 900.0


def check_out(address: str, commit: str, base: Path, target: Path, caps: Caps = Caps()) -> None:
    """Put the files of one commit into the new folder ``target``, and nothing of the repository.

    ``address`` is one of https, or a folder of this machine (relative to ``base``). Submodules and files of LFS are not fetched.
    Raises E203 when the commit is not to be had, or is larger than ``caps``: what is too large is not unpacked.
    """
    local = not address.startswith("https://")
    place = str((base / address).resolve()) if local else address
    algorithm = "sha1" if len(commit) == 40 else "sha256"
    target.mkdir()
    allowed = {"GIT_ALLOW_PROTOCOL": "file" if local else "https"}
    git = _Fetch(address, commit, target, caps, {**_through(), **allowed})
    git.run("init", "-q", f"--object-format={algorithm}", "--template=")
    git.run("fetch", "-q", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", place, commit)
    git.measure()
    git.run("checkout", "-q", "--detach", f"{commit}^{{commit}}")
    shutil.rmtree(target / ".git")


class _Fetch:
    """git at work on one checkout: until a time, and with files of a bounded size."""

    def __init__(self, address: str, commit: str, folder: Path, caps: Caps, env: Mapping[str, str]) -> None:
        self._address, self._commit, self._folder, self._caps, self._env = address, commit, folder, caps, env
        self._until = time.monotonic() + caps.seconds

    def run(self, *words: str) -> None:
        """Run a command of git to its end. Raises E203."""
        with self._started(words) as done:
            try:
                said = done.communicate(timeout=self._left())[1].decode("utf-8", "replace")
            except subprocess.TimeoutExpired:
                _kill(done)
                raise self._too_slow() from None
        if done.returncode:
            most = self._caps.bytes // 512 * 512
            if any(path.stat().st_size >= most for path in self._folder.rglob("*") if path.is_file()):
                raise self._too_large(f"it is larger than {_size(self._caps.bytes)}")
            raise self._refused(f"git said: {show(' '.join(said.split()), 300)}.")

    def measure(self) -> None:
        """Raise E203 unless the files of the commit are as few and as small as they may be. Nothing is unpacked for that.

        Of a tree that holds itself many times no more is read than there may be files.
        """
        files = total = 0
        with self._started(("ls-tree", "-r", "-l", "-z", self._commit)) as listing:
            alarm = threading.Timer(self._left(), _kill, [listing])
            alarm.start()
            try:
                assert listing.stdout is not None
                rest = b""
                while piece := listing.stdout.read(1 << 16):
                    *lines, rest = (rest + piece).split(b"\0")
                    files += len(lines)
                    sizes = (line.partition(b"\t")[0].split()[-1] for line in lines)
                    total += sum(int(size) for size in sizes if size.isdigit())
                    if files > self._caps.files or total > self._caps.bytes:
                        break
            finally:
                _kill(listing)
                alarm.cancel()
        if files > self._caps.files:
            raise self._too_large(f"it has more than {self._caps.files:,} files")
        if total > self._caps.bytes:
            raise self._too_large(f"its files are larger than {_size(self._caps.bytes)}")
        if time.monotonic() > self._until:
            raise self._too_slow()

    def _started(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                [*_BOUNDED, str(self._caps.bytes // 512), *GIT, *words],
                cwd=self._folder,
                env=environment(self._env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # so that its helpers end with it
            )
        except OSError as error:
            raise self._refused(f"{type(error).__name__}: {error.strerror}.") from error

    def _left(self) -> float:
        return max(0.0, self._until - time.monotonic())

    def _too_slow(self) -> RunnerError:
        return self._too_large(f"it took longer than {self._caps.seconds:g} s")

    def _too_large(self, why: str) -> RunnerError:
        fix = "keep data and models out of the repository, or build from a folder"
        return self._refused(f"{why[0].upper()}{why[1:]}.", fix)

    def _refused(self, why: str, fix: str = "") -> RunnerError:
        return RunnerError(
            "E203",
            f"the commit {self._commit[:12]} of {show(self._address, 200)} cannot be had",
            why=why,
            fix=fix
            or "correct build.git and build.commit in submission.yaml; private repositories cannot be read: build from a folder",
        )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End git and what it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _size(size: int) -> str:
    return f"{size / 2**30:g} GiB" if size >= 2**30 else f"{size / 2**20:g} MiB"


def _through() -> dict[str, str]:
    """How this machine reaches the network."""
    names = ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "SSL_CERT_FILE", "GIT_SSL_CAINFO")
    return {name: os.environ[name] for name in names if name in os.environ}
