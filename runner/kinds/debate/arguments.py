"""The arguments that answers rest on, compared with the index and with what it served: whether they are there, unchanged and served.

The measures are the evaluator's; this is the same comparison again, argument by argument, for people to see.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.model.limits import MIB
from runner.tasks.services import data_digest, service_digest
from runner.tasks.transcripts import OWN, Most, json_lines

if TYPE_CHECKING:
    from runner.model.errors import Problem
    from runner.model.task import Task
    from runner.records.store.run_detail import RunDetail

# The index notes down at most 32 MiB, in lines of 50 bytes and more; beyond, the record counts as cut.
MOST_SERVED = Most(32 * MIB, MIB, 700_000)
_ID = re.compile(r"[^\x00-\x1f]{1,200}")


class Index(NamedTuple):
    """What the arguments of a run are compared with.

    ``texts`` are the index's, by id, of the arguments that the run lists; None when the index of that evaluation is not
    there (any more). ``served`` are those of them that it returned to this run; None when nobody noted that. ``cut``: that
    record ends too early.
    """

    texts: Mapping[str, str] | None
    served: frozenset[str] | None
    cut: bool = False


def same_text(first: str, second: str) -> bool:
    """Whether two texts are the same, white space and Unicode composition aside (as the evaluator has it)."""
    return first == second or _normal(first) == _normal(second)


def _normal(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def compare(index: Index, name: str, text: str | None) -> dict[str, bool | None]:
    """``found`` in the index, ``altered`` against its text, ``served`` to this run; None where nobody can say."""
    known = None if index.texts is None else index.texts.get(name)
    return {
        "found": None if index.texts is None else known is not None,
        "altered": None if known is None or text is None else not same_text(text, known),
        "served": None
        if index.served is None or (index.cut and name not in index.served)
        else name in index.served,
    }


def look_up(found: RunDetail, task: Task | None, wanted: Collection[str]) -> Index:
    """What the run's arguments (the ids ``wanted``) are to be compared with."""
    served, cut = served_ids(found, wanted)
    return Index(_texts(found, task, wanted) if wanted else None, served, cut)


def ours(found: RunDetail) -> bool:
    """Whether the files next to the run file were written by the platform; else the participant wrote it."""
    return found.lock.get("workflow") == "interactive"


def served_ids(found: RunDetail, wanted: Collection[str]) -> tuple[frozenset[str] | None, bool]:
    """Which of the ids ``wanted`` the index returned to a run (None: nobody noted that), and whether that record ends too early."""
    file = None if found.attempt is None else found.attempt.file("output/served.jsonl")
    if file is None or not ours(found):
        return None, False
    ids: set[str] = set()
    problems: list[Problem] = []
    cut = False
    with file.local() as path:
        for _, data in json_lines(path, problems, MOST_SERVED, packed=False):
            hits = data.get("hits", []) if isinstance(data, dict) else None
            if not isinstance(hits, list) or data.get("truncated"):
                cut = True
                continue
            ids.update(hit for hit in hits if isinstance(hit, str) and hit in wanted)
    return frozenset(ids), cut or bool(problems)


def _texts(found: RunDetail, task: Task | None, wanted: Collection[str]) -> dict[str, str] | None:
    """The index's texts; None when its data are not there, or not those that the run was evaluated with."""
    service = None if task is None else task.services.get(str(task.options.get("search", "search")))
    if service is None or service.data is None:
        return None
    path = next(
        (p for n in ("arguments.jsonl", "arguments.jsonl.gz") if (p := service.data / n).is_file()), None
    )
    if path is None or not _same_data(found, service):
        return None
    texts: dict[str, str] = {}
    problems: list[Problem] = []
    for _, data in json_lines(path, problems, OWN):
        if isinstance(data, dict):
            name, text = data.get("id", data.get("_id")), data.get("text")
            if isinstance(name, str) and name in wanted and isinstance(text, str):
                texts.setdefault(name, text)
    return None if problems else texts


def _same_data(found: RunDetail, service: Any) -> bool:
    from runner.model.errors import RunnerError

    record = found.evaluation.record(check=False) if found.evaluation is not None else {}
    services = record.get("services")
    pinned = services.get(service.name) if isinstance(services, dict) else None
    digests = found.lock.get("digests") or {}
    try:
        if pinned is not None:
            return bool(pinned == data_digest(service))
        return bool((digests.get("services") or {}).get(service.name) == service_digest(service))
    except RunnerError:  # a file went away
        return False
