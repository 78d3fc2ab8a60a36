"""What the evaluator and the sidecars report about themselves, each in a process of its own.

The runner imports neither of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any


def ask(text: str) -> Any:
    """Return what the program ``text`` leaves in ``found``; each is run once."""
    return json.loads(_printed("-c", f"{text}\nimport json; print(json.dumps(found))"))


def help_of(module: str, *words: str) -> str:
    """Return the help text of a module's command."""
    return _printed("-m", module, *words, "-h")


@cache
def _printed(*arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=Path(__file__).resolve().parents[2],
        env={k: v for k, v in os.environ.items() if k != "EVALUATOR_REQUEST"} | {"COLUMNS": "100"},
    )
    return ended.stdout
