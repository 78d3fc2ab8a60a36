"""Topics in two parts, by a key: every topic is in one of them, the same for everybody who knows the key, and no one else."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.model.run import MeasureValue
from runner.records.split import WHOLE, Split, is_public

KEY, OTHER = "5e" * 32, "a1" * 32
TOPICS = [str(n) for n in range(2000)]


def part(name: str, share: float = 0.3, key: str = KEY) -> Split:
    """The split of the dataset test, of which one part is looked at."""
    return Split(key, {"test": share}, {"test": name})  # type: ignore[dict-item]


def whole(scores: dict[str, float]) -> MeasureValue:
    """The value over all topics, as evaluators give it."""
    return MeasureValue(sum(scores.values()) / len(scores), len(scores), len(scores), 0.0, 1.0, "nDCG")


@given(st.dictionaries(st.text(max_size=12), st.floats(0, 1), min_size=1), st.integers(1, 99))
def test_every_topic_is_in_exactly_one_part(scores: dict[str, float], percent: int) -> None:
    public, private = (part(name, percent / 100).topics("test", scores) for name in ("public", "private"))
    assert public | private == scores and not public.keys() & private.keys()
    assert part("all").topics("test", scores) == scores == WHOLE.topics("test", scores)


@given(st.text(max_size=12), st.integers(1, 98))
def test_a_larger_share_only_adds_public_topics(topic: str, percent: int) -> None:
    if is_public(KEY, "test", topic, percent / 100):
        assert is_public(KEY, "test", topic, (percent + 1) / 100)


def test_the_share_is_about_what_was_asked_and_follows_from_key_and_dataset() -> None:
    def chosen(key: str, dataset: str) -> set[str]:
        return {topic for topic in TOPICS if is_public(key, dataset, topic, 0.3)}

    ours, other_key, other_dataset = chosen(KEY, "test"), chosen(OTHER, "test"), chosen(KEY, "test-2")
    for one in (ours, other_key, other_dataset):
        assert 540 < len(one) < 660
    # Independent draws share 0.3 * 0.3 of the topics: knowing one says nothing of another.
    for other in (other_key, other_dataset):
        assert 130 < len(ours & other) < 235


def test_the_split_is_the_same_in_every_version() -> None:
    public = [topic for topic in TOPICS[:20] if is_public(KEY, "test", topic, 0.3)]
    assert public == ["1", "8", "9", "12", "15", "17", "19"]


@given(st.dictionaries(st.text(max_size=8), st.floats(0, 1), min_size=2, max_size=30))
def test_the_value_of_a_part_is_the_mean_over_its_topics(scores: dict[str, float]) -> None:
    for name in ("public", "private"):
        split = part(name)
        values, found = list(split.topics("test", scores).values()), split.mean("test", whole(scores), scores)
        if not values:
            assert found is None
            continue
        assert found is not None and found.topics == found.covered == len(values)
        assert found.value == math.fsum(values) / len(values) and found.measure == "nDCG"
        if len(values) > 1:
            assert found.low is not None and found.high is not None
            assert found.low <= found.value <= found.high


def test_how_many_were_answered_is_known_where_the_evaluation_names_the_others() -> None:
    scores = dict.fromkeys(TOPICS[:40], 0.5)
    public = part("public").topics("test", scores)
    missing = {*list(public)[:3], *[t for t in scores if t not in public][:5]}
    total = MeasureValue(0.5, 40, 32)
    for name, absent in (("public", 3), ("private", 5)):
        found = part(name).mean("test", total, scores, missing)
        assert found is not None and found.covered == found.topics - absent
        before = part(name).mean("test", total, scores)  # archives of before name none
        assert before is not None and before.covered is None
        all_of_them = part(name).mean("test", MeasureValue(0.5, 40, 40), scores)
        assert all_of_them is not None and all_of_them.covered == all_of_them.topics


def test_a_value_that_is_no_mean_over_topics_has_no_part() -> None:
    scores = {"1": 0.25, "2": 0.75, "3": 0.5, "4": 1.0}
    total = MeasureValue(sum(scores.values()), 4, 4)
    assert all(part(name).mean("test", total, scores) is None for name in ("public", "private"))
    assert part("all").mean("test", total, scores) == total


def test_other_datasets_are_whole_and_no_interval_is_added() -> None:
    value = MeasureValue(0.5, 2, 2)
    assert part("public").mean("dev", value, {"1": 0.4, "2": 0.6}) is value
    scores = {str(n): n / 10 for n in range(10)}
    found = part("private").mean("test", MeasureValue(0.45, 10, 10), scores)
    assert found is not None and found.low is None


def test_an_interval_of_known_values() -> None:
    scores = {topic: float(n % 2) for n, topic in enumerate(TOPICS[:400])}
    found = part("private").mean("test", whole(scores), scores)
    assert found is not None and found.low is not None and found.high is not None
    spread = math.sqrt(found.value * (1 - found.value) / (found.topics - 1))
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * spread, rel=1e-4)
