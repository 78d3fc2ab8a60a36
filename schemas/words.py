"""How many words a text has, counted as a reader sees them, whatever stands between them.

Words are parted by what is rendered as a blank, not only by what Unicode calls white space:

* white space (property ``White_Space`` of PropList.txt, as ``str.isspace`` has it) and control characters;
* letters and symbols whose glyph is empty: the Hangul fillers U+115F, U+1160, U+3164 and U+FFA0, the Braille pattern
  blank U+2800, the musical null notehead U+1D159;
* the zero width space U+200B, which marks the border of a word (Unicode Standard, section 23.2);
* what is not rendered at all (property ``Default_Ignorable_Code_Point`` of DerivedCoreProperties.txt, Unicode 15.1, and the
  annotation marks U+FFF9 to U+FFFB: joiners, soft hyphens, direction marks, variation selectors, tags) where it stands
  between two cased letters or digits. Latin, Greek and Cyrillic words have no use for it; inside Persian or Hindi words and
  emoji it stays what it is, a part of the word.
"""

from __future__ import annotations

import re
import unicodedata

LONGEST = 80  # characters; longer "words" are no words of any language, and hide how long a text is

_BLANK = "\u115f\u1160\u3164\uffa0\u2800\U0001d159\u200b\x00-\x1f\x7f-\x9f"
_UNSEEN = (
    "\u00ad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_BLANKS = re.compile(f"[{_BLANK}]")
_UNSEENS = re.compile(f"[{_UNSEEN}]+")
_SEEN = re.compile(f"[^\\s{_BLANK}{_UNSEEN}]")
_CASED = ("Lu", "Ll", "Lt", "Nd")


def words(text: str) -> list[str]:
    """The words of a text, in order (see the module's first lines)."""
    if text.isascii():
        return _BLANKS.sub(" ", text).split()
    parts = _UNSEENS.sub(_between, _BLANKS.sub(" ", text)).split()
    return [part for part in parts if not blank(part)]


def blank(text: str) -> bool:
    """Whether nothing of a text is seen."""
    return _SEEN.search(text) is None


def count_words(text: str) -> int:
    """How many words a text has."""
    return len(words(text))


def longest_word(text: str) -> int:
    """How many characters the longest word of a text has; 0 without words."""
    return max(map(len, words(text)), default=0)


def _between(match: re.Match[str]) -> str:
    """What stands for characters that are not rendered: a blank between two letters of a cased script."""
    text, before, after = match.string, match.start() - 1, match.end()
    while before >= 0 and unicodedata.category(text[before]) == "Mn":  # accents belong to their letter
        before -= 1
    if before < 0 or after == len(text):
        return match[0]
    cased = all(unicodedata.category(text[at]) in _CASED for at in (before, after))
    return " " if cased else match[0]
