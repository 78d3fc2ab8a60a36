"""Names of teams and softwares: what may be one, which look alike, and what ids are made of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import schemas
from runner.model.errors import RunnerError
from runner.model.names import (
    IDENTIFIER,
    NAME,
    check_apart,
    check_display,
    check_name,
    contact_problem,
    display_problem,
    look_alike,
)
from runner.model.run import run_id, submission_id
from runner.records.archive import RunArchive

SCHEMAS = Path(schemas.__file__).parent
identifiers = st.from_regex(IDENTIFIER, fullmatch=True)
names = st.from_regex(NAME, fullmatch=True)
digests = st.text("0123456789abcdef", min_size=64, max_size=64)


@pytest.mark.parametrize("noun", ["team", "software"])
@pytest.mark.parametrize(
    "name", ["TeamA_v2.1", "webis_run-1.0", "x", "7", "bm25", "a" * 40, "A._b", "console", "com10", "a-_-b"]
)
def test_names_as_teams_have_them(noun: str, name: str) -> None:
    check_name(noun, name)


BAD_NAMES = [
    "",
    ".x",
    "x.",
    "a..b",
    "-x",
    "x-",
    "_x",
    "x_",
    "a b",
    "a/b",
    "ä",
    "a\n",
    "a\x00",
    "x" * 41,
    "Ａ",
    "a:b",
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_bad_names_are_refused(name: str) -> None:
    for noun in ("team", "software"):
        with pytest.raises(RunnerError) as caught:
            check_name(noun, name)
        assert caught.value.code == "E208" and "digits" in caught.value.fix
        assert str(caught.value).replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("noun", "name"),
    [
        *(("team", word) for word in ("all", "Public", "0rganiser", "ORGANIZER", "PIatform", "p1atform")),
        *(("team", word) for word in ("platforrn", "pubIic", "0RGANlZER")),
        *(("team", word) for word in ("con", "NUL", "com1", "lpt9.run", "aux.1")),
        *(("software", word) for word in ("prn", "All", "CON.v1")),
        ("task", "con"),
    ],
)
def test_words_of_ours_and_devices_are_reserved(noun: str, name: str) -> None:
    with pytest.raises(RunnerError, check=lambda error: error.code == "E208"):
        check_name(noun, name)


@pytest.mark.parametrize("name", ["TeamA", "a_b", "a.b"])
def test_tasks_and_datasets_keep_to_lower_case(name: str) -> None:
    for noun in ("task", "dataset"):
        with pytest.raises(RunnerError):
            check_name(noun, name)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("teama", "TeamA"),
        ("run_1", "run-1"),
        ("run.1", "run-1"),
        ("TEAM_a", "team.A"),
        ("b0b", "bob"),
        ("BOB", "b0b"),
        ("team1", "teaml"),
        ("teamI", "team1"),
        ("AI-team", "Al_team"),
        ("cameros", "carneros"),
        ("BARN", "barn"),
        ("team--a", "team-a"),
        ("team_-_a", "team.a"),
        ("WEBlS", "webis"),
        ("aLpha1", "alphal"),  # one letter by its case, another by its shape
    ],
)
def test_look_alikes_are_refused_and_the_one_that_is_there_is_named(name: str, other: str) -> None:
    for one, there in ((name, other), (other, name)):
        assert look_alike(one, ["x", there, "y"]) == there
        with pytest.raises(RunnerError) as caught:
            check_apart("team", one, ["x", there, "y"])
        assert caught.value.code == "E215" and f'"{there}"' in caught.value.why


def test_registered_names_that_look_alike_stay_valid() -> None:
    """Registered names may look alike; a third one is refused."""
    for one in ("bert-1", "bert-l"):
        check_apart("software", one, ["bert-1", "bert-l"])
    with pytest.raises(RunnerError):
        check_apart("software", "bert-I", ["bert-1", "bert-l"])


@pytest.mark.parametrize(
    "pair", [("run-1", "run-11"), ("run1.1", "run11"), ("ai", "al"), ("a", "b"), ("s0", "s2")]
)
def test_others_are_not(pair: tuple[str, str]) -> None:
    check_apart("team", pair[0], [pair[1], pair[0]])
    check_apart("team", pair[1], pair)


ALIKE = {"o": "oO0", "0": "0oO", "l": "lI1L", "1": "1lI", "m": ("m", "M", "rn"), "-": ("-", "_", ".", "--")}


@given(identifiers, st.data())
def test_whatever_is_drawn_alike_is_refused_both_ways(name: str, data: st.DataObject) -> None:
    drawn = (data.draw(st.sampled_from(ALIKE.get(one, one + one.swapcase()))) for one in name)
    other = "".join(drawn)
    if other != name and IDENTIFIER.fullmatch(other):
        assert look_alike(other, [name]) == name and look_alike(name, [other]) == other


letters = {
    "Latin": "abcdefghijklmnopqrstuvwxyzäéß",
    "Cyrillic": "абвгдежзийклмнопрстуфхцчшщ",
    "Greek": "αβγδεζηθικλμνξοπρστυφχψω",
}


@given(st.sampled_from(list(letters)), st.sampled_from(list(letters)), st.data())
def test_no_word_of_a_teams_display_name_mixes_scripts_that_share_shapes(
    first: str, second: str, data: st.DataObject
) -> None:
    one = data.draw(st.text(letters[first], min_size=1, max_size=20))
    other = data.draw(st.text(letters[second], min_size=1, max_size=20))
    check_display("team", "x", f"{one} {other}-1")
    check_display("software", "x", one + other)
    if first == second:
        check_display("team", "x", one + other)
    else:
        with pytest.raises(RunnerError) as caught:
            check_display("team", "x", one + other)
        assert first in str(caught.value) and second in str(caught.value)


@given(names, names, digests)
def test_ids_of_names_of_before_are_what_they_were(team: str, software: str, digest: str) -> None:
    assert submission_id(team, software, digest) == f"{team}.{software}.{digest[:8]}"


@given(st.tuples(identifiers, identifiers), st.tuples(identifiers, identifiers), digests, digests)
def test_ids_differ_without_case(one: tuple[str, str], two: tuple[str, str], first: str, second: str) -> None:
    """Two softwares that may stand beside one another never share a folder."""
    apart = one[0] != two[0] and not look_alike(one[0], [two[0]])
    apart |= one[0] == two[0] and one[1] != two[1] and not look_alike(one[1], [two[1]])
    ids = submission_id(*one, first), submission_id(*two, second)
    for id in ids:
        assert re.fullmatch(r"[a-z0-9_-]+\.[a-z0-9_-]+\.[0-9a-f]{8}", id) and len(id) <= 90
    if apart:
        assert ids[0].casefold() != ids[1].casefold()


@given(identifiers, identifiers, digests, names, names)
def test_ids_are_archive_folders(team: str, software: str, digest: str, dataset: str, scenario: str) -> None:
    run = run_id(submission_id(team, software, digest), dataset, scenario)
    with pytest.raises(RunnerError) as caught:  # E307: there is none, and not: that is no id
        RunArchive(Path("/nonexistent")).attempt("task", run, 1)
    assert caught.value.code == "E307"


def test_the_schemas_have_the_same_rule() -> None:
    seen = 0
    for path in SCHEMAS.rglob("*.schema.json"):
        defined = json.loads(path.read_text("utf-8")).get("$defs", {})
        for name, rule in (("identifier", IDENTIFIER), ("name", NAME)):
            if name in defined and path.parent.name != "kinds":
                assert defined[name]["pattern"] == f"^{rule.pattern}$", (path.name, name)
                seen += name == "identifier"
        if "team-software" in defined:
            assert defined["team-software"]["pattern"] == f"^{IDENTIFIER.pattern}/{IDENTIFIER.pattern}$"
    assert seen == 3
    for name, noun in (("submission", "inputs"), ("bundle", "inputs")):
        pattern = schemas.schema(name)["properties"][noun]["additionalProperties"]["pattern"]
        assert pattern == f"^{IDENTIFIER.pattern}(?:/{IDENTIFIER.pattern})?$"


@pytest.mark.parametrize(
    "text", ["Grünfeld & Söhne <b>", "東京大学", "=1+1", "a" * 100, "$x_1$ 50 %", "e\u0301quipe", "قسم"]
)
def test_any_text_on_one_line_is_a_display_name(text: str) -> None:
    assert display_problem(text) == ""
    check_display("team", "x", text)


@pytest.mark.parametrize(
    "text",
    [
        "", "a" * 101, "\u3164\u2800", " a", "a\nb", "a\x1b[2J", "a\u202eb", "a\u2066b", "a\u200bb", "a\x9bb",
        "Z" + "\u0301" * 9,
    ],
)  # fmt: skip
def test_bad_display_names_are_refused(text: str) -> None:
    with pytest.raises(RunnerError) as caught:
        check_display("team", "x", text)
    assert caught.value.code == "E208"
    assert all(c.isprintable() or c == "\n" for c in str(caught.value))


@pytest.mark.parametrize(
    "text",
    [
        "webis", "WEBIS", "Ｗebis", "Grünfeld  & söhne", "Gru\u0308nfeld & Söhne", "Organiser", "baselines",
        "webis\ufe0f", "we\u034fbis", "webis\u3164", "Grünfeld\u2800& Söhne", "Organiser\u180b",  # invisible characters
    ],
)  # fmt: skip
def test_the_display_name_of_another_team_is_refused(text: str) -> None:
    others = {"x": "Own", "TeamA": "Grünfeld & Söhne", "webis": ""}
    with pytest.raises(RunnerError, check=lambda error: error.code == "E215"):
        check_display("team", "x", text, others)
    check_display("team", "x", "own", others)
    # One of another script that only looks like it is taken: the name stands beside it on every board.
    check_display("team", "x", "ЅЕТ", others)  # Cyrillic
    check_display("software", "x", text)


@pytest.mark.parametrize(
    "address",
    [
        "ada@example.org",
        "o'brien+task@mail.example.co.uk",
        "ada@xn--bcher-kva.example",
        "ada@example.xn--p1ai",
        "ada@xn--80akhbyknj4f.XN--P1AI",
        f"{'a' * 64}@example.org",
        "a_b@1-2.example",
    ],
)
def test_mail_addresses_are_taken(address: str) -> None:
    assert contact_problem(address) == ""


@pytest.mark.parametrize(
    "address",
    [
        "ädä@example.org", "ada@bücher.example", "ada@пример.рф", "nobody", "ada@localhost", "ada@127.0.0.1",
        "ada@example.xn--", "ada@example.c0m", "ada@-a.example", "ada@a-.example", "ada@a..example", ".ada@example.org",
        "a..b@example.org", "ada@bob@example.org", "ada@example.org,bob@example.org", "Ada <ada@example.org>",
        '"ada"@example.org', "ada@example.org.", f"{'a' * 65}@example.org", f"ada@{'a' * 64}.example",
    ],
)  # fmt: skip
def test_addresses_that_no_mail_reaches_are_refused(address: str) -> None:
    assert contact_problem(address)
