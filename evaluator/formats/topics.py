"""Topic ids, from the formats in which organisers keep topics.

JSON lines (``qid``, ``query_id``, ``id``, ``number`` or ``_id``), XML (``<topic number="1">`` or
``<topic><number>1</number>``), TREC's ``<num>``, and text with the id in the first column.
"""

from __future__ import annotations

import re
from pathlib import Path

from evaluator.errors import EvaluatorError
from evaluator.formats.files import BOM, organisers, read_all
from evaluator.formats.lines import id_of_object

KEYS = ("qid", "query_id", "id", "number", "_id")
_FIX = 'give every topic a "qid"'
_ATTRIBUTE = re.compile(
    rb"<(?:topic|query)\b[^>]*?\s(?:number|id|num)\s*=\s*[\"']([^\"']*)[\"']", re.IGNORECASE
)
_ELEMENT = re.compile(
    rb"<(?:topic|query)\b[^>]*>\s*<(?:number|id|num)>\s*([^<]*?)\s*</", re.IGNORECASE | re.DOTALL
)
_TREC = re.compile(rb"<num>\s*(?:number:)?\s*([^\s<]+)", re.IGNORECASE)


def read_topics(path: Path, name: str | None = None) -> list[bytes]:
    """Return the topic ids of a plain or gzip file, in its order.

    Ids in XML lose blanks around them. Raises :class:`EvaluatorError` for files without ids or with an id given
    twice.
    """
    name = name or path.name
    with organisers(f"the topics {name}"):
        data = read_all(path, follow=True).removeprefix(BOM)
    # What a file holds says what it is, not how somebody has called it (topics.jsonl.gzip, topics.txt).
    if data.lstrip()[:1] == b"{" or name.endswith((".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")):
        wrong = f"the topics {name} are not JSON lines", f"the topics {name} lack an id", _FIX
        lines = enumerate(data.split(b"\n"), 1)
        ids = [id_of_object(line, f"{name}:{n}", KEYS, wrong).strip() for n, line in lines if line.strip()]
    elif data.lstrip()[:1] == b"<":
        ids = _ATTRIBUTE.findall(data) or _ELEMENT.findall(data) or _TREC.findall(data)
        ids = [i.strip() for i in ids]
    else:
        texts = (line for line in data.splitlines() if line.strip())
        ids = [line.split(b"\t" if b"\t" in line else None, 1)[0].strip() for line in texts]
    if not ids:
        raise EvaluatorError(f"the topics {name} hold no topic ids", fix=_FIX)
    if len(set(ids)) != len(ids):
        twice = next(i for n, i in enumerate(ids) if i in ids[:n])
        raise EvaluatorError(f"the topics {name} hold topic {twice.decode('utf-8', 'replace')} twice")
    return ids
