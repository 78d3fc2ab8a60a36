"""What must not change a score, and bounds that no report can break."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.argue import (
    Bank,
    Cited,
    JudgedReport,
    Judgment,
    Match,
    Options,
    Segment,
    score_run,
    score_topic,
)
from evaluator.argue.formats import judgments as j
from evaluator.argue.scoring.runs import ALL
from tests.worlds.argue_making import bank

DOCS = ["d1", "d2", "d3"]
QUESTIONS = {
    "Q1": ("OR vital", {"a": ["d1"], "b": ["d2"], "wrong": []}),
    "Q2": ("AND", {"c": ["d1"], "d": ["d3"]}),
    "Q3": ("OR okay", {"e": ["d2", "d3"]}),
}
PAIRS = [(q, a) for q, (_, answers) in QUESTIONS.items() for a, docs in answers.items() if docs]
OF_NUGGETS = ("correct_nuggets", "correct_nuggets_weighted", "nugget_coverage", "nugget_coverage_weighted")
SHARES = (
    "citation_relevance",
    "citation_support",
    "sentence_support",
    "nugget_coverage",
    "f1",
    "f1_weighted",
)


@st.composite
def segments(draw: st.DrawFn) -> Segment:
    text = draw(st.text(st.characters(codec="utf-8"), max_size=8))
    docs = draw(st.lists(st.sampled_from(DOCS), max_size=3, unique=True))
    made: list[Judgment] = []
    for doc in docs:
        pairs = draw(st.lists(st.sampled_from(PAIRS), max_size=3, unique=True))
        made += [
            j.relevance(doc, draw(st.booleans())),
            j.answers(doc, [Match(q, (a,)) for q, a in pairs], "t"),
            j.attested(doc, draw(st.booleans()), "t"),
        ]
    if not docs:
        made += [j.requires_citation(draw(st.booleans()), "t"), j.first_instance(draw(st.booleans()), "t")]
    return Segment(text, tuple(Cited(d) for d in docs), tuple(made))


reports = st.lists(segments(), max_size=6).map(lambda s: JudgedReport("t1", "r", tuple(s)))
policies = st.sampled_from(["citation", "sentence", "none"]).map(lambda c: Options(credit=c))  # type: ignore[arg-type]
BANK: Bank = bank(QUESTIONS)


@given(reports, policies, st.randoms())
def test_the_order_of_sentences_and_judgments_changes_nothing(
    report: JudgedReport, options: Options, rng: Random
) -> None:
    shuffled = [
        replace(s, judgments=tuple(rng.sample(s.judgments, len(s.judgments)))) for s in report.segments
    ]
    rng.shuffle(shuffled)
    other = replace(report, segments=tuple(shuffled))
    assert score_topic(report, BANK, options).values == score_topic(other, BANK, options).values


@given(reports, policies)
def test_citing_a_document_twice_changes_nothing(report: JudgedReport, options: Options) -> None:
    other = replace(report, segments=tuple(replace(s, citations=s.citations * 2) for s in report.segments))
    assert score_topic(report, BANK, options).values == score_topic(other, BANK, options).values


@given(reports, policies)
def test_saying_everything_twice_earns_no_nugget_twice(report: JudgedReport, options: Options) -> None:
    doubled = replace(report, segments=report.segments * 2)
    one, two = score_topic(report, BANK, options).values, score_topic(doubled, BANK, options).values
    assert {k: one[k] for k in OF_NUGGETS} == {k: two[k] for k in OF_NUGGETS}
    assert all(one[share] == two[share] for share in ("citation_support", "sentence_support"))


@given(reports, policies)
def test_sentences_that_need_no_citation_change_only_counts(report: JudgedReport, options: Options) -> None:
    idle = Segment("Well.", (), (j.requires_citation(False, "t"),))
    more = replace(report, segments=(idle, *report.segments))
    one, two = score_topic(report, BANK, options).values, score_topic(more, BANK, options).values
    assert {k for k in one if one[k] != two[k]} == {"sentences", "character_count"}


@given(reports, policies)
def test_an_unsupported_citation_never_helps(report: JudgedReport, options: Options) -> None:
    bad = Segment("x", (Cited("d9"),), (j.relevance("d9", False), j.attested("d9", False, "t")))
    one = score_topic(report, BANK, options).values
    two = score_topic(replace(report, segments=(*report.segments, bad)), BANK, options).values
    assert all(two[share] <= one[share] for share in SHARES)


@given(reports)
def test_stricter_credit_never_gives_more(report: JudgedReport) -> None:
    credits: tuple[Literal["sentence", "citation", "none"], ...] = ("sentence", "citation", "none")
    correct = [score_topic(report, BANK, Options(credit=c)).values["correct_nuggets"] for c in credits]
    assert correct == sorted(correct)


@given(reports, policies)
def test_shares_are_between_0_and_1_and_effects_match_counts(report: JudgedReport, options: Options) -> None:
    scores = score_topic(report, BANK, options)
    assert all(0.0 <= scores.values[share] <= 1.0 for share in SHARES)
    codes = [e.code for s in scores.sentences for e in s.effects]
    assert codes.count("supported") == scores.values["correctly_cited_sentences"]
    assert codes.count("nugget") == scores.values["correct_nuggets"] == sum(n.correct for n in scores.nuggets)
    assert codes.count("missing-citation") == scores.values["first_instance_sentences_missing_citation"]
    assert codes.count("unsupported") == scores.values["citations"] - scores.values["supporting_citations"]


@settings(max_examples=50)
@given(st.lists(reports, min_size=1, max_size=5), st.randoms())
def test_the_order_of_topics_changes_nothing(found: list[JudgedReport], rng: Random) -> None:
    named = [replace(r, request_id=f"t{i}") for i, r in enumerate(found)]
    banks = {topic: bank(QUESTIONS, topic) for topic in [*(r.request_id for r in named), "missing"]}
    rows = list(score_run(named, banks).rows())
    rng.shuffle(named)
    assert list(score_run(named, dict(reversed(banks.items()))).rows()) == rows
    assert {r.topic for r in rows} == {ALL, *banks}


@given(reports)
def test_extra_nuggets_that_nobody_answers_only_lower_coverage(report: JudgedReport) -> None:
    larger = bank({**QUESTIONS, "Q9": ("OR", {"z": ["d7"]})})
    one, two = score_topic(report, BANK).values, score_topic(report, larger).values
    assert two["correct_nuggets"] == one["correct_nuggets"]
    assert two["nugget_coverage"] <= one["nugget_coverage"]
    assert two["sentence_support"] == one["sentence_support"]
