"""Installed packages that bring kinds of tasks (:mod:`schemas.external`), as files of the evaluator image."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path

from runner.model.errors import PlatformError
from schemas.external import GROUP, external_kinds


@cache
def kind_files() -> dict[str, bytes]:
    """The files of those packages by their path below ``/opt/proctor/kinds`` of the image; {} without any.

    Beside each package stands what names its entry points, so that the evaluator finds it. What else such a package
    needs has to be among what the evaluator needs. Raises E304 for a package that is no folder.
    """
    found: dict[str, bytes] = {}
    for point in external_kinds().values():
        package = point.value.partition(".")[0]
        folder = _folder(point, package)
        for path in sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
            found[f"{package}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
        names = [
            f"{p.name} = {p.value}\n"
            for p in external_kinds().values()
            if p.value.partition(".")[0] == package
        ]
        about = f"{package}-0.dist-info"
        found[f"{about}/METADATA"] = f"Metadata-Version: 2.1\nName: {package}\nVersion: 0\n".encode()
        found[f"{about}/entry_points.txt"] = "".join([f"[{GROUP}]\n", *names]).encode()
    return dict(sorted(found.items()))


def _folder(point: EntryPoint, package: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise PlatformError(
            f"the kind {point.name} cannot be put into the evaluator image",
            why=f"Its package {package} is not installed here as a folder.",
            fix=f"install the package that brings {point.name} again, or uninstall it",
            code="E304",
        )
    return Path(spec.submodule_search_locations[0])


def tag_suffix() -> str:
    """What the tag of an evaluator image with these files ends with; "" without any, as most machines have it.

    So projects with other kinds do not replace each other's image.
    """
    if not kind_files():
        return ""
    digest = hashlib.sha256()
    for name, content in kind_files().items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return f"-kinds-{digest.hexdigest()[:12]}"
