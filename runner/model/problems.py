"""What is wrong with a definition, collected so that all of it is said at once, in the order of the file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from runner.model.errors import RunnerError
from schemas import Document, Problem, closest, show

Pointer = Sequence[str | int]

# An error with several problems has the first of these codes that one of them has: what is hidden in reach of participants and
# paths that leave a folder come before wrong definitions, these before wrong files.
_GRAVEST_FIRST = ("E403", "E411", "E405", "E401", "E402", "E202", "E201", "E207")


@dataclass
class Problems:
    """The problems of one file, each with its line and a code; ``code`` is that of a problem without its own."""

    doc: Document
    code: str
    found: list[Problem] = field(default_factory=list)

    def add(self, at: Pointer, what: str, fix: str = "", code: str = "") -> None:
        """Note that something is wrong with the value ``at`` a place of the file."""
        self.take([self.doc.problem(at, what, fix)], code)

    def take(self, problems: Iterable[Problem], code: str = "") -> None:
        """Note problems that were found by others, such as the check of a schema."""
        self.found += [replace(problem, code=code or self.code) for problem in problems]

    def known(
        self, at: Pointer, noun: str, name: str | None, known: Iterable[str], *, of: str = "", fix: str = ""
    ) -> None:
        """Note that there is no ``noun`` called ``name`` (in ``of``), unless it is one of the ``known`` names or None.

        The fix is the nearest of the known names, or else ``fix``, or else all of them.
        """
        names = list(known)
        if name is None or name in names:
            return
        what = f"{of} has no {noun}" if of else f"there is no {noun}"
        near = closest(name, names).strip()
        listed = f"known: {show(', '.join(names), 200) or 'none'}"
        self.add(at, f'{what} "{show(name)}"', near or fix or listed)

    def in_order(self) -> list[Problem]:
        """All of them in the order of their lines."""
        return sorted(self.found, key=lambda problem: problem.line or 0)

    def refuse(self, what: str) -> None:
        """Raise one error with all of them, under the gravest code, if there are any. ``what`` cannot be used."""
        refuse(self.in_order(), what)


def refuse(problems: Sequence[Problem], what: str) -> None:
    """Raise one error with all ``problems``, in this order, under the gravest code of theirs, if there are any.

    ``what`` says what cannot be used.
    """
    if problems:
        codes = {problem.code for problem in problems}
        code = next(code for code in _GRAVEST_FIRST if code in codes)
        count = "one problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise RunnerError(code, what, why=f"{count} found.", fix="correct what is listed", problems=problems)
