"""Overlap of two rankings against the definitions, and how rankings are read out of run files."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.kinds.adhoc.retrieved import retrieved
from runner.model.comparing.overlap import jaccard, mean, overlaps, rank_biased
from runner.records.store import run_detail
from runner.views.audience import ORGANISER, PUBLIC, Audience
from tests.worlds import records
from tests.worlds.records import World

lists = st.lists(st.sampled_from("abcdefghijklmnop"), min_size=1, unique=True)


def test_jaccard() -> None:
    assert jaccard("abc", "bcd") == 0.5 and jaccard("ab", "cd") == 0 and jaccard("", "") == 0


@given(lists, lists, st.sampled_from([0.5, 0.9, 0.98]))
def test_rank_biased_overlap_is_what_its_definition_sums_up(
    first: list[str], second: list[str], p: float
) -> None:
    """Agreement at every depth, on to infinity, with what lies behind the lists extrapolated (Webber et al. 2010, section 4.4)."""
    found = rank_biased(first, second, p)
    short, long = sorted((first, second), key=len)
    s, depth = len(short), len(long)

    def agreement(d: int) -> float:
        if d > depth:
            return agreement(depth)
        shared = len({*short[:d]} & {*long[:d]})
        if d <= s:
            return shared / d
        # Behind the end of the short list the share at its end goes on.
        return (shared + len({*short} & {*long[:s]}) * (d - s) / s) / d

    wanted = (1 - p) * sum(agreement(d) * p ** (d - 1) for d in range(1, 3000))
    assert found == pytest.approx(wanted, abs=1e-9)
    assert found == rank_biased(second, first, p) and -1e-12 <= found <= 1 + 1e-9


def test_the_same_order_has_one_and_nothing_in_common_none() -> None:
    assert rank_biased("abcd", "abcd") == pytest.approx(1) and rank_biased("ab", "cd") == 0
    assert rank_biased("abcd", "bacd") > rank_biased("abcd", "abdc") - 1 and rank_biased("abcd", "bacd") < 1
    assert rank_biased("abcd", "bacd") < rank_biased("abcd", "abdc"), "the first ranks weigh more"


def test_topics_are_those_of_both_and_the_least_similar_comes_first() -> None:
    first = {"1": ["a", "b"], "2": ["a", "b"], "3": ["a"], "4": []}
    found = overlaps(first, {"1": ["a", "b"], "2": ["c", "b"], "4": ["a"], "9": ["a"]})
    assert [(one.topic, one.shared) for one in found] == [("2", (1, 1)), ("1", (2, 2))]
    middle = mean(found)
    assert middle.jaccard[0] == pytest.approx((1 / 3 + 1) / 2) and middle.rbo == pytest.approx(
        (found[0].rbo + 1) / 2
    )


def read(
    tmp_path: Path, output: Mapping[str, str], audience: Audience = ORGANISER, dataset: str = "dev"
) -> dict[str, list[str]] | None:
    world, task = World.make(tmp_path), records.task()
    submission = world.register("alpha", "x")
    attempt = world.attempt(submission, dataset=dataset, output=output)
    world.evaluation(attempt, {"ndcg": {"1": 0.5}, "rr": {"1": 0.5}})
    found = run_detail.detail(world.store, f"{submission}.{dataset}", [task])
    return retrieved(found, task, audience, task.datasets[dataset])


RUN = "1 Q0 a 1 0.5 t\n1 Q0 b 2 0.9 t\n1 Q0 c 3 0.5 t\nbroken\n1 Q0 d 4 nan t\n2 Q0 <i>\x1b 1 1 t\n"


def test_documents_are_in_the_order_of_the_evaluator(tmp_path: Path) -> None:
    """By score; equal ones by id, falling. What is no line of a run is left out, and names are escaped."""
    found = read(tmp_path, {"run.txt": RUN})
    assert found is not None and found["1"] == ["b", "c", "a"] and "\x1b" not in found["2"][0]


def test_a_hundred_documents_of_a_topic_are_looked_at(tmp_path: Path) -> None:
    lines = [f"1 Q0 d{n} {n} {-n} t\n" for n in range(500)]
    random.Random(1).shuffle(lines)
    found = read(tmp_path, {"run.txt": "".join(lines)})
    assert found == {"1": [f"d{n}" for n in range(100)]}


def test_no_more_lines_are_read_than_a_large_run_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[retrieved.__module__], "MAX_LINES", 5)
    found = read(tmp_path, {"run.txt": "".join(f"{n} Q0 d 1 1 t\n" for n in range(9))})
    assert found is not None and list(found) == ["0", "1", "2", "3", "4"]
    monkeypatch.setattr(sys.modules[retrieved.__module__], "MAX_TOPICS", 2)
    lines = "".join(f"{n} Q0 d{k} 1 {-k} t\n" for k in (1, 2) for n in "ab")
    assert read(tmp_path / "topics", {"run.txt": lines}) == {"a": ["d1", "d2"], "b": ["d1", "d2"]}
    found = read(tmp_path / "more", {"run.txt": f"c Q0 d 1 1 t\n{lines}"})
    assert found is not None and list(found) == ["c", "a"]


def test_who_may_not_see_what_a_run_wrote_gets_none(tmp_path: Path) -> None:
    alpha = Audience("team", "alpha")
    assert read(tmp_path / "1", {"run.txt": RUN}, alpha) is not None
    assert read(tmp_path / "2", {"run.txt": RUN}, alpha, "test") is None
    assert read(tmp_path / "3", {"run.txt": RUN}, ORGANISER, "test") is not None
    for n, audience in enumerate((Audience("team", "beta"), PUBLIC)):
        assert read(tmp_path / f"o{n}", {"run.txt": RUN}, audience) is None
