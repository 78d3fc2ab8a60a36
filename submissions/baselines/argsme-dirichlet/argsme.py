"""Reads the args.me corpus and Touché topics, one argument at a time.

The corpus is ``args-me.json``, or without it the five files it was put together from. Each file is one JSON object,
``{"arguments": [...]}``, of up to some gigabytes: it is decoded piece by piece, so that memory holds one argument
and the piece it stands in. Ids are unique in what comes out.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WHOLE = "args-me.json"
PARTS = ("debateorg.json", "debatepedia.json", "debatewise.json", "idebate.json", "parliamentary.json")
PIECE = 1 << 20  # characters read at once
LONGEST = 64 << 20  # characters of one argument; beyond, the file is taken to be broken
_HEAD = re.compile(r'\s*\{\s*"arguments"\s*:\s*\[')
_GAP = re.compile(r"[\s,]*")


def read_file(path: Path, piece: int = PIECE) -> Iterator[dict[str, Any]]:
    """The arguments of one file, in its order. Raises ValueError when it is something else or ends too early."""
    decoder = json.JSONDecoder()
    with path.open(encoding="utf-8-sig") as file:
        text = file.read(piece)
        while (head := _HEAD.match(text)) is None:
            more = file.read(piece)
            if not more or len(text) > PIECE:
                raise ValueError(f'{path.name} does not begin with {{"arguments": [')
            text += more
        at = head.end()
        while True:
            gap = _GAP.match(text, at)
            assert gap is not None
            at = gap.end()
            try:
                if text[at : at + 1] == "]":
                    return
                argument, at = decoder.raw_decode(text, at)
            except json.JSONDecodeError:  # broken, or cut off where the piece ends
                rest = len(text) - at
                more = file.read(max(piece, rest))
                if not more or rest > LONGEST:
                    raise ValueError(f"{path.name} is broken or ends too early") from None
                text, at = text[at:] + more, 0
            else:
                yield argument


def text_of(argument: dict[str, Any]) -> str:
    """What is searched: the conclusion and all premises."""
    premises = (premise.get("text") or "" for premise in argument.get("premises") or ())
    return " ".join((argument.get("conclusion") or "", *premises))


def corpus(folder: Path) -> Iterator[tuple[str, str]]:
    """(id, text) of every argument; an id that comes again is left out. Raises OSError, ValueError."""
    names = (WHOLE,) if (folder / WHOLE).exists() else PARTS
    seen: set[str] = set()
    for name in names:
        for argument in read_file(folder / name):
            name_of_it = argument["id"]
            if name_of_it not in seen:
                seen.add(name_of_it)
                yield name_of_it, text_of(argument)


def topics(path: Path) -> list[tuple[str, str]]:
    """(number, title) of every topic, without the blanks around them."""
    root = ET.parse(path).getroot()  # noqa: S314 - the organiser's file
    return [(t.findtext("number", "").strip(), t.findtext("title", "").strip()) for t in root.iter("topic")]
