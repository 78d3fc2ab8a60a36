"""The ``golden`` fixture: compare a rendered text with a file in ``tests/golden/texts``. A pytest plugin.

``make golden`` runs the tests that use the fixture with ``--write-golden``, which writes the files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "golden" / "texts"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-golden", action="store_true", help="write golden files instead of comparing them"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With ``--write-golden``, run only the tests that have a golden file."""
    if config.getoption("--write-golden"):
        items[:] = [item for item in items if "golden" in getattr(item, "fixturenames", ())]


@pytest.fixture
def golden(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Return a function that asserts that a text equals the golden file of this name. Terminals have 100 columns."""
    monkeypatch.setenv("COLUMNS", "100")

    def check(name: str, text: str) -> None:
        path = FOLDER / name
        if request.config.getoption("--write-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"{name} is missing: run 'make golden'"
        assert text == path.read_text(encoding="utf-8"), (
            f"{name} differs: run 'make golden' and read the diff"
        )

    return check
