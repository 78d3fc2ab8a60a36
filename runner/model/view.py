"""Which files and fields of the inputs a scenario may see."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Rule:
    """Files (glob patterns) that are seen; ``fields`` are the keys that stay in each line (None: the whole file).

    ``datasets`` limits the rule to some datasets (None: all).
    """

    files: tuple[str, ...]
    fields: tuple[str, ...] | None = None
    datasets: tuple[str, ...] | None = None

    def takes(self, dataset: str, name: str) -> bool:
        """Whether this rule decides about the file ``name`` of ``dataset``."""
        meant = self.datasets is None or dataset in self.datasets
        return meant and any(matches(pattern, name) for pattern in self.files)


def matches(pattern: str, name: str) -> bool:
    """Whether a relative name fits a pattern: ``*`` and ``?`` within a folder, ``**`` over any folders."""
    return _fits(tuple(pattern.split("/")), tuple(name.split("/")))


def _fits(pattern: tuple[str, ...], name: tuple[str, ...]) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "**":
        return any(_fits(pattern[1:], name[i:]) for i in range(len(name) + 1))
    return bool(name) and fnmatchcase(name[0], pattern[0]) and _fits(pattern[1:], name[1:])
