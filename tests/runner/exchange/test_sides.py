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
    assert len(rows(section(words), section(words))) == 2
