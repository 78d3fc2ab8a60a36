"""One file with all that cannot be made again of a data directory, and the way back."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.records.archive import RunArchive
from runner.records.store.verify import damage_found, verify_backed_up
from schemas.files import atomic_path, make_private

# The event log first: the archive may then hold more than the log speaks of, which is taken up on the next start.
ACCOUNTS = "accounts.sqlite"
PARTS = ("events.jsonl", "snapshots", "submissions", "archive", ACCOUNTS, "receipts.key")


def backup(
    config: Config, target: Path, copy_accounts: Callable[[Path], bool], *, accept_damage: bool = False
) -> int:
    """Write the backup of a data directory to the file ``target``; return its bytes.

    The runner may work meanwhile.

    Args:
        config: The data directory.
        target: The file; an older one is replaced once the new one is complete.
        copy_accounts: Writes the accounts to a file and returns False if there are none.
        accept_damage: Write the backup even if records are lost or changed.

    Raises:
        RunnerError: E102 if there is nothing to back up; E307 if records are not as they were written.
        OSError: The file cannot be written.
    """
    home = config.home
    if not (home / "events.jsonl").is_file():
        raise RunnerError("E102", f"{home} holds no event log", fix="set RUNNER_HOME to the data directory")
    if not accept_damage and (problems := verify_backed_up(config)):
        raise damage_found(problems, "damaged records: no backup was written")
    with atomic_path(target, mode=0o600) as part:
        with tarfile.open(part, "w:gz", compresslevel=1) as file:
            for name in PARTS:
                if name == ACCOUNTS:
                    _add_accounts(file, copy_accounts)
                elif (home / name).exists():
                    _add(file, home / name, name)
            # Last, so that what was sealed meanwhile has its contents, too.
            for _, path in RunArchive(home / "archive").contents.contents():
                with suppress(FileNotFoundError):  # gc: nothing needed it
                    file.add(path, path.relative_to(home))
        return part.stat().st_size


def _add_accounts(file: tarfile.TarFile, copy_accounts: Callable[[Path], bool]) -> None:
    """Add a copy of the accounts as they stand between two changes; none where there are none."""
    with tempfile.TemporaryDirectory(prefix="accounts-") as scratch:
        copy = Path(scratch) / ACCOUNTS
        if copy_accounts(copy):
            file.add(copy, ACCOUNTS)


def _add(file: tarfile.TarFile, path: Path, name: str) -> None:
    """Add a file or folder, without what somebody is only writing and what comes later: names with a dot in front."""
    file.add(path, name, recursive=False)
    if path.is_dir() and not path.is_symlink():
        for inner in sorted(path.iterdir()):
            if not inner.name.startswith("."):
                _add(file, inner, f"{name}/{inner.name}")


def restore(source: Path, home: Path) -> None:
    """Put a backup into the data directory ``home``, in which none of its parts may be yet.

    Raises E102 for what is no backup, E101 when something is there already; nothing is written then.
    """
    there = [name for name in PARTS if (home / name).exists()]
    if there:
        why = f"It has {', '.join(there)}, which a backup never replaces."
        fix = "set RUNNER_HOME to an empty folder, or move these away"
        raise RunnerError("E101", f"{home} is not empty", why=why, fix=fix)
    try:
        with tarfile.open(source, "r:*") as file:
            for member in file.getmembers():
                if member.name.split("/")[0] not in PARTS or not (member.isreg() or member.isdir()):
                    raise tarfile.TarError("it holds something else")
            make_private(home)
            file.extractall(home, filter="tar")
    except (tarfile.TarError, EOFError, FileNotFoundError, IsADirectoryError) as error:
        fix = "name a file that runner store backup wrote"
        raise RunnerError(
            "E102", f"{source} is no backup", why=str(error).partition("\n")[0].rstrip(":"), fix=fix
        ) from error
