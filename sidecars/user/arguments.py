"""What the simulated users know: the argument index, asked in the same process and in the same way as by software."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schemas import jsonl
from sidecars.search import documents
from sidecars.search.analysis import tokens
from sidecars.search.errors import DataError, SearchError
from sidecars.search.prepared import open_collection
from sidecars.search.queries import Queries

FIELD, TOPIC, HITS = "attacks", "topic", 10
QUERY_WORDS = 300  # of an answer; each is a clause of the query
LOOKED_AT = 50  # so many hits are put in order by score and id, of which the first are given
CLAIMS = "claims.jsonl"
OWN_CLAIM = "Public libraries should lend tools and musical instruments, not only books."


class Arguments:
    """The arguments of a data folder. Raises :class:`DataError` for a folder that cannot be used."""

    def __init__(self, folder: Path) -> None:
        self._collection = open_collection(folder)
        if FIELD not in self._collection.text.fields:
            raise DataError([f"{documents.source(folder)}: no argument has the field {FIELD}"])
        self.count = self._collection.text.count
        self._claims = _claims(folder / CLAIMS)

    def against(self, answer: str, claim: str = "") -> list[dict[str, Any]]:
        """The ten arguments that best attack ``answer``: a BM25 match on ``attacks``; score falling, then id rising.

        Each is the argument without its vectors, with its ``score``. With a ``claim`` the score of its match on ``topic``
        is added, so that arguments of the same words about something else come last.
        """
        query: dict[str, Any] = {"match": {FIELD: {"query": " ".join(tokens(answer)[:QUERY_WORDS])}}}
        about = " ".join(tokens(claim)[:QUERY_WORDS])
        if about and TOPIC in self._collection.text.fields:
            query = {"bool": {"must": [query], "should": [{"match": {TOPIC: {"query": about}}}]}}
        try:
            wanted = Queries(self._collection.text, ()).read(query)
        except SearchError:  # words that no index holds
            return []
        found, _ = self._collection.text.search(wanted, LOOKED_AT)
        hits = [(round(score, 6), self._collection.documents[place]) for place, score in found]
        hits.sort(key=lambda hit: (-hit[0], hit[1]["id"]))
        return [{**_without_vectors(document), "score": score} for score, document in hits[:HITS]]

    def claim(self, seed: int) -> str:
        """The claim for a debate that brings none: of the folder's claims by the seed, or one of our own."""
        if not self._claims:
            return OWN_CLAIM
        drawn = int.from_bytes(hashlib.sha256(f"claim {seed}".encode()).digest(), "big")
        return self._claims[drawn % len(self._claims)]

    def close(self) -> None:
        """Close files, remove temporary ones."""
        self._collection.close()


def _without_vectors(document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in document.items()
        if name != "score" and not (isinstance(value, list) and value and isinstance(value[0], float))
    }


def _claims(path: Path) -> list[str]:
    """The claims of a claims file, if there is one. Raises :class:`DataError`."""
    if not path.is_file():
        return []
    claims, problems = [], []
    for number, row, _ in jsonl.read(path, max_line=documents.LINE_BYTES):
        claim = row.get("claim") if isinstance(row, dict) else None
        if isinstance(claim, str) and claim.strip():
            claims.append(claim)
        else:
            problems.append(f"{path}:{number}: not an object with a claim")
    if problems:
        raise DataError(problems[:20], "correct these lines")
    return claims
