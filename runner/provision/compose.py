"""What ``docker compose`` takes of a machine that was set up: our images and the base image, without a variable or a network.

It is written to ``docker-compose.override.yml``, which Compose reads by itself beside ``docker-compose.yml``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from schemas.files import atomic_file

NAME, BESIDE = "docker-compose.override.yml", "docker-compose.yml"
_MARK = "# Written by `runner setup`; without this line it is yours, and stays as it is."
# The services that each image of ours is for, and those that are built of participants' files.
_SERVICES = {
    "evaluator": ("prepare", "evaluator", "transcript"),
    "sidecars": ("search", "user", "relay", "driver"),
}
_BUILT = ("software", "server")


def write(root: Path, base: str, tags: Mapping[str, str]) -> bool:
    """Write what Compose takes of this machine, beside the project's file.

    Args:
        root: the project's folder.
        base: the name of the base image.
        tags: the names of our images that are there, by what they are.

    Returns:
        Whether it was written: not where the project has no file for Compose, and not over a file of somebody else's.
    """
    path = root / NAME
    if not (root / BESIDE).is_file():
        return False
    old = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None
    if old is not None and not old.startswith(_MARK):
        return False
    text = "\n".join([_MARK, "services:", *_lines(base, tags)]) + "\n"
    if text == old:
        return False
    with atomic_file(path) as file:
        file.write(text.encode())
    path.chmod(0o644)
    return True


def _lines(base: str, tags: Mapping[str, str]) -> Sequence[str]:
    lines = []
    build = f"    build: {{args: {{BASE_IMAGE: '${{BASE_IMAGE:-{base}}}'}}}}"
    for name, services in (*_SERVICES.items(), ("", _BUILT)):
        for service in services:
            lines.append(f"  {service}:")
            if name in tags:
                lines.append(f"    image: ${{{name.upper()}_IMAGE:-{tags[name]}}}")
            lines.append(build)
    return lines
