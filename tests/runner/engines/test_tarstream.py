"""Names in archives for engines lead nowhere else, and are written in one way."""

from __future__ import annotations

import pytest

from runner.engines.tarstream import checked


@pytest.mark.parametrize(
    "name", ["", ".", "/etc/hostname", "run//etc/hostname", "run/../x", "run/./x", "run/", "a\0b"]
)
def test_a_name_that_is_no_plain_path_inside_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a relative path"):
        checked(name)


@pytest.mark.parametrize("name", ["run.txt", "run/run.txt", "..x", ".hidden/x y"])
def test_other_names_stay_as_they_are(name: str) -> None:
    assert str(checked(name)) == name
