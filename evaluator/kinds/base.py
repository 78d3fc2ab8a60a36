"""What a kind of task is: one module in this package with an object ``KIND``, and one schema of its options."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Protocol, runtime_checkable

from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.request import Request
from evaluator.scores import Sink


class Kind(Protocol):
    """A family of tasks with one output format.

    ``measures`` says in words which measures the kind knows. ``evaluate`` reads the run once and puts findings,
    scores and aggregates into the sink. It raises :class:`EvaluatorError` if the organiser's files are wrong,
    and nothing for anything a participant can write.
    """

    name: str
    measures: str

    def evaluate(self, run: Path, inputs: Path, truths: Path, request: Request, sink: Sink) -> None:
        """Judge the run file ``run`` by the files in the folders ``inputs`` and ``truths``."""
        ...


@runtime_checkable
class Checker(Protocol):
    """What a kind may offer besides: everything that is wrong with a run file, found without truths."""

    def check(self, run: Path, inputs: Path, request: Request, log: Log) -> None:
        """Put into ``log`` what is wrong with ``run``: the same findings that ``evaluate`` makes.

        Only the folder ``inputs`` is read. Raises :class:`EvaluatorError` if the organiser's files or the request are
        wrong, and nothing for anything a participant can write. Sets ``log.answered`` and ``log.tag``.
        """
        ...


def checker(kind: Kind) -> Checker:
    """Return ``kind`` if it can check a run without truths, else raise :class:`EvaluatorError`."""
    if isinstance(kind, Checker):
        return kind
    raise EvaluatorError(
        f"the kind {kind.name} has no check of a run file by itself",
        "its runs are checked while they are evaluated",
        "evaluate the run, or give the kind a method check",
        usage=True,
    )


def find(name: str) -> Kind:
    """Return the kind called ``name``: ``KIND`` of the module of that name. Raises :class:`EvaluatorError`."""
    module = name.replace("-", "_")
    if re.fullmatch(r"[a-z][a-z0-9_]{0,39}", module) and module != "base":
        try:
            kind: Kind = importlib.import_module(f"evaluator.kinds.{module}").KIND
        except ModuleNotFoundError as error:
            if error.name != f"evaluator.kinds.{module}":
                raise
        else:
            return kind
    known = ", ".join(names())
    raise EvaluatorError(f"there is no kind of task called {name[:40]!r}", f"this evaluator knows {known}")


def names() -> list[str]:
    """The names of all kinds, sorted."""
    modules = {p.stem for p in Path(__file__).parent.glob("[a-z]*.py")}
    return sorted(m.replace("_", "-") for m in modules - {"base"})
