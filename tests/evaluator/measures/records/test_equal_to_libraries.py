"""Every measure over records against the library that it names, on generated data, to 1e-9."""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest
import sacrebleu
import scipy.stats
import sklearn.calibration
import sklearn.metrics as sk
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sacrebleu.significance import PairedTest

from evaluator.measures.records.base import MISSING, Columns
from evaluator.measures.records.named import known, measure
from evaluator.measures.records.resampling import spread
from runner.model.comparing import bootstrap

# Its logging library keeps the stream of errors of this moment and closes it when a server configures logging: not pytest's.
with contextlib.redirect_stderr(sys.__stderr__):
    from rouge_score.rouge_scorer import RougeScorer

pytestmark = pytest.mark.filterwarnings("ignore")
some = settings(max_examples=30, deadline=None)

NAMES = "abcd"


def value(text: str, said: Sequence[Any], right: Sequence[Any]) -> float:
    """The value of a measure of the field x; both columns are read as an evaluation reads them."""
    one = measure(text)
    output, truth = one.columns()[:2]
    columns = Columns(
        [str(n) for n in range(len(said))],
        {"x": [output.form.read(v) for v in said]},
        {"x": [truth.form.read(v) for v in right]},
    )
    assert MISSING not in columns.output["x"] and MISSING not in columns.truth["x"]
    found = one.value(columns)
    assert one.bounds[0] - 1e-12 <= found <= one.bounds[1] + 1e-12
    return found


def same(found: float, expected: float) -> None:
    assert found == pytest.approx(float(expected), abs=1e-9, rel=1e-9)


def pairs(of: Any, right: Any = None, least: int = 1, most: int = 25) -> Any:
    rows = st.lists(st.tuples(of, of if right is None else right), min_size=least, max_size=most)
    return rows.map(lambda found: tuple(map(list, zip(*found, strict=True))))


LABELS = pairs(st.sampled_from(NAMES))


@some
@given(LABELS)
def test_labels(rows: Any) -> None:
    said, right = rows
    same(value("Accuracy(x)", said, right), sk.accuracy_score(right, said))
    same(value("BalancedAccuracy(x)", said, right), sk.balanced_accuracy_score(right, said))
    for name, of in (("F1", sk.f1_score), ("Precision", sk.precision_score), ("Recall", sk.recall_score)):
        for average in ("macro", "micro", "weighted"):
            expected = of(right, said, average=average, zero_division=0)
            same(value(f"{name}(x, average={average})", said, right), expected)
        alone = of(right, said, labels=["a"], average="macro", zero_division=0)
        same(value(f"{name}(x, average=a)", said, right), alone)
        same(value(f"{name}(x, labels=[a])", said, right), alone)


@some
@given(LABELS)
def test_coefficients_of_labels(rows: Any) -> None:
    said, right = rows
    assume(len(set(right)) > 1)
    same(value("MCC(x)", said, right), sk.matthews_corrcoef(right, said))
    order = list(NAMES)
    for weights in (None, "linear", "quadratic"):
        text = "Kappa(x)" if weights is None else f"Kappa(x, weights={weights}, labels=[a, b, c, d])"
        same(value(text, said, right), sk.cohen_kappa_score(right, said, labels=order, weights=weights))


SETS = st.lists(st.sampled_from(NAMES), max_size=4, unique=True)


@some
@given(pairs(SETS))
def test_sets_of_labels(rows: Any) -> None:
    a, b = ([[int(name in one) for name in NAMES] for one in side] for side in rows)
    for name, of in (
        ("LabelsF1", sk.f1_score),
        ("LabelsPrecision", sk.precision_score),
        ("LabelsRecall", sk.recall_score),
    ):
        for average in ("macro", "micro", "weighted"):
            text = f"{name}(x, average={average}, labels=[a, b, c, d])"
            same(value(text, *rows), of(b, a, average=average, zero_division=0))
    same(value("SubsetAccuracy(x)", *rows), sk.accuracy_score(np.array(b), np.array(a)))
    same(value("HammingLoss(x, labels=[a, b, c, d])", *rows), sk.hamming_loss(np.array(b), np.array(a)))
    same(value("Jaccard(x)", *rows), sk.jaccard_score(b, a, average="samples", zero_division=1))


# Few different values, so that there are ties and edges of bins.
SHARES = st.one_of(st.sampled_from([n / 10 for n in range(11)]), st.floats(0, 1))


@some
@given(pairs(SHARES, st.booleans(), least=2))
def test_probabilities_of_a_class(rows: Any) -> None:
    said, right = rows
    assume(len(set(right)) > 1)
    same(value("AUC(x, positive=true)", said, right), sk.roc_auc_score(right, said))
    same(value("AveragePrecision(x, positive=true)", said, right), sk.average_precision_score(right, said))
    same(value("LogLoss(x, positive=true)", said, right), sk.log_loss(right, said))
    same(value("Brier(x, positive=true)", said, right), sk.brier_score_loss(right, said))
    for bins in (1, 5, 10, 15):
        found = value(f"CalibrationError(x, positive=true, bins={bins})", said, right)
        same(found, calibration_error(right, said, bins))


def calibration_error(right: Sequence[bool], said: Sequence[float], bins: int) -> float:
    """From the curve of scikit-learn, each bin weighted by its records."""
    true, predicted = sklearn.calibration.calibration_curve(right, said, n_bins=bins, strategy="uniform")
    places = np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], said)
    sizes = [n for n in np.bincount(places, minlength=bins) if n]
    return float(np.average(abs(true - predicted), weights=sizes))


@st.composite
def distributions(draw: Callable[[Any], Any]) -> tuple[list[dict[str, float]], list[str]]:
    said, right = draw(pairs(st.lists(st.integers(1, 5), min_size=3, max_size=3), st.sampled_from("abc"), 3))
    assume(set(right) == set("abc"))
    return [{k: n / sum(one) for k, n in zip("abc", one, strict=True)} for one in said], right


@some
@given(distributions())
def test_probabilities_of_several_classes(rows: Any) -> None:
    said, right = rows
    matrix = np.array([list(one.values()) for one in said])
    same(value("AUC(x)", said, right), sk.roc_auc_score(right, matrix, multi_class="ovr"))
    same(value("LogLoss(x)", said, right), sk.log_loss(right, matrix))
    same(value("Brier(x)", said, right), sk.brier_score_loss(right, matrix, scale_by_half=False))
    indicators = np.array([[name == one for name in "abc"] for one in right])
    same(value("AveragePrecision(x)", said, right), sk.average_precision_score(indicators, matrix))
    sure = matrix.max(axis=1)
    hits = [NAMES[n] == one for n, one in zip(matrix.argmax(axis=1), right, strict=True)]
    if len(set(hits)) > 1:
        same(value("CalibrationError(x, bins=5)", said, right), calibration_error(hits, sure, 5))


NUMBERS = st.one_of(st.integers(-20, 20), st.floats(-1e6, 1e6))


@some
@given(pairs(NUMBERS))
def test_errors(rows: Any) -> None:
    said, right = rows
    same(value("MAE(x)", said, right), sk.mean_absolute_error(right, said))
    same(value("MAE(x, rule=median)", said, right), sk.median_absolute_error(right, said))
    same(value("RMSE(x)", said, right), sk.root_mean_squared_error(right, said))


@some
@given(pairs(st.integers(-20, 20), least=3))
def test_correlations(rows: Any) -> None:
    said, right = rows
    assume(len(set(said)) > 1 and len(set(right)) > 1)
    same(value("Pearson(x)", said, right), scipy.stats.pearsonr(said, right).statistic)
    same(value("Spearman(x)", said, right), scipy.stats.spearmanr(said, right).statistic)
    same(value("Kendall(x)", said, right), scipy.stats.kendalltau(said, right).statistic)


@some
@given(st.lists(st.floats(0, 10), min_size=1), st.data())
def test_numbers_alone_and_by_group(said: list[float], data: Any) -> None:
    groups = [data.draw(st.sampled_from("xy")) for _ in said]
    columns = Columns([*map(str, said)], {"n": said}, {"g": groups})
    for rule, of in (("mean", statistics.fmean), ("median", statistics.median)):
        text = f"Number(n, range=[0, 10], better=lower, rule={rule}"
        same(measure(f"{text})").value(columns), of(said))
        each = [of([v for v, g in zip(said, groups, strict=True) if g == one]) for one in set(groups)]
        same(measure(f"{text}, macro=g)").value(columns), statistics.fmean(each))


SPANS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 5), st.sampled_from("xy")), max_size=5, unique=True
).map(lambda found: [[a, a + n, label] for a, n, label in found])


@pytest.mark.slow
@some
@given(pairs(SPANS, most=8))
def test_spans(rows: Any) -> None:
    """Exact: indicators of (start, end, label); overlapping: indicators of (character, label)."""
    assume(any(rows[1]))
    for match, units in (("exact", lambda s: {tuple(s)}), ("overlap", characters)):
        said, right = (
            {(n, *unit) for n, one in enumerate(side) for span in one for unit in units(span)}
            for side in rows
        )
        every = sorted(said | right)
        a, b = ([one in side for one in every] for side in (said, right))
        for name, of in (
            ("SpanF1", sk.f1_score),
            ("SpanPrecision", sk.precision_score),
            ("SpanRecall", sk.recall_score),
        ):
            same(value(f"{name}(x, match={match})", *rows), of(b, a, zero_division=0))
            labels = [unit[-1] for unit in every]
            each = [
                of(
                    *([v for v, label in zip(side, labels, strict=True) if label == one] for side in (b, a)),
                    zero_division=0,
                )
                for one in set(labels)
            ]
            same(value(f"{name}(x, match={match}, average=macro)", *rows), statistics.fmean(each))


def characters(span: Sequence[Any]) -> Iterable[tuple[int, str]]:
    return {(at, span[2]) for at in range(span[0], span[1])}


WORDS = st.sampled_from(
    ["the", "cat", "sat.", "on", "a", "mat,", "1,000", "it's", "Été", "3-4", "&amp;", "（中", "\n", "!", "ab"]
)
TEXT = st.one_of(st.lists(WORDS, max_size=12).map(" ".join), st.text(max_size=20))
REFERENCES = st.lists(TEXT.filter(str.strip), min_size=1, max_size=3)


@some
@given(pairs(TEXT, REFERENCES, most=5))
def test_translations(rows: Any) -> None:
    said, right = rows
    most = max(map(len, right))
    references = [[one[n] if n < len(one) else None for one in right] for n in range(most)]
    for options in ({}, {"tokenize": "intl", "lowercase": True}, {"smooth_method": "add-k"}):
        metric = sacrebleu.BLEU(**options, force=True)
        given = {k.removesuffix("_method"): str(v).lower() for k, v in options.items()}
        text = f"BLEU(x{''.join(f', {k}={v}' for k, v in given.items())})"
        same(value(text, said, right), metric.corpus_score(said, references).score)
    for options in ({}, {"word_order": 2}, {"beta": 1, "char_order": 4, "lowercase": True}):
        metric = sacrebleu.CHRF(**options)
        names = {"word_order": "words", "char_order": "chars"}
        given = {names.get(k, k): str(v).lower() for k, v in options.items()}
        text = f"chrF(x{''.join(f', {k}={v}' for k, v in given.items())})"
        same(value(text, said, right), metric.corpus_score(said, references).score)


@pytest.mark.parametrize(("text", "metric"), [("BLEU(x)", sacrebleu.BLEU()), ("chrF(x)", sacrebleu.CHRF())])
@pytest.mark.parametrize("share", [0.02, 0.05])
def test_resamples_give_the_paired_test_of_sacrebleu(text: str, metric: Any, share: float) -> None:
    """It draws others, and counts one tail of what the board counts both of."""
    dice = np.random.default_rng(3)
    words = [f"w{n}" for n in range(40)]
    right = [" ".join(dice.choice(words, 15)) for _ in range(150)]

    def worse(one: str, share: float) -> str:
        return " ".join(w if dice.random() > share else str(dice.choice(words)) for w in one.split())

    first = [worse(one, 0.3) for one in right]
    second = [worse(one, share) for one in first]
    drawn = []
    for said in (first, second):
        of = Columns([*map(str, range(150))], {"x": said}, {"x": [[one] for one in right]})
        resamples = spread(measure(text), of, None).resamples
        assert resamples is not None
        drawn.append(np.array(resamples.values, dtype=float))
    named = [("base", first), ("mine", second)]
    _, found = PairedTest(named, {"m": metric}, [right], test_type="bs", n_samples=1_000)()
    theirs = next(one[1].p_value for name, one in found.items() if name != "System")
    apart = drawn[1] - drawn[0]
    observed = value(text, second, [[one] for one in right]) - value(text, first, [[one] for one in right])
    one_tail = (1 + np.sum(np.abs(apart) - np.abs(apart).mean() > abs(observed))) / 1_001
    error = 4 * np.sqrt(2 * theirs * (1 - theirs) / 1_000)
    assert one_tail == pytest.approx(theirs, abs=error)
    assert bootstrap(apart.tolist(), observed) == pytest.approx(2 * theirs, abs=2 * error + 0.01)


def test_signatures_are_those_of_sacrebleu() -> None:
    said, right = ["a b", "c"], [("a b", "a"), ("c",)]
    columns = Columns(["1", "2"], {"x": said}, {"x": right})
    for text, metric in (
        ("BLEU(x)", sacrebleu.BLEU()),
        ("BLEU(x, tokenize=char, smooth=floor)", sacrebleu.BLEU(tokenize="char", smooth_method="floor")),
        ("chrF(x, words=2)", sacrebleu.CHRF(word_order=2)),
    ):
        metric.corpus_score(said, [["a b", "c"], ["a", None]])
        assert measure(text).signature(columns) == str(metric.get_signature())
        assert f"version:{sacrebleu.__version__}" in measure(text).signature(columns)


SUMMARY = st.lists(st.sampled_from(["a", "b", "c", "d", "\n", "\n"]), max_size=30).map(" ".join)


@given(SUMMARY, SUMMARY)
def test_rouge_of_summaries(said: str, right: str) -> None:
    expected = RougeScorer(["rougeLsum"]).score(right, said)["rougeLsum"]
    same(value("ROUGE(x, type=rougeLsum)", [said], [[right]]), expected.fmeasure)
    same(value("ROUGE(x, type=rougeLsum, part=p)", [said], [[right]]), expected.precision)


def test_rouge_of_very_many_sentences_takes_no_time() -> None:
    said, right = ("".join(f"the {word}{n}\n" for n in range(7_000)) for word in ("x", "y"))
    start = time.process_time()
    assert 0 < value("ROUGE(x, type=rougeLsum)", [said], [[right]]) < 1
    assert time.process_time() - start < 20


@some
@given(pairs(TEXT, REFERENCES, most=4))
def test_rouge(rows: Any) -> None:
    kinds = ["rouge1", "rouge2", "rouge9", "rougeL", "rougeLsum"]
    for stemmed in (False, True):
        scorer = RougeScorer(kinds, use_stemmer=stemmed)
        found = [scorer.score_multi(right, said) for said, right in zip(*rows, strict=True)]
        for kind in kinds:
            for n, part in enumerate("prf"):
                expected = statistics.fmean(one[kind][n] for one in found)
                text = f"ROUGE(x, type={kind}, part={part}, stem={str(stemmed).lower()})"
                same(value(text, *rows), expected)


DOCUMENTS = st.sampled_from("abcdefgh")
RANKINGS = st.lists(DOCUMENTS, max_size=8, unique=True)


@some
@given(pairs(RANKINGS, st.dictionaries(DOCUMENTS, st.integers(0, 3), min_size=1), most=4))
def test_ranked_lists(rows: Any) -> None:
    said, right = rows
    ranked = [(str(n), doc, float(-at)) for n, one in enumerate(said) for at, doc in enumerate(one)]
    run = [ir_measures.ScoredDoc(*row) for row in ranked]
    judged = [ir_measures.Qrel(str(n), doc, g) for n, one in enumerate(right) for doc, g in one.items()]
    for text in ("nDCG@5", "AP", "RR", "P(rel=2)@3", "ERR@4", "SetP", "IPrec@0.1"):
        expected = ir_measures.calc_aggregate([ir_measures.parse_measure(text)], judged, run)
        same(value(f"IR(x, measure='{text}')", said, right), next(iter(expected.values())))


@pytest.mark.parametrize(
    ("said", "right", "exact", "f1"),
    [  # by the rules of the evaluation scripts of SQuAD 1.1 and 2.0
        ("The Eiffel Tower!", ["eiffel tower"], 1, 1),
        ("in the tower", ["a tower", "Paris"], 0, 2 * 1 * 0.5 / 1.5),
        ("x x y", "x y y", 0, 2 * 2 / 6),
        ("", [], 1, 1),
        ("the", [""], 1, 1),
        ("word", [], 0, 0),
        ("  two \n words ", "two words", 1, 1),
    ],
)
def test_answers(said: str, right: Any, exact: float, f1: float) -> None:
    same(value("ExactMatch(x)", [said], [right]), exact)
    same(value("TokenF1(x)", [said], [right]), f1)
    same(value("ExactMatch(x, normalise=none)", [said], [right]), float(said in (right or [""])))


def test_every_measure_is_compared_here() -> None:
    """Each is named in a call of :func:`value` or in a table of functions above."""
    text = Path(__file__).read_text("utf-8")
    assert {name for name in known() if f'"{name}(' not in text and f'("{name}", sk.' not in text} == set()
