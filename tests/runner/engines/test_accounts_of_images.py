"""Images whose account files are known: looked at once, also by processes that come later; refused ones again by each."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runner.engines import accounts
from runner.engines.accounts import Accounts

SOUND, FIFO = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"


class Api:
    """An engine with containers whose account files are missing (``sound``) or named pipes (``fifo``); it counts the looks."""

    base_url, api_version = "http+docker://localhost", "1.41"

    def __init__(self) -> None:
        self.looks = 0

    def head(self, url: str, *, params: dict[str, str], timeout: float) -> Any:
        """What is at a path."""
        self.looks += 1
        if "sound" in url:
            return SimpleNamespace(status_code=404)
        facts = base64.b64encode(json.dumps({"mode": 1 << 25, "size": 0}).encode())
        return SimpleNamespace(status_code=200, headers={accounts.STAT: facts})


def test_an_image_is_looked_at_once_whichever_process_comes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = Api()
    assert [Accounts(lambda: tmp_path).refusal(api, "sound", SOUND) for _ in range(3)] == [None] * 3
    assert api.looks == 2  # two files, once
    hidden, other = ("/cache",), f"sha256:{'c' * 64}"  # a link may lead to where something is mounted
    assert Accounts(lambda: tmp_path).refusal(api, "fifo", SOUND, hidden) is not None
    assert Accounts(lambda: tmp_path).refusal(api, "fifo", other) is not None  # it is of that image alone
    monkeypatch.setattr(accounts, "RULES", accounts.RULES + 1)
    looked = api.looks
    assert Accounts(lambda: tmp_path).refusal(api, "sound", SOUND) is None
    assert api.looks == looked + 2


def test_a_refused_image_is_never_remembered_as_sound(tmp_path: Path) -> None:
    api = Api()
    refused = [Accounts(lambda: tmp_path).refusal(api, "fifo", FIFO) for _ in range(2)]
    assert refused == ["the image cannot be run: /etc/passwd is not a file"] * 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["evil:latest", "sha256:../../x", f"sha256:{'A' * 64}"])
def test_what_is_no_digest_of_content_is_not_remembered(tmp_path: Path, name: str) -> None:
    api = Api()
    for _ in range(2):
        assert Accounts(lambda: tmp_path).refusal(api, "sound", name) is None
    assert api.looks == 4
    assert list(tmp_path.iterdir()) == []
