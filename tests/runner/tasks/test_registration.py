"""The key `registration` of a task.yaml: problems with their lines, and `runner task show`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.worlds.mini import Project, Said, call_here

GOOD: dict[str, Any] = {
    **{"opens": "2031-01-01 00:00 UTC", "closes": "2031-05-01 23:59 AoE", "approve": "at-once"},
    **{"terms": {"file": "terms.txt", "version": "2"}, "asks": {"purpose": "required", "members": "off"}},
}


def check(project: Project, capsys: pytest.CaptureFixture[str], **changes: Any) -> Said:
    folder = project.write_task(registration={**GOOD, **changes})
    (folder / "terms.txt").write_text("Be fair.")
    return call_here(project, ["task", "check", "mini"], capsys)


def test_a_valid_registration_is_shown(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert "E401" not in check(project, capsys).all
    shown = call_here(project, ["task", "show", "mini"], capsys).out
    assert "2031-05-01 23:59 AoE" in " ".join(shown.split())
    assert "version 2" in shown and max(map(len, shown.splitlines())) <= 80
    dates = call_here(project, ["task", "show", "mini", "--json"], capsys).json["dates"]["registration"]
    assert (dates["approve"], dates["terms_version"]) == ("at-once", "2")
    assert dates["asks"] == GOOD["asks"] | {"contact": "required", "affiliation": "optional"}
    assert dates["opens"] == "2031-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({"opens": "2031-01-01 00:00"}, "2031-01-01 00:00"),
        ({"opens": "2031-06-01 00:00 UTC"}, "closes"),
        ({"approve": "nobody"}, "at-once"),
        ({"terms": {"file": "../../secret.txt", "version": "1"}}, "secret.txt"),
        ({"terms": {"file": "other.txt", "version": "1"}}, "other.txt"),
        ({"terms": {"file": "terms.txt"}}, "version"),
        ({"asks": {"phone": "required"}}, "phone"),
    ],
)
def test_a_wrong_registration_is_reported_with_its_line(
    project: Project, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], value: str
) -> None:
    refused = check(project, capsys, **changes)
    assert refused.code and "E401" in refused.all and value in refused.all and "task.yaml:" in refused.all


def test_terms_have_a_limit(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    folder = project.write_task(registration=GOOD)
    (folder / "terms.txt").write_text("x" * (64 * 1024 + 1))
    assert "65536" in call_here(project, ["task", "check", "mini"], capsys).all
