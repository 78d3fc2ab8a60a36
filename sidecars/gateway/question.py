"""What a client may ask: read, checked against an allow-list, and ready to be written anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from schemas import canonical, load_json, show
from schemas.replies import reply_key
from sidecars.gateway.config import Config
from sidecars.http import HttpError

MESSAGES, STOPS, FORMAT_BYTES = 1000, 4, 64 * 1024
ROLES = ("system", "user", "assistant", "developer")


@dataclass(frozen=True)
class Question:
    """One checked question. ``key`` is its identity; ``most_prompt`` and ``most_reply`` are upper bounds in tokens."""

    model: str
    messages: tuple[dict[str, str], ...]
    parameters: dict[str, Any]
    key: str
    most_prompt: int
    most_reply: int

    def body(self) -> bytes:
        """What goes upstream: nothing but what was checked."""
        return canonical({"model": self.model, "messages": self.messages, **self.parameters})


def _between(low: float, high: float, *types: type) -> Callable[[Any], bool]:
    return lambda value: type(value) in types and low <= value <= high


def _stop(value: Any) -> bool:
    texts = [value] if isinstance(value, str) else value
    return (
        isinstance(texts, list)
        and 0 < len(texts) <= STOPS
        and all(isinstance(text, str) and 0 < len(text) <= 100 for text in texts)
    )


def _format(value: Any) -> bool:
    if not isinstance(value, dict) or len(canonical(value)) > FORMAT_BYTES:
        return False
    if value.get("type") == "json_schema":
        return set(value) == {"type", "json_schema"} and isinstance(value["json_schema"], dict)
    return value in ({"type": "text"}, {"type": "json_object"})


PARAMETERS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "temperature": (_between(0, 2, int, float), "a number from 0 to 2"),
    "top_p": (_between(0, 1, int, float), "a number from 0 to 1"),
    "max_tokens": (_between(1, 10**6, int), "a whole number from 1"),
    "max_completion_tokens": (_between(1, 10**6, int), "a whole number from 1"),
    "seed": (_between(-(2**63), 2**63 - 1, int), "a whole number of 64 bits"),
    "stop": (_stop, f"a text, or a list of at most {STOPS}"),
    "response_format": (_format, "text, json_object or json_schema"),
}


def read(body: bytes, config: Config) -> Question:
    """The question in a request's body. Raises :class:`HttpError`."""
    doc = load_json(body, "the body", max_bytes=config.max_body)
    if doc.problems:
        raise HttpError(400, "invalid_json", str(doc.problems[0]))
    if not isinstance(doc.data, dict):
        raise HttpError(400, "invalid_request", "the body is not an object")
    data: dict[str, Any] = doc.data
    model = data.pop("model", None)
    if not isinstance(model, str) or model not in config.models:
        named = f"the model {show(model)}" if isinstance(model, str) else "a request without a model"
        raise HttpError(404, "model_not_found", f"{named} is not allowed; {', '.join(config.models)} are")
    messages = _messages(data.pop("messages", None))
    parameters = _parameters(data)
    limits = [parameters[name] for name in ("max_tokens", "max_completion_tokens") if name in parameters]
    if len(limits) != 1:
        raise HttpError(400, "invalid_parameter", "give one of max_tokens and max_completion_tokens")
    if limits[0] > config.max_tokens:
        raise HttpError(400, "invalid_parameter", f"at most {config.max_tokens} tokens may be asked for")
    size = len(canonical({"messages": messages, "parameters": parameters}))
    return Question(
        model=model,
        messages=messages,
        parameters=parameters,
        key=reply_key(model, messages, parameters),
        # A token is at least one byte; what endpoints add around each message is less than 16 tokens.
        most_prompt=size + 16 * (len(messages) + 1),
        most_reply=limits[0],
    )


def _messages(value: Any) -> tuple[dict[str, str], ...]:
    if not isinstance(value, list) or not 0 < len(value) <= MESSAGES:
        raise HttpError(400, "invalid_messages", f"messages must be a list of 1 to {MESSAGES} messages")
    for number, message in enumerate(value):
        if not isinstance(message, dict) or set(message) != {"role", "content"}:
            raise HttpError(400, "invalid_messages", f"messages[{number}] must have role and content only")
        if message["role"] not in ROLES:
            roles = ", ".join(ROLES)
            raise HttpError(400, "invalid_messages", f"messages[{number}].role must be one of {roles}")
        if not isinstance(message["content"], str):
            # Lists may hold addresses of images, which the endpoint would fetch for whoever wrote them.
            raise HttpError(400, "invalid_messages", f"messages[{number}].content must be a text")
    return tuple(value)


def _parameters(data: dict[str, Any]) -> dict[str, Any]:
    if data.pop("stream", None) not in (None, False):
        raise HttpError(400, "unsupported_parameter", "stream must be false: replies are given whole")
    if data.pop("n", None) not in (None, 1):
        raise HttpError(400, "unsupported_parameter", "n must be 1")
    parameters = {name: value for name, value in data.items() if value is not None}
    for name, value in parameters.items():
        if name not in PARAMETERS:
            allowed = ", ".join(PARAMETERS)
            raise HttpError(400, "unsupported_parameter", f"{show(name)} is not passed on; {allowed} are")
        if not PARAMETERS[name][0](value):
            raise HttpError(400, "invalid_parameter", f"{name} must be {PARAMETERS[name][1]}")
    return parameters
