"""What the runner knows of a kind of task (:class:`KindSpec`), and where it finds that by the kind's name.

A kind that needs more than its schema has a folder ``runner/kinds/<kind>/`` with an object ``SPEC``, or comes from an
installed package (:mod:`schemas.external`). This is the only module of the runner that imports by name, so that
whoever handles a run or a task asks here, whatever stands above or below it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from runner.model.errors import Problem
from schemas.external import external_kinds

if TYPE_CHECKING:
    from runner.model.task import Task

Skeleton = Callable[[str], Mapping[str, str]]
FOLDERS = Path(__file__).resolve().parents[1] / "kinds"


class Content(Protocol):
    """What one audience may see of what a run holds: a numbered list, such as its debates or its reports."""

    @property
    def key(self) -> str:
        """What the list is called in JSON data and in messages, such as ``debates``."""
        ...

    def topics(self) -> list[str] | None:
        """The topic of each item, in order; None when the audience may not see the items."""
        ...

    def data(self) -> dict[str, Any]:
        """JSON data. Under :attr:`key` is the list, whose objects have a ``number`` from 1, or None."""
        ...

    def lines(self, wanted: Collection[int]) -> Iterator[str]:
        """Lines for a terminal: an overview, then the items with the numbers ``wanted`` in full."""
        ...

    def sections(self, wanted: Collection[int] | None, most: int) -> Iterator[str]:
        """Parts of an HTML page, at most about ``most`` characters: the items ``wanted``, or all (None)."""
        ...


class Importer(Protocol):
    """Turns a release of other organisers' data into a dataset."""

    def __call__(
        self,
        source: Path,
        target: Path,
        split: str,
        *,
        truths: Path | None = None,
        say: Callable[[str], None] = ...,
    ) -> list[Problem]:
        """Write ``target/inputs`` and ``truths`` from the folder or archive ``source``, as a whole or not at all.

        Args:
            source: The release.
            target: The folder of the dataset.
            split: Which part of the release is meant.
            truths: The folder of the truths; None for ``target/truths``.
            say: Is given what is no problem but has to be known, such as files that were passed over.

        Returns:
            Every problem of the release; when there is one, nothing was written.
        """
        ...


class Collector(Protocol):
    """Makes a first task from a collection that exists."""

    def __call__(
        self,
        task_id: str,
        source: str,
        folder: Path,
        hidden: Path,
        say: Callable[[str], None],
        text_fields: Sequence[str] = (),
    ) -> list[Problem]:
        """Write the files of a task to ``folder``, task.yaml included, and what belongs to blinded datasets to ``hidden``.

        Args:
            task_id: The task's name.
            source: A folder, an archive, a file, or a name that the kind knows what to do with.
            folder: An empty folder, which participants will get.
            hidden: An empty folder apart from it: ``inputs`` and ``truths`` of each blinded dataset, as ``<dataset>/inputs``.
            say: Is given what was taken as what, what was left, and how far a long reading is.
            text_fields: The fields of a topic that hold its text, where the kind cannot know them.

        Returns:
            Every problem of the collection; when there is one, what was written is of no use.

        Raises:
            RunnerError: E101, E102 or E407 when ``source`` is nothing that can be read.
            OSError: when something cannot be written.
        """
        ...


@dataclass(frozen=True)
class OutputFile:
    """What a software writes or a team uploads: the file's name, what stands in it, and the beginning of an example.

    ``example_file`` is the whole example: a file in the task's folder, or empty.
    """

    file: str
    says: str = ""
    example: str = ""
    example_file: str = ""


class JudgeDoubt(Protocol):
    """What is not known of the model that judges the runs of a task."""

    def __call__(self, task: Task) -> str:
        """Why an answer without worth could win; empty when it could not, or when no model judges."""
        ...


@dataclass(frozen=True)
class KindSpec:
    """What the runner knows of a kind beyond the schema of its options; a kind may need none of it.

    - ``presenter(found, task, audience, dataset)`` returns what the audience may see of a run's contents, None when
      there is nothing. Raises E103 for those who may not know of the run. ``found`` is a ``RunDetail``, ``audience`` an
      ``Audience``; ``task`` may be None.
    - ``importer`` turns a release into a dataset.
    - ``skeleton(task_id)`` returns the files of a small task that works, by name; those called ``.gz`` are compressed.
    - ``likes``: such skeletons by name, where tasks of the kind ask for different things; ``skeleton`` is one of them.
    - ``collection`` makes such a task from a collection of the organiser's; ``sources`` are what names of those begin with that
      are no paths, or of another platform's form, such as ``irds:``.
    - ``annotation`` says where the debates are that people judge: in ``runs``, or in the ``inputs`` of a dataset.
    - ``outputs(task)`` says which files a software writes, the task's ``output`` first; without it there is that one, as the
      schema of the kind's options says (``x-output``).
    - ``checker`` names packages that checks of its runs need beside ``jsonschema`` and ``jiter``.
    - ``judge_doubt`` looks at the model that judges; ``model_judges(measure)`` says which measures it has a say in.
    """

    presenter: Callable[[Any, Task | None, Any, Any], Content | None] | None = None
    importer: Importer | None = None
    skeleton: Skeleton | None = None
    likes: Mapping[str, Skeleton] = field(default_factory=dict)
    collection: Collector | None = None
    sources: tuple[str, ...] = ()
    annotation: Literal["runs", "inputs"] | None = None
    outputs: Callable[[Task], Sequence[OutputFile]] | None = None
    checker: tuple[str, ...] = ()
    judge_doubt: JudgeDoubt | None = None
    model_judges: Callable[[str], bool] = lambda _measure: False


@cache
def kind_spec(kind: str) -> KindSpec:
    """What the runner knows of ``kind``: an empty spec when it has no folder here and no package brings more."""
    point = external_kinds().get(kind)
    if kind in _folders():
        name = f"runner.kinds.{kind.replace('-', '_')}"
    elif point is not None:
        name = f"{point.value}.runner"
    else:
        return KindSpec()
    try:
        spec: KindSpec = import_module(name).SPEC
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return KindSpec()
    return spec


def kind_of_source(source: str) -> str:
    """The kind that makes tasks of what is named so: that of its beginning (``irds:``), else ``adhoc``."""
    known = (kind for kind in kinds_with("collection") if source.startswith(kind_spec(kind).sources))
    return next(known, "adhoc")


def kinds_with(part: str) -> list[str]:
    """The names of the kinds whose spec has ``part`` (the name of a field of :class:`KindSpec`), sorted."""
    return sorted(
        kind for kind in {*_folders(), *external_kinds()} if getattr(kind_spec(kind), part) is not None
    )


@cache
def _folders() -> frozenset[str]:
    return frozenset(p.parent.name.replace("_", "-") for p in FOLDERS.glob("[a-z]*/__init__.py"))
