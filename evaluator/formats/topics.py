"""Topic ids, from the formats in which organisers keep topics.

JSON lines (``qid``, ``query_id``, ``id``, ``number`` or ``_id``), XML (``<topic number="1">`` or
``<topic><number>1</number>``), TREC's ``<num>``, and text with the id in the first column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from evaluator.errors import EvaluatorError
from evaluator.formats.files import BOM, organisers, read_all
from evaluator.formats.lines import id_of_object

KEYS = ("qid", "query_id", "id", "number", "_id")
WITHOUT = 'give every topic a "qid"'
_ATTRIBUTE = re.compile(
    rb"<(?:topic|query)\b[^>]*?\s(?:number|id|num|qid|topic_id)\s*=\s*[\"']([^\"']*)[\"']", re.IGNORECASE
)
_ELEMENT = re.compile(
    rb"<(?:topic|query)\b[^>]*>\s*<(?:number|id|num|qid|identifier)>\s*([^<]*?)\s*</",
    re.IGNORECASE | re.DOTALL,
)
_TREC = re.compile(rb"<num>\s*(?:number:)?\s*([^\s<]+)", re.IGNORECASE)


def read_topics(path: Path, name: str | None = None) -> list[bytes]:
    """Return the topic ids of a plain or gzip file, in its order.

    Ids in XML lose blanks around them. Raises :class:`EvaluatorError` for files without ids or with an id given
    twice.
    """
    name = name or path.name
    ids = []
    for _, topic in placed_topics(path, name):
        if isinstance(topic, EvaluatorError):
            raise topic
        ids.append(topic)
    if not ids:
        raise EvaluatorError(f"the topics {name} hold no topic ids", fix=WITHOUT)
    if len(set(ids)) != len(ids):
        twice = next(i for n, i in enumerate(ids) if i in ids[:n])
        raise EvaluatorError(f"the topics {name} hold topic {twice.decode('utf-8', 'replace')} twice")
    return ids


def placed_topics(path: Path, name: str) -> Iterator[tuple[int, bytes | EvaluatorError]]:
    """The topics of a file with their lines; of a line without an id, what is wrong with it.

    Raises :class:`EvaluatorError` for a file that cannot be read.
    """
    with organisers(f"the topics {name}"):
        data = read_all(path, follow=True)
    data = data.removeprefix(BOM)
    # What a file holds says what it is, not how somebody has called it (topics.jsonl.gzip, topics.txt).
    if data.lstrip()[:1] == b"{" or name.endswith((".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")):
        wrong = f"the topics {name} are not JSON lines", f"the topics {name} lack an id", WITHOUT
        for number, line in enumerate(data.split(b"\n"), 1):
            if line.strip():
                try:
                    yield number, id_of_object(line, f"{name}:{number}", KEYS, wrong).strip()
                except EvaluatorError as error:
                    yield number, error
    elif data.lstrip()[:1] == b"<":
        yield from _in_markup(data)
    else:
        for number, line in enumerate(data.splitlines(), 1):
            if line.strip():
                yield number, line.split(b"\t" if b"\t" in line else None, 1)[0].strip()


def _in_markup(data: bytes) -> Iterator[tuple[int, bytes]]:
    line, at = 1, 0
    form = next((form for form in (_ATTRIBUTE, _ELEMENT, _TREC) if form.search(data)), _TREC)
    for match in form.finditer(data):
        line, at = line + data.count(b"\n", at, match.start(1)), match.start(1)
        yield line, match[1].strip()
