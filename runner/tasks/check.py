"""What the schema cannot say about a task.yaml: references, paths, amounts, and truths out of reach."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import schemas
from runner.model import calendar
from runner.model.config import Config
from runner.model.errors import Problem, RunnerError
from runner.model.limits import LIMIT_PARSERS, parse_duration, parse_size
from runner.model.task import Workflow
from runner.tasks import check_services as servicechecks
from runner.tasks import tables as specs
from runner.tasks.data_files import inside, within

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
Coded = tuple[str, Problem]  # an error code and a problem


def converted(problems: Sequence[schemas.Problem]) -> list[Problem]:
    """Problems of the schemas package as problems of an error."""
    return [Problem(p.where, p.what, p.fix) for p in problems]


def by_line(found: Sequence[Coded]) -> list[Problem]:
    """The problems in the order of their lines."""
    return sorted((p for _, p in found), key=lambda p: int((re.search(r":(\d+)$", p.where) or [0, 0])[1]))


def combine_errors(found: Sequence[Coded], what: str) -> RunnerError:
    """One error for all problems, under the gravest code: leaked truths, then the definition, then files."""
    codes = {code for code, _ in found}
    code = next(c for c in ("E403", "E405", "E401", "E402") if c in codes)
    count = "one problem" if len(found) == 1 else f"{len(found)} problems"
    return RunnerError(code, what, why=f"{count} found.", fix="mend what is listed", problems=by_line(found))


def _rows(data: Mapping[str, Any], key: str) -> list[tuple[int, Mapping[str, Any]]]:
    """The entries of a list that are mappings, with their positions; tolerant, the schema speaks of the rest."""
    value = data.get(key)
    return (
        [(i, row) for i, row in enumerate(value) if isinstance(row, dict)] if isinstance(value, list) else []
    )


def _ids(data: Mapping[str, Any], key: str) -> list[str]:
    return [row["id"] for _, row in _rows(data, key) if isinstance(row.get("id"), str)]


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


# Places of the container that are the platform's own.
_RESERVED = ("/tira-data", "/in", "/inputs", "/truths", "/out", "/proc", "/sys", "/dev", "/tmp", "/etc")  # noqa: S108


@dataclass
class DefinitionChecks:
    """What the schema cannot say about a definition: references, paths, amounts, names."""

    config: Config
    folder: Path
    doc: schemas.Document
    found: list[Coded] = field(default_factory=list)

    def add(self, pointer: Sequence[str | int], what: str, fix: str = "", code: str = "E401") -> None:
        problem = self.doc.problem(pointer, what, fix)
        self.found.append((code, Problem(problem.where, problem.what, problem.fix)))

    def run(self) -> list[Coded]:
        data = self.doc.data
        if isinstance(data.get("id"), str) and data["id"] != self.folder.name:
            self.add(
                ("id",),
                f'id is "{schemas.show(data["id"])}", but the folder is "{schemas.show(self.folder.name)}"',
                "give both the same name",
            )
        for key in ("datasets", "scenarios", "measures", "tables"):
            self.unique(key)
        self.kind()
        for i, row in _rows(data, "datasets"):
            self.dataset(i, row)
            self.sources(i, row)
        self.references()
        self.views()
        for pointer, what, fix in (
            *specs.problems(data),
            *calendar.problems(data),
            *servicechecks.problems(data, self.folder),
        ):
            self.add(pointer, what, fix)
        self.amounts(("limits",), data.get("limits"))
        self.amounts(("evaluator", "limits"), _mapping(data, "evaluator").get("limits"))
        for name, row in _mapping(data, "services").items():
            self.amounts(("services", name, "limits"), row.get("limits") if isinstance(row, dict) else None)
        self.grants()
        return self.found

    def unique(self, key: str) -> None:
        first: dict[str, int] = {}
        for i, row in _rows(self.doc.data, key):
            name = row.get("id")
            if isinstance(name, str) and first.setdefault(name, i) != i:
                line = self.doc.line((key, first[name], "id"))
                self.add(
                    (key, i, "id"),
                    f'"{schemas.show(name)}" is in {key} twice (first at line {line})',
                    "give each a name of its own",
                )

    def kind(self) -> None:
        kind, options = self.doc.data.get("kind"), self.doc.data.get("options")
        if not isinstance(kind, str) or not NAME.fullmatch(kind):
            return
        known = schemas.kinds()
        if kind in known:
            data = {**self.doc.data, "options": {} if options is None else options}
            clean = schemas.Document(self.doc.name, data, lines=self.doc.lines)
            if isinstance(data["options"], dict):
                self.found += [
                    ("E401", p) for p in converted(schemas.validate(clean, f"kinds/{kind}", at=("options",)))
                ]
        elif not _mapping(self.doc.data, "evaluator").get("image"):
            near = schemas.closest(kind, known).strip()
            self.add(
                ("kind",),
                f'there is no kind "{kind}"',
                near or f"use one of {', '.join(known)}, or name an evaluator image",
            )

    def dataset(self, i: int, row: Mapping[str, Any]) -> None:
        inputs, truths = self.folders(i, row)
        if inputs is None or truths is None:
            return
        name, blinded = row.get("id"), row.get("visibility") == "blinded"
        open_ = self.doc.data.get("demo") is True or not blinded
        if not open_ and "truths" in row:
            self.add(
                ("datasets", i, "truths"),
                f'the truths of the blinded dataset "{schemas.show(name)}" lie in the tree that participants get',
                f"move them to $RUNNER_TRUTHS/{schemas.show(self.folder.name)}/{schemas.show(name)} and remove this key",
                "E403",
            )
        if not open_ and "truths" not in row and self.config.truths and within(truths, self.config.root):
            self.add(
                ("datasets", i),
                "RUNNER_TRUTHS lies in the tree that participants get",
                "set it to a folder outside the project",
                "E403",
            )
        for _, other in _rows(self.doc.data, "datasets"):
            shown = inputs_folder(self.config, self.folder, other)
            if shown is not None and (within(truths, shown) or within(shown, truths)):
                self.add(
                    ("datasets", i, "truths") if "truths" in row else ("datasets", i),
                    f'the truths of "{schemas.show(name)}" and the inputs of "{schemas.show(other.get("id"))}" lie in one another',
                    "give them folders beside each other",
                    "E403",
                )

    def sources(self, i: int, row: Mapping[str, Any]) -> None:
        """Each file once, inside its folder, and hidden truths not fetched into the tree by a file of the tree."""
        first: dict[str, int] = {}
        for k, source in _rows(row, "sources"):
            path = source.get("path")
            if not isinstance(path, str):
                continue
            at = ("datasets", i, "sources", k, "path")
            if any(part in ("", ".", "..") for part in path.split("/")):
                self.add(at, f'path is "{schemas.show(path)}", which leaves the dataset', "name a file in it")
            if first.setdefault(path, k) != k:
                self.add(at, f'"{schemas.show(path)}" is in sources twice', "keep one of them")

    def views(self) -> None:
        """Rules for datasets that are not there."""
        datasets = _ids(self.doc.data, "datasets")
        for i, scenario in _rows(self.doc.data, "scenarios"):
            for k, rule in _rows(scenario, "view"):
                named = rule.get("datasets")
                for n, name in enumerate(named if isinstance(named, list) else ()):
                    self.known(("scenarios", i, "view", k, "datasets", n), name, datasets, "dataset")

    def folders(self, i: int, row: Mapping[str, Any]) -> tuple[Path | None, Path | None]:
        """The dataset's two folders; a problem and None for those that leave the task's folder."""
        for key in ("inputs", "truths"):
            if isinstance(row.get(key), str) and inside(self.folder, row[key]) is None:
                self.add(
                    ("datasets", i, key),
                    f'{key} is "{schemas.show(row[key])}", which is not inside the task\'s folder',
                    "name a folder inside it, without .. and without links that leave it",
                    "E401",
                )
        for key in ("topics", "corpus"):
            if isinstance(row.get(key), str) and ".." in row[key].split("/"):
                self.add(
                    ("datasets", i, key),
                    f'{key} is "{schemas.show(row[key])}", which leaves the inputs',
                    "name a file of the inputs",
                )
        if not isinstance(row.get("id"), str) or not NAME.fullmatch(row["id"]):
            return None, None
        return inputs_folder(self.config, self.folder, row), truths_folder(
            self.config, self.folder, self.doc.data, row
        )

    def references(self) -> None:
        data = self.doc.data
        datasets, measures = _ids(data, "datasets"), _ids(data, "measures")
        scenarios = _ids(data, "scenarios") if "scenarios" in data else ["default"]
        for i, table in _rows(data, "tables"):
            self.known(("tables", i, "rank_by"), table.get("rank_by"), measures, "measure")
            for k, name in enumerate(table["measures"] if isinstance(table.get("measures"), list) else ()):
                self.known(("tables", i, "measures", k), name, measures, "measure")
            for k, cell in _rows(table, "cells"):
                self.known(("tables", i, "cells", k, "dataset"), cell.get("dataset"), datasets, "dataset")
                self.known(
                    ("tables", i, "cells", k, "scenario"),
                    cell.get("scenario", "default"),
                    scenarios,
                    "scenario",
                )
        for i, measure in _rows(data, "measures"):
            if isinstance(measure.get("truths"), str) and ".." in measure["truths"].split("/"):
                self.add(
                    ("measures", i, "truths"),
                    f'truths is "{schemas.show(measure["truths"])}", which leaves the truths',
                    "name a file of the truths",
                )

    def known(self, pointer: Sequence[str | int], name: object, known: list[str], what: str) -> None:
        if isinstance(name, str) and name not in known:
            near = schemas.closest(name, known).strip()
            self.add(
                pointer,
                f'there is no {what} "{schemas.show(name)}"',
                near or f"known: {schemas.show(', '.join(known), 200)}",
            )

    def amounts(self, at: tuple[str, ...], limits: object) -> None:
        """Amounts that have the right form but mean nothing, such as ``0MiB``."""
        for key, value in limits.items() if isinstance(limits, dict) else ():
            parse = LIMIT_PARSERS.get(key)
            if parse in (parse_size, parse_duration) and re.match(
                r"[0.]+ ?[A-Za-z]", value if isinstance(value, str) else ""
            ):
                self.add(
                    (*at, key), f'"{key}" must be more than nothing', "give an amount such as 64MiB or 10min"
                )

    def grants(self) -> None:
        data = self.doc.data
        targets: list[tuple[tuple[str | int, ...], object]] = []
        for i, row in _rows(data, "models"):
            targets.append((("models", i, "target"), row.get("target")))
        for name, grant in _mapping(data, "exceptions").items():
            paths = grant.get("writable") if isinstance(grant, dict) else None
            for i, path in enumerate(paths if isinstance(paths, list) else ()):
                targets.append((("exceptions", name, "writable", i), path))
        for pointer, path in targets:
            if not isinstance(path, str):
                continue
            parts = PurePosixPath(path).parts
            if (
                ".." in parts
                or "." in path.split("/")
                or any(path == r or path.startswith(r + "/") for r in _RESERVED)
            ):
                self.add(
                    pointer,
                    f'"{schemas.show(path)}" is a place of the platform\'s own',
                    "choose a folder of the image, such as /cache",
                )
        for i, row in _rows(data, "models"):
            if isinstance(row.get("path"), str) and inside(self.folder, row["path"]) is None:
                self.add(
                    ("models", i, "path"),
                    f'path is "{schemas.show(row["path"])}", which is not inside the task\'s folder',
                    "name a folder inside it",
                )


def workflows_of(data: Mapping[str, Any]) -> tuple[Workflow, ...]:
    """The workflows of a definition, the default first."""
    given = data.get("workflow", "batch")
    return tuple(given) if isinstance(given, list) else (given,)


def stage_folder(config: Config, task: str, dataset: str) -> Path:
    """Where the versions of a dataset lie that is made from runs."""
    return config.home / "stages" / task / dataset


def current_version(folder: Path) -> str | None:
    """The version of a stage's dataset that is in force; None when none was made."""
    try:
        text = (folder / "current").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return text if re.fullmatch(r"[0-9a-f]{64}", text) else None


def inputs_folder(config: Config, folder: Path, row: Mapping[str, Any]) -> Path | None:
    """Where a dataset's inputs are; None when that is not inside the task's folder (or the stage's)."""
    name = row.get("id")
    if isinstance(row.get("from"), dict):
        if not isinstance(name, str) or not NAME.fullmatch(name):
            return None
        made = stage_folder(config, folder.name, name)
        return made / (current_version(made) or "none") / "inputs"
    given = row.get(
        "inputs", f"datasets/{name}/inputs" if isinstance(name, str) and NAME.fullmatch(name) else None
    )
    return inside(folder, given) if isinstance(given, str) else None


def truths_folder(
    config: Config, folder: Path, data: Mapping[str, Any], row: Mapping[str, Any]
) -> Path | None:
    """Where a dataset's truths are: in the task's folder, or outside the tree when they are hidden or come later."""
    if "truths" in row:
        return inside(folder, row["truths"]) if isinstance(row["truths"], str) else None
    hidden = row.get("visibility") == "blinded" and data.get("demo") is not True
    # What is made from runs is judged later: its labels are data of this place, never part of the tree.
    if hidden or isinstance(row.get("from"), dict):
        return (config.truths or config.home / "truths") / folder.name / str(row["id"])
    return inside(folder, f"datasets/{row['id']}/truths")
