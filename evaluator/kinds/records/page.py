"""The page of the reference about this kind's measures by name: what stands before the measures."""

from __future__ import annotations

from evaluator.measures.records.named import MODULES as MODULES

FILE = "record-measures.md"
TITLE = "Measures over records"
BEFORE = """\
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
- **Paired tests** on the leaderboard: Fisher's randomisation test for means over records. For RMSE, medians, `macro=`, F1 by class,
  coefficients, BLEU and their like a paired bootstrap test, over the resamples that the interval is made of, where there is one.
- Each is compared with the library that it names on generated data, to 1e-9, by the tests.
"""
