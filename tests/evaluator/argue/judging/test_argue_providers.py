"""The presets: addresses, keys, default models, the file .env, and how many questions may be open."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evaluator.argue.judge import ModelProvider
from evaluator.errors import EvaluatorError
from evaluator.judges.providers import (
    DEFAULT,
    PRICES,
    PROVIDERS,
    concurrency,
    endpoint,
    environment,
    provider,
)

DOCUMENTED = {
    "openai": ("gpt-4o-mini-2024-07-18", "OPENAI_API_KEY"),
    "anthropic": ("claude-sonnet-4-5-20250929", "ANTHROPIC_API_KEY"),
    "together": ("meta-llama/Llama-3.3-70B-Instruct-Turbo", "TOGETHER_API_KEY"),
    "huggingface": ("meta-llama/Llama-3.3-70B-Instruct", "HUGGINGFACEHUB_API_TOKEN"),
}


@pytest.mark.parametrize(("name", "model", "key"), [(n, *v) for n, v in DOCUMENTED.items()])
def test_models_and_keys_of_the_presets(name: str, model: str, key: str) -> None:
    found = endpoint(name, env={key: "k"})
    assert (found.model, found.key, found.concurrency, found.lacks) == (model, "k", 10, None)
    assert found.base_url is not None and found.base_url.startswith("https://")
    without = endpoint(name, env={})
    assert without.lacks is not None and key in without.lacks.why and "-p lexical" in without.lacks.fix
    assert endpoint(name, model="mine", env={key: "k"}).model == "mine"
    moved = endpoint(name, env={key: "k", f"{name.upper()}_BASE_URL": "http://127.0.0.1:1/v1"})
    assert moved.base_url == "http://127.0.0.1:1/v1"


def test_no_key_of_another_provider_is_ever_sent() -> None:
    keys = {key: name for name, (_, key) in DOCUMENTED.items()}
    for name in DOCUMENTED:
        found = endpoint(name, env=keys)
        assert found.key == name
    assert endpoint("huggingface_local", env=keys).key is None


def test_the_default_and_the_local_model() -> None:
    assert DEFAULT == "together"
    local = endpoint("huggingface_local", env={})
    assert (local.model, local.base_url, local.lacks) == ("meta-llama/Llama-3.1-8B-Instruct", None, None)
    assert {p.value for p in ModelProvider} == {*PROVIDERS, "lexical"}
    assert ModelProvider.TOGETHER == "together"
    assert set(PRICES) <= {p.model for p in PROVIDERS.values()}


def test_any_endpoint_from_the_environment() -> None:
    found = endpoint("from_env", env={"BASE_URL": "http://h/v1", "MODEL_NAME": "m"})
    assert (found.base_url, found.model, found.key, found.lacks) == ("http://h/v1", "m", None, None)
    auto_judge = {"OPENAI_BASE_URL": "http://h/v1", "OPENAI_MODEL": "m", "OPENAI_API_KEY": "k"}
    assert endpoint("from_env", env=auto_judge).key == "k"
    with pytest.raises(EvaluatorError) as caught:
        endpoint("from_env", env={"BASE_URL": "http://h/v1"})
    assert "-m" in caught.value.fix
    lacks = endpoint("from_env", model="m", env={}).lacks
    assert lacks is not None and "BASE_URL" in lacks.fix


@pytest.mark.parametrize(("name", "meant"), [("OpenAI", "openai"), ("huggingface-local", "huggingface_local"), (" together ", "together")])  # fmt: skip
def test_names_are_taken_in_any_case(name: str, meant: str) -> None:
    assert provider(name).name == meant


@pytest.mark.parametrize(("name", "close"), [("opnai", "openai"), ("antropic", "anthropic"), ("humann", "human"), ("zzz", "")])  # fmt: skip
def test_unknown_names_get_the_closest(name: str, close: str) -> None:
    with pytest.raises(EvaluatorError) as caught:
        provider(name)
    assert bool(caught.value.fix) == bool(close) and f"{close}?" in (caught.value.fix or "?")
    assert "lexical" in caught.value.why


def test_the_file_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOGETHER_API_KEY", "of-the-environment")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    before = dict(os.environ)
    (tmp_path / ".env").write_text(
        "TOGETHER_API_KEY=from the file\nOPENAI_API_KEY='sk-$HOME'\nexport ARGUE_MAX_CONCURRENCY=3\nEMPTY\n"
    )
    monkeypatch.chdir(tmp_path)
    env = environment()
    assert env["TOGETHER_API_KEY"] == "of-the-environment"
    assert env["OPENAI_API_KEY"] == "sk-$HOME"  # a key is never put together from other variables
    assert endpoint("openai").concurrency == 3
    assert dict(os.environ) == before


@pytest.mark.parametrize(("text", "number"), [("", 10), (" 4 ", 4), ("1", 1), ("10000", 10000)])
def test_questions_at_a_time(text: str, number: int) -> None:
    assert concurrency({"ARGUE_MAX_CONCURRENCY": text}) == number


@pytest.mark.parametrize("text", ["0", "-1", "ten", "1.5", "1e3", "10001", "9" * 5000, "٣"])
def test_what_is_no_number_of_questions(text: str) -> None:
    with pytest.raises(EvaluatorError) as caught:
        concurrency({"ARGUE_MAX_CONCURRENCY": text})
    assert "ARGUE_MAX_CONCURRENCY" in str(caught.value)
