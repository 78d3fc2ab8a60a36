"""The folders of the baselines as their images are built from: with the files that they share with others."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import yaml

BASELINES = Path(__file__).resolve().parents[2] / "submissions" / "baselines"


@cache
def baseline_folder(name: str) -> Path:
    """A copy of a baseline's folder with its shared files, kept until the process ends."""
    scratch = Path(tempfile.mkdtemp(prefix="baseline-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    folder = shutil.copytree(BASELINES / name, scratch / name)
    definition = yaml.safe_load((folder / "submission.yaml").read_text("utf-8"))
    for shared in definition["build"].get("shared", ()):
        shutil.copy(BASELINES / shared, folder)
    return folder
