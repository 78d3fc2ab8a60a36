"""The command ``argue`` in this process, and a server for the provider ``openai``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from evaluator.__main__ import main
from tests.worlds.mini import Said
from tests.worlds.openai_server import OpenAIServer

Argue = Callable[..., Said]
Serve = Callable[..., OpenAIServer]


@pytest.fixture
def argue(capsys: pytest.CaptureFixture[str]) -> Argue:
    """Return a function that calls ``evaluator argue`` with these words."""

    def call(*words: object) -> Said:
        capsys.readouterr()
        code = main(["argue", *map(str, words)])
        return Said(code, *capsys.readouterr())

    return call


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return an empty working directory, without keys, addresses and settings of this machine."""
    endings = ("_API_KEY", "_TOKEN", "_BASE_URL", "DOC_LOOKUP")
    for name in list(os.environ):
        if name.endswith(endings) or name.startswith(("ARGUE_", "OPENAI", "BASE_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def serving(clean: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Return a function that starts a server and makes it the one of the provider ``openai``."""
    monkeypatch.setattr("evaluator.judges.chat.UNUSABLE_RETRIES", 0)
    # The client pauses between its attempts.
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
    monkeypatch.setattr("openai._base_client.MAX_RETRY_DELAY", 0.02)
    with ExitStack() as servers:

        def serve(mode: str = "exact", **options: object) -> OpenAIServer:
            server = servers.enter_context(OpenAIServer(mode, **options))  # type: ignore[arg-type]
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            monkeypatch.setenv("OPENAI_API_KEY", "sk-test-4711")
            return server

        yield serve
