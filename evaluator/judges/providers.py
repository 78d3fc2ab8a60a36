"""Whose model: presets for the providers that Auto-ARGUE knows, all asked in OpenAI's form.

What a preset needs comes from the environment, or from a file ``.env`` in the working directory (the environment wins). An address
can be changed for every provider by ``NAME_BASE_URL`` (``TOGETHER_BASE_URL`` and so on).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from evaluator.errors import EvaluatorError
from evaluator.findings import nearest, plain

DEFAULT = "together"
CONCURRENCY_VARIABLE = "ARGUE_MAX_CONCURRENCY"
CONCURRENCY = 10
OFFLINE = "or judge offline, without a key: -p lexical"
KEYLESS = ("lexical", "nli", "lexical+nli", "human")  # who judges without a provider


class Provider(NamedTuple):
    """A preset. ``urls``, ``keys`` and ``models`` are the variables that are looked at, the first that is set counts."""

    name: str
    title: str
    base_url: str | None
    urls: tuple[str, ...]
    keys: tuple[str, ...]
    model: str | None
    models: tuple[str, ...] = ()
    key_needed: bool = True


PROVIDERS: Mapping[str, Provider] = {
    p.name: p
    for p in (
        Provider("openai", "OpenAI", "https://api.openai.com/v1", ("OPENAI_BASE_URL",), ("OPENAI_API_KEY",),
                 "gpt-4o-mini-2024-07-18"),
        Provider("anthropic", "Anthropic", "https://api.anthropic.com/v1", ("ANTHROPIC_BASE_URL",), ("ANTHROPIC_API_KEY",),
                 "claude-sonnet-4-5-20250929"),
        Provider("together", "Together AI", "https://api.together.xyz/v1", ("TOGETHER_BASE_URL",), ("TOGETHER_API_KEY",),
                 "meta-llama/Llama-3.3-70B-Instruct-Turbo"),
        Provider("huggingface", "Hugging Face", "https://router.huggingface.co/v1", ("HUGGINGFACE_BASE_URL",),
                 ("HUGGINGFACEHUB_API_TOKEN", "HF_TOKEN"), "meta-llama/Llama-3.3-70B-Instruct"),
        Provider("huggingface_local", "a server on this machine", None, ("HUGGINGFACE_LOCAL_BASE_URL",), (),
                 "meta-llama/Llama-3.1-8B-Instruct", (), False),
        Provider("from_env", "the endpoint of the environment", None, ("BASE_URL", "OPENAI_BASE_URL"),
                 ("OPENAI_API_KEY",), None, ("MODEL_NAME", "OPENAI_MODEL"), False),
    )
}  # fmt: skip
# US dollars per million tokens, read and written, as published in November 2025. Others are given by hand.
PRICES: Mapping[str, tuple[float, float]] = {
    "gpt-4o-mini-2024-07-18": (0.15, 0.60),
    "claude-sonnet-4-5-20250929": (3.0, 15.0),
    "meta-llama/Llama-3.3-70B-Instruct-Turbo": (0.88, 0.88),
}


@dataclass(frozen=True)
class Endpoint:
    """What a client needs. ``lacks`` is what is missing before anything can be asked, None if nothing is."""

    provider: str
    model: str
    base_url: str | None
    key: str | None
    concurrency: int
    lacks: EvaluatorError | None = None


def environment(folder: Path | None = None) -> dict[str, str]:
    """The environment over what a file ``.env`` in ``folder`` (the working directory) says. Nothing is changed by this."""
    from dotenv import dotenv_values

    path = (folder or Path.cwd()) / ".env"
    written = dotenv_values(path, interpolate=False) if path.is_file() else {}
    return {**{k: v for k, v in written.items() if v is not None}, **os.environ}


def concurrency(env: Mapping[str, str]) -> int:
    """How many questions may be open at a time. Raises :class:`EvaluatorError` for what is no positive number."""
    text = env.get(CONCURRENCY_VARIABLE, "").strip()
    if not text:
        return CONCURRENCY
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= 10_000):
        raise EvaluatorError(
            f"{CONCURRENCY_VARIABLE} is {plain(text, 40)}",
            fix="set it to a positive whole number",
            usage=True,
        )
    return int(text)


def provider(name: str) -> Provider:
    """The preset of that name, in any case. Raises :class:`EvaluatorError`."""
    found = PROVIDERS.get(name.strip().lower().replace("-", "_"))
    if found is None:
        close = nearest(name, [*PROVIDERS, *KEYLESS])
        raise EvaluatorError(
            f"there is no provider {plain(name, 40)!r}",
            f"there are {', '.join([*PROVIDERS, *KEYLESS])}",
            f"did you mean {close}?" if close else "",
            usage=True,
        )
    return found


def endpoint(name: str, *, model: str | None = None, env: Mapping[str, str] | None = None) -> Endpoint:
    """What is needed to ask a provider's model. Raises :class:`EvaluatorError` for an unknown provider or no model.

    A missing key is no error yet: what was answered before can be read without one.
    """
    preset = provider(name)
    env = environment() if env is None else env
    chosen = model or _first(env, preset.models) or preset.model
    if chosen is None:
        raise EvaluatorError(
            f"{preset.title} names no model", fix=f"give one with -m, or set {preset.models[0]}", usage=True
        )
    base_url = _first(env, preset.urls) or preset.base_url
    key = _first(env, preset.keys)
    lacks = None
    if preset.key_needed and key is None:
        lacks = EvaluatorError(
            f"there is no key for {preset.title}",
            f"neither the environment nor a file .env here sets {' or '.join(preset.keys)}",
            f"set {preset.keys[0]}, choose another provider with -p, {OFFLINE}",
            usage=True,
        )
    elif base_url is None and preset.name == "from_env":
        lacks = EvaluatorError(
            "the environment names no endpoint",
            fix=f"set {preset.urls[0]} to an address up to /v1, {OFFLINE}",
            usage=True,
        )
    return Endpoint(preset.name, chosen, base_url, key, concurrency(env), lacks)


def _first(env: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((env[n].strip() for n in names if env.get(n, "").strip()), None)
