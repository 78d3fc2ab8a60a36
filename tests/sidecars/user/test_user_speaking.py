"""What the offline user says: whom it attacks, with what, in how many words; always the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecars.search.errors import DataError
from sidecars.user.arguments import OWN_CLAIM, Arguments
from sidecars.user.dialogue import ANY, LAST, Dialogue
from sidecars.user.speaker import EARLIER, FRAMES, NO_ANSWER, OPENING, OfflineSpeaker
from sidecars.user.words import WORD_LIMIT, count, fit, quoted
from tests.worlds.collection import ANSWERS, CLAIM, ROWS, write


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arguments]:
    made = Arguments(write(tmp_path_factory.mktemp("data"), claims=True))
    yield made
    made.close()


def debate(arguments: Arguments, model: str, turns: int, seed: int = 0, answers: Any = ANSWERS) -> list[Any]:
    """All utterances of a debate of so many turns, by a software that gives these answers."""
    speaker, said, given_answers = OfflineSpeaker(arguments, seed), [], []
    utterances = [speaker.speak(Dialogue(model, CLAIM))]
    for turn in range(2, turns + 1):
        said.append(utterances[-1].text)
        given_answers.append(answers[turn - 2])
        utterances.append(speaker.speak(Dialogue(model, said[0], "", tuple(said), tuple(given_answers))))
    return utterances


@pytest.mark.parametrize("turns", [4, 5])
def test_a_debate_attacks_every_answer_with_something_new(arguments: Arguments, turns: int) -> None:
    utterances = debate(arguments, LAST, turns)
    assert [said.target for said in utterances] == [None, 1, 2, 3, 4][:turns]
    assert utterances[0].text == f"{OPENING} {CLAIM}" and utterances[0].retrieved is None
    for answer, said in zip(ANSWERS, utterances[1:], strict=False):
        best = said.retrieved[0]
        assert said.text.endswith(best["text"]) and set(best["attacks"].lower().split()) & set(
            answer.lower().split()
        )
        assert count(said.text) <= WORD_LIMIT
    assert all(said.text.startswith(frame) for frame, said in zip(FRAMES, utterances[1:], strict=False))
    assert len({said.text for said in utterances}) == turns


def test_the_official_table_of_targets(arguments: Arguments) -> None:
    """U2 attacks S1; U3 S1 or S2; U4 S1, S2 or S3; U5 S1 to S4: every one of them occurs, and no other."""
    seen: dict[int, set[int]] = {turn: set() for turn in range(2, 6)}
    for seed in range(60):
        utterances = debate(arguments, ANY, 5, seed)
        for turn in range(2, 6):
            seen[turn].add(utterances[turn - 1].target)
            earlier = utterances[turn - 1].target < turn - 1
            assert utterances[turn - 1].text.startswith(EARLIER.split("{")[0]) == earlier
    assert seen == {2: {1}, 3: {1, 2}, 4: {1, 2, 3}, 5: {1, 2, 3, 4}}


def test_debates_repeat_and_depend_on_the_seed(arguments: Arguments) -> None:
    for model in (LAST, ANY):
        assert debate(arguments, model, 5, seed=4) == debate(arguments, model, 5, seed=4)
    assert len({tuple(said.target for said in debate(arguments, ANY, 5, seed)) for seed in range(20)}) > 5


@pytest.mark.parametrize("silence", ["", "   ", "…", "?!", "\u200b"])
def test_an_answer_that_says_nothing_is_never_attacked(arguments: Arguments, silence: str) -> None:
    for model in (LAST, ANY):
        for seed in range(10):
            answers = (silence, ANSWERS[0], silence, silence, silence)
            utterances = debate(arguments, model, 5, seed, answers)
            assert [said.target for said in utterances] == [None, None, 2, 2, 2]
            assert utterances[1].text == f"{NO_ANSWER} {CLAIM}" and utterances[1].retrieved == []


def test_what_was_said_is_not_said_again(arguments: Arguments) -> None:
    utterances = debate(arguments, LAST, 4, answers=(ANSWERS[0],) * 5)
    used = [next(row for row in ROWS if said.text.endswith(row[2]))[2] for said in utterances[1:]]
    assert len(set(used)) == 3
    echo = OfflineSpeaker(arguments).speak(Dialogue(LAST, CLAIM, "", (CLAIM,), (ROWS[0][2],)))
    assert ROWS[0][2] not in echo.text


def test_without_an_argument_it_objects_in_its_own_words(arguments: Arguments) -> None:
    answer = "Zyx qwv plk mnb vcx asd fgh jkl\x1b[31m uio"
    said = OfflineSpeaker(arguments).speak(Dialogue(LAST, CLAIM, "", (CLAIM,), (answer,)))
    assert said.target == 1 and said.retrieved == []
    assert "“Zyx qwv plk mnb vcx asd fgh jkl…”" in said.text.replace("[31m", "")
    assert "\x1b" not in said.text


def test_hits_are_in_order_and_without_vectors(arguments: Arguments) -> None:
    hits = arguments.against("Many people cannot reach work without a car.")
    assert hits == sorted(hits, key=lambda hit: (-hit["score"], hit["id"])) and 2 <= len(hits) <= 10
    assert {hits[0]["text"], hits[1]["text"]} == {ROWS[0][2], ROWS[1][2]}
    assert set(hits[0]) == {
        *("id", "topic", "tags", "attacks", "supports", "text", "references", "original", "score")
    }
    assert arguments.against("\U0001f600 ") == []
    assert arguments.against("car " * 100_000)


def test_a_claim_of_its_own(arguments: Arguments, tmp_path: Path) -> None:
    claims = {arguments.claim(seed) for seed in range(100)}
    assert claims == {f"Claim number {number} is right." for number in range(9)}
    assert arguments.claim(3) == arguments.claim(3)
    assert Arguments(write(tmp_path)).claim(3) == OWN_CLAIM


def test_a_folder_that_cannot_be_used_says_why(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        Arguments(tmp_path)
    (tmp_path / "arguments.jsonl").write_text('{"id":"1","text":"x"}\n')
    with pytest.raises(DataError) as caught:
        Arguments(tmp_path)
    assert "attacks" in str(caught.value)
    write(tmp_path).joinpath("claims.jsonl").write_text('{"claim":"x"}\nnot json\n')
    with pytest.raises(DataError) as caught:
        Arguments(tmp_path)
    assert "claims.jsonl:2" in str(caught.value)


TEXT = st.text(max_size=300)


@given(st.lists(st.tuples(TEXT, TEXT), max_size=6), TEXT, st.sampled_from([LAST, ANY]), st.integers(0, 99))
def test_whatever_is_answered_the_user_keeps_to_its_words(
    arguments: Arguments, turns: list[tuple[str, str]], claim: str, model: str, seed: int
) -> None:
    dialogue = Dialogue(model, claim or "x", "", tuple(a for a, _ in turns), tuple(b for _, b in turns))
    said = OfflineSpeaker(arguments, seed).speak(dialogue)
    assert 0 < count(said.text) <= WORD_LIMIT and said.text.isprintable()
    assert said.target is None or 1 <= said.target <= len(turns)


@given(st.text(" .!?ab,\n", max_size=300), st.integers(1, 30))
def test_cutting(text: str, limit: int) -> None:
    cut = fit(text, limit)
    assert count(cut) <= limit
    if count(text) <= limit:
        assert cut.split() == text.split()
    else:
        assert (
            text.split()[: max(1, limit // 2 - 1)] == cut.rstrip("…").split()[: max(1, limit // 2 - 1)]
            or "," in text
        )


def test_cutting_prefers_whole_sentences() -> None:
    assert fit("One two three. Four five six seven.", 5) == "One two three."
    assert fit("One. Two three four five six.", 5) == "One. Two three four five…"
    assert quoted('He "said" one two three, four five six seven eight', 4) == "He said one two…"
