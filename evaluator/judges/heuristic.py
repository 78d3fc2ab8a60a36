"""A judge of debates that counts words: deterministic, free, and weak.

It knows nothing of meaning. It is there so that a task has a complete board before people or models have judged, and as
the lower bound that a better judge has to beat. Each rule is one that a text can fulfil without being any good:

* Quantity: 1 to 3 sentences and at least 8 words.
* Quality: at least half of the answer's content words occur in its arguments (groundedness ≥ 0.5).
* Relation: the answer shares a content word with what the user said last or with the first thing the user said, and
  does not give in by a phrase such as "I agree".
* Manner: within the word limit, sentences of at most 30 words on average, and no repetition of an earlier answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from evaluator.measures.debate import Facts, content_words
from evaluator.measures.examination import Examined
from evaluator.measures.readability import sentences

NAME = "heuristic"
LEAST_WORDS = 8
MOST_SENTENCES = 3
LEAST_GROUNDED = 0.5
LONG_SENTENCE = 30
_CONCEDES = re.compile(
    r"\b(i (fully |completely |totally )?agree( with you)?|you(?: are|'re|’re) right|good point|i concede|fair enough)\b",
    re.IGNORECASE,
)


def judge(answer: str, user: str, opening: str, facts: Facts, limit: int) -> Mapping[str, float]:
    """Yes (1) or no (0) by criterion for an answer to ``user`` in a debate that the user began with ``opening``."""
    count = sentences(answer)
    content = content_words(answer)
    return {
        "quantity": float(facts.words >= LEAST_WORDS and count <= MOST_SENTENCES),
        "quality": float(facts.grounded >= LEAST_GROUNDED),
        "relation": float(
            bool(content & (content_words(user) | content_words(opening))) and not _CONCEDES.search(answer)
        ),
        "manner": float(facts.words <= limit and facts.words / count <= LONG_SENTENCE and not facts.repeated),
    }


def judge_all(examined: Examined, limit: int) -> dict[tuple[int, int], Mapping[str, float]]:
    """:func:`judge` of every answer, by its place (debate, turn). ``limit`` is the number of words it may have."""
    return {
        answer.place: judge(
            answer.text,
            answer.user,
            answer.before[0][0] if answer.before else answer.user,
            examined.facts[answer.place[0]][answer.place[1] - 1],
            limit,
        )
        for answer in examined.answers
    }
