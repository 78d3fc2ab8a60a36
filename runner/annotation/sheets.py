"""The sheets that annotators fill in: a page that works without a network, CSV and JSON Lines; and what comes back.

A page shows one dialogue after the other, each turn only when the one before was judged, with all arguments of every
answer. Everything in it was written by participants, so it is escaped, and the page's policy allows its own script only.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import schemas
from runner.annotation.assign import Item
from runner.model.errors import Problem
from runner.tasks.transcripts import refuse
from runner.views.pages import render
from runner.views.text import printable
from schemas.debates import CRITERIA

QUESTIONS: Mapping[str, tuple[str, str]] = {
    "quantity": ("Quantity", "Does the answer make at least one argument (an attack on the user's claims, or a defence of its own), and at most one of each?"),
    "quality": ("Quality", "Does everything it claims follow from the arguments listed below it, if you take these as true?"),
    "relation": ("Relation", "Does it fit the dialogue so far, and speak against the user's stance?"),
    "manner": ("Manner", "Is it clear and precise: neither ambiguous, nor vague, nor wordier than it needs to be?"),
}  # fmt: skip
COLUMNS = ("form", "annotator", "item", "turn", "user", "answer", "arguments", *CRITERIA, "comment")
MAX_SHEET = 64 << 20
MAX_CELL = 30_000  # characters; spreadsheets take at most 32,767
MAX_COMMENT = 4000
_VALUES: Mapping[str, int | None] = {
    **dict.fromkeys(("1", "yes", "y"), 1),
    **dict.fromkeys(("0", "no", "n"), 0),
    **dict.fromkeys(("?", "null")),
}


def page(form: str, annotator: str, items: Sequence[Item]) -> str:
    """The page of one annotator."""
    return render(
        "runner.annotation/sheet.html",
        style="runner.annotation/sheet.css",
        script="runner.annotation/sheet.js",
        form=form,
        annotator=annotator,
        items=items,
        questions=QUESTIONS,
        max_comment=MAX_COMMENT,
    )


def _rows(form: str, annotator: str, items: Sequence[Item]) -> Iterator[dict[str, Any]]:
    """One row by answer."""
    for item in items:
        for number, turn in enumerate(item.debate.turns, 1):
            if turn.failed:
                continue
            yield {
                "form": form,
                "annotator": annotator,
                "item": item.id,
                "turn": number,
                "user": turn.user,
                "answer": turn.answer,
                "arguments": [a.text for a in turn.arguments],
            }


def sheet_csv(form: str, annotator: str, items: Sequence[Item]) -> str:
    """The same as a table to be filled in: 1, 0 or ? in the columns of the criteria."""
    made = io.StringIO()
    writer = csv.DictWriter(made, COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    for row in _rows(form, annotator, items):
        texts = [f"[{n}] {text or '(no text)'}" for n, text in enumerate(row["arguments"], 1)]
        writer.writerow({k: _cell(v) for k, v in {**row, "arguments": "\n".join(texts)}.items()})
    return made.getvalue()


def _cell(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula, or cuts without a word."""
    if not isinstance(value, str):
        return value
    safe = printable(value[:MAX_CELL])[:MAX_CELL]
    if len(value) > MAX_CELL:
        safe += f"\n[cut here, of {len(value):,} characters: the page and the JSON Lines have them all]"
    return f"'{safe}" if safe.lstrip()[:1] in ("=", "+", "-", "@") or safe[:1] in ("\t", "\r") else safe


def sheet_jsonl(form: str, annotator: str, items: Sequence[Item]) -> str:
    """The same as JSON Lines, for annotators with tools of their own; labels go into the same objects."""
    return "".join(
        schemas.harmless(json.dumps(row, ensure_ascii=False)) + "\n" for row in _rows(form, annotator, items)
    )


# --- what comes back ---------------------------------------------------------------------------------------


Rows = Sequence[tuple[str, Mapping[str, Any]]]  # where each stands, and its annotator, item, turn and labels


def labels_of(path: Path, rows: Rows, key: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Labels in our form, by the key of the form. Raises E402 with every row that does not fit."""
    problems: list[Problem] = []
    found: list[dict[str, Any]] = []
    for where, row in rows:
        turn, name = row["turn"], schemas.show(row["item"], 40)
        item = key["items"].get(row["item"]) if isinstance(row["item"], str) else None
        if not isinstance(item, dict):
            problems.append(Problem(where, f"there is no item {name} in the form"))
        elif type(turn) is not int or not 1 <= turn <= item["turns"]:
            problems.append(Problem(where, f"item {name} has no turn {schemas.show(turn, 20)}"))
        else:
            label = {
                **{k: item[k] for k in ("run", "transcript", "debate")},
                **{k: row[k] for k in ("turn", "annotator", *CRITERIA) if k in row},
                **({"comment": row["comment"]} if row.get("comment") else {}),
            }
            wrong = schemas.validate(label, "debate-labels")
            problems += [Problem(where, p.what, p.fix) for p in wrong]
            found += [] if wrong else [label]
    refuse(path, problems)
    return found


def read_answers(path: Path, text: str) -> tuple[str, Rows]:
    """The form and the answers of what the page saved (JSON), or of a filled-in sheet (CSV or JSON Lines). Raises E402."""
    problems: list[Problem] = []
    rows = list(_csv(path, text, problems) if path.suffix.lower() == ".csv" else _json(path, text, problems))
    forms = {str(row.pop("form", "")) for _, row in rows}
    if not problems and len(forms) > 1:
        problems.append(Problem(schemas.show(path.name, 200), "it holds answers to several forms"))
    if not problems and not rows:
        problems.append(Problem(schemas.show(path.name, 200), "it holds no answers"))
    refuse(path, problems)
    return forms.pop(), rows


def _json(path: Path, text: str, problems: list[Problem]) -> Iterator[tuple[str, dict[str, Any]]]:
    name = schemas.show(path.name, 200)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, dict) and isinstance(data.get("answers"), list):
        for number, row in enumerate(data["answers"], 1):
            if isinstance(row, dict):
                base = {"form": data.get("form"), "annotator": data.get("annotator")}
                yield f"{name}: answer {number}", _row({**row, **base})
            else:
                problems.append(Problem(f"{name}: answer {number}", "it is not an object"))
        return
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict) or "item" not in row:
            problems.append(Problem(f"{name}:{number}", "it is no answer to a form of runner labels export"))
        elif any(c in row for c in CRITERIA):
            yield f"{name}:{number}", _row(row)


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: row.get(k) for k in ("form", "annotator", "item", "turn")}
    said = {c: row[c] for c in CRITERIA if c in row}
    comment = row.get("comment")
    return {**kept, **said, **({"comment": comment[:MAX_COMMENT]} if isinstance(comment, str) else {})}


def _csv(path: Path, text: str, problems: list[Problem]) -> Iterator[tuple[str, dict[str, Any]]]:
    name = schemas.show(path.name, 200)
    lines = text.splitlines(keepends=True)
    delimiter = ";" if lines and lines[0].count(";") > lines[0].count(",") else ","
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    missing = [c for c in ("form", "annotator", "item", "turn") if c not in (reader.fieldnames or ())]
    if missing:
        problems.append(
            Problem(f"{name}:1", f"there is no column {', '.join(missing)}", "use the exported sheet")
        )
        return
    try:
        for row in reader:
            where = f"{name}:{reader.line_num}"
            said: dict[str, Any] = {}
            for criterion in CRITERIA:
                value = (row.get(criterion) or "").strip().lower()
                if not value:
                    continue
                if value not in _VALUES:
                    problems.append(Problem(where, f"{criterion} is none of 1, 0 and ?"))
                    continue
                said[criterion] = _VALUES[value]
            if not said:
                continue
            turn = (row.get("turn") or "").strip()
            number = int(turn) if turn.isascii() and turn.isdigit() and len(turn) < 7 else turn
            rest = {k: row.get(k) for k in ("form", "annotator", "item")}
            yield where, _row({**rest, "turn": number, **said, "comment": row.get("comment") or ""})
    except csv.Error as error:
        problems.append(Problem(f"{name}:{reader.line_num}", f"it is not CSV ({schemas.show(str(error))})"))
