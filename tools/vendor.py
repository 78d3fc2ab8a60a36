"""JavaScript of others that pages bring: fetched by npm in the versions of ``vendor.json``, checked, and put beside it.

Only who raises a version needs this, and npm: the files are kept in the tree.
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from runner.model.errors import PlatformError

FOLDER = Path(__file__).resolve().parents[1] / "runner" / "web" / "vendor"
MANIFEST = "vendor.json"


def fetch(folder: Path = FOLDER) -> list[str]:
    """Fetch the packages of ``vendor.json`` in a folder, and write their files there.

    Returns:
        The packages, as ``name@version``.

    Raises:
        PlatformError: E303 where npm is missing or fails, or where a package or file has another hash; nothing is changed then.
    """
    packages: list[dict[str, Any]] = json.loads((folder / MANIFEST).read_text("utf-8"))["packages"]
    found: dict[str, bytes] = {}
    for package in packages:
        found |= _files(package)
    for name, content in found.items():
        (folder / name).write_bytes(content)
    return [f"{one['name']}@{one['version']}" for one in packages]


def _files(package: dict[str, Any]) -> dict[str, bytes]:
    """The wanted files of a package, by the names that they get, once their hashes are right."""
    called = f"{package['name']}@{package['version']}"
    with tempfile.TemporaryDirectory() as place:
        try:
            done = subprocess.run(
                ["npm", "pack", "--silent", called], cwd=place, capture_output=True, text=True, check=False
            )
        except OSError as error:
            raise PlatformError("npm cannot be started", why=str(error), fix="install npm") from error
        archives = list(Path(place).glob("*.tgz"))
        if done.returncode != 0 or len(archives) != 1:
            raise PlatformError(
                f"npm does not get {called}", why=done.stderr[-500:], fix="look at npm's words"
            )
        content = archives[0].read_bytes()
        _check(
            called,
            "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode(),
            package["integrity"],
        )
        made = {}
        with tarfile.open(archives[0]) as archive:
            for name, file in package["files"].items():
                member = archive.extractfile(f"package/{file['from']}")
                made[name] = b"" if member is None else member.read()
                _check(name, hashlib.sha256(made[name]).hexdigest(), file["sha256"])
    return made


def _check(what: str, has: str, wanted: str) -> None:
    if has != wanted:
        why = f"It is {has}, wanted is {wanted}."
        raise PlatformError(
            f"{what} has another content", why=why, fix="look at it before its hash is changed"
        )


if __name__ == "__main__":
    print(f"fetched and checked: {', '.join(fetch())}")
