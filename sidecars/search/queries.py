"""The query language: from Elasticsearch's JSON to tantivy's queries. What is not here is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tantivy import Occur, Query

from sidecars.search.analysis import tokens
from sidecars.search.errors import SearchError, illegal, malformed, quote
from sidecars.search.reading import MAX_BOOST, boost, number, one, options, text
from sidecars.search.text import TextIndex, unscored

Body = Mapping[str, Any]
MAX_DEPTH, MAX_CLAUSES = 20, 1024
MAX_TEXT, MAX_VALUES, MAX_FIELDS = 16_384, 10_000, 32
_WORDS = {"query", "operator", "minimum_should_match", "zero_terms_query", "lenient"}
_GROUPS = ("must", "filter", "should", "must_not")
# The options of each kind of query; every kind has a boost, too.
_OPTIONS: dict[str, set[str]] = {
    "match": _WORDS,
    "multi_match": _WORDS | {"fields", "type", "tie_breaker"},
    "bool": {*_GROUPS, "minimum_should_match"},
    "dis_max": {"queries", "tie_breaker"},
    "constant_score": {"filter"},
    "term": {"value"},
    "terms": {"values"},
    "ids": {"values"},
    "exists": {"field"},
    "match_all": set(),
    "match_none": set(),
}
_OF_ONE_FIELD = {"match": "query", "term": "value"}  # {field: options}, or {field: the value of this option}


class Queries:
    """Translates the query of one request. ``vectors``: names of the fields that hold vectors."""

    def __init__(self, index: TextIndex, vectors: Collection[str]) -> None:
        self._index, self._vectors, self._clauses = index, vectors, 0

    def read(self, value: Any, where: str = "query", depth: int = 0) -> Query:
        """The query in ``value``. Raises SearchError."""
        if depth > MAX_DEPTH:
            raise illegal(f"queries are nested more than {MAX_DEPTH} deep")
        kind, body = one(value, where)
        if kind not in _OPTIONS:
            known = ", ".join(sorted(_OPTIONS))
            raise malformed(f"unknown query [{quote(kind)}] at [{where}]; supported here: {known}")
        self._count(1)
        where, field = f"{where}.{kind}", ""
        if kind in _OF_ONE_FIELD:
            field, body = one(body, where)
            body = body if isinstance(body, dict) else {_OF_ONE_FIELD[kind]: body}
        elif kind == "terms" and isinstance(body, dict):
            factor = {key: body[key] for key in ("boost",) if key in body}
            field, values = one({key: body[key] for key in body if key != "boost"}, where)
            body = {"values": values, **factor}
        body = options(body, where, _OPTIONS[kind] | {"boost"})
        found: Query = getattr(self, f"_{kind}")(field, body, where, depth)
        return _boosted(found, boost(body, where))

    def _count(self, clauses: int) -> None:
        self._clauses += clauses
        if self._clauses > MAX_CLAUSES:
            reason = f"more than {MAX_CLAUSES} clauses (every word of a text is one)"
            raise SearchError(400, "too_many_clauses", reason)

    # One method a kind: the query with its options, without its boost. Fields: `name` holds words, `name.keyword` and `_id` exact values.
    def _exact(self, field: str) -> str | None:
        """The field of exact values that is meant, or None."""
        name = "id" if field == "_id" else field.removesuffix(".keyword")
        return name if name != field and name in self._index.fields else None

    def _not_vectors(self, field: str, where: str) -> None:
        if field in self._vectors:
            raise illegal(f"field [{field}] at [{where}] holds vectors; use [knn]")

    def _match(self, field: str, body: Body, where: str, depth: int) -> Query:
        """Documents with one of the words of ``body["query"]`` (or all, or some of them) in the field."""
        self._not_vectors(field, where)
        if "query" not in body:
            raise malformed(f"[{where}] has no [query]")
        wanted = text(body["query"], f"{where}.query", MAX_TEXT)
        operator = str(body.get("operator", "or")).lower()
        if operator not in ("or", "and"):
            raise illegal(f"[{where}.operator] has to be [or] or [and]")
        zero = body.get("zero_terms_query", "none")
        if zero not in ("none", "all"):
            raise illegal(f"[{where}.zero_terms_query] has to be [none] or [all]")
        exact = self._exact(field)
        if exact is not None:
            self._count(1)
            return self._index.value(exact, wanted)
        if field not in self._index.fields:
            return Query.empty_query()
        found = tokens(wanted)
        if not found:
            return Query.all_query() if zero == "all" else Query.empty_query()
        least = _least(body.get("minimum_should_match"), len(found), where)
        if operator == "or" and least > 1:
            # Every repetition of a word counts here, as in Lucene.
            self._count(len(found))
            return _any([self._index.word(field, token) for token in found], least)
        counts = Counter(found)
        self._count(len(counts))
        words = [_boosted(self._index.word(field, token), float(n)) for token, n in counts.items()]
        return (
            _any(words) if operator == "or" else Query.boolean_query([(Occur.Must, word) for word in words])
        )

    def _multi_match(self, field: str, body: Body, where: str, depth: int) -> Query:
        fields = body.get("fields")
        fields = [fields] if isinstance(fields, str) else fields
        if not isinstance(fields, list) or not fields or len(fields) > MAX_FIELDS:
            raise malformed(f"[{where}.fields] has to be a list of 1 to {MAX_FIELDS} fields")
        kind = body.get("type", "best_fields")
        if kind not in ("best_fields", "most_fields"):
            raise illegal(f"[{where}.type] has to be [best_fields] or [most_fields] here")
        default = 0.0 if kind == "best_fields" else 1.0
        tie = number(body.get("tie_breaker", default), f"{where}.tie_breaker", 0.0, 1.0)
        named = (_field_and_boost(name, where) for name in fields)
        parts = [_boosted(self._match(field, body, where, depth), factor) for field, factor in named]
        return _any(parts) if tie == 1.0 else Query.disjunction_max_query(parts, tie)

    def _bool(self, field: str, body: Body, where: str, depth: int) -> Query:
        parts: dict[str, list[Query]] = {}
        for name in _GROUPS:
            clauses = body.get(name, [])
            clauses = [clauses] if isinstance(clauses, dict) else clauses
            if not isinstance(clauses, list):
                raise malformed(f"[{where}.{name}] has to be a query or a list of queries")
            parts[name] = [self.read(clause, f"{where}.{name}", depth + 1) for clause in clauses]
        must, kept, should, must_not = (parts[name] for name in _GROUPS)
        if not any(parts.values()):
            return Query.const_score_query(Query.all_query(), 1.0)
        least = _least(body.get("minimum_should_match"), len(should), where)
        if least > len(should):
            return Query.empty_query()
        clauses = [(Occur.Must, query) for query in must]
        clauses += [(Occur.Must, unscored(query)) for query in kept]
        if not clauses and not should:
            # Only exclusions: everything else, with score 0.
            clauses = [(Occur.Must, unscored(Query.all_query()))]
        if should and (least > 0 or not clauses):
            clauses.append((Occur.Must, _any(should, least)))
        else:
            clauses += [(Occur.Should, query) for query in should]
        clauses += [(Occur.MustNot, query) for query in must_not]
        return Query.boolean_query(clauses)

    def _dis_max(self, field: str, body: Body, where: str, depth: int) -> Query:
        queries = body.get("queries")
        if not isinstance(queries, list) or not queries:
            raise malformed(f"[{where}.queries] has to be a list of queries")
        parts = [self.read(query, f"{where}.queries", depth + 1) for query in queries]
        tie = number(body.get("tie_breaker", 0.0), f"{where}.tie_breaker", 0.0, 1.0)
        return Query.disjunction_max_query(parts, tie)

    def _term(self, field: str, body: Body, where: str, depth: int) -> Query:
        self._not_vectors(field, where)
        wanted = text(body.get("value"), f"{where}.value", MAX_TEXT)
        exact = self._exact(field)
        if exact is not None:
            return self._index.value(exact, wanted)
        known = field in self._index.fields and _storable(wanted)
        return self._index.word(field, wanted) if known else Query.empty_query()

    def _terms(self, field: str, body: Body, where: str, depth: int) -> Query:
        self._not_vectors(field, where)
        wanted = _list(body["values"], f"{where}.{quote(field)}")
        exact = self._exact(field)
        if exact is not None:
            return self._index.values(exact, wanted)
        known = field in self._index.fields
        return self._index.words(field, [w for w in wanted if _storable(w)]) if known else Query.empty_query()

    def _ids(self, field: str, body: Body, where: str, depth: int) -> Query:
        return self._index.values("id", _list(body.get("values"), f"{where}.values"))

    def _constant_score(self, field: str, body: Body, where: str, depth: int) -> Query:
        if "filter" not in body:
            raise malformed(f"[{where}] has no [filter]")
        return Query.const_score_query(self.read(body["filter"], f"{where}.filter", depth + 1), 1.0)

    def _match_all(self, field: str, body: Body, where: str, depth: int) -> Query:
        return Query.const_score_query(Query.all_query(), 1.0)

    def _match_none(self, field: str, body: Body, where: str, depth: int) -> Query:
        return Query.empty_query()

    def _exists(self, field: str, body: Body, where: str, depth: int) -> Query:
        field = text(body.get("field"), f"{where}.field", MAX_TEXT)
        if field in self._vectors:
            raise illegal(f"[{where}] is not supported for fields of vectors")
        name = self._exact(field) or field
        return self._index.has(name) if name in self._index.fields else Query.empty_query()


def _any(queries: Sequence[Query], least: int = 0) -> Query:
    clauses = [(Occur.Should, query) for query in queries]
    return Query.boolean_query(clauses, least) if least > 1 else Query.boolean_query(clauses)


def _boosted(query: Query, factor: float) -> Query:
    return query if factor == 1.0 else Query.boost_query(query, factor)


def _storable(token: str) -> bool:
    """Whether the index could hold this as a word at all (half a character pair it could not)."""
    return len(token) <= 255 and not any("\ud800" <= c <= "\udfff" for c in token)


def _list(values: Any, where: str) -> list[str]:
    if not isinstance(values, list):
        raise malformed(f"[{where}] has to be a list")
    if len(values) > MAX_VALUES:
        raise illegal(f"[{where}] has more than {MAX_VALUES} values")
    return [text(value, where, MAX_TEXT) for value in values]


def _field_and_boost(name: Any, where: str) -> tuple[str, float]:
    """``attacks^2`` is the field ``attacks`` with factor 2."""
    field, caret, factor = text(name, f"{where}.fields", 256).partition("^")
    if "*" in field:
        raise illegal(f"[{where}.fields]: wildcards are not supported here")
    try:
        return field, number(float(factor) if caret else 1.0, f"{where}.fields", 0.0, MAX_BOOST)
    except ValueError:
        raise malformed(f"[{where}.fields]: [{quote(name)}] has no number after ^") from None


def _least(value: Any, clauses: int, where: str) -> int:
    """``minimum_should_match``: how many of the optional clauses have to match; 0 when nothing is said.

    A count, or a percentage (rounded down); negative ones say how many may be missing.
    """
    if value is None:
        return 0
    percent = isinstance(value, str) and value.endswith("%")
    digits = str(value).removesuffix("%").strip()
    unsigned = digits.removeprefix("-")
    if (
        isinstance(value, bool | float)
        or not (unsigned.isascii() and unsigned.isdigit())
        or len(unsigned) > 9
    ):
        raise illegal(f"[{where}.minimum_should_match] has to be a whole number or a percentage here")
    wanted = int(digits)
    if percent:
        # Rounded towards zero, on both sides.
        wanted = (clauses * wanted) // 100 if wanted >= 0 else -((clauses * -wanted) // 100)
    return max(0, wanted if wanted >= 0 and not digits.startswith("-") else clauses + wanted)
