"""The look of all pages: colours that can be read, and elements that stay words whatever they are given."""

from __future__ import annotations

import re

from runner.exchange.look import ELEMENTS, LOOK, environment, source

TONES = ("good", "bad", "wait", "care")


def test_words_on_every_ground_can_be_read() -> None:
    light, dark = (
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]+);", block))
        for block in re.findall(r":root \{([^}]+)\}", source(LOOK) or "")[:2]
    )
    assert light.keys() == dark.keys()

    def luminance(colour: str) -> float:
        digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
        parts = [int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for colours in (light, dark):
        for front, grounds in {
            "text": ("ground", "raised", "soft", "user", *(f"{tone}-ground" for tone in TONES)),
            "muted": ("ground", "raised", "soft", "user"),
            "link": ("ground", "raised", "soft"),
            "ground": ("link", "text"),  # buttons
            **{tone: ("ground", "raised", "soft", f"{tone}-ground") for tone in TONES},
        }.items():
            for ground in grounds:
                high, low = sorted((luminance(colours[front]), luminance(colours[ground])), reverse=True)
                assert (high + 0.05) / (low + 0.05) >= 4.5, (front, ground, colours[front])


def made(text: str, **values: object) -> str:
    names = "badge, bar, command, empty, facts, notice, table, tabs, whiskers"
    return environment().from_string(f'{{% from "{ELEMENTS}" import {names} %}}{text}').render(values)


def test_what_elements_are_given_stays_words() -> None:
    evil = "\"><script>alert(1)</script>'"
    for element in (
        "{{ badge(evil) }}", "{{ command(evil) }}", "{{ empty(evil) }}", "{{ facts([(evil, evil)]) }}",
        "{{ table(evil, [evil], [[evil, evil]]) }}", "{{ tabs([(evil, evil, true)], evil) }}", "{{ bar(1, 2, evil) }}",
        "{% call notice(evil) %}{{ evil }}{% endcall %}", "{{ whiskers(1, 0, 2, 0, 4, words=evil) }}",
    ):  # fmt: skip
        text = made(element, evil=evil)
        assert "<script" not in text and "&lt;script&gt;" in text, element


def test_an_outcome_has_its_colour_and_a_sign_beside_it() -> None:
    assert 'class="badge good"' in made('{{ badge("scored") }}') and "✓" in made('{{ badge("scored") }}')
    assert 'class="badge bad"' in made('{{ badge("failed") }}') and "✗" in made('{{ badge("failed") }}')
    assert 'class="badge"' in made('{{ badge("withdrawn") }}')


def test_a_dot_and_its_whiskers_stand_where_the_numbers_are() -> None:
    text = made("{{ whiskers(0.5, 0.25, 0.75, 0, 1, 2) }}")
    assert 'cx="64.0"' in text and "M34.0 5v8m0-4H94.0" in text
    assert text.count('class="against" d="M124.0 ') == 1, "what lies outside stands at the edge"
    assert 'whisker"' not in made("{{ whiskers(0.5, none, none, 0, 1) }}")
    assert 'cx="4.0"' in made("{{ whiskers(3, 3, 3, 3, 3) }}"), "one value has no width to divide by"


def test_a_bar_says_when_a_limit_is_passed() -> None:
    assert 'width="50.0"' in made("{{ bar(1, 2, '') }}") and "over" not in made("{{ bar(1, 2, '') }}")
    assert 'width="100.0"' in made("{{ bar(3, 2, '') }}") and 'class="bar over"' in made(
        "{{ bar(3, 2, '') }}"
    )
