"""Measures of translations: by sacrebleu, over the whole output.

Truths are a text, or a list of texts (references).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, ClassVar

from evaluator.measures.records.base import (
    MISSING,
    TEXT,
    Columns,
    Measure,
    Overall,
    Parameter,
    one_of,
    refuse,
)
from evaluator.measures.records.texts import TEXTS, first_of


def _whole(low: int, high: int, default: int) -> Parameter:
    return Parameter(
        f"a whole number from {low} to {high}", lambda v: type(v) is int and low <= v <= high, default
    )


class _Corpus(Overall):
    """A measure whose counts of single records are added before the value is made of them."""

    output_form = TEXT
    truth_form = TEXTS
    bounds = (0.0, 100.0)

    @abstractmethod
    def metric(self) -> Any:
        """The object of sacrebleu; made anew, because it remembers the references."""

    def value(self, of: Columns) -> float:
        """See the class."""
        return self.resampled(of)(range(len(of)))

    def resampled(self, of: Columns) -> Callable[[Sequence[int]], float]:
        """See :meth:`Measure.resampled`: n-grams of records are counted once."""
        import numpy as np

        metric = self.metric()
        # What sacrebleu's own bootstrap does, too: counts of each record first, then their sum.
        counts = np.asarray(metric._extract_corpus_statistics(*self._texts(of)), dtype=np.int64)

        def value(rows: Sequence[int]) -> float:
            often = np.bincount(np.asarray(rows, dtype=np.int64), minlength=len(counts))
            return float(metric._compute_score_from_stats((often @ counts).tolist()).score)

        return value

    def signature(self, of: Columns) -> str:
        """What sacrebleu asks to be reported with the value."""
        metric = self.metric()
        # It says how many references there are, and whether always as many: a record of each number will do.
        numbers = {len(texts): row for row, texts in enumerate(self.pair(of)[1])}
        metric.corpus_score(*self._texts(of.take(sorted(numbers.values()))))
        return str(metric.get_signature())

    def _texts(self, of: Columns) -> tuple[list[str], list[list[str | None]]]:
        """Outputs, and columns of references; of a missing record empty text."""
        said, right = self.pair(of)
        if not all(right):
            raise refuse(self, "there are truths without a text", "give each record a text")
        return ["" if one is MISSING else one for one in said], [list(c) for c in zip_longest(*right)]


class BLEU(_Corpus):
    """BLEU over the whole output, 0 to 100, by sacrebleu; its signature stands beside the scores.

    A missing record counts as empty text. ``tokenize``, ``lowercase``, ``smooth`` and ``order`` are sacrebleu's (Post, "A call for
    clarity in reporting BLEU scores", WMT 2018; Papineni et al., ACL 2002).
    """

    name = "BLEU"
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "tokenize": Parameter(
            "13a, intl, zh, char or none",
            lambda v: str(v) in ("13a", "intl", "zh", "char", "none"),
            "13a",
        ),
        "lowercase": Parameter("true or false", lambda v: isinstance(v, bool), False),
        "smooth": one_of("exp", "floor", "add-k", "none"),
        "order": _whole(1, 10, 4),
    }

    def metric(self) -> Any:
        """``sacrebleu.metrics.BLEU``."""
        from sacrebleu import BLEU

        return BLEU(
            tokenize=self.given["tokenize"],
            lowercase=self.given["lowercase"],
            smooth_method=self.given["smooth"],
            max_ngram_order=self.given["order"],
            force=True,
        )


class ChrF(_Corpus):
    """chrF over the whole output, 0 to 100, by sacrebleu; with ``words=2`` chrF++. Its signature stands beside the scores.

    A missing record counts as empty text. ``chars``, ``words`` and ``beta`` are the orders of n-grams and the weight of recall
    (Popović, "chrF: character n-gram F-score for automatic MT evaluation", WMT 2015).
    """

    name = "chrF"
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "chars": _whole(1, 10, 6),
        "words": _whole(0, 4, 0),
        "beta": _whole(1, 10, 2),
        "lowercase": Parameter("true or false", lambda v: isinstance(v, bool), False),
    }

    @property
    def same(self) -> bool:
        """A right text has 100. (BLEU has less for texts that are shorter than its n-grams.)"""
        return True

    def perfect(self, truth: Any) -> Any:
        """The first text that will do."""
        return first_of(truth)

    def metric(self) -> Any:
        """``sacrebleu.metrics.CHRF``."""
        from sacrebleu import CHRF

        return CHRF(
            char_order=self.given["chars"],
            word_order=self.given["words"],
            beta=self.given["beta"],
            lowercase=self.given["lowercase"],
        )


MEASURES: tuple[type[Measure], ...] = (BLEU, ChrF)
