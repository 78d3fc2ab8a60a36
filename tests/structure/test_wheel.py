"""The wheel: templates, style sheets, scripts and schemas are in it, beside the modules that read them."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
KINDS = (".html", ".css", ".js", ".json")


def test_pages_and_schemas_are_in_the_wheel(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    ended = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.endswith(KINDS)}
    files = [
        path for name in ("runner", "evaluator", "sidecars", "schemas") for path in (ROOT / name).rglob("*")
    ]
    here = {path.relative_to(ROOT).as_posix() for path in files if path.suffix in KINDS}
    assert {
        "runner/views/show/run.html",
        "runner/kinds/debate/page.html",
        "runner/annotation/sheet.js",
    } <= here
    assert here - packed == set()
