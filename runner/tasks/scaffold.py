"""``runner task new``: a small task that works at once, or one on a collection that exists; to be changed into a real one.

And ``runner task hide``, the step from there to a real one: what is hidden moves out of the tree that participants clone.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import schemas
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.model.kinds import KindSpec, kind_spec, kinds_with
from runner.model.mapping import rows
from runner.model.names import NAME, check_apart, check_name
from runner.model.problems import refuse
from runner.model.task import Side
from runner.tasks import compose
from runner.tasks.check_data import check_task
from runner.tasks.data_files import files_digest, folder_files, within
from runner.tasks.folders import (
    SIDES,
    holds_files,
    in_task,
    inputs_folder,
    is_hidden,
    private_root,
    tree,
    truths_folder,
)
from runner.tasks.load import load_task_file, read_definition, task_folder
from schemas.files import atomic_file, atomic_folder, make_private, put_in_place, scratch_folder


def new_task(config: Config, task_id: str, kind: str = "adhoc", like: str | None = None) -> Path:
    """Write a working skeleton to ``tasks/<task_id>`` and return that folder.

    The folder appears as a whole or not at all. Raises E208 for what is not a name, and E101 for a kind without
    a skeleton, or without one ``like`` that, or when the folder exists already.
    """
    spec = _spec(kind, "skeleton")
    skeleton = spec.skeleton if like is None else spec.likes.get(like)
    if skeleton is None:
        raise RunnerError(
            "E101",
            f'there is no skeleton of the kind {kind} like "{schemas.show(str(like))}"',
            why=f"There are: {', '.join(spec.likes)}." if spec.likes else "This kind has a single one.",
            fix="choose one of these" if spec.likes else "leave --like out",
        )
    with _placed(config, task_id) as folder:
        for name, text in skeleton(task_id).items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            data = text.encode()
            file.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
        _finish(config, folder)
    return config.tasks / task_id


def new_task_from(
    config: Config,
    task_id: str,
    source: str,
    *,
    kind: str = "adhoc",
    text_fields: Sequence[str] = (),
    say: Callable[[str], None],
) -> tuple[Path, Path | None]:
    """Make ``tasks/<task_id>`` from a collection, with the data of its blinded dataset where participants are not.

    Both folders appear as a whole or not at all.

    Args:
        config: where the project and the private root are.
        task_id: the task's name.
        source: a folder, an archive, a file, or ``irds:ID``.
        kind: the task's kind.
        text_fields: the fields of a topic that hold its text, where they cannot be known.
        say: is given what was taken as what, and what was left.

    Returns:
        The task's folder and that of its hidden inputs and truths; None for the latter where nothing is hidden.

    Raises:
        RunnerError: E208 for what is not a name; E101 for a kind that cannot read collections, and for a folder that is
            there already; E411 when the hidden data would lie in the project; E402 with all that is wrong with the
            collection; E102 and E407 when there is none to read.
    """
    collect = _spec(kind, "collection").collection
    assert collect is not None
    root = _outside(config)
    hidden = root / task_id
    with _placed(config, task_id) as folder:
        if os.path.lexists(hidden):
            fix = "choose another name, or move them away first"
            raise RunnerError(
                "E101", f"hidden data of a task {task_id} exist already", why=f"In {hidden}.", fix=fix
            )
        make_private(root)
        with scratch_folder(root) as scratch:
            folder.mkdir()
            refuse(
                collect(task_id, source, folder, scratch / task_id, say, text_fields),
                "no task was made of this collection",
            )
            _finish(replace(config, private=scratch), folder)
            if not (scratch / task_id).is_dir():
                return config.tasks / task_id, None
            put_in_place(scratch / task_id, hidden)
    return config.tasks / task_id, hidden


def _outside(config: Config) -> Path:
    """Return the private root. Raises E411 when it lies in the tree that participants clone."""
    root = private_root(config)
    if within(root, tree(config)):
        why = f"It is {schemas.show(str(root), 300)}."
        fix = "set RUNNER_PRIVATE, or private in proctor.yaml, to a folder outside the project"
        raise RunnerError(
            "E411", "the private folder lies in the tree that participants clone", why=why, fix=fix
        )
    return root


def _spec(kind: str, part: Literal["skeleton", "collection"]) -> KindSpec:
    """What is known of a kind that has this part. Raises E101 for one that has not."""
    spec = kind_spec(kind)
    if getattr(spec, part) is None:
        noun = "skeleton" if part == "skeleton" else "reader of collections"
        raise RunnerError(
            "E101",
            f'there is no {noun} for the kind "{schemas.show(kind)}"',
            why=f"There is one for: {', '.join(kinds_with(part))}.",
            fix="choose one of these, or copy the folder of a task of that kind",
        )
    return spec


_UNANNOUNCED = """\
# The web does not show the task. Write a date with its zone instead, or remove the line, once it is ready.
announced: never
"""


def _finish(config: Config, folder: Path) -> None:
    """Keep the new task from the web until its organiser says otherwise, check it, and write its compose.yaml."""
    with (folder / "task.yaml").open("a", encoding="utf-8") as file:
        file.write(_UNANNOUNCED)
    task = load_task_file(config, folder)
    check_task(task, config)
    compose.write(task)


@contextmanager
def _placed(config: Config, task_id: str) -> Iterator[Path]:
    """Where the new task's folder is to be made; it becomes ``tasks/<task_id>`` at the end. Raises E208, E215 and E101."""
    check_name("task", task_id)
    target = config.tasks / task_id
    if os.path.lexists(target):
        raise RunnerError(
            "E101", f"tasks/{task_id} exists already", fix="choose another name, or remove that folder first"
        )
    config.tasks.mkdir(parents=True, exist_ok=True)  # a new project's first task
    check_apart("task", task_id, (path.name for path in config.tasks.iterdir() if NAME.fullmatch(path.name)))
    with tempfile.TemporaryDirectory(dir=config.tasks, prefix=".new-") as staging:
        folder = Path(staging) / task_id
        yield folder
        try:
            folder.rename(target)
        except OSError:  # somebody else was faster
            shutil.rmtree(folder)
            raise RunnerError("E101", f"tasks/{task_id} exists already", fix="choose another name") from None


class Moved(NamedTuple):
    """One side of a dataset: where it lay, and where it lies now."""

    dataset: str
    side: Side
    source: Path
    target: Path


def hide(config: Config, task_id: str) -> list[Moved]:
    """Move the inputs and truths of blinded datasets to the private root, and take their keys out of task.yaml.

    Everything is copied first, then task.yaml is written, and only then the copies in the tree are removed: called again after an
    interruption, it goes on. What lies at the private root already with the same content is only removed from the tree.

    Returns:
        What was moved; nothing where all of it is out of reach already.

    Raises:
        RunnerError: E102 for no task, E405 and E401 for a task.yaml that is not in its form; E101 for a demo, for other files at
            the private root, for data that a public dataset shares, and for keys that cannot be taken out; E411 when the private
            root is in the tree; E402 when links or special files are among the data.
    """
    folder = task_folder(config, task_id)
    problems = read_definition(config, folder)
    problems.refuse(f"the task {task_id} cannot be used")
    data = problems.doc.data
    if data.get("demo") is True:
        why = "task.yaml says demo: true. What is blinded in a demo may lie in the tree, and hides nothing."
        raise RunnerError("E101", f"{task_id} is a demo", why=why, fix="remove that line first")
    moves = _moves(config, folder, data)
    file = folder / "task.yaml"
    text = file.read_text("utf-8")
    changed = _without_keys(text, data, problems.doc.name)
    if not moves and changed == text:
        return []
    make_private(_outside(config))
    for move in moves:
        if not holds_files(move.target):
            with atomic_folder(move.target) as copy:
                shutil.copytree(move.source, copy, dirs_exist_ok=True)
    if changed != text:
        with atomic_file(file) as out:
            out.write(changed.encode())
    for source in dict.fromkeys(move.source for move in moves):
        shutil.rmtree(source)
        if not holds_files(source.parent):
            source.parent.rmdir()
    return moves


def _moves(config: Config, folder: Path, data: Mapping[str, Any]) -> list[Moved]:
    """What is to be moved. Raises E101 and E402 as :func:`hide`."""
    found = []
    public = [
        path
        for _, row in rows(data, "datasets")
        if not is_hidden(data, row)
        for side in SIDES
        if (path := in_task(folder, row, side)) is not None
    ]
    for _, row in rows(data, "datasets"):
        plain = {key: value for key, value in row.items() if key not in SIDES}
        for side in SIDES if is_hidden(data, row) and "from" not in row else ():
            source = in_task(folder, row, side)
            if source is None or not holds_files(source):
                continue
            if any(within(source, other) or within(other, source) for other in public):
                what = f'the {side} of "{row["id"]}" lie in one another with those of a public dataset'
                raise RunnerError("E101", what, fix="give the blinded dataset folders of its own")
            files = folder_files(source)  # raises for links: nothing else may go with them
            used = (inputs_folder if side == "inputs" else truths_folder)(config, folder, data, plain)
            target = private_root(config) / folder.name / row["id"] / side
            if used is not None and used != source and holds_files(used):
                target = used
                if files_digest(folder_files(used)) != files_digest(files):
                    why = f"{schemas.show(str(used), 300)} holds other files than {schemas.show(str(source), 300)}."
                    fix = "compare the two, and remove the wrong one"
                    raise RunnerError("E101", f'there are two {side} of "{row["id"]}"', why=why, fix=fix)
            found.append(Moved(row["id"], side, source, target))
    return found


def _without_keys(text: str, data: Mapping[str, Any], name: str) -> str:
    """The text of task.yaml without ``inputs`` and ``truths`` of hidden datasets; what else it means stays. Raises E101."""
    wanted = deepcopy(dict(data))
    for i, row in rows(data, "datasets"):
        for side in SIDES if is_hidden(data, row) and "from" not in row else ():
            if side not in row:
                continue
            line = schemas.load_yaml(text).line(("datasets", i, side)) or 1
            del wanted["datasets"][i][side]
            left = (one for one in _attempts(text, line - 1, side) if schemas.load_yaml(one).data == wanted)
            if (found := next(left, None)) is None:
                what = f'the key {side} of "{row["id"]}" cannot be taken out of {name}'
                raise RunnerError("E101", what, fix=f"write it on a line of its own (line {line})")
            text = found
    return text


def _attempts(text: str, at: int, key: str) -> Iterator[str]:
    """The text without a whole line, and without what looks like ``key`` in it."""
    lines = text.splitlines(keepends=True)
    yield "".join([*lines[:at], *lines[at + 1 :]])
    for pattern in (rf',\s*"?{key}"?:[^,}}]+', rf'"?{key}"?:[^,}}]+,\s*'):
        yield "".join([*lines[:at], re.sub(pattern, "", lines[at], count=1), *lines[at + 1 :]])
