"""Prompts as files: what the system message says, a line ``---``, what the user message says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sidecars.search.errors import DataError

PACKAGED = Path(__file__).parent / "prompts"
FILES: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {  # file: (variables it needs, that it may have)
    "opening.md": (frozenset({"claim"}), frozenset({"claim", "description"})),
    "follow-up.md": (frozenset({"answer"}), frozenset({"claim", "dialogue", "answer", "arguments"})),
}
_BYTES = 64 * 1024
_VARIABLE = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class Prompt:
    """One prompt. ``{name}`` in ``user`` stands for a value; braces in values mean nothing."""

    system: str
    user: str

    def messages(self, values: Mapping[str, str]) -> list[dict[str, str]]:
        """The messages for a model, with the values put in."""
        filled = _VARIABLE.sub(lambda found: values.get(found[1], found[0]), self.user)
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": filled}]


def load(folder: Path | None = None) -> dict[str, Prompt]:
    """The prompts of ``folder``, by file name; those that it does not have are the packaged ones.

    Raises :class:`DataError` with everything that is wrong: unknown variables, missing ones, unreadable files.
    """
    prompts, problems = {}, []
    for file, (needed, allowed) in FILES.items():
        path = folder / file if folder is not None and (folder / file).exists() else PACKAGED / file
        try:
            with path.open("rb") as source:
                raw = source.read(_BYTES + 1)
            text = raw.decode("utf-8").replace("\r\n", "\n")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{path}: cannot be read as text: {error}")
            continue
        if len(raw) > _BYTES:
            problems.append(f"{path}: longer than {_BYTES} bytes")
        system, separator, user = text.partition("\n---\n")
        if not separator:
            system, user = "", text
        prompts[file] = Prompt(system.strip(), user.strip())
        used = set(_VARIABLE.findall(user))
        known = ", ".join(sorted(allowed))
        above = set(_VARIABLE.findall(system))
        problems += [f"{path}: {{{name}}} is missing" for name in sorted(needed - used)]
        problems += [f"{path}: {{{name}}} is unknown; there are {known}" for name in sorted(used - allowed)]
        problems += [f"{path}: {{{name}}} stands above the line ---" for name in sorted(above)]
    if problems:
        raise DataError(problems, "correct the prompts")
    return prompts
