"""A run of debates as it was read and examined."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluator.findings import Log
from evaluator.formats.dialogue import (
    Held,
    Read,
    index_file,
    place,
    read_claims,
    read_debates,
    read_index,
    read_served,
    read_turns,
    unplaced,
)
from evaluator.measures.examination import Examined, Rules, cited_ids, examine, turns_of
from evaluator.request import Request


class Run:
    """The debates of a run, with everything wrong in them in the log.

    ``reads`` are the lines of the file, ``held`` the same by claim, ``examined`` the facts about every turn; ``index`` is
    the file that arguments are compared with, None without one.
    """

    def __init__(
        self, path: Path, inputs: Path, request: Request, options: Mapping[str, Any], log: Log
    ) -> None:
        claims = read_claims(inputs / (request.topics or "claims.jsonl"))
        self.request, self.options = request, options
        self.reads: list[Read] = read_debates(path, log, max_bytes=request.max_bytes)
        self.held: list[Held] = place(self.reads, claims, log, public=request.public)
        self.topics = [held.claim.topic for held in self.held]
        self.index: Path | None = None
        if request.services is not None:
            self.index = index_file(request.services / options["search"])
        texts = None if self.index is None else read_index(self.index, cited_ids(self.held))
        self.rules = Rules(
            options.get("turns") or turns_of(self.held),
            options["word_limit"],
            options["max_arguments"],
            texts,
            read_served(path.parent / "served.jsonl") if request.records else None,
        )
        records = read_turns(path.parent / "turns.jsonl", log) if request.records else {}
        self.examined: Examined = examine(self.held, records, self.rules, log)
        if log.invalid:  # nothing is scored: what else is wrong with debates that are left out is said, too
            held = {one.read.line for one in self.held if one.read is not None}
            examine(unplaced([read for read in self.reads if read.line not in held]), {}, self.rules, log)

    @property
    def covered(self) -> int:
        """How many debates have an answer."""
        return sum(any(turn.answered for turn in debate) for debate in self.examined.facts)
