"""The tokenizer of uncased BERT models: text to the ids of word pieces.

As in the model's own definition: clean the text, put spaces around ideographs, lower case, take accents off, split
at spaces and punctuation (Devlin et al., "BERT", 2019); then match the longest piece first (Wu et al., "Google's
Neural Machine Translation System", 2016, section 4.1).
"""

from __future__ import annotations

import unicodedata
from pathlib import Path

_LONGEST_WORD = 100  # characters; longer ones are unknown
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


def words(text: str) -> list[str]:
    """Lower-case words and single signs of punctuation."""
    cleaned = []
    for char in text:
        kind = unicodedata.category(char)
        if char in "\t\n\r" or kind == "Zs":
            cleaned.append(" ")
        elif char in "\0\ufffd" or kind in ("Cc", "Cf", "Co"):
            continue
        elif any(first <= ord(char) <= last for first, last in _IDEOGRAPHS):
            cleaned.append(f" {char} ")
        else:
            cleaned.append(char)
    plain = unicodedata.normalize("NFD", "".join(cleaned))
    # Letter by letter, for a whole word would get another sigma at its end.
    plain = "".join(char.lower() for char in plain if unicodedata.category(char) != "Mn")
    return "".join(f" {char} " if _is_punctuation(char) else char for char in plain).split()


def _is_punctuation(char: str) -> bool:
    """Every printable ASCII sign that is no letter or digit counts, as do the punctuation classes of Unicode."""
    if ord(char) < 128:
        return char.isprintable() and not char.isalnum() and char != " "
    return unicodedata.category(char).startswith("P")


class WordPiece:
    """Ids of word pieces by a vocabulary: one piece a line, its line number from 0 is its id."""

    def __init__(self, vocabulary: Path) -> None:
        with vocabulary.open(encoding="utf-8") as pieces:
            self.ids = {piece.rstrip("\n"): number for number, piece in enumerate(pieces)}
        self.unknown, self.start, self.end = (self.ids[name] for name in ("[UNK]", "[CLS]", "[SEP]"))
        self._known: dict[str, list[int]] = {}

    def encode(self, text: str, length: int) -> list[int]:
        """At most ``length`` ids, with those that mark start and end."""
        ids = [self.start]
        for word in words(text):
            ids += self._pieces(word)
            if len(ids) >= length:
                break
        return [*ids[: length - 1], self.end]

    def _pieces(self, word: str) -> list[int]:
        if word not in self._known:
            self._known[word] = self._split(word)
        return self._known[word]

    def _split(self, word: str) -> list[int]:
        if len(word) > _LONGEST_WORD:
            return [self.unknown]
        found: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            end = next((e for e in range(len(word), start, -1) if mark + word[start:e] in self.ids), None)
            if end is None:
                return [self.unknown]
            found.append(self.ids[mark + word[start:end]])
            start = end
        return found
