"""Pieces of pages beside each other: part by part where both have parts, each row whole by itself."""

from __future__ import annotations

import html

from runner.exchange.look.sides import PART, rows

LINE = '<h3 id="h1"><a href="#d1">x</a></h3>'


def section(*parts: str) -> str:
    return f'<section class="one" id="d1">{LINE}{"".join(f"{PART}{one}</div>" for one in parts)}</section>\n'


def test_parts_stand_beside_parts_and_the_longer_one_goes_on() -> None:
    found = rows(section("one", "two"), section("uno", "due", "tre"))
    assert [first.count("<div") for first, _ in found] == [0, 1, 1, 0]
    assert found[0][0].endswith("</section>") and found[3] == ("", f"{PART}tre</div>")
    for side in (0, 1):
        whole = "".join(row[side] for row in found)
        assert whole.count("<section") == whole.count("</section>") == 1


def test_what_has_no_parts_stands_as_a_whole_with_places_of_its_own() -> None:
    [(first, second)] = rows(section(), section("one"))
    assert 'id="a-d1"' in first and 'href="#a-d1"' in first and 'id="b-h1"' in second
    [(first, _)] = rows(f"<p>{PART}", section("one"))
    assert first == f"<p>{PART}"


def test_words_that_look_like_a_part_are_words() -> None:
    words = html.escape(f"{PART}</section>")
    assert len(rows(section(words), section(f"{words}!"))) == 2


def test_parts_that_are_alike_are_left_out() -> None:
    def piece(*parts: str) -> str:
        body = "".join(f'<div class="part"><p id="x">{one}</p></div>' for one in parts)
        return f"<section><h3>Head</h3>{body}</section>"

    head, *found = rows(piece("a", "b", "c"), piece("a", "x"))
    assert len(found) == 2 and "left out: 1 of 2" in head[0] and head[0].count("</section>") == 1
    assert 'id="a-x">b' in found[0][0] and 'id="b-x">x' in found[0][1] and found[1][1] == ""
    assert "left out" not in rows(piece("a"), piece("b"))[0][0]
