"""`registration:` of a task.yaml: what is wrong with it is said with its line, and what is right stands in `runner task show`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.worlds.mini import Project, call

GOOD = {
    **{"opens": "2031-01-01 00:00 UTC", "closes": "2031-05-01 23:59 AoE", "approve": "at-once"},
    **{"terms": {"file": "terms.txt", "version": "2"}, "asks": {"purpose": "required", "members": "off"}},
}


def check(project: Project, **changes: Any) -> str:
    folder = project.write_task(registration={**GOOD, **changes})
    (folder / "terms.txt").write_text("Be fair.")
    return call(project, "task", "check", "mini", expect=None).all


def test_what_is_right_is_shown(project: Project) -> None:
    assert "E401" not in check(project)
    shown = call(project, "task", "show", "mini").out
    words = " ".join(shown.split())
    assert "register on" in words and "2031-05-01 23:59 AoE" in words and "teams are in at once" in words
    assert "version 2" in shown and max(map(len, shown.splitlines())) <= 80
    found = call(project, "task", "show", "mini", "--json").json["dates"]["registration"]
    assert (found["approve"], found["terms_version"]) == ("at-once", "2")
    assert found["asks"] == {
        **{"contact": "required", "members": "off", "affiliation": "optional", "purpose": "required"}
    }
    assert found["opens"] == "2031-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"opens": "2031-01-01 00:00"}, "zone is missing"),
        ({"opens": "2031-06-01 00:00 UTC"}, "closes before it opens"),
        ({"approve": "nobody"}, "at-once"),
        ({"terms": {"file": "../../secret.txt", "version": "1"}}, "no file"),
        ({"terms": {"file": "other.txt", "version": "1"}}, "no file"),
        ({"terms": {"file": "terms.txt"}}, "version"),
        ({"asks": {"phone": "required"}}, "phone"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(project: Project, changes: dict[str, Any], why: str) -> None:
    said = check(project, **changes)
    assert "E401" in said and why in said and "task.yaml:" in said, said


def test_terms_are_no_longer_than_people_read(project: Project) -> None:
    folder = project.write_task(registration=GOOD)
    (folder / "terms.txt").write_text("x" * (64 * 1024 + 1))
    assert "more than 65536 bytes" in call(project, "task", "check", "mini", expect=None).all
