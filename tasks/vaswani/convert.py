"""Turn the Vaswani collection's TREC files into this task's datasets.

    python tasks/vaswani/convert.py SOURCE [DEST]

SOURCE holds ``doc-text.trec``, ``query-text.trec`` and ``qrels`` as upstream distributes them (see README.md
for where, and for their SHA-256); DEST defaults to ``datasets/`` beside this file. The output is a function of
the source alone: the same source gives the same bytes with the same zlib.

The layout of the inputs is the one that TIRA and ir_datasets give to full-rank software:
``documents.jsonl.gz`` (docno, text, original_document), ``queries.jsonl`` (qid, query, original_query),
``queries.xml`` and ``metadata.json``. Texts are not changed; line ends within them stay.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.sax.saxutils import escape

# Sizes of the complete collection: a source that differs is not the one that the README names.
DOCUMENTS, TOPICS, JUDGMENTS = 11_429, 93, 2_083
DEV_TOPICS = 31

_DOCUMENT = re.compile(r"<DOC>\s*<DOCNO>(.*?)</DOCNO>(.*?)</DOC>", re.DOTALL)
_TOPIC = re.compile(r"<top>\s*<num>(.*?)</num>\s*<title>(.*?)</title>\s*</top>", re.DOTALL)

Qrel = tuple[str, str, str, str]


def split(topics: Iterable[str]) -> dict[str, set[str]]:
    """Which topics belong to ``dev`` and which to ``test``.

    The topics are ordered by the SHA-256 of ``vaswani:<topic>``; the first 31 are ``dev``, the others ``test``.
    A hash has no regard for difficulty, subject or number, and anybody can compute it again.
    """
    ordered = sorted(topics, key=lambda topic: hashlib.sha256(f"vaswani:{topic}".encode()).hexdigest())
    return {"dev": set(ordered[:DEV_TOPICS]), "test": set(ordered[DEV_TOPICS:])}


def read_source(source: Path) -> tuple[dict[str, str], dict[str, str], list[Qrel]]:
    """Documents and topics by id in file order, and the judgments (topic, iteration, document, relevance).

    The files have no root element and so are no XML; each is a sequence of small elements. Raises ValueError
    when the sizes are not those of the complete collection.
    """
    documents = {
        number.strip(): text.strip("\n")
        for number, text in _DOCUMENT.findall((source / "doc-text.trec").read_text(encoding="utf-8"))
    }
    topics = {
        number.strip(): text.strip("\n")
        for number, text in _TOPIC.findall((source / "query-text.trec").read_text(encoding="utf-8"))
    }
    qrels: list[Qrel] = []
    for line in (source / "qrels").read_text(encoding="utf-8").splitlines():
        if line.strip():
            topic, iteration, document, relevance = line.split()
            qrels.append((topic, iteration, document, relevance))
    found = (len(documents), len(topics), len(qrels))
    if found != (DOCUMENTS, TOPICS, JUDGMENTS):
        raise ValueError(
            f"expected {(DOCUMENTS, TOPICS, JUDGMENTS)} documents, topics and judgments, found {found}"
        )
    return documents, topics, qrels


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def documents_gz(documents: Mapping[str, str]) -> bytes:
    """documents.jsonl.gz, without a time or a name in its header so that equal texts give equal bytes."""
    lines = [
        _dump({"docno": number, "text": text, "original_document": {"doc_id": number, "text": text}}) + "\n"
        for number, text in documents.items()
    ]
    return gzip.compress("".join(lines).encode(), compresslevel=9, mtime=0)


def queries_jsonl(topics: Mapping[str, str]) -> str:
    """queries.jsonl: one topic a line."""
    return "".join(
        _dump({"qid": number, "query": text, "original_query": {"query_id": number, "text": text}}) + "\n"
        for number, text in topics.items()
    )


def queries_xml(topics: Mapping[str, str], dataset: str) -> str:
    """queries.xml: the same topics for software that reads XML."""
    body = "".join(
        f'  <topic number="{escape(number)}">\n'
        f"    <query>{escape(text)}</query>\n"
        "    <original_query>\n"
        f"      <query_id>{escape(number)}</query_id>\n"
        f"      <text>{escape(text)}</text>\n"
        "    </original_query>\n"
        "  </topic>\n"
        for number, text in topics.items()
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<topics ir-datasets-id="{dataset}">\n{body}</topics>\n'


def convert(source: Path, dest: Path) -> None:
    """Write ``dest/dev`` and ``dest/test``, each with ``inputs/`` and ``truths/``."""
    documents, topics, qrels = read_source(source)
    packed = documents_gz(documents)
    for dataset, members in split(topics).items():
        chosen = {number: text for number, text in topics.items() if number in members}
        inputs, truths = dest / dataset / "inputs", dest / dataset / "truths"
        inputs.mkdir(parents=True, exist_ok=True)
        truths.mkdir(parents=True, exist_ok=True)
        (inputs / "documents.jsonl.gz").write_bytes(packed)
        (inputs / "queries.jsonl").write_text(queries_jsonl(chosen), encoding="utf-8")
        (inputs / "queries.xml").write_text(queries_xml(chosen, f"vaswani-{dataset}"), encoding="utf-8")
        (inputs / "metadata.json").write_text(
            _dump({"ir_datasets_id": f"vaswani-{dataset}"}) + "\n", encoding="utf-8"
        )
        judged = "".join(" ".join(qrel) + "\n" for qrel in qrels if qrel[0] in members)
        (truths / "qrels.txt").write_text(judged, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Command line: SOURCE [DEST]. Exit code 0 when written, 1 for a wrong source, 2 for a wrong call."""
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    dest = Path(arguments[1]) if len(arguments) == 2 else Path(__file__).resolve().parent / "datasets"
    try:
        convert(Path(arguments[0]), dest)
    except (OSError, ValueError) as error:
        print(f"convert: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
