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

This package imports none of the others, and no library before it is needed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from schemas.checking import kinds, of_kind, schema, usable, validate
    from schemas.documents import (
        MAX_PROBLEMS,
        SHOWN,
        Document,
        Problem,
        closest,
        flat,
        harmless,
        parse_pointer,
        render_pointer,
        show,
    )
    from schemas.fitting import fits
    from schemas.reading import JSON_BYTES, YAML_BYTES, load_json, load_yaml

__all__ = [
    "JSON_BYTES",
    "MAX_PROBLEMS",
    "SHOWN",
    "YAML_BYTES",
    "Document",
    "Problem",
    "canonical",
    "closest",
    "digest",
    "fits",
    "flat",
    "harmless",
    "kinds",
    "load_json",
    "load_yaml",
    "of_kind",
    "parse_pointer",
    "render_pointer",
    "schema",
    "show",
    "usable",
    "validate",
]


def __getattr__(name: str) -> Any:
    """What a module here defines, imported when it is first asked for: the evaluator of a small run needs none of it."""
    module: Any
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "fits":
        from schemas import fitting as module
    elif name in ("JSON_BYTES", "YAML_BYTES", "load_json", "load_yaml"):
        from schemas import reading as module
    elif name in ("kinds", "of_kind", "schema", "usable", "validate"):
        from schemas import checking as module
    else:
        from schemas import documents as module
    found = globals()[name] = getattr(module, name)
    return found


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
