"""The parts of a report in one JSON value: its topic, references, documents, sentences and citations, in any form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evaluator.argue.models import Document, Sentence
from evaluator.findings import show
from schemas.jsonl import kind_of

MAX_ID = 512  # characters
MAX_CITATIONS = 1_000  # of one sentence

Say = Callable[[str, str], None]  # (finding code, message)


def topic_id(metadata: Mapping[str, Any], say: Say) -> str | None:
    """The topic of a report: ``topic_id``, ``narrative_id`` or ``request_id``; the first two have to agree.

    None where there is none, or it is wrong, which was reported to ``say``.
    """
    found: dict[str, str] = {}
    for key in ("topic_id", "narrative_id", "request_id"):
        value = metadata.get(key)
        if (isinstance(value, str) and value.strip()) or type(value) is int:
            found[key] = str(value)
        elif value is not None:
            say("F303", f"{key} is {'empty' if value == '' else kind_of(value)}")
            return None
    if not found:
        say("F303", "there is no topic_id in metadata")
        return None
    first = next(iter(found.values()))
    if found.get("narrative_id", first) != first:
        say("F304", f"topic_id is {show(first)}, but narrative_id is {show(found['narrative_id'])}")
        return None
    return _checked_id(first, "topic_id", say)


def _checked_id(value: str, what: str, say: Say) -> str | None:
    if len(value) > MAX_ID:
        say("F333", f"{what} has {len(value):,} characters; at most {MAX_ID} are read")
        return None
    if not value.isprintable():
        say("F333", f"{what} {show(value)} has a control character")
        return None
    return value


def named(metadata: Mapping[str, Any], key: str, say: Say) -> str | None:
    """The id that the metadata hold under ``key``; None, with a finding, where there is none."""
    value = metadata.get(key)
    if isinstance(value, str) and value.strip():
        return _checked_id(value, key, say)
    if value is None:
        say("F303", f"there is no {key} in metadata")
    else:
        say("F303", f"{key} is {'empty' if isinstance(value, str) else kind_of(value)}")
    return None


def references_of(data: Mapping[str, Any], say: Say) -> tuple[str, ...] | None:
    """The list ``references`` of a report; None where it is not there, or, with a finding, is no list."""
    listed = data.get("references")
    if listed is None:
        return None
    if not isinstance(listed, list):
        say("F338", f"references is {kind_of(listed)}, not a list")
        return None
    wrong = next((i for i, r in enumerate(listed) if not isinstance(r, str)), None)
    if wrong is not None:
        say("F338", f"references holds {kind_of(listed[wrong])} at position {wrong}")
    return tuple(r if isinstance(r, str) else "" for r in listed)  # positions stay what they are


def documents_of(data: Mapping[str, Any], say: Say) -> dict[str, Document]:
    """The documents that the report itself carries."""
    carried = data.get("documents")
    if carried is None:
        return {}
    if not isinstance(carried, dict):
        say("F336", f"documents is {kind_of(carried)}, not an object")
        return {}
    found: dict[str, Document] = {}
    broken: list[str] = []
    for name, value in carried.items():
        text = value.get("text") if isinstance(value, dict) else value
        title = value.get("title") if isinstance(value, dict) else None
        if isinstance(text, str) and len(name) <= MAX_ID:
            found[name] = Document(name, text, title if isinstance(title, str) else "")
        else:
            broken.append(name)
    if broken:
        say("F336", f"{len(broken):,} of the documents have no text, the first is {show(broken[0])}")
    return found


def sentence_of(row: Any, at: int, pairs: bool, reader: Citations, say: Say) -> Sentence | None:
    """One sentence of a report, given as an object or (``pairs``) as text and citations; None, with a finding, if it is neither."""
    if pairs:
        legal = isinstance(row, list) and len(row) == 2
        row = {"text": row[0], "citations": row[1]} if legal else row
    if not isinstance(row, dict) or not isinstance(row.get("text"), str):
        there = "has no text" if isinstance(row, dict) else f"is {kind_of(row)}"
        say("F306", f"sentence {at} {there}")
        return None
    return reader.sentence(row, at)


class Citations:
    """Reads the citations of one report's sentences, in any style."""

    def __init__(self, references: tuple[str, ...] | None, say: Say) -> None:
        self.references = references
        self.say = say
        self.styles: set[str] = set()

    def sentence(self, row: Mapping[str, Any], at: int) -> Sentence:
        """The sentence of an object with ``text`` and ``citations``, in any of the styles of citing that are read."""
        if "citations" not in row:
            self.say("F307", f"sentence {at} has no citations")
        cited = row.get("citations", [])
        scores: dict[str, float] = {}
        if isinstance(cited, dict):
            ids = self._scored(cited, at, scores)
        elif isinstance(cited, list):
            ids = self._listed(cited, at)
        else:
            self.say("F307", f"the citations of sentence {at} are {kind_of(cited)}")
            ids = []
        distinct = tuple(dict.fromkeys(ids))
        if len(distinct) != len(ids):
            twice = next(d for d, times in Counter(ids).items() if times > 1)
            self.say("F327", f"sentence {at} cites {show(twice)} more than once")
        if len(distinct) > MAX_CITATIONS:
            self.say(
                "F333", f"sentence {at} has {len(distinct):,} citations; at most {MAX_CITATIONS:,} are read"
            )
            distinct = distinct[:MAX_CITATIONS]
        return Sentence(row["text"], distinct, scores)

    def _scored(self, cited: Mapping[str, Any], at: int, scores: dict[str, float]) -> list[str]:
        if cited:
            self.styles.add("scores")
        ids = []
        for name, value in cited.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                self.say("F309", f"the score of citation {show(name)} in sentence {at} is {kind_of(value)}")
            else:
                scores[name] = value
            if self._legal(name, at):
                ids.append(name)
        return ids

    def _listed(self, cited: Sequence[Any], at: int) -> list[str]:
        ids = []
        for one in cited:
            if isinstance(one, str):
                self.styles.add("list")
                if self._legal(one, at):
                    ids.append(one)
            elif isinstance(one, int) and not isinstance(one, bool):
                self.styles.add("index")
                if (found := self._position(one, at)) is not None:
                    ids.append(found)
            else:
                self.say("F307", f"sentence {at} has {kind_of(one)} as a citation")
        return ids

    def _position(self, position: int, at: int) -> str | None:
        if self.references is None:
            self.say("F308", f"sentence {at} cites position {_short(position)}, but there are no references")
            return None
        if not 0 <= position < len(self.references):
            count = len(self.references)
            self.say(
                "F308", f"sentence {at} cites position {_short(position)} of {count:,} references (from 0)"
            )
            return None
        return self.references[position] or None  # an empty one was reported already

    def _legal(self, name: str, at: int) -> bool:
        if name.strip() == "":
            self.say("F307", f"sentence {at} cites an empty document id")
            return False
        return _checked_id(name, f"a document id in sentence {at}", self.say) is not None


def _short(number: int) -> str:
    text = str(number)
    return text if len(text) <= 20 else f"{text[:20]}..."
