"""Who judged the rows of a leaderboard: named in every row, with what is known of its reliability below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from runner.model.run import Run
from runner.views.audience import escape
from runner.views.text import listed

LINE = 160  # characters of a judge's line for people
MOST_NOTES = 10
MOST_NAMES = 3
_MORE = " More in JSON."


@dataclass(frozen=True)
class Judge:
    """One judge of a table. ``label`` is how rows name it; ``prompts`` is a hash.

    ``reliability`` are measured figures by name: a number, or the lowest and the highest where they differ between the
    ``runs`` that it judged, of which ``measured`` have figures. Texts are escaped.
    """

    label: str
    name: str
    model: str | None = None
    prompts: str | None = None
    reliability: Mapping[str, float | tuple[float, float]] = field(default_factory=dict)
    note: str = ""
    runs: int = 0
    measured: int = 0

    def line(self) -> str:
        """All that is known of the judge, in one line for people."""
        facts = [f"model {self.model}"] if self.model else []
        facts += [f"prompts {_short(self.prompts)}"] if self.prompts else []
        facts += [f"{name} {_figure(value)}" for name, value in self.reliability.items()]
        note = f" {self.note}" if self.note else ""
        return (
            f"Judged by {self.label}: {', '.join(facts) or 'no measured reliability'}{self._scope()}.{note}"
        )

    def brief(self) -> str:
        """The judge in a line of at most :data:`LINE` characters: figures first, those of one name together."""
        full = self.line()
        if len(full) <= LINE:
            return full
        line = f"Judged by {self.label if len(self.label) <= 70 else self.label[:69] + '…'}"
        space = LINE - len(_MORE) - len(self._scope()) - 1
        before = ": "
        facts = _together(self.reliability) or ["no measured reliability"]
        facts += [f"prompts {_short(self.prompts)}"] if self.prompts else []
        for fact in facts:
            if len(line) + len(before) + len(fact) <= space:
                line, before = f"{line}{before}{fact}", ", "
        line += f"{self._scope()}."
        if self.note and len(line) + 1 + len(self.note) + len(_MORE) <= LINE:
            line += f" {self.note}"
        return line + _MORE

    def _scope(self) -> str:
        """Which runs the figures are about, where that needs a word."""
        words = ["by run"] if any(isinstance(v, tuple) for v in self.reliability.values()) else []
        words += [f"{self.measured} of {self.runs} runs measured"] if 0 < self.measured < self.runs else []
        return f" ({'; '.join(words)})" if words else ""


def without_unrelated_judge(run: Run, measures: Set[str]) -> Run:
    """The run without its judge, if that judged none of these measures."""
    judged = (run.judge or {}).get("measures")
    return run if judged is None or measures & set(judged) else replace(run, judge=None)


def judges_of(rows: Sequence[Sequence[Run]]) -> tuple[tuple[Judge, ...], list[str]]:
    """The judges of a table, each once and with a label of its own, and each row's labels in one text.

    ``rows`` are the runs that count, row by row. What makes a judge is its name, model and prompts; how far it agrees with
    people may differ from run to run.
    """
    said: dict[_Identity, list[Mapping[str, Any]]] = {}
    for runs in rows:
        for run in runs:
            if run.judge is not None:
                said.setdefault(_identity(run.judge), []).append(run.judge)
    found: dict[_Identity, Judge] = {}
    for key, results in said.items():
        found[key] = _judge(key, results, [judge.label for judge in found.values()])
    texts = [
        ", ".join(dict.fromkeys(found[_identity(run.judge)].label for run in runs if run.judge is not None))
        for runs in rows
    ]
    return tuple(found.values()), texts


def judge_notes(rows: Sequence[Sequence[Run]], judges: Sequence[Judge], others: int = 0) -> list[str]:
    """What to know before comparing rows: different judges, and what the evaluators noted.

    A note of all runs stands once. One of some runs names them, unless the board has a single run: ``others`` is how many
    submissions it lists below its rows.
    """
    runs = [run for row in rows for run in row]
    known = {(judge.name, judge.model, judge.prompts): judge.note for judge in judges}
    said: dict[str, set[str]] = {}
    for run in runs:
        lines = [escape(line, 300) for line in run.notes]
        if run.judge is not None and _note(run.judge) not in ("", known.get(_identity(run.judge))):
            lines.append(_note(run.judge))
        for line in lines:
            said.setdefault(line, set()).add(run.id)
    alone = len(runs) == 1 and others > 0
    shared = [line for line, of in said.items() if len(of) == len(runs) and not alone]
    notes = shared + [f"{_whose(rows, of)}: {line}" for line, of in said.items() if line not in shared]
    if len(notes) > MOST_NOTES:
        left = len(notes) - MOST_NOTES + 1
        notes = [*notes[: MOST_NOTES - 1], f"{left:,} more notes on single runs are not shown."]
    used = {frozenset(_identity(run.judge) for run in row if run.judge is not None) for row in rows}
    if len(judges) > 1 and len(used) > 1:
        notes.insert(0, "Rows were judged by different judges: their scores are not comparable.")
    return notes


def _whose(rows: Sequence[Sequence[Run]], of: set[str]) -> str:
    """The runs with these ids for people: by software, with their cells where it is not about all of a row."""
    names: dict[str, None] = {}
    for row in rows:
        concerned = [run for run in row if run.id in of]
        for run in concerned:
            name = escape(f"{run.submission.team}/{run.submission.software}", 100)
            if len(concerned) < len(row):
                cell = run.dataset if run.scenario == "default" else f"{run.dataset}/{run.scenario}"
                name += f" on {escape(cell, 100)}"
            names[name] = None
    return listed([*names], MOST_NAMES)


_Identity = tuple[str, str | None, str | None]  # name, model, prompts


def _identity(data: Mapping[str, Any]) -> _Identity:
    """What makes a judge another one, escaped."""
    return (
        escape(data.get("name") or "", 100),
        escape(data["model"], 200) if data.get("model") else None,
        escape(data["prompts"], 200) if data.get("prompts") else None,
    )


def _note(data: Mapping[str, Any]) -> str:
    return escape(data.get("note") or "", 500)


def _judge(key: _Identity, results: Sequence[Mapping[str, Any]], taken: Iterable[str]) -> Judge:
    """The judge of an identity, from what every run's result says of it."""
    name, model, prompts = key
    # Rows list labels with commas between them.
    label = (name + (f" ({model})" if model else "")).replace(",", ";")
    if label in taken and prompts:
        label = f"{label} {_short(prompts)[:8]}"
    base, n = label, 1
    while label in taken:
        n += 1
        label = f"{base} #{n}"
    figures: dict[str, list[float]] = {}
    for data in results:
        for figure, value in (data.get("reliability") or {}).items():
            figures.setdefault(escape(figure, 80), []).append(float(value))
    reliability = {f: v[0] if min(v) == max(v) else (min(v), max(v)) for f, v in sorted(figures.items())}
    notes = {_note(data) for data in results}
    measured = sum(bool(data.get("reliability")) for data in results)
    return Judge(label, *key, reliability, notes.pop() if len(notes) == 1 else "", len(results), measured)


def _short(prompts: str) -> str:
    """The beginning of a hash: 12 characters."""
    return prompts.removeprefix("sha256:")[:12]


def _figure(value: float | tuple[float, float]) -> str:
    return f"{value[0]:.4g} to {value[1]:.4g}" if isinstance(value, tuple) else f"{value:.4g}"


def _together(figures: Mapping[str, float | tuple[float, float]]) -> list[str]:
    """Figures as text; those whose names begin with the same word, such as accuracies, as one range."""
    groups: dict[str, list[str]] = {}
    for name in figures:
        groups.setdefault(name.split(" ", 1)[0], []).append(name)
    texts = []
    for word, names in groups.items():
        if len(names) == 1:
            texts.append(f"{names[0]} {_figure(figures[names[0]])}")
            continue
        ends = [end for n in names for v in (figures[n],) for end in (v if isinstance(v, tuple) else (v,))]
        texts.append(f"{word} {_figure((min(ends), max(ends)))} ({len(names)} figures)")
    return texts
