"""One run's scores as TIRA's ``evaluation.prototext``."""

from __future__ import annotations

from collections.abc import Mapping

from runner.views.audience import escape, not_for
from runner.views.redact import RunView


def to_prototext(view: RunView, names: Mapping[str, str] | None = None) -> str:
    """One run's scores as TIRA's ``evaluation.prototext``: a ``measure`` for each, key and value as strings.

    Values are decimals in full, ``1.0`` for one, as evaluators on TIRA write them.
    Keys are what was computed. Where an evaluation did not keep that, ``names`` maps measure ids to them (a task's measure
    strings); ids stand where it has none.
    Raises E103 when the view holds no scores for its audience.
    """
    if "scores" in view["hidden"]:
        raise not_for(view.audience, f"the scores of {view['run']}")
    names = names or {}
    keys = [score.get("measure") or names.get(name, name) for name, score in view["scores"].items()]
    blocks = []
    for (name, score), key in zip(view["scores"].items(), keys, strict=True):
        unique = key if keys.count(key) == 1 else name  # two truths may share a measure
        quoted = escape(unique).replace("\\", "\\\\").replace('"', '\\"')
        blocks.append(f'measure{{\n  key: "{quoted}"\n  value: "{float(score["value"])!r}"\n}}\n')
    return "".join(blocks)
