"""What other programs of ours say about themselves: each is asked in a process of its own.

The runner imports neither the evaluator nor the sidecars.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

# Runs a module until it would read its arguments, and looks at its parser: subcommands are followed at any depth. Words
# in FIRST lead to a command whose parser the module asks before its own.
_PARSER = """
import argparse, runpy, sys

class Found(BaseException):
    pass

def stop(parser, *_, **__):
    raise Found(parser)

def commands(name, parser, says):
    rows, below, words = [], [], []
    for a in parser._actions:
        if isinstance(a, argparse._SubParsersAction):
            about = {c.dest: c.help or "" for c in a._choices_actions}
            # Another spelling of a command is the same parser, and has no help of its own.
            below = [(n, p, about[n]) for n, p in a.choices.items() if n in about]
        elif not isinstance(a, argparse._HelpAction) and a.help != argparse.SUPPRESS:
            shown = a.metavar or (", ".join(map(str, a.choices)) if a.choices else "")
            value = " ".join(shown) if isinstance(shown, tuple) else shown
            if not value and a.option_strings and a.nargs != 0:
                value = a.dest.upper()
            many = a.nargs in ("+", "*") or isinstance(a, argparse._AppendAction)
            text = (a.help or "") % dict(vars(a), prog=parser.prog)
            rows.append([a.option_strings, value if a.nargs != 0 else "", text, many])
            if not a.option_strings:
                words.append((a.metavar or a.dest.upper()) + ("..." if many else ""))
    entry = {"name": name, "help": says or parser.description or "", "rows": rows, "words": words, "group": bool(below)}
    yield entry
    for n, p, about in below:
        yield from commands(f"{name} {n}", p, about)

argparse.ArgumentParser.parse_args = argparse.ArgumentParser.parse_known_args = stop
sys.argv = [MODULE, *FIRST]
try:
    runpy.run_module(MODULE, run_name="__main__", alter_sys=True)
except Found as stopped:
    found = list(commands(NAME, stopped.args[0], ""))
"""


def ask(text: str) -> Any:
    """What the program ``text`` leaves in ``found``; each is run once."""
    return json.loads(_printed(text))


@cache
def _printed(text: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", f"{text}\nimport json; print(json.dumps(found))"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=Path(__file__).resolve().parents[2],
        env={k: v for k, v in os.environ.items() if k != "EVALUATOR_REQUEST"},
    )
    return ended.stdout


def commands_of(module: str, name: str, *first: str) -> list[dict[str, Any]]:
    """The command line of a module, and of its commands: name, help, rows (options, value, help, many), words, group.

    ``first`` are words that lead to a command with a parser of its own, which is asked before the module's.
    """
    found: list[dict[str, Any]] = ask(f"MODULE, NAME, FIRST = {module!r}, {name!r}, {first!r}\n{_PARSER}")
    return found
