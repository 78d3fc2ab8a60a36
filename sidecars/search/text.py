"""The inverted index: fields of words scored with BM25, fields of exact values, over tantivy.

Tantivy's BM25 is Lucene's: idf = ln(1 + (N - df + 0.5) / (df + 0.5)); a word's score is idf * (k1 + 1) * tf /
(tf + k1 * (1 - b + b * length / average length)), k1 = 1.2, b = 0.75, the length kept in one byte (exact to 40 words).
The index is always one segment, written by one thread: a document's number is its place in the file, and equal scores
come in that order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tantivy import Document, Index, Occur, Query, SchemaBuilder

from sidecars.search.analysis import keyword, tokens

K1, B = 1.2, 0.75
# Names of fields in tantivy: words of a field, exact values of a field, the document's place, the fields it has.
_PLACE, _HAS = "place", "has"
_HEAP = 2_000_000_000  # bytes that the writer may use before it starts a second segment, which we never want


def field_values(document: dict[str, Any]) -> dict[str, list[str]]:
    """The searchable fields of a document: those that hold a string, or a list of strings, with their values."""
    found: dict[str, list[str]] = {}
    for name, value in document.items():
        values = [value] if isinstance(value, str) else value
        if isinstance(values, list) and values and all(isinstance(v, str) for v in values):
            found[name] = values
    return found


def _schema(fields: Iterable[str]) -> Any:
    builder = SchemaBuilder()
    for name in fields:
        builder.add_text_field(f"t_{name}", tokenizer_name="whitespace", index_option="freq")
        builder.add_text_field(f"k_{name}", tokenizer_name="raw", index_option="basic")
    for name in (_PLACE, _HAS):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    return builder.build()


class TextIndex:
    """One index. Everything returned about documents is by their place in the file, from 0."""

    def __init__(self, index: Index, fields: Sequence[str]) -> None:
        index.config_reader("manual")
        index.reload()
        self.fields = frozenset(fields)
        self._schema, self._searcher = index.schema, index.searcher()
        self.count: int = self._searcher.num_docs
        if self._searcher.num_segments > 1:
            raise ValueError("the index has more than one segment")

    @classmethod
    def build(
        cls, documents: Iterable[dict[str, Any]], fields: Sequence[str], folder: Path | None = None
    ) -> TextIndex:
        """Index all documents, in ``folder`` (empty) or in memory. Raises ValueError when they are too many."""
        index = Index(_schema(fields), str(folder) if folder else None, reuse=False)
        writer = index.writer(_HEAP, 1)
        for place, document in enumerate(documents):
            writer.add_document(_document(place, document))
        writer.commit()
        writer.wait_merging_threads()
        return cls(index, fields)

    @classmethod
    def open(cls, folder: Path, fields: Sequence[str]) -> TextIndex:
        """Open what ``build`` wrote. The folder has to be writable (tantivy locks it). Raises ValueError."""
        return cls(Index.open(str(folder)), fields)

    def word(self, field: str, token: str) -> Query:
        """Documents with this word in this field, scored with BM25."""
        return Query.term_query(self._schema, f"t_{field}", token, "freq")

    def value(self, field: str, value: str) -> Query:
        """Documents with exactly this value in this field; the score is the value's idf (no lengths, no counts)."""
        wanted = keyword(value)
        if wanted is None:
            return Query.empty_query()
        df = self._searcher.doc_freq(f"k_{field}", wanted)
        idf = math.log(1 + (self.count - df + 0.5) / (df + 0.5))
        return Query.const_score_query(Query.term_query(self._schema, f"k_{field}", wanted, "basic"), idf)

    def words(self, field: str, found: Sequence[str]) -> Query:
        """Documents with any of these words in this field, score 1."""
        return self._any(f"t_{field}", found)

    def values(self, field: str, found: Sequence[str]) -> Query:
        """Documents with any of these exact values in this field, score 1."""
        return self._any(f"k_{field}", [v for v in map(keyword, found) if v is not None])

    def places(self, found: Iterable[int]) -> Query:
        """The documents at these places, score 1."""
        return self._any(_PLACE, [str(place) for place in found])

    def has(self, field: str) -> Query:
        """Documents that have this field at all, score 1."""
        return Query.const_score_query(Query.term_query(self._schema, _HAS, field, "basic"), 1.0)

    def _any(self, field: str, values: Sequence[str]) -> Query:
        if not values:
            return Query.empty_query()
        return Query.const_score_query(Query.term_set_query(self._schema, field, values), 1.0)

    def search(self, query: Query, limit: int) -> tuple[list[tuple[int, float]], int]:
        """The best ``limit`` documents (place, score), best first, ties by place; and how many match at all."""
        result = self._searcher.search(query, max(1, min(limit, self.count)), count=True)
        return [(address.doc, score) for score, address in result.hits[:limit]], result.count  # type: ignore[attr-defined]

    def matching(self, query: Query) -> list[int]:
        """The places of all documents that match, rising."""
        return sorted(place for place, _ in self.search(query, self.count)[0])


def unscored(query: Query) -> Query:
    """The same documents, each with score 0."""
    return Query.const_score_query(query, 0.0)


def both(query: Query, restriction: Query) -> Query:
    """Documents that match both; only ``query`` gives a score."""
    return Query.boolean_query([(Occur.Must, query), (Occur.Must, unscored(restriction))])


def _document(place: int, document: dict[str, Any]) -> Document:
    row = Document()
    row.add_text(_PLACE, str(place))
    row.add_text("k_id", document["id"])
    for name, values in field_values(document).items():
        row.add_text(_HAS, name)
        found = tokens(values[0]) if len(values) == 1 else [t for value in values for t in tokens(value)]
        if found:
            row.add_text(f"t_{name}", " ".join(found))
        if name != "id":
            for value in values:
                exact = keyword(value)
                if exact is not None:
                    row.add_text(f"k_{name}", exact)
    return row
