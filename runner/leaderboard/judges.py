"""Who judged the rows of a leaderboard: named beside every row, with what is known of its reliability below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runner.audience import escape
from runner.store.queries import Run


@dataclass(frozen=True)
class Judge:
    """One judge of a table. ``label`` is how rows name it; ``prompts`` is a hash; ``reliability`` figures by name.

    Texts are escaped.
    """

    label: str
    name: str
    model: str | None = None
    prompts: str | None = None
    reliability: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    def line(self) -> str:
        """The judge in one line for people."""
        facts = [f"model {self.model}"] if self.model else []
        facts += [f"prompts {_short(self.prompts)}"] if self.prompts else []
        facts += [f"{name} {value:.4g}" for name, value in self.reliability.items()]
        note = f" {self.note}" if self.note else ""
        return f"Judged by {self.label}: {', '.join(facts) or 'no measured reliability'}.{note}"


def judges_of(rows: Sequence[Sequence[Run]]) -> tuple[tuple[Judge, ...], list[str]]:
    """The judges of a table, each once and with a label of its own, and each row's labels in one text.

    ``rows`` are the runs that count, row by row.
    """
    found: dict[str, Judge] = {}
    taken: set[str] = set()
    texts = []
    for runs in rows:
        labels: dict[str, None] = {}
        for run in runs:
            if run.judge is None:
                continue
            key = repr(_facts(run.judge))
            if key not in found:
                found[key] = _judge(run.judge, taken)
                taken.add(found[key].label)
            labels[found[key].label] = None
        texts.append(", ".join(labels))
    return tuple(found.values()), texts


def judge_notes(rows: Sequence[Sequence[Run]], judges: Sequence[Judge]) -> list[str]:
    """What to know before comparing rows: different judges, and what the evaluators noted."""
    notes = list(dict.fromkeys(escape(line, 300) for runs in rows for run in runs for line in run.notes))[:10]
    used = [frozenset(repr(_facts(run.judge)) for run in runs if run.judge is not None) for runs in rows]
    if len(judges) > 1 and len(set(used)) > 1:
        notes.insert(0, "Rows were judged by different judges: their scores are not comparable.")
    return notes


def _judge(data: Mapping[str, Any], taken: Iterable[str]) -> Judge:
    facts = _facts(data)
    # Rows list labels with commas between them.
    label = (facts["name"] + (f" ({facts['model']})" if facts["model"] else "")).replace(",", ";")
    if label in taken and facts["prompts"]:
        label = f"{label} {_short(facts['prompts'])[:8]}"
    base, n = label, 1
    while label in taken:
        n += 1
        label = f"{base} #{n}"
    return Judge(label, **facts)


def _short(prompts: str) -> str:
    """Enough of a hash to tell two apart."""
    return prompts.removeprefix("sha256:")[:12]


def _facts(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a result says of its judge, escaped and in one order."""
    figures = data.get("reliability") or {}
    return {
        "name": escape(data.get("name") or "", 100),
        "model": escape(data["model"], 200) if data.get("model") else None,
        "prompts": escape(data["prompts"], 200) if data.get("prompts") else None,
        "reliability": {escape(name, 80): float(figures[name]) for name in sorted(figures)},
        "note": escape(data.get("note") or "", 500),
    }
