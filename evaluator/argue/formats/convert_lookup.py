"""``evaluator convert-lookup``: a pickled document look-up as JSON Lines, once and without trusting the file.

Reads ``{doc id: {"title": ..., "text": ...}}`` (also a text, or a pair of title and text) through
:mod:`evaluator.argue.formats.pickles`, and writes ``{"id", "title", "text"}`` a line. Meant to run in a container without a
network.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from evaluator.argue.models import Document
from evaluator.errors import EvaluatorError
from evaluator.findings import show
from schemas.files import atomic_file

MAX_BYTES = 200 << 30  # written, before compression
MAX_PROBLEMS = 20


def convert(source: Path, target: Path, *, max_bytes: int = MAX_BYTES) -> int:
    """Convert a pickle; the target (compressed if it is called ``.gz``) appears only when it is complete.

    Returns how many documents it has. Raises :class:`EvaluatorError` for a pickle that holds something else than
    documents.
    """
    from evaluator.argue.formats.pickles import RefusedPickle, entries

    problems: list[str] = []
    count = written = 0
    try:
        with _target(target) as file:
            for key, value in entries(source):
                found = document(key, value)
                if isinstance(found, str):
                    problems.append(found)
                    if len(problems) >= MAX_PROBLEMS:
                        break
                    continue
                row = {"id": found.id, "title": found.title, "text": found.text}
                line = json.dumps(row, ensure_ascii=False).encode("utf-8") + b"\n"
                written += len(line)
                if written > max_bytes:
                    raise RefusedPickle(f"it unpacks to more than {max_bytes:,} bytes")
                file.write(line)
                count += 1
            if problems or not count:
                raise RefusedPickle("; ".join(problems) or "it holds no document")
    except RefusedPickle as error:
        raise EvaluatorError(
            f"the pickle {source.name} was not converted",
            str(error),
            "get it from its source again; only dictionaries of documents are converted",
        ) from None
    except OSError as error:
        raise EvaluatorError(
            f"{source.name} cannot be converted", (error.strerror or str(error)).lower()
        ) from None
    return count


def document(key: Any, value: Any) -> Document | str:
    """The document of one entry, or what is wrong with it."""
    if isinstance(key, int) and not isinstance(key, bool):
        key = str(key)
    if not isinstance(key, str) or not key:
        return "a key is no document id"
    title: Any = ""
    if isinstance(value, dict):
        text = next((value[k] for k in ("text", "body", "contents") if isinstance(value.get(k), str)), None)
        title = value.get("title")
    elif isinstance(value, list | tuple) and len(value) == 2:
        title, text = value
    else:
        text = value
    if not isinstance(text, str) or not isinstance(title, str | None):
        return f"the document {show(key)} has no text"
    return Document(key, text, title or "")


@contextmanager
def _target(path: Path) -> Iterator[IO[bytes]]:
    with atomic_file(path, mode=0o644) as raw:
        if path.suffix == ".gz":
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed:
                yield packed  # type: ignore[misc]
        else:
            yield raw


def add_command(commands: Any) -> None:
    """Add the command to argparse's ``commands``."""
    parser = commands.add_parser(
        "convert-lookup",
        help="turn a pickled document look-up into JSON Lines, without running it",
        description="Read a pickled dictionary of documents as data only, and write one JSON object a line.",
    )
    parser.add_argument("pickle", type=Path, metavar="PICKLE")
    parser.add_argument("output", type=Path, metavar="OUTPUT", help="a .jsonl or .jsonl.gz file")
    parser.set_defaults(call=run)


def run(args: argparse.Namespace) -> int:
    """Do what the command says. Returns 0; raises :class:`EvaluatorError`."""
    count = convert(args.pickle, args.output)
    print(f"{args.output.name}: {count:,} documents", file=sys.stderr)
    return 0
