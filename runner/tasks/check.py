"""What the schema cannot say about a task.yaml: references, paths, and truths out of reach.

The checks read the definition as :func:`schemas.usable` leaves it: every value that is there has its right form, but
keys may be missing and entries of lists None.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import schemas
import schemas.measures
from runner.model.calendar import check_dates
from runner.model.config import Config
from runner.model.limits import LIMIT_PARSERS
from runner.model.mapping import ids, rows
from runner.model.problems import Pointer, Problems
from runner.model.task import Workflow
from runner.tasks.check_services import check_inside, check_services
from runner.tasks.data_files import inside, within
from runner.tasks.folders import how_to_hide, inputs_folder, is_hidden, tree, truths_folder
from runner.tasks.tables import check_tables
from runner.tasks.transfer.offers import check_downloads

MOST_TERMS = 64 * 1024  # bytes of the file that teams accept
Raw = Mapping[str, Any]


def check_definition(config: Config, folder: Path, data: Raw, problems: Problems) -> None:
    """Note everything that is wrong with the definition of the task in ``folder``, as far as its ``data`` are usable; its data
    files are not opened."""
    if data.get("id", folder.name) != folder.name:
        what = f'id is "{data["id"]}", but the folder is "{schemas.show(folder.name)}"'
        problems.add(("id",), what, "give both the same name")
    for key in ("datasets", "scenarios", "measures", "tables", "rounds"):
        named = [((key, i, "id"), row["id"]) for i, row in rows(data, key) if "id" in row]
        _once(problems, key, named, "give each a name of its own")
    _check_kind(data, problems)
    for i, row in rows(data, "datasets"):
        if "id" in row:
            _check_folders(config, folder, data, i, problems)
        paths = [
            (("datasets", i, "sources", k, "path"), s["path"]) for k, s in rows(row, "sources") if "path" in s
        ]
        _once(problems, "sources", paths, "keep one of them")
    _check_references(data, problems)
    check_tables(data, problems)
    check_dates(data, problems)
    _check_scores(data, problems)
    _check_frames(data, problems)
    check_services(folder, data, problems)
    check_downloads(config, folder, data, problems)
    _check_registration(folder, data, problems)
    for i, row in rows(data, "models"):
        check_inside(folder, ("models", i, "path"), row.get("path"), problems)


def _check_registration(folder: Path, data: Raw, problems: Problems) -> None:
    """The text that teams accept is a file of the task, and no longer than people read."""
    at, name = ("registration", "terms", "file"), data.get("registration", {}).get("terms", {}).get("file")
    if name is None:
        return
    path = inside(folder, name)
    if path is None or not path.is_file():
        what = f'there is no file "{schemas.show(name)}" in the task\'s folder'
        problems.add(at, what, "write the terms there as plain text")
    elif path.stat().st_size > MOST_TERMS:
        problems.add(
            at, f"the terms have more than {MOST_TERMS} bytes", "shorten them, or name their address"
        )


def _check_scores(data: Raw, problems: Problems) -> None:
    """Nothing about scores that are open anyway is said to be closed until later."""
    for i, row in rows(data, "datasets"):
        public = row.get("visibility") == "public"
        why = "the dataset is public" if public else "scores: public opens them at once"
        if "public_topics" in row:
            _check_split(data, row, ("datasets", i, "public_topics"), problems)
        if "publish_at" in row and (public or (row.get("scores") == "public" and "public_topics" not in row)):
            problems.add(
                ("datasets", i, "publish_at"),
                f"there is nothing to publish later: {why}",
                "remove one of them",
            )
        if public and row.get("scores") == "team":
            problems.add(
                ("datasets", i, "scores"), "scores on a public dataset cannot be closed", "remove it"
            )


def _check_split(data: Raw, row: Raw, at: Pointer, problems: Problems) -> None:
    """Topics are split where somebody sees scores before they are published, and where each part has values of its own."""
    if row.get("visibility") == "public":
        problems.add(at, "everybody sees all topics of a public dataset", "remove it")
    elif row.get("scores", "organiser") == "organiser":
        what = "nobody but the organiser sees scores before they are published"
        problems.add(at, what, "add scores: public (or team), or remove it")
    if "image" in data.get("evaluator", {}):
        what = "values of an evaluator that is not the platform's own cannot be told for a part of the topics"
        problems.add(at, what, "remove it")
        return
    kind = data.get("kind", "")
    names = [one["measure"] for _, one in rows(data, "measures") if "measure" in one]
    whole = [schemas.show(name, 80) for name in names if not schemas.measures.mean_of_topics(kind, name)]
    if kind in schemas.kinds() and whole:
        what = f"no mean over topics, so that a part of them has no value: {', '.join(whole)}"
        problems.add(at, what, "remove these measures, or public_topics")


def _check_frames(data: Raw, problems: Problems) -> None:
    """Note frames of limits that hold nothing: the most must be more than what all have."""
    for key, frame in data.get("limits", {}).items():
        if isinstance(frame, dict) and {"default", "max"} <= frame.keys():
            parse = LIMIT_PARSERS[key]
            if parse(frame["max"]) <= parse(frame["default"]):
                what = f"max of {key} is not more than its default"
                problems.add(("limits", key, "max"), what, f"write {key} without a frame, or a larger max")


def _once(problems: Problems, where: str, named: Iterable[tuple[Pointer, str]], fix: str) -> None:
    """Note each name that stood there before."""
    first: dict[str, Pointer] = {}
    for at, name in named:
        if first.setdefault(name, at) != at:
            line = problems.doc.line(first[name])
            problems.add(at, f'"{schemas.show(name)}" is in {where} twice (first at line {line})', fix)


def _check_kind(data: Raw, problems: Problems) -> None:
    """The kind's own schema for ``options``; a kind of nobody's needs an evaluator image."""
    kind, known = data.get("kind"), schemas.kinds()
    if kind in known:
        options = schemas.Document(problems.doc.name, {"options": {}, **data}, lines=problems.doc.lines)
        problems.take(schemas.validate(options, f"kinds/{kind}", at=("options",)))
    elif "image" not in data.get("evaluator", {}):
        fix = f"use one of {', '.join(known)}, or name an evaluator image"
        problems.known(("kind",), "kind", kind, known, fix=fix)


def _check_folders(config: Config, folder: Path, data: Raw, i: int, problems: Problems) -> None:
    """The folders of a dataset: inside the task's, and its truths where nobody who takes part finds them."""
    row, at = data["datasets"][i], ("datasets", i)
    for key in ("inputs", "truths"):
        check_inside(folder, (*at, key), row.get(key), problems)
        default = f"datasets/{row['id']}/{key}"
        if key not in row and "from" not in row and inside(folder, default) is None:
            what = f"{default} is a link that leaves the task's folder, or leads in a circle"
            problems.add(at, what, "copy the folder itself there")
    truths = truths_folder(config, folder, data, row)
    if truths is None or inputs_folder(config, folder, data, row) is None:
        return
    if is_hidden(data, row):
        if "truths" in row:
            problems.add(
                (*at, "truths"),
                f'the truths of the blinded dataset "{row["id"]}" lie in the tree that participants get',
                how_to_hide(config, folder.name, row["id"]),
                "E403",
            )
        elif (config.private or config.truths) and within(truths, tree(config)):
            what = "the private folder lies in the tree that participants get"
            problems.add(at, what, "set RUNNER_PRIVATE to a folder outside the project", "E403")
    for _, other in rows(data, "datasets"):
        shown = inputs_folder(config, folder, data, other)
        if shown is not None and (within(truths, shown) or within(shown, truths)):
            place = (*at, "truths") if "truths" in row else at
            what = f'the truths of "{row["id"]}" and the inputs of "{other.get("id")}" lie in one another'
            problems.add(place, what, "give them folders next to each other", "E403")


def _check_references(data: Raw, problems: Problems) -> None:
    """Names of datasets, scenarios and measures that are not defined."""
    datasets, measures = ids(data, "datasets"), ids(data, "measures")
    scenarios = ids(data, "scenarios") or ["default"]
    for i, scenario in rows(data, "scenarios"):
        for k, rule in rows(scenario, "view"):
            for n, name in enumerate(rule.get("datasets", ())):
                problems.known(("scenarios", i, "view", k, "datasets", n), "dataset", name, datasets)
    _check_required(data, problems)
    for i, row in rows(data, "rounds"):
        for k, name in enumerate(row.get("datasets", ())):
            problems.known(("rounds", i, "datasets", k), "dataset", name, datasets)
    for i, table in rows(data, "tables"):
        at = ("tables", i)
        _check_ranking((*at, "rank_by"), table.get("rank_by"), measures, problems)
        _check_pick((*at, "pick"), table.get("pick"), data, problems)
        for k, name in enumerate(table.get("measures", ())):
            problems.known((*at, "measures", k), "measure", name, measures)
        for k, cell in rows(table, "cells"):
            problems.known((*at, "cells", k, "dataset"), "dataset", cell.get("dataset"), datasets)
            scenario = cell.get("scenario", "default")
            problems.known((*at, "cells", k, "scenario"), "scenario", scenario, scenarios)


def _check_ranking(at: Pointer, given: Any, measures: list[str], problems: Problems) -> None:
    """Note measures of ``rank_by`` that are not defined."""
    if not isinstance(given, Mapping):
        problems.known(at, "measure", given, measures)
        return
    for rule, names in given.items():
        for k, name in enumerate(names if isinstance(names, list) else ()):
            problems.known((*at, rule, k), "measure", name, measures)


def _check_pick(at: Pointer, given: Any, data: Raw, problems: Problems) -> None:
    """Note a dataset that is to say which submission is best, and is not there or not public."""
    if not isinstance(given, Mapping):
        return
    name, datasets = given.get("best"), {row["id"]: row for _, row in rows(data, "datasets") if "id" in row}
    problems.known((*at, "best"), "dataset", name, list(datasets))
    if datasets.get(name, {}).get("visibility") == "blinded":
        what = f'"{name}" is blinded: which run counts would tell what nobody may see there yet'
        problems.add((*at, "best"), what, "name a public dataset")


def _check_required(data: Raw, problems: Problems) -> None:
    """Note datasets that require one which is not defined, or which in the end requires them, and first cases of nothing."""
    required = {row["id"]: row.get("requires") for _, row in rows(data, "datasets") if "id" in row}
    for i, row in rows(data, "datasets"):
        if "smoke" in row and "topics" not in row:
            what = "first cases are topics, and nothing says which file lists them"
            problems.add(("datasets", i, "smoke"), what, "name a file of the inputs with topics:")
        at, name = ("datasets", i, "requires"), row.get("requires")
        problems.known(at, "dataset", name, list(required))
        for _ in required:
            if name is not None and name == row.get("id"):
                problems.add(
                    at, f'"{name}" would have to come before itself', "name a dataset that comes first"
                )
                break
            name = required.get(name)


def workflows_of(data: Mapping[str, Any]) -> tuple[Workflow, ...]:
    """The workflows of a definition, the default first."""
    given = data.get("workflow", "batch")
    return tuple(given) if isinstance(given, list) else (given,)
