"""What of a task's data is offered for download: public data that task.yaml names, and nothing that is hidden.

Looked at twice: when the definition is loaded (:func:`check_downloads`), and when files are published (:func:`offers`,
:func:`refuse_hidden`), by the folders and the contents that are there then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import schemas
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.model.mapping import rows
from runner.model.problems import Problems
from runner.model.task import Dataset, OpenTo, Side, Task, matches
from runner.tasks.data_files import Content, folder_files, look_into, unpacked, within
from runner.tasks.folders import SIDES, Raw, inputs_folder, truths_folder

# A file's name as pages, addresses, commands and other machines have it.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=@,-]{0,99}(/[A-Za-z0-9_][A-Za-z0-9_.+=@,-]{0,99}){0,5}")
LONGEST = 400  # characters of it: with task, dataset and side it is the path of an object that is published
_CODE: Mapping[Side, str] = {"inputs": "E411", "truths": "E403"}
_SHOW_IT = "take downloads out, or say visibility: public if everybody may have it"


@dataclass(frozen=True)
class Offer:
    """A file that is offered: ``name`` within its side of the dataset, where it lies, and to whom."""

    dataset: str
    side: Side
    name: str
    path: Path
    to: OpenTo

    @property
    def place(self) -> str:
        """Its name within the dataset, such as ``inputs/corpus.jsonl``."""
        return f"{self.side}/{self.name}"


def check_downloads(config: Config, folder: Path, data: Raw, problems: Problems) -> None:
    """Note downloads of what is hidden, or is made from runs, in a definition as :func:`schemas.usable` leaves it."""
    for i, row in rows(data, "datasets"):
        for side in SIDES:
            if side not in row.get("downloads", {}):
                continue
            at, name = ("datasets", i, "downloads", side), schemas.show(row.get("id", ""))
            if row.get("visibility") == "blinded":
                what = f'"{name}" is blinded: nobody downloads its {side}'
                problems.add(at, what, _SHOW_IT, _CODE[side])
            elif "from" in row:
                what = f'"{name}" is made from runs of teams: nobody downloads it'
                problems.add(at, what, "take downloads out", _CODE[side])
            else:
                for hidden in _hidden_around(config, folder, data, row, side):
                    what = f'the {side} of "{name}" and the {hidden} lie in one another'
                    problems.add(at, what, "give them folders next to each other", _CODE[side])


def _hidden_around(config: Config, folder: Path, data: Raw, row: Raw, side: Side) -> Iterator[str]:
    """What of blinded datasets lies in the folder of one side of a dataset, or around it."""
    find = {"inputs": inputs_folder, "truths": truths_folder}
    mine = find[side](config, folder, data, row)
    for _, other in rows(data, "datasets"):
        for its in SIDES if other.get("visibility") == "blinded" and "id" in other else ():
            theirs = find[its](config, folder, data, other)
            if mine is not None and theirs is not None and (within(theirs, mine) or within(mine, theirs)):
                yield f'{its} of the blinded dataset "{schemas.show(other["id"])}"'


def offers(task: Task, only: str | None = None, side: Side | None = None) -> list[Offer]:
    """The files of a task that are offered, by dataset and name; those that come from elsewhere are not passed on.

    Args:
        task: the task.
        only: of this dataset alone.
        side: of this side alone.

    Raises:
        RunnerError: E403 or E411 where something hidden would be among them, E402 for a folder that cannot be listed, and for
            names that are none for an address.
    """
    return [
        offer
        for dataset in task.datasets.values()
        for one, to in sorted(dataset.downloads.items())
        if only in (None, dataset.id) and side in (None, one)
        for offer in _of(task, dataset, one, to)
    ]


def _of(task: Task, dataset: Dataset, side: Side, to: OpenTo) -> Iterator[Offer]:
    if dataset.visibility != "public" or dataset.stage is not None:
        raise RunnerError(_CODE[side], f'"{dataset.id}" is not public', fix=_SHOW_IT)
    elsewhere = {source.path for source in dataset.sources}
    hidden = [d for d in task.datasets.values() if d.visibility == "blinded"]
    folder = dataset.inputs if side == "inputs" else dataset.truths
    names: dict[str, str] = {}
    for name, path in folder_files(folder) if folder.is_dir() or not elsewhere else ():
        if path in elsewhere or any(part.startswith(".") for part in name.parts):
            continue
        if any(within(path, kept) for one in hidden for kept in (one.inputs, one.truths)):
            what = f"{schemas.show(str(name), 200)} belongs to a blinded dataset"
            raise RunnerError(_CODE[side], what, fix="give the datasets folders next to each other")
        why, fix = "", ""
        if not NAME.fullmatch(str(name)):
            why = "Its name is none for an address."
            fix = "give the file and its folders names of letters, digits and any of _ . + = @ , -"
        elif len(str(name)) > LONGEST:
            why, fix = f"Its name has more than {LONGEST} characters.", "give it or its folders shorter names"
        elif (other := names.setdefault(str(name).casefold(), str(name))) != str(name):
            why = f"Its name is that of {schemas.show(other, 200)} but for capitals: on many machines both are one file."
            fix = "rename one of them"
        if why:
            what = f"{side}/{schemas.show(str(name), 200)} of {dataset.id} cannot be offered for download"
            raise RunnerError("E402", what, why=why, fix=fix)
        yield Offer(dataset.id, side, str(name), path, to)


@dataclass(frozen=True)
class Hidden:
    """What hidden files hold that nothing offered may hold, by size and SHA-256, with words for what it is."""

    known: Mapping[Content, str]

    def refuse(self, offer: Offer) -> None:
        """Raise E403 for an offered file that holds a hidden one (as it is, packed, or in an archive), or that may: it cannot be looked into."""
        looked = look_into(offer.path, {size for size, _ in self.known})
        file = f"{schemas.show(offer.place, 200)} of {offer.dataset}"
        for content in looked.contents:
            if content in self.known:
                raise RunnerError(
                    "E403", f"{file} holds {self.known[content]}", fix="take it out of what is offered"
                )
        if looked.closed:
            what, why = f"{file} cannot be looked into", f"Something hidden may be in it: {looked.closed}."
            raise RunnerError(
                "E403", what, why=why, fix="offer its files as they are, each packed with gzip or not"
            )


def hidden_files(tasks: Iterable[Task]) -> list[tuple[str, Path]]:
    """The files whose content is hidden: truths and topics of blinded datasets, with words for what each is; the folder or file itself
    where it is not there, but for what is made from runs.

    Corpora are not among them: a public and a blinded dataset may well have one corpus. Raises E402 for folders that cannot be read.
    """
    found = []
    for task in tasks:
        for one in task.datasets.values():
            if one.visibility != "blinded" or task.demo:
                continue
            words = f'the truths of the blinded dataset "{one.id}" of {task.id}'
            if one.truths.is_dir():
                files = folder_files(one.truths)
                found += [(words, p) for n, p in files if not any(matches(s, str(n)) for s in task.shared)]
            elif one.stage is None:
                found.append((words, one.truths))
            topics = one.inputs / one.topics if one.topics else None
            if topics is not None and (one.stage is None or topics.is_file()):
                found.append((f'the topics of the blinded dataset "{one.id}" of {task.id}', topics))
    return found


def read_hidden(files: Sequence[tuple[str, Path]]) -> Hidden:
    """What these files hold, without what is empty. Raises OSError."""
    return Hidden({content: words for words, path in files if (content := unpacked(path))[0]})
