"""Topic ids, from the formats in which organisers keep topics.

JSON lines (``qid``, ``query_id``, ``id``, ``number`` or ``_id``), XML (``<topic number="1">`` or
``<topic><number>1</number>``), TREC's ``<num>``, and text with the id in the first column.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from evaluator.errors import EvaluatorError
from evaluator.formats.files import Damaged, Unreadable, read_all

KEYS = ("qid", "query_id", "id", "number", "_id")
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
    try:
        data = read_all(path, follow=True)
    except (Unreadable, Damaged) as error:
        raise EvaluatorError(
            f"the topics {name} cannot be read",
            str(error),
            "correct the path where it was given: task.yaml or the command line",
        ) from None
    data = data.removeprefix(b"\xef\xbb\xbf")
    # What a file holds says what it is, not how somebody has called it (topics.jsonl.gzip, topics.txt).
    if data.lstrip()[:1] == b"{" or name.endswith((".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")):
        ids = _from_json_lines(data, name)
    elif data.lstrip()[:1] == b"<":
        ids = _ATTRIBUTE.findall(data) or _ELEMENT.findall(data) or _TREC.findall(data)
        ids = [i.strip() for i in ids]
    else:
        lines = (line for line in data.splitlines() if line.strip())
        ids = [
            (line.split(b"\t", 1)[0] if b"\t" in line else line.split(None, 1)[0]).strip() for line in lines
        ]
    if not ids:
        raise EvaluatorError(f"the topics {name} hold no topic ids", fix='give every topic a "qid"')
    if len(set(ids)) != len(ids):
        twice = next(i for n, i in enumerate(ids) if i in ids[:n])
        raise EvaluatorError(f"the topics {name} hold topic {twice.decode('utf-8', 'replace')} twice")
    return ids


def _from_json_lines(data: bytes, name: str) -> list[bytes]:
    ids = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            raise EvaluatorError(
                f"the topics {name} are not JSON lines", f"{name}:{number}: not JSON"
            ) from None
        key = next(
            (k for k in KEYS if isinstance(record, dict) and isinstance(record.get(k), str | int)), None
        )
        if key is None:
            raise EvaluatorError(
                f"the topics {name} lack an id",
                f"{name}:{number}: none of {', '.join(KEYS)}",
                'give every topic a "qid"',
            )
        ids.append(str(record[key]).strip().encode())
    return ids
