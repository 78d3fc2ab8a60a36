"""Porter's stemmer for English words, as NLTK and rouge-score have it.

Porter, "An algorithm for suffix stripping", Program 14(3), 1980, in the variant that is the default of ``nltk.stem.porter.PorterStemmer``:
some irregular words, ``y`` becomes ``i`` behind any consonant, ``ies`` and ``ied`` of short words keep the ``e``, and a few
suffixes more. Tests compare it with NLTK.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

_IRREGULAR = {
    "skies": "sky", "sky": "sky", "dying": "die", "lying": "lie", "tying": "tie", "news": "news",
    **{one: stem for stem in ("inning", "outing", "canning") for one in (stem, f"{stem}s")},
    "howe": "howe", "proceed": "proceed", "exceed": "exceed", "succeed": "succeed",
}  # fmt: skip
_SECOND = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble", "fulli": "ful",
}  # fmt: skip
_THIRD = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_FOURTH = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti", "ous",
    "ive", "ize",
)  # fmt: skip


def stem(word: str) -> str:
    """The stem of a word in lower case."""
    return _remembered(word) if len(word) <= _LONG else _stem(word)


def _stem(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < 3:
        return word
    for step in (_plural, _past, _y, _second, _third, _fourth, _end):
        word = step(word)
    return word


_LONG = 40  # letters; longer ones are hardly words, and are not remembered
_remembered = lru_cache(maxsize=1 << 16)(_stem)


def _shape(word: str) -> str:
    """``c`` for each consonant, ``v`` for each vowel; y is a vowel behind a consonant."""
    found: list[str] = []
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and found[-1:] == ["c"])
        found.append("v" if vowel else "c")
    return "".join(found)


def _measure(word: str) -> int:
    """How often a consonant follows a vowel."""
    return _shape(word).count("vc")


def _double(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _short(word: str) -> bool:
    """Consonant, vowel, consonant other than w, x, y at the end; or a vowel and a consonant in all."""
    shape = _shape(word)
    return (shape.endswith("cvc") and word[-1] not in "wxy") or shape == "vc"


def _replaced(word: str, rules: Mapping[str, str], least: int = 1) -> str:
    """The first suffix that fits is replaced if what stands before it has this measure; else nothing is."""
    for suffix, new in rules.items():
        if word.endswith(suffix):
            before = word[: -len(suffix)]
            return before + new if _measure(before) >= least else word
    return word


def _plural(word: str) -> str:
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return _replaced(word, {"eed": "ee"})
    for suffix in ("ed", "ing"):
        if word.endswith(suffix) and "v" in _shape(before := word.removesuffix(suffix)):
            return _completed(before)
    return word


def _completed(word: str) -> str:
    """What is left of ``-ed`` and ``-ing``, with an e where one is lacking, without the second of two consonants."""
    if word.endswith(("at", "bl", "iz")):
        return f"{word}e"
    if _double(word):
        return word if word[-1] in "lsz" else word[:-1]
    return f"{word}e" if _measure(word) == 1 and _short(word) else word


def _y(word: str) -> str:
    fine = word.endswith("y") and len(word) > 2 and _shape(word[:-1])[-1] == "c"
    return f"{word[:-1]}i" if fine else word


def _second(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]):
        word = word[:-2]
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) else word
    return _replaced(word, _SECOND)


def _third(word: str) -> str:
    return _replaced(word, _THIRD)


def _fourth(word: str) -> str:
    suffix = next((one for one in _FOURTH if word.endswith(one)), "")
    before = word.removesuffix(suffix)
    fine = _measure(before) > 1 and (suffix != "ion" or before[-1] in "st")
    return before if fine else word


def _end(word: str) -> str:
    if word.endswith("e"):
        before = word[:-1]
        many = _measure(before)
        word = before if many > 1 or (many == 1 and not _short(before)) else word
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
