"""The Makefile has the targets that the documentation promises."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_makefile_offers_what_it_promises() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = "setup demo test lint submit evaluate try bench pictures docs clean tools"
    for target in targets.split():
        assert f"\n{target}:" in text
    assert shutil.which("make"), "make is needed to work on this project"


def test_all_benchmarks_run_also_where_one_misses_its_goal(tmp_path: Path) -> None:
    """And those that missed are named at the end."""
    python, ran = tmp_path / "python", tmp_path / "ran"
    for missing, code in (("", 0), ("table scale", 2)):
        python.write_text(
            f'#!/bin/sh\necho "$2" >> {ran}\ncase " {missing} " in *" ${{2#benchmarks.}} "*) exit 1;; esac\n'
        )
        python.chmod(0o755)
        ran.unlink(missing_ok=True)
        ended = subprocess.run(
            ["make", "-o", ".venv/.tools", "bench", f"BIN={tmp_path}"],
            cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert ended.returncode == code, ended.stderr
        modules = {f"benchmarks.{one.stem}" for one in (ROOT / "benchmarks").glob("*.py")}
        called = ran.read_text().split()
        assert len(called) == len(set(called)) >= 20 and modules.issuperset(called)
        assert (": table scale\n" in ended.stderr) == bool(missing)
