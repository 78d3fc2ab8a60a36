"""Answers from the sentence that shares most words with the question: a date, a number, a name, or how the sentence ends.

Reads questions.jsonl in $inputDataset and writes $outputDir/answers.jsonl.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

DATE = r"(?:[A-Z][a-z]+ )?(?:\d\d?, )?\b\d{4}\b"
NUMBER = (
    r"\b\d[\d,.]*\b|\b(?:[Oo]ne|[Tt]wo|[Tt]hree|[Ff]our|[Ff]ive|[Ss]ix|[Ss]even|[Ee]ight|[Nn]ine|[Tt]en)\b"
)
NAME = r"(?<=\s)[A-Z]\w+(?: [A-Z]\w+)*"  # the first word of a sentence is none
SMALL = {
    "a",
    "an",
    "and",
    "by",
    "did",
    "do",
    "how",
    "in",
    "is",
    "it",
    "of",
    "the",
    "to",
    "was",
    "were",
    "what",
    "who",
}


def stems(text: str) -> set[str]:
    """The beginnings of the words that say something."""
    return {word[:5] for word in re.findall(r"\w+", text.lower())} - SMALL


def wanted(question: str) -> str:
    """What an answer to such a question looks like, empty for any words."""
    for words, form in (("when", DATE), ("how many", NUMBER), ("who", NAME), ("where", NAME)):
        if re.search(rf"\b{words}m?\b", question.lower()):
            return form
    return ""


def answer(question: str, context: str) -> str:
    """A part of the sentence that is nearest to the question and has what it asks for."""
    asked, form = stems(question), wanted(question)
    sentences = re.split(r"(?<=[.!?])\s+", context)
    ordered = sorted(sentences, key=lambda sentence: -len(asked & stems(sentence)))
    for sentence in ordered if form else ():
        found = [one for one in re.findall(form, sentence) if not stems(one) & asked and stems(one)]
        if found:
            return str(found[0])
    words = ordered[0].rstrip(".").split()
    last = max((n for n, word in enumerate(words[:-1]) if stems(word) & asked), default=-1)
    return " ".join(words[last + 1 :])


def main() -> None:
    """Write the answers; the folders come from the environment that the platform sets."""
    dataset, output = Path(os.environ["inputDataset"]), Path(os.environ["outputDir"])
    with (
        (dataset / "questions.jsonl").open(encoding="utf-8") as lines,
        (output / "answers.jsonl").open("w", encoding="utf-8") as answers,
    ):
        for line in lines:
            one = json.loads(line)
            said = answer(one["question"], one["context"])
            answers.write(json.dumps({"id": one["id"], "answer": said}) + "\n")


if __name__ == "__main__":
    main()
