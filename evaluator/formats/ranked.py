"""What a TREC run is checked against, and what reading it gives."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol


class KnownDocuments(Protocol):
    """The ids of a corpus: says which of some ids are not in it."""

    def missing(self, docs: Collection[bytes]) -> Collection[bytes]:
        """Return those of ``docs`` that are not documents of the corpus."""
        ...

    def ids(self) -> Iterator[bytes]:
        """Every id, for suggestions."""
        ...


NOTHING: Mapping[bytes, int] = MappingProxyType({})


class Ranked(NamedTuple):
    """What one topic retrieved: how many documents, and the rank (from 1) of each judged one among them.

    ``first`` holds the first documents by the rank column, as many as :class:`Rules` asked for; ``untied`` the rank of
    each judged document that would have another one if ties were in the order of the rank column. ``double`` holds all
    ranks as scores in double precision give them, if these differ from ``ranks``.
    """

    retrieved: int
    ranks: Mapping[bytes, int]
    first: tuple[bytes, ...] = ()
    untied: Mapping[bytes, int] = NOTHING
    double: Mapping[bytes, int] | None = None


class Tie(NamedTuple):
    """A document that goes before the one ranked above it, because their scores are equal; and its line."""

    doc: bytes
    before: bytes
    line: int


class Examined(NamedTuple):
    """What a block of lines says in which nothing is wrong, seen by itself.

    ``windows`` is the first line that ends as in Windows; ``ties`` are the first of each sort, by their code.
    """

    tag: bytes
    first_line: int
    windows: int | None
    topics: dict[bytes, Ranked]
    ties: Mapping[str, Tie]


class Rules(NamedTuple):
    """What a run is checked against. None switches a check off.

    ``topics``: ids that may be answered; ``documents``: ids that may be listed; ``max_documents`` per topic;
    ``judged``: topic -> documents whose ranks are wanted; ``first``: how many documents of each topic are wanted
    by the rank column, whatever their scores (0: none); ``double``: compare scores in double precision;
    ``suggest``: name the id that was probably meant (public data only).
    """

    topics: frozenset[bytes] | None = None
    documents: KnownDocuments | None = None
    max_documents: int | None = None
    judged: Mapping[bytes, Collection[bytes]] = MappingProxyType({})
    first: int = 0
    double: bool = False
    suggest: bool = False


class Scan(NamedTuple):
    """A run that has been read: ``topics`` (answered topics in order of the file) and its ``tag``.

    ``strange`` tells whether there were results for topics that the dataset does not have. ``ties`` are the first
    documents that are not in the order of the rank column because of a tie, by code: line and message.
    """

    topics: dict[bytes, Ranked]
    tag: bytes | None
    strange: bool = False
    ties: Mapping[str, tuple[int, str]] = MappingProxyType({})


def trec_rank(i: int, docs: Sequence[bytes], keys: Sequence[float]) -> int:
    """The rank (from 1) that trec_eval gives document ``i`` of a list sorted by falling key."""
    key = keys[i]
    n = len(keys)
    if (i == 0 or keys[i - 1] != key) and (i + 1 == n or keys[i + 1] != key):
        return i + 1
    begin, end = i, i + 1
    while begin and keys[begin - 1] == key:
        begin -= 1
    while end < n and keys[end] == key:
        end += 1
    doc = docs[i]
    return begin + 1 + sum(1 for other in docs[begin:end] if other > doc)
