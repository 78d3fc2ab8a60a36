"""Report generation judged in the manner of ARGUE: reports, nuggets, documents, judgments, scores.

The names of :mod:`evaluator.argue.interface` are for Python programs. They are imported when the first is asked for: a kind that
only scores imports the modules that it needs, and none that indexes documents.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluator.argue.interface import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """A name of the interface. Raises :class:`AttributeError` for any other, also for modules that are not imported."""
    if name == "__all__" or not (name.startswith("_") or find_spec(f"{__name__}.{name}")):
        from evaluator.argue import interface

        if name in interface.__all__ or name == "__all__":
            return getattr(interface, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
