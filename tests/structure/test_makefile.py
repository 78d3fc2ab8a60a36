"""The Makefile has the targets that the documentation promises."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_makefile_offers_what_it_promises() -> None:
    text = (ROOT / "Makefile").read_text()
    for target in (
        "setup",
        "demo",
        "test",
        "lint",
        "submit",
        "evaluate",
        "try",
        "bench",
        "pictures",
        "docs",
        "clean",
        "tools",
    ):
        assert f"\n{target}:" in text
    assert shutil.which("make"), "make is needed to work on this project"
