"""How hard a text is to read: the Flesch-Kincaid grade, with the conventions of GenIRSim's readability evaluator.

Grade = 0.39 · words / sentences + 11.8 · syllables / words − 15.59 (Kincaid et al., Derivation of new readability
formulas for Navy enlisted personnel, 1975). As there: both ratios and the result are rounded to two decimals; words
are what white space separates after ASCII punctuation was taken out (there single blanks do: the same but for doubled
blanks and line breaks); a sentence ends at ``.``, ``?`` or ``!`` before white space and something that is no lower-case
letter. Syllables are counted by a rule of our own (groups of vowels, without a silent ending), so that single values can
differ from GenIRSim's by some tenths.
"""

from __future__ import annotations

import re
import string
from math import copysign, floor

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_BREAK = re.compile(r"[.?!]\s+(?![a-z])(?=\S)")
_VOWELS = re.compile(r"[aeiouyàáâäèéêëìíîïòóôöùúûü]+")
_SILENT = re.compile(r"(?:(?<![lsxzcgaeiouy])(?<![cs]h)es|(?<![dtaeiouy])ed|(?<![laeiouy])e)$")


def rounded(value: float) -> float:
    """``value`` with two decimals, halves away from zero; a negative value is rounded down like its half."""
    return floor(value * 100 + copysign(0.5, value)) / 100


def syllables(word: str) -> int:
    """How many syllables a word has: groups of vowels, at least one."""
    return max(1, len(_VOWELS.findall(_SILENT.sub("", word.lower()))))


def sentences(text: str) -> int:
    """How many sentences a text has, at least one."""
    return 1 + len(_BREAK.findall(text.strip()))


def grade(text: str) -> float | None:
    """The Flesch-Kincaid grade (US school years; low is easy, also below zero); None for a text without words."""
    words = [w for w in text.translate(_PUNCTUATION).split() if w]
    if not words:
        return None
    length = rounded(len(words) / sentences(text))
    weight = rounded(sum(map(syllables, words)) / len(words))
    return rounded(0.39 * length + 11.8 * weight - 15.59)


def official(text: str) -> float:
    """GenIRSim's score of a text: 1 / grade; 0 where that is not defined (no words, or a grade of 0)."""
    found = grade(text)
    return 1 / found if found else 0.0
