"""How texts become words. One function for documents and queries, so that the two can never disagree.

Close to Elasticsearch's ``standard`` analyser for texts in European languages: words as in Unicode's word
boundaries, lower-cased; no stop words, no stemming. VERSION goes up with every change of what comes out: prepared
indexes of another version are not used.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

VERSION = 1
MAX_TOKEN = 255  # characters; a longer word is cut into pieces of this length, as Elasticsearch does
MAX_KEYWORD = 256  # characters; a longer value is not indexed as a keyword (Elasticsearch's dynamic mapping)

# A word: letters, digits and underscores; an apostrophe or full stop between two letters stays inside (don't, u.s),
# so do marks between two digits (10104.4, 1,000).
_WORD = re.compile(r"\w+(?:(?:(?<=[^\W\d_])['’.·](?=[^\W\d_])|(?<=\d)[.,;'’](?=\d))\w+)*")


def tokens(text: str) -> list[str]:
    """The words of ``text`` in their order, lower-cased, repetitions kept."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    found = [word.lower() for word in _WORD.findall(text)]
    if len(text) > MAX_TOKEN and any(len(word) > MAX_TOKEN for word in found):
        return [piece for word in found for piece in _pieces(word)]
    return found


def _pieces(word: str) -> Iterator[str]:
    for start in range(0, len(word), MAX_TOKEN):
        yield word[start : start + MAX_TOKEN]


def keyword(value: str) -> str | None:
    """``value`` as it is indexed for exact matches, or None when it is too long for that."""
    if len(value) > MAX_KEYWORD:
        return None
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
