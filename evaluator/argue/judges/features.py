"""What the offline judge computes about a question: a few numbers by judgment type, each with a meaning."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from evaluator.argue.asking import Question
from evaluator.argue.judges.wording import (
    Wording,
    covered,
    digits,
    direction,
    sentences,
    stem,
    turned,
    wording,
)
from evaluator.argue.models import JudgmentType

if TYPE_CHECKING:
    from evaluator.argue.judges.embedding import Embedder

T = JudgmentType
_YES = stem("yes")
BEST = 4  # passages of a document that are compared by meaning, those with the most words in common
_ABOUT = re.compile(
    r"\b(this|the (present|following|next|last|preceding|previous|remaining|above)|our) "
    r"(report|text|overview|summary|section|paragraph|part|answer|document|review|sections|paragraphs|parts|pages?)\b"
    r"|\b(in (summary|conclusion|what follows|the following|short|closing)|to (sum up|conclude|summari[sz]e|begin with)|"
    r"as (described|discussed|mentioned|shown|noted) (above|below|earlier)|we (now |will |then |first )?(turn|look|discuss|"
    r"consider|describe|summari[sz]e|begin|close|conclude)|(is|are) the subject of|(is|are) (considered|discussed|"
    r"described|summari[sz]ed|treated|presented|covered|addressed|listed|given|set out) (in what follows|below|here|next|above|first|in turn|separately)|"
    r"turns? (from|to|now)|following (questions?|points?|sections?|findings|overview)|deals? with|conclud(es|ing)|here is|here are|hope|thank)\b",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(
    r"\b(unknown|not (yet )?(known|clear|reported|documented|established|stated|mentioned|available|determined)|unclear|"
    r"no (information|evidence|data|answer|record|records|mention)|(do|does|did) not (say|state|mention|report|tell|specify)|"
    r"cannot be (answered|determined|established|said)|never been (established|determined|reported)|remains? open|undocumented)\b",
    re.IGNORECASE,
)

NAMES: dict[JudgmentType, tuple[str, ...]] = {
    T.SENTENCE_ATTESTED: (
        "words",
        "passage",
        "figures",
        "denial",
        "turned",
        "direction",
        "meaning",
    ),
    T.SENTENCE_ANSWERS_QUESTION: (
        "words",
        "question",
        "numbers",
        "denial",
        "turned",
        "doubt",
        "meaning",
        "answer",
    ),
    T.REQUIRES_CITATION: ("about-itself", "question-mark", "figures"),
    T.FIRST_INSTANCE: ("words", "passage", "numbers", "turned", "meaning"),
    T.CITED_DOCUMENT_RELEVANCE: ("words", "meaning"),
}


class Meaning(NamedTuple):
    """A number that embeddings are needed for: the highest cosine of a text with any of others."""

    text: str
    others: tuple[str, ...]


def features(question: Question, embedder: Embedder | None) -> tuple[float, ...]:
    """The numbers for a question, as :data:`NAMES` lists them for its type. Without an embedder meaning is 0."""
    return tuple(closest(*one, embedder) if isinstance(one, Meaning) else one for one in _numbers(question))


def embedded(question: Question) -> list[str]:
    """The texts whose embeddings :func:`features` needs for a question."""
    meanings = [one for one in _numbers(question) if isinstance(one, Meaning) and one.text.strip()]
    return [text for one in meanings for text in (one.text, *one.others)]


@lru_cache(maxsize=1024)
def _numbers(question: Question) -> tuple[float | Meaning, ...]:
    if question.type is T.SENTENCE_ATTESTED:
        return _against(question.sentence, question.document)
    if question.type is T.FIRST_INSTANCE:
        words, passage, _, _, other, _, meaning = _against(question.sentence, question.previous)
        said, before = wording(question.sentence), wording(question.previous)
        return words, passage, _lacking(said.numbers, before), other, meaning
    if question.type is T.SENTENCE_ANSWERS_QUESTION:
        return _answer(question.sentence, question.nugget_question, question.nugget_answer)
    if question.type is T.CITED_DOCUMENT_RELEVANCE:
        found = _against(question.sentence, question.document)
        return found[0], found[-1]
    return requires(question.sentence)


def _against(claim: str, source: str) -> tuple[float | Meaning, ...]:
    """How well a source covers a claim.

    ``words``: share of its content in the whole source; ``passage``: in the best passage (one sentence or two);
    ``figures``: share of its numbers in digits that the source lacks; ``denial``: 1 if just one of claim and best passage denies; ``turned``: words whose opposite stands in the best passage instead; ``direction``: 1 if the
    one says more and the other less; ``meaning``: the highest cosine of a passage.
    """
    said = wording(claim)
    parts = sentences(source) or [""]
    passages = parts + [f"{a} {b}" for a, b in pairwise(parts)]
    ranked = sorted(passages, key=lambda p: (-covered(said, wording(p).weights), len(p), p))
    best = wording(ranked[0])
    whole = wording(source)
    towards = direction(ranked[0])
    return (
        covered(said, whole.weights),
        covered(said, best.weights),
        _lacking(digits(claim), whole),
        float((said.denials > 0) != (best.denials > 0)),
        float(min(turned(said, best), 2)),
        float(any(direction(part) * towards < 0 for part in sentences(claim))),
        Meaning(claim, tuple(ranked[:BEST])),
    )


def _lacking(numbers: frozenset[str], source: Wording) -> float:
    return len(numbers - source.numbers) / len(numbers) if numbers else 0.0


def _answer(sentence: str, question: str, known: str) -> tuple[float | Meaning, ...]:
    """How well a sentence gives a known answer; ``words``, ``numbers`` and so on of the answer in the sentence."""
    said, wanted, asked = wording(sentence), wording(known), wording(question)
    figures = digits(known) or wanted.numbers
    # What the answer says beyond its question. A bare yes says what is asked; the word itself proves nothing.
    content = {s: w for s, w in wanted.weights.items() if s != _YES}
    own = {s: w for s, w in content.items() if s not in asked.weights} or content or asked.weights
    fresh = wanted._replace(weights=own)
    return (
        covered(fresh, said.weights),
        covered(asked, said.weights),
        _lacking(figures, said),
        float((said.denials > 0) != (wanted.denials > 0)),
        float(min(turned(wanted, said) + turned(said, wanted), 2)),
        float(said.doubts > wanted.doubts),
        Meaning(sentence, (f"{question} {known}",)),
        Meaning(sentence, (known,)),
    )


def requires(sentence: str) -> tuple[float, ...]:
    """Whether a sentence speaks only about its report, only asks, and holds figures.

    Only: a claim with "Thank you." or a question behind it is still a claim.
    """
    parts = sentences(sentence) or [""]
    asks = [part.rstrip().endswith("?") for part in parts]
    about = [bool(_ABOUT.search(part)) for part in parts]
    return (
        float(all(a or q for a, q in zip(about, asks, strict=True)) and any(about)),
        float(all(asks)),
        float(bool(digits(sentence))),
    )


def unknown(sentence: str) -> bool:
    """Whether a sentence says that something is not known: by its phrases alone."""
    return bool(_UNKNOWN.search(sentence))


def closest(text: str, others: Sequence[str], embedder: Embedder | None) -> float:
    """The highest cosine of a text with any of others, to four digits, so that machines agree; 0 without an embedder."""
    if embedder is None or not text.strip():
        return 0.0
    rows = embedder.vectors([text, *others])
    return round(float((rows[1:] @ rows[0]).max()), 4)
