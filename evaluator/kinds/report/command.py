"""``evaluator argue`` and ``evaluator convert-lookup``: the command lines of :mod:`evaluator.argue`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def add_commands(commands: Any) -> None:
    """Add the commands to argparse's ``commands``."""
    from evaluator.argue.cli import add_command
    from evaluator.argue.formats.pickles import add_command as add_convert

    add_command(commands)
    add_convert(commands)


def _argue(words: Sequence[str]) -> int:
    from evaluator.argue.cli import call

    return call(words)


READ_THEMSELVES = {"argue": _argue}  # its options may stand before its files, which argparse cannot pass on
