"""The measures of reports: their definitions as data, the arithmetic, and their names in tasks (``f1@micro`` …).

===============================================  ===============================================================
measure                                          value
===============================================  ===============================================================
sentences                                        how many there are
character_count                                  the lengths of the sentences, without blanks between them
sentences_with_citations_or_requiring_citations  with a citation, or (first instance) missing one
correctly_cited_sentences                        with citations, all of which support the sentence
sentences_missing_citation                       without citations, requiring one
first_instance_sentences_missing_citation        those of them that say it for the first time
nuggets, nuggets_weighted                        nuggets that count, and their weights (vital 2, others 1)
correct_nuggets, correct_nuggets_weighted        those that the report answers: one answer for OR, all for AND
citations                                        distinct documents per sentence, added up
relevant_citations, supporting_citations         those of relevant documents; those that support their sentence
citation_relevance, citation_support             relevant and supporting citations / citations
sentence_support                                 correctly_cited_sentences / sentences_with_citations_or_...
nugget_coverage, nugget_coverage_weighted        correct nuggets / nuggets
f1, f1_weighted                                  harmonic mean of sentence_support and nugget_coverage
copied                                           ours: share of the words of cited sentences that are copied from what they cite
===============================================  ===============================================================

Every x/0 is 0. Source: Auto-ARGUE (arXiv 2509.26184, section on metrics), the README of its release and its published
scores; see docs/reference/argue.md. Two groups of our own are there when asked for, under names of their own: ``strict`` (a
nugget of type OR does not count if any sentence gives an answer that was kept out of it) and ``negation`` (sentences that
say that something is not known are rewarded if an unanswerable question confirms that, and penalised if none does: the
diamonds E and F of the paper's figure, which Auto-ARGUE leaves out).

Over topics a count is summed; ``_micro`` of a share is the ratio of the sums, ``_macro`` the mean over the topics.
``f1_micro`` is the harmonic mean of the two micro shares; ``f1_macro`` is the mean of the topics' f1, not the harmonic mean
of the macro shares. ``character_count`` has a median and a maximum over the reports there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from evaluator.errors import EvaluatorError

Credit = Literal["citation", "sentence", "none"]
Pair = tuple[str, str]

LENGTH = "character_count"
COPIED = "copied"  # see evaluator.argue.scoring.copied
COUNTS = (
    "sentences",
    "sentences_with_citations_or_requiring_citations",
    "correctly_cited_sentences",
    "sentences_missing_citation",
    "first_instance_sentences_missing_citation",
    "nuggets",
    "nuggets_weighted",
    "correct_nuggets",
    "correct_nuggets_weighted",
    "citations",
    "relevant_citations",
    "supporting_citations",
)
STRICT_COUNTS = ("correct_nuggets_strict", "correct_nuggets_strict_weighted")
NEGATION_COUNTS = (
    "negative_assertions",
    "confirmed_negative_assertions",
    "unanswerable_nuggets",
    "confirmed_unanswerable_nuggets",
    "rewarded_sentences_negation",
    "scored_sentences_negation",
    "correct_nuggets_negation",
    "nuggets_negation",
)


class Group(NamedTuple):
    """Measures that are there together: counts, shares (count above, count below), and F1s of two shares."""

    counts: tuple[str, ...]
    shares: Mapping[str, Pair]
    f1s: Mapping[str, Pair]

    @property
    def ratios(self) -> tuple[str, ...]:
        """The names of shares and F1s, in their order."""
        return *self.shares, *self.f1s


ARGUE = Group(
    COUNTS,
    {
        "citation_relevance": ("relevant_citations", "citations"),
        "citation_support": ("supporting_citations", "citations"),
        "sentence_support": ("correctly_cited_sentences", "sentences_with_citations_or_requiring_citations"),
        "nugget_coverage": ("correct_nuggets", "nuggets"),
        "nugget_coverage_weighted": ("correct_nuggets_weighted", "nuggets_weighted"),
    },
    {
        "f1": ("sentence_support", "nugget_coverage"),
        "f1_weighted": ("sentence_support", "nugget_coverage_weighted"),
    },
)
STRICT = Group(
    STRICT_COUNTS,
    {
        "nugget_coverage_strict": ("correct_nuggets_strict", "nuggets"),
        "nugget_coverage_strict_weighted": ("correct_nuggets_strict_weighted", "nuggets_weighted"),
    },
    {
        "f1_strict": ("sentence_support", "nugget_coverage_strict"),
        "f1_strict_weighted": ("sentence_support", "nugget_coverage_strict_weighted"),
    },
)
NEGATION = Group(
    NEGATION_COUNTS,
    {
        "sentence_support_negation": ("rewarded_sentences_negation", "scored_sentences_negation"),
        "nugget_coverage_negation": ("correct_nuggets_negation", "nuggets_negation"),
    },
    {"f1_negation": ("sentence_support_negation", "nugget_coverage_negation")},
)
_ALL = (ARGUE, STRICT, NEGATION)
# What needs no judge; the second group needs none where relevance is looked up.
_UNJUDGED = {"sentences", "nuggets", "nuggets_weighted", "citations", LENGTH, COPIED, "unanswerable_nuggets"}
_LOOKED_UP = {"relevant_citations", "citation_relevance"}
NAMES = (
    f"{', '.join(ARGUE.ratios)}, each also @micro (default @macro); {', '.join(COUNTS)}; {LENGTH}@median or @max; "
    f"our own: {', '.join([*STRICT_COUNTS, *STRICT.ratios])}, {', '.join([*NEGATION_COUNTS, *NEGATION.ratios])}, {COPIED}"
)


@dataclass(frozen=True)
class Options:
    """How judgments become scores.

    ``credit``: a match counts if the document of its judgment supports the sentence (``citation``), if all cited
    documents do (``sentence``), or always (``none``). ``missing``: a topic that has nuggets but no report is scored 0
    (``penalize``) or left out (``ignore``). ``incomplete``: a sentence without its judgments is refused, or takes their
    defaults. ``strict`` and ``negation`` add those groups of measures.
    """

    credit: Credit = "citation"
    missing: Literal["penalize", "ignore"] = "penalize"
    incomplete: Literal["refuse", "default"] = "refuse"
    strict: bool = False
    negation: bool = False

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of measures that are on, in the order of a scores file."""
        return ARGUE, *([STRICT] if self.strict else []), *([NEGATION] if self.negation else [])


# --- arithmetic ------------------------------------------------------------------------------------------------


def ratio(part: float, whole: float) -> float:
    """``part / whole``; 0.0 where ``whole`` is 0."""
    return part / whole if whole else 0.0


def harmonic(precision: float, recall: float) -> float:
    """F1 of two shares; 0.0 where both are 0."""
    both = precision + recall
    return 2 * precision * recall / both if both else 0.0


def mean(values: Sequence[float]) -> float:
    """The unweighted mean, 0.0 of nothing: numpy's, to the last digit, as in the published files of Auto-ARGUE."""
    import numpy as np

    return float(np.mean(values)) if values else 0.0


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two in the middle; 0.0 of nothing."""
    import numpy as np

    return float(np.median(values)) if values else 0.0


def with_shares(counts: Mapping[str, float], options: Options) -> dict[str, float]:
    """Counts with the shares and F1s that follow from them, all as floats."""
    out = {name: float(value) for name, value in counts.items()}
    for group in options.groups:
        out |= {name: ratio(out[above], out[below]) for name, (above, below) in group.shares.items()}
        out |= {name: harmonic(out[first], out[second]) for name, (first, second) in group.f1s.items()}
    return out


def topic_measures(options: Options) -> list[str]:
    """The measures of a topic, in their order: those of Auto-ARGUE, then the groups of our own that are on."""
    names = [name for group in options.groups for name in (*group.counts, *group.ratios)]
    return [names[0], LENGTH, *names[1:]]


# --- names in tasks --------------------------------------------------------------------------------------------


class ReportMeasure(NamedTuple):
    """A measure: its name by topic, and how it is joined (``macro``, ``micro``, ``sum``, ``median``, ``max``)."""

    name: str
    join: str

    @property
    def strict(self) -> bool:
        """Whether it needs judgments about answers that were kept out."""
        return self.name in (*STRICT.counts, *STRICT.ratios)

    @property
    def negation(self) -> bool:
        """Whether it needs judgments about statements of ignorance."""
        return self.name in (*NEGATION.counts, *NEGATION.ratios)

    def unjudged(self, everything: bool) -> bool:
        """Whether it can be computed without any judge; ``everything``: relevance is judged, not looked up."""
        return self.name in _UNJUDGED or (self.name in _LOOKED_UP and not everything)

    def total(self, overall: Mapping[str, float]) -> float:
        """Its value over all topics, from :attr:`evaluator.argue.scoring.runs.RunScores.overall`."""
        return overall[self.name if self.join == "sum" else f"{self.name}_{self.join}"]


def parse_measure(text: str) -> ReportMeasure:
    """The measure of a string such as ``f1``, ``nugget_coverage@micro`` or, as in a scores file, ``f1_macro``.

    Raises:
        EvaluatorError: there is no such measure.
    """
    name, at, join = text.partition("@")
    endings = ("_macro", "_micro", "_median", *(["_max"] if name == f"{LENGTH}_max" else []))
    for ending in endings if not at else ():  # as a scores file writes them
        if name.endswith(ending):
            name, at, join = name.removesuffix(ending), "@", ending[1:]
            break
    joins = {
        **dict.fromkeys((n for g in _ALL for n in g.counts), ("sum",)),
        **dict.fromkeys((n for g in _ALL for n in g.ratios), ("macro", "micro")),
        LENGTH: ("median", "max"),
        COPIED: ("micro",),
    }.get(name, ())
    join = join if at or not joins else joins[0]
    if join not in joins or (at and joins == ("sum",)):
        raise EvaluatorError(
            f"there is no measure {text[:60]!r}",
            f"measures are {NAMES}",
            "write for example f1 or nugget_coverage@micro",
        )
    return ReportMeasure(name, join)
