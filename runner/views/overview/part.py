"""The parts of an overview: texts with what stands before their lines, for a terminal in lines, for a page as they are."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

WIDTH = 80
LABEL = 11  # columns of the name of a section


@dataclass(frozen=True)
class Part:
    """A text of an overview: ``head`` stands before its first line (the name of a section, or blanks), ``rest`` before the others; it has
    ``most`` lines (None: all)."""

    head: str
    text: str
    rest: str
    most: int | None = None

    def lines(self) -> list[str]:
        """Its lines, none wider than a terminal."""
        return textwrap.wrap(
            self.text,
            WIDTH,
            initial_indent=self.head,
            subsequent_indent=self.rest,
            break_on_hyphens=False,
            break_long_words="://" not in self.text,  # an address that is broken leads nowhere
            max_lines=self.most,
            placeholder="…",
        )


def part(text: str, head: str = "", rest: str | None = None, most: int | None = None) -> Part:
    """A text after ``head``; further lines stand as far in (``rest`` is None), or after ``rest``."""
    return Part(head, text, " " * len(head) if rest is None else rest, most)


def section(name: str, texts: Iterable[str]) -> Iterator[Part]:
    """The texts of a section, its name before the first."""
    head = f"{name:<{LABEL}}"
    for text in texts:
        yield part(text, head, " " * LABEL)
        head = " " * LABEL
