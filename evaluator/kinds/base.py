"""What a kind of task is: a folder of this package with a module ``kind`` and an object ``KIND`` in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from evaluator import registry
from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.request import Request
from evaluator.scores import Sink


class Kind(Protocol):
    """A family of tasks with one output format. ``measures`` says in words which measures the kind knows."""

    name: str
    measures: str

    def evaluate(self, run: Path, inputs: Path, truths: Path, request: Request, sink: Sink) -> None:
        """Read a run once and put findings, scores and aggregates into the sink.

        Args:
            run: The run file: whatever a participant wrote.
            inputs: The folder of what the software saw.
            truths: The folder of the judgments.
            request: What to compute, and the task's options.
            sink: Takes what is found out.

        Raises:
            EvaluatorError: The organiser's files or the request are wrong; nothing that a participant wrote raises.
        """
        ...


@runtime_checkable
class Checker(Protocol):
    """What a kind may offer besides: everything that is wrong with a run file, found without truths."""

    def check(self, run: Path, inputs: Path, request: Request, log: Log) -> None:
        """Note what is wrong with a run: the same findings that ``evaluate`` makes.

        Args:
            run: The run file.
            inputs: The only folder that is read.
            request: The rules of the task.
            log: Takes the findings; its ``answered`` and ``tag`` are set.

        Raises:
            EvaluatorError: The organiser's files or the request are wrong; nothing that a participant wrote raises.
        """
        ...


class Order(NamedTuple):
    """Outputs by name, from the best to the worst in all of ``measures`` (ids in the task); ``best``: values that are known.

    ``proof(inputs, truths, request)`` in a kind's module ``proof`` makes a list of these from the truths, or None
    (``evaluator prove``).
    """

    measures: Sequence[str]
    outputs: Mapping[str, bytes]
    best: Mapping[str, float]


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
    """Return the kind called ``name``. Raises :class:`EvaluatorError` when there is none."""
    module = registry.part(name, "kind")
    if module is None:
        known = ", ".join(registry.names())
        raise EvaluatorError(
            f"there is no kind of task called {name[:40]!r}", f"this evaluator knows {known}"
        )
    kind: Kind = module.KIND
    return kind
