"""Read judgements and runs from strings, for tests of measures."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evaluator.findings import Log
from evaluator.formats.qrels import Qrels, read_qrels
from evaluator.formats.ranked import Rules, Scan
from evaluator.formats.trec import scan
from evaluator.measures.ir import Measure, Values, evaluate


def read(
    folder: Path, qrels: str, run: str, log: Log | None = None, *, fast: bool | None = None, **rules: Any
) -> tuple[Qrels, Scan]:
    """Write the files ``qrels`` and ``run`` and return what is read of them."""
    (folder / "qrels").write_text(qrels)
    (folder / "run").write_text(run)
    judged = read_qrels(folder / "qrels")
    options = {} if fast is None else {"fast": fast}
    return judged, scan(folder / "run", Rules(judged=judged.grades, **rules), log or Log("run"), **options)


def score(
    folder: Path, texts: Iterable[str], qrels: str, run: str, log: Log | None = None, **options: Any
) -> dict[str, Values]:
    """Return the values of measures by topic."""
    judged, scanned = read(folder, qrels, run, log, **options)
    return dict(evaluate([Measure(text) for text in texts], judged, scanned.topics))
