"""The codes of findings: those of any file here, those of a kind in its folder (``codes.py``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from evaluator import registry


class Code(NamedTuple):
    """A finding's stable code, title, default severity and what the participant should do.

    ``otherwise`` is what happens to what was found where the finding is no error; "": it counts like everything else.
    """

    code: str
    title: str
    severity: str
    fix: str
    otherwise: str = ""


_GENERAL = (
    Code("F001", "empty run file", "error", "write at least one line.", "every topic scores 0"),
    Code("F002", "no readable run file", "error", "write a regular file, not a link, folder or pipe.", "every topic scores 0"),
    Code("F003", "damaged gzip file", "error", "write the file again, and close it before the program ends.", "what stands in whole lines before the damage counts"),
    Code("F004", "file too large", "error", "write fewer documents per topic.", "what stands in whole lines before the limit counts"),
    Code("F005", "not UTF-8", "error", "write the file as UTF-8.", "a line of a TREC run counts, with its ids as bytes; a line of another format is left out"),
    Code("F009", "line too long", "error", "write one document a line.", "the line is left out"),
    Code("F027", "reading was given up", "error", "write a run file: most of what was read are no results.", "what was read until then counts"),
    Code("F028", "no topic of the run is judged", "error", "answer the topics of this dataset, with their ids as given.", "the run scores 0"),
    Code("F029", "nothing of the run is judged", "warning", "check the ids of documents: none of those listed is known to the judgments."),
    Code("F030", "file of another sort", "error", "write the sort of file that is expected, as plain text in UTF-8; gzip is accepted.", "every topic scores 0"),
    Code("F101", "not JSON", "error", "write JSON Lines: one complete object a line.", "the line is left out; of an array, everything from there on"),
    Code("F118", "byte order mark", "warning", "write UTF-8 without a byte order mark.", "the mark is left out"),
)  # fmt: skip


class _Codes(Mapping[str, Code]):
    """Every code in order. A kind's are loaded when one is asked for that is not known yet, installed packages' last."""

    def __init__(self) -> None:
        self._known = {code.code: code for code in _GENERAL}
        self._left: list[Callable[[], Iterable[str]]] = [registry.built_in, registry.names]

    def _more(self) -> None:
        for kind in self._left.pop(0)():
            module = registry.part(kind, "codes")
            for code in module.CODES if module is not None else ():
                self._known.setdefault(code.code, code)

    def __getitem__(self, code: str) -> Code:
        while code not in self._known and self._left:
            self._more()
        return self._known[code]

    def __iter__(self) -> Iterator[str]:
        while self._left:
            self._more()
        return iter(sorted(self._known))

    def __len__(self) -> int:
        return len(list(iter(self)))


CODES: Mapping[str, Code] = _Codes()
