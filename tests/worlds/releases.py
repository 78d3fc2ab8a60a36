"""Small releases for tests, and a second implementation of the measures: slow, literal, formula by formula."""

from __future__ import annotations

import json
from math import log, log2
from pathlib import Path
from typing import Any

ISSUES = {
    "Offene Aussenpolitik": "Open Foreign Policy",
    "Liberale Wirtschaftspolitik": "Liberal Economic Policy",
    "Restriktive Finanzpolitik": "Restrictive Fiscal Policy",
    "Law & Order": "Law & Order",
    "Restriktive Migrationspolitik": "Restrictive Immigration Policy",
    "Ausgebauter Umweltschutz": "Enhanced Environmental Protection",
    "Ausgebauter Sozialstaat": "Expanded Welfare State",
    "Liberale Gesellschaft": "Liberal Society",
}
KEYS = ("stance", "gender", "age", "residence", "civil_status", "education", "political_spectrum", *ISSUES)


def argument(
    number: int,
    text: str | None = None,
    stance: str = "FAVOR",
    issues: list[str] | None = None,
    **profile: Any,
) -> dict[str, Any]:
    """An argument; ``profile`` replaces values of the profile."""
    values = {
        "gender": "Männlich", "age": "18-34", "residence": "Land", "civil_status": "Ledig",
        "denomination": "Nicht bekannt", "education": "Universität", "political_spectrum": "Links und Liberal",
    }  # fmt: skip
    return {
        "argument_id": number,
        "argument": f"text {number}" if text is None else text,
        "topic": "Welfare",
        "stance": stance,
        "demographic_profile": {**values, **profile, "important_political_issues": issues or []},
    }


def other(number: int, text: str | None = None) -> dict[str, Any]:
    """An argument that differs from :func:`argument`'s in every property, so that each has two values."""
    return argument(
        number, text, "AGAINST", list(ISSUES), gender="Weiblich", age="65+", residence="Stadt",
        civil_status="Verwitwet", education="Anlehre", political_spectrum="Rechts und Liberal",
    )  # fmt: skip


def write(
    folder: Path,
    corpus: list[Any],
    baseline: list[Any],
    perspective: list[Any] | None = None,
    split: str = "dev",
) -> Path:
    """Write a release with one split."""
    for word in ("baseline", "perspective"):
        (folder / f"{word}-queries").mkdir(parents=True, exist_ok=True)
    lines(folder / "corpus.jsonl", corpus)
    lines(folder / "baseline-queries" / f"queries_{split}.jsonl", baseline)
    lines(folder / "perspective-queries" / f"queries_{split}.jsonl", perspective or [])
    return folder


def lines(path: Path, rows: list[Any]) -> Path:
    """Write JSON Lines."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


class Literal:
    """The formulas of the shared task, one after another, without any shortcut."""

    def __init__(self, corpus: list[dict[str, Any]]) -> None:
        self.corpus = {a["argument_id"]: a for a in corpus}

    def value(self, p: str, number: int) -> Any:
        a = self.corpus[number]
        if p in ISSUES:
            return "important" if p in a["demographic_profile"]["important_political_issues"] else "neutral"
        return a["stance"] if p == "stance" else a["demographic_profile"].get(p, "(missing)")

    def hits(self, relevant: list[int], twins: bool) -> set[int]:
        hits = set(relevant)
        if twins:
            texts = {self.corpus[a]["argument"] for a in relevant}
            hits |= {n for n, a in self.corpus.items() if a["argument"] in texts}
        return hits

    def relevance(self, relevant: list[int], found: list[int], k: int, twins: bool) -> tuple[float, float]:
        hits = self.hits(relevant, twins)
        n_q = len(set(relevant)) if len(relevant) < 1000 else 1000
        dcg = sum(1 / log2(r + 1) for r in range(1, min(k, len(found)) + 1) if found[r - 1] in hits)
        idcg = sum(1 / log2(r + 1) for r in range(1, min(k, n_q) + 1))
        m = min(k, len(found))
        return (dcg / idcg if idcg else 0.0), (sum(c in hits for c in found[:m]) / m if m else 0.0)

    def alpha_ndcg(self, p: str, relevant: list[int], found: list[int], k: int, twins: bool) -> float:
        hits = self.hits(relevant, twins)
        n_q = len(set(relevant)) if len(relevant) < 1000 else 1000
        shown = relevant[:n_q] if len(relevant) < 1000 else relevant[:999]
        u = len({self.value(p, a) for a in shown})
        dcg = 0.0
        for r in range(1, min(k, len(found)) + 1):
            if found[r - 1] in hits:
                before = [self.value(p, c) for c in found[: r - 1]]
                dcg += (0.5 if self.value(p, found[r - 1]) in before else 1.0) / log2(r + 1)
        ideal = 0.0
        for r in range(1, min(k, n_q) + 1):
            ideal += (1.0 if r <= u else 0.5) / log2(r + 1)
        return dcg / ideal if ideal else 0.0

    def rkl(self, p: str, found: list[int], k: int) -> float:
        by_id = sorted(self.corpus)
        column = [self.value(p, a) for a in by_id]
        counts: dict[Any, int] = {}
        for v in column:
            counts[v] = counts.get(v, 0) + 1
        majority = max(counts, key=lambda v: counts[v])  # the first of several: in the order of ids
        steps = [c for c in (2, 4, 8, 10, 12, 14, 16, 18, 20) if c <= k]
        figures = []
        for g in counts:
            if g == majority:
                continue
            q = counts[g] / len(column)
            total = 0.0
            for c in steps:
                share = sum(self.value(p, a) == g for a in found[:c]) / c
                d = share * log(share / q) - share + q if share > 0 else q
                total += d / log2(c)
            figures.append(total / sum(1 / log2(c) for c in steps))
        return sum(figures) / len(figures)
