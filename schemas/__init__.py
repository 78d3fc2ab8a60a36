"""The files that the parts exchange: reading them safely, checking them, and giving them an identity.

Everything here takes hostile input and answers with a list of :class:`Problem`, each with its place; there is
no exception for a bad file. The schemas (``*.schema.json``, ``kinds/*.schema.json``) are also the source of the
reference pages, so every field of theirs has a ``description``. Eight keywords are ours: ``x-says`` is what a
``pattern`` or a combination means in words, ``x-fix`` is what the reader does about a value that breaks it. Of a kind,
``x-counts`` names its measures that count something, so that a table says 78 and not 78.0000; ``x-measures`` says what
measures mean and their ``unit``; ``x-output`` what a run looks like, with an ``example`` in which ``{topic}`` and
``{document}`` stand for ids; ``x-file`` marks an option that names a file of the task (``runner/tasks/load.py``);
``x-notes`` is what the kind may say beside scores, and to whom (``schemas/details.py``). ``x-schema`` names the schema of a
part that may be null, for the description of the API (``runner/web/openapi.py``).

This package imports none of the others. A library is imported by the function that needs it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from schemas.checking import kinds as kinds
from schemas.checking import of_kind as of_kind
from schemas.checking import schema as schema
from schemas.checking import usable as usable
from schemas.checking import validate as validate
from schemas.documents import MAX_PROBLEMS as MAX_PROBLEMS
from schemas.documents import SHOWN as SHOWN
from schemas.documents import Document as Document
from schemas.documents import Problem as Problem
from schemas.documents import closest as closest
from schemas.documents import flat as flat
from schemas.documents import harmless as harmless
from schemas.documents import parse_pointer as parse_pointer
from schemas.documents import render_pointer as render_pointer
from schemas.documents import show as show
from schemas.reading import YAML_BYTES as YAML_BYTES
from schemas.reading import load_json as load_json
from schemas.reading import load_yaml as load_yaml


def canonical(data: Any) -> bytes:
    """The one byte form of JSON data: sorted keys, no blanks, UTF-8. Raises ValueError for NaN and infinities."""
    return _CANONICAL.encode(data).encode("utf-8")


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"not JSON data: {type(value).__name__}")


_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain
)


def digest(data: Any) -> str:
    """The SHA-256 (hex) of ``data`` in its canonical form: the identity of a lock, a bundle, a request."""
    import hashlib  # loads OpenSSL

    return hashlib.sha256(canonical(data)).hexdigest()
