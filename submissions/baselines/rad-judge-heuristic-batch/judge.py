"""A judge without a model: rules of thumb over words. It cannot understand, and shows how far one gets without it.

quantity  exactly one of the arguments that the answer names is in its words
quality   at least 60 percent of its content words are in its arguments
relation  it shares a content word with what was said before, and does not begin by giving in
manner    at most 60 words, no sentence over 30, at most one word of doubt, and not said before
"""

from __future__ import annotations

import re
from typing import Any

from judging import run

STOP = frozenset(
    re.findall(
        r"[a-z]+",
        """
    a about all also an and any are as at be because been besides but by can could did disagree do does for from had has
    have he her his how i if in into is it its just me more most my no nobody not of on one only or other our out say she
    should so some such than that the their them then there these they this those to too up us very was we were what when
    where which while who will with would you your
    """,
    )
)
DOUBT = frozenset(("depends", "honest", "maybe", "may", "might", "perhaps", "possibly", "quite", "somehow", "somewhat", "well"))  # fmt: skip
GIVES_IN = re.compile(
    r"\W*(you are (\w+ )?right|you're right|i agree|agreed|true|indeed|yes)\b", re.IGNORECASE
)
LIMIT, SENTENCE = 60, 30


def words(text: str) -> list[str]:
    """Lower-case words, a plural s cut off."""
    found = re.findall(r"[a-z]+", text.lower())
    return [w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w for w in found]


def content(text: str) -> set[str]:
    """The words that carry meaning."""
    return {w for w in words(text) if w not in STOP and len(w) > 2}


def share(part: set[str], whole: set[str]) -> float:
    """How much of ``part`` is in ``whole``; 0 for an empty part."""
    return len(part & whole) / len(part) if part else 0.0


def texts(response: dict[str, Any]) -> list[str]:
    """The texts of an answer's arguments."""
    arguments = response.get("arguments")
    listed = arguments if isinstance(arguments, list) else []
    return [a["text"] for a in listed if isinstance(a, dict) and isinstance(a.get("text"), str)]


def quantity(answer: str, arguments: list[str], before: list[tuple[str, str]], user: str) -> float:
    """1 if one argument is in the answer; less the more it is off."""
    said = content(answer)
    there = sum(share(content(text), said) >= 0.6 for text in arguments)
    if not arguments:  # nothing is named: long enough to hold an argument?
        return 0.6 if len(said) >= 8 else 0.2
    return 1.0 if there == 1 else 0.2


def quality(answer: str, arguments: list[str], before: list[tuple[str, str]], user: str) -> float:
    """The share of content words with support, so scaled that 60 percent is 0.5."""
    support = share(content(answer), set().union(*map(content, arguments)) if arguments else set())
    return support / 1.2 if support < 0.6 else 0.5 + (support - 0.6) / 0.8


def relation(answer: str, arguments: list[str], before: list[tuple[str, str]], user: str) -> float:
    """0 for giving in, else whether anything of the dialogue is taken up."""
    if GIVES_IN.match(answer):
        return 0.0
    dialogue = content(user).union(*(content(text) for pair in before for text in pair))
    return 0.9 if content(answer) & dialogue else 0.3


def manner(answer: str, arguments: list[str], before: list[tuple[str, str]], user: str) -> float:
    """1 less something for every fault."""
    said = answer.split()
    sentences = [s.split() for s in re.split(r"[.?!]+\s", answer)]
    faults = (len(said) > LIMIT) + any(len(s) > SENTENCE for s in sentences)
    faults += sum(w in DOUBT for w in words(answer)) > 1
    faults += any(answer == earlier for _, earlier in before) + (not said)
    return 1.0 if not faults else 0.4 / faults


RULES = {"quantity": quantity, "quality": quality, "relation": relation, "manner": manner}


def judge(criterion: str, simulation: dict[str, Any], turn: int | None) -> float | None:
    """The rule's score; no opinion on debates as a whole."""
    if turn is None:
        return None
    turns = [(t["utterance"], t["systemResponse"]) for t in simulation["userTurns"][: turn + 1]]
    user, said = turns[-1]
    answer = str(said.get("utterance", ""))
    before = [(u, str(s.get("utterance", ""))) for u, s in turns[:-1]]
    return round(RULES[criterion](answer, texts(said.get("response") or {}), before, user), 4)


if __name__ == "__main__":
    run(judge)
