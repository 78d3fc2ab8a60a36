"""``replies.jsonl``: what models answered, by the content of what they were asked.

One line a reply: ``{"key", "model", "reply", "finish_reason", "usage": {"prompt_tokens", "completion_tokens"}}``. The
key is made of model, messages and parameters, never of the endpoint, so that replies that were paid for once serve
every later run on any machine. The gateway and the judges write and read this form.

A question that an endpoint did not take (a filter of contents, say) has a line too, with an empty ``reply`` and
``"refused": {"status", "code", "message"}``, so that a repetition goes the same way. An answer that came later counts more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from schemas import canonical, digest, load_json
from schemas.documents import Problem, show

LINE_BYTES = 4 << 20
REFUSED = (400, 413, 422)  # the statuses of a question that is not taken, while others are
_MADE_NO_DIFFERENCE = {"n": 1, "stream": False}


# Endpoints' words for a question that they will never take, however often it is asked; any other may be about an account.
_OF_THE_TEXT = (
    "content_filter",
    "content_policy_violation",
    "context_length_exceeded",
    "moderation",
    "string_above_max_length",
)


@dataclass(frozen=True)
class Refusal:
    """That an endpoint did not take a question: the HTTP status that whoever asked got, the endpoint's code, and what was said."""

    status: int
    code: str
    message: str

    @property
    def of_the_text(self) -> bool:
        """Whether asking again cannot help: it is the question's text or length."""
        return self.code in _OF_THE_TEXT


@dataclass(frozen=True)
class StoredReply:
    """One reply. ``finish`` is the endpoint's word for why it ended: ``stop``, ``length``, …; tokens as it counted.

    With ``refused`` there was none, and the text is empty.
    """

    key: str
    model: str
    text: str
    finish: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    refused: Refusal | None = None

    def line(self) -> bytes:
        """The reply as one line of ``replies.jsonl``, with its line end."""
        usage = {"prompt_tokens": self.prompt_tokens, "completion_tokens": self.completion_tokens}
        data: dict[str, Any] = {
            "key": self.key,
            "model": self.model,
            "reply": self.text,
            "finish_reason": self.finish,
        }
        if self.refused is not None:
            data["refused"] = asdict(self.refused)
        return canonical({**data, "usage": usage}) + b"\n"

    def over(self, known: StoredReply | None) -> bool:
        """Whether it counts more than what is known for its key: the first does, but an answer more than a refusal."""
        return known is None or (known.refused is not None and self.refused is None)


def reply_key(model: str, messages: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any]) -> str:
    """The SHA-256 (hex) of what a model was asked, in its one form.

    Parameters that are None or say what holds without them (``n`` 1, ``stream`` false) do not count, and 0 and 0.0
    are one number.
    """
    counted = {
        name: _one_form(value)
        for name, value in parameters.items()
        if value is not None and (name not in _MADE_NO_DIFFERENCE or value != _MADE_NO_DIFFERENCE[name])
    }
    asked = [{"role": message["role"], "content": message["content"]} for message in messages]
    return digest({"model": model, "messages": asked, "parameters": counted})


def _one_form(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53:
        return int(value)
    if isinstance(value, Mapping):
        return {key: _one_form(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_one_form(item) for item in value]
    return value


def read_replies(path: Path) -> Iterator[StoredReply | Problem]:
    """The replies of a file in its order, and a problem with its line in place of each that is not one.

    A last line without its line end is what an interrupted writer leaves, and is passed over in silence. A file
    that is not there, or cannot be read, raises OSError.
    """
    with path.open("rb") as source:
        for number, raw in enumerate(iter(lambda: source.readline(LINE_BYTES + 1), b""), 1):
            if not raw.endswith(b"\n"):
                if len(raw) > LINE_BYTES:
                    yield Problem(
                        f"{show(path.name)}:{number}", f"is longer than {LINE_BYTES} bytes", "", "", number
                    )
                return
            if raw.strip():
                yield _reply(raw, path.name, number)


def _reply(raw: bytes, name: str, number: int) -> StoredReply | Problem:
    where = f"{show(name)}:{number}"
    doc = load_json(raw, where, max_bytes=LINE_BYTES)
    if doc.problems:
        return Problem(where, doc.problems[0].what, "remove the line", "", number)
    data: dict[str, Any] = doc.data if isinstance(doc.data, dict) else {}
    counted: Any = data.get("usage")
    usage: dict[str, Any] = counted if isinstance(counted, dict) else {}
    key, model, reply = (data.get(field) for field in ("key", "model", "reply"))
    prompt, said = (usage.get(field, 0) for field in ("prompt_tokens", "completion_tokens"))
    whole = all(isinstance(text, str) for text in (key, model, reply)) and all(
        type(count) is int and count >= 0 for count in (prompt, said)
    )
    refused = _refusal(data["refused"]) if "refused" in data else None
    if not whole or ("refused" in data and refused is None):
        return Problem(
            where, "is not a reply with key, model, reply and usage", "remove the line", "", number
        )
    finish = data.get("finish_reason")
    why = finish if isinstance(finish, str) else "stop"
    return StoredReply(str(key), str(model), str(reply), why, prompt, said, refused)


def _refusal(value: Any) -> Refusal | None:
    """The refusal in a line; None when it is none."""
    if not isinstance(value, dict) or value.get("status") not in REFUSED:
        return None
    code, message = value.get("code"), value.get("message")
    if type(value["status"]) is not int or not isinstance(code, str) or not isinstance(message, str):
        return None
    return Refusal(value["status"], code, message)
