"""Nothing is imported that the task's measures do not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("ir_measures", "numpy", "pandas", "sacrebleu", "scipy")
PROGRAM = """
import sys
from evaluator.measures.records.base import Columns
from evaluator.measures.records.named import measure
text, said, right = {case!r}
measure(text).value(Columns(["1", "2"], {{"x": said}}, {{"x": right}}))
print(*(name for name in {heavy!r} if name in sys.modules))
"""
L = (("a", "b"), ("a", "b"))
T = (("a", "b"), (("a",), ("b",)))
S = frozenset({(0, 1, "")})


@pytest.mark.parametrize(
    ("text", "rows", "loaded"),
    [
        ("F1(x)", L, ""),
        ("Kappa(x)", L, ""),
        ("Jaccard(x)", (({"a"}, {"b"}), ({"a"}, {"b"})), ""),
        ("AUC(x, positive=a)", ((0.5, 0.6), ("a", "b")), ""),
        ("RMSE(x)", ((1, 2), (1, 2)), ""),
        ("SpanF1(x)", ((S, S), (S, S)), ""),
        ("TokenF1(x)", T, ""),
        ("ROUGE(x)", T, ""),
        ("IR(x, measure='nDCG@5')", ((("a",), ("b",)), ({"a": 1}, {"b": 1})), ""),
        ("IR(x, measure='ERR@5')", ((("a",), ("b",)), ({"a": 1}, {"b": 1})), "ir_measures"),
        ("Spearman(x)", ((1, 2), (1, 2)), "scipy"),
        ("BLEU(x)", T, "sacrebleu"),
        ("chrF(x)", T, "sacrebleu"),
    ],
)
def test_a_measure_loads_its_own_library_only(text: str, rows: tuple[object, object], loaded: str) -> None:
    program = PROGRAM.format(case=(text, *rows), heavy=HEAVY)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    found = set(ended.stdout.split())
    assert {loaded} - {""} <= found
    # numpy comes with each of the libraries, and pandas and scipy may with ir_measures.
    assert not found if not loaded else not (found & {"sacrebleu", "ir_measures"}) - {loaded}
