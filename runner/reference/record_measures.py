"""The page about measures over records, from what the evaluator says of itself."""

from __future__ import annotations

import re
from typing import Any

import schemas
from runner.reference.asking import ask
from runner.reference.tables import grid, page

_ASKED = """
import inspect
from evaluator.measures.records.named import MODULES

found = []
for module in MODULES:
    rows = []
    for one in module.MEASURES:
        own = {k: p for k, p in one.takes().items() if k not in ("field", "truth")}
        parameters = [[k, p.says, p.default, p.required] for k, p in own.items()]
        rows.append([one.name, inspect.getdoc(one), one.direction, parameters])
    found.append([inspect.getdoc(module), rows])
"""
_BEFORE = """\
A task of the kind `records` names its measures as strings: a name, in brackets the field of the records, then parameters.
`truth=` is the field of the truths where that is another one; a field is a key, or a JSON pointer.
([How-to](../how-to/records.md))

```yaml
measures:
  - {id: f1, measure: "F1(label, average=macro)", truths: truths.jsonl}
  - {id: mae, measure: "MAE(/answer/score, truth=gold, range=[0, 5])", truths: truths.jsonl, direction: lower}
  - {id: exact, measure: "ExactMatch(answer, macro=topic)", truths: truths.jsonl}
```

- **A missing record**, and one whose field cannot be used, counts as the worst value there is, and it is said how many were
  answered. Which value that is stands below.
- `macro=FIELD` of the truths: the mean over the values of that field, so that each counts the same.
- **Intervals** are 95 %, by bootstrap over records, or over `options: {clusters: FIELD}` of the truths. Means over records are
  resampled as in all kinds. Any other value has one up to 10,000 records, from 1,000 resamples (fewer from 2,000 records on).
- **Paired tests** need a value for each record: they are there for measures that are made of such, not for F1 by class, coefficients,
  BLEU and their like.
- Each is compared with the library that it names on generated data, to 1e-9, by the tests.
"""


def record_measures() -> str:
    """The page: a table of all, and what each means."""
    said = schemas.schema("kinds/records")["x-measures"]
    families = ask(_ASKED)
    rows = (
        (f"[{name}](#{name.lower()})", one["unit"], one["says"])
        for _, measures in families
        for name, *_ in measures
        for one in [said[name]]
    )
    parts = [_BEFORE, grid("measure, values, what it says", rows)]
    for about, measures in families:
        title, _, rest = about.partition("\n")
        parts.append(f"## {title.removeprefix('Measures of ').partition(':')[0].capitalize()}\n")
        parts.append(_words(f"{title}\n{rest}".rstrip()))
        parts += [_one(*measure) for measure in measures]
    return page("Measures over records", *parts)


def _one(name: str, about: str, direction: str, parameters: list[Any]) -> str:
    better = "" if direction == "higher" else " Lower is better."
    text = f"### {name}\n\n{_words(about).rstrip()}{better}\n"
    if not parameters:
        return text
    rows = (
        (f"`{key}`", says, "**required**" if needed else "" if default is None else f"`{_shown(default)}`")
        for key, says, default, needed in parameters
    )
    return f"{text}\n{grid('parameter, what it may be, default', rows)}"


def _shown(default: Any) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default)


def _words(text: str) -> str:
    """A docstring as Markdown: one kind of quotes, no roles."""
    return re.sub(r":[a-z]+:`~?(?:[\w.]*\.)?(\w+)`", r"\1", text).replace("``", "`") + "\n"
