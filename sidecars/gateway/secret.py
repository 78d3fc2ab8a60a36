"""The key in what an endpoint says: found and covered, as it is, in pieces, and in the usual disguises.

Texts are compared without anything but letters and digits and without case, so that blanks, hyphens, quotation marks, invisible
characters and wide letters between the key's characters hide nothing. Disguises that are known: Base64 (at each of its three
offsets), Base32, hexadecimal, percent and JSON escapes, decimal codes, ROT13, and backwards. An endpoint has the key, so it can
always think of another one: what is covered here is what one repeats in its errors, logs and echoes.
"""

from __future__ import annotations

import base64
import codecs
import unicodedata
from collections.abc import Iterator

COVER = "[key]"
PIECE = 12  # characters of a form of the key that are not passed on; fewer are no secret
SHORTEST = 8  # letters and digits of a key that is looked for in disguise; a shorter one is in too many words


class Secret:
    """A key that must not be passed on. Without a key nothing is covered."""

    def __init__(self, key: str | None) -> None:
        self._key = key or ""
        self._pieces: frozenset[str] = frozenset()
        self._length = min(PIECE, len(_plain(self._key)[0]))
        if self._length >= SHORTEST:
            self._pieces = frozenset(p for form in _forms(self._key) for p in _cut(form, self._length))
        # Where a piece could begin is known from its first characters, so that a long text is walked once.
        self._heads = frozenset(piece[:3] for piece in self._pieces)

    def covered(self, text: str) -> str:
        """``text`` with ``[key]`` in place of the key, of long pieces of it, and of both in disguise."""
        if self._key:
            text = text.replace(self._key, COVER)
        spans = self._spans(text)
        done = 0
        parts: list[str] = []
        for start, end in spans:
            parts += [text[done:start], COVER]
            done = end
        return "".join([*parts, text[done:]]) if spans else text

    def shows_in(self, text: str) -> bool:
        """Whether any of the key is in ``text``."""
        return self.covered(text) != text

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Places of ``text`` that hold pieces of the key, in their order and apart."""
        if not self._pieces:
            return []
        plain, places = _plain(text)
        found: list[tuple[int, int]] = []
        for start in range(len(plain) - self._length + 1):
            end = start + self._length
            if plain[start : start + 3] in self._heads and plain[start:end] in self._pieces:
                first, last = places[start], places[end - 1] + 1
                if found and first <= found[-1][1]:
                    found[-1] = (found[-1][0], last)
                else:
                    found.append((first, last))
        return found


def _plain(text: str) -> tuple[str, list[int]]:
    """The letters and digits of ``text`` in their simplest form, and where each of them stands."""
    if text.isascii():
        places = [n for n, character in enumerate(text) if character.isalnum()]
        return "".join(text[n] for n in places).lower(), places
    characters: list[str] = []
    places = []
    for n, character in enumerate(text):
        for simple in unicodedata.normalize("NFKC", character).lower():
            if simple.isalnum():
                characters.append(simple)
                places.append(n)
    return "".join(characters), places


def _forms(key: str) -> Iterator[str]:
    """The key as it is and in disguise: letters and digits only, as :func:`_plain` makes them."""
    raw = key.encode()
    written = [key, key[::-1], codecs.encode(key, "rot13"), raw.hex()]
    written += ["".join(f"u00{byte:02x}" for byte in raw), "".join(f"x{byte:02x}" for byte in raw)]
    written += ["".join(str(byte) for byte in raw), base64.b32encode(raw).decode().rstrip("=")]
    for offset in range(3):
        # The characters at both ends depend on what stands beside the key.
        packed = base64.b64encode(b"\0" * offset + raw).decode().rstrip("=")
        written.append(packed[2 if offset else 0 : -1])
    return (_plain(form)[0] for form in written)


def _cut(form: str, length: int) -> Iterator[str]:
    """All pieces of a form that are ``length`` characters long."""
    return (form[start : start + length] for start in range(len(form) - length + 1))
