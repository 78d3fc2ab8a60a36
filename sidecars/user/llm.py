"""A user whose words come from a language model, behind the gateway or any OpenAI-compatible address.

What it attacks and what was retrieved are the same as for the offline user; only the wording is the model's. With
temperature 0, a seed and the gateway's recorded replies a debate can be repeated word for word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import schemas
from sidecars.user.arguments import Arguments
from sidecars.user.dialogue import Dialogue
from sidecars.user.prompts import Prompt
from sidecars.user.speaker import NOTHING_FOUND, OPENING, Silent, Utterance, unsaid
from sidecars.user.words import WORD_LIMIT, clean, count, fit, quoted

if TYPE_CHECKING:
    from openai import AsyncOpenAI

TOKENS = 300
CONNECT_SECONDS = 10.0  # whoever takes no connection by then is not there
SHOWN_WORDS = 400  # of each answer in a prompt
AGAIN = "That cannot be used: {why}. Write only what you would say, in at most 60 words."
_FENCE = re.compile(r"```[a-zA-Z]*\n?(.*?)```", re.S)
_SPEAKER = re.compile(r"^(?:\*\*)?(?:me|i|user|you|answer|reply|utterance)(?:\*\*)?\s*:\s*(?:\*\*)?", re.I)
_QUOTES = {'"': '"', "“": "”", "«": "»", "'": "'", "„": "“", "‘": "’"}
_SEED_BITS = 31  # what endpoints accept


class Refused(Silent):
    """The endpoint does not take this prompt: its text, as a filter of contents may say, or its length."""


class Model:
    """A language model behind ``socket`` (the gateway) or ``base_url``. Seconds for one call, retries included."""

    def __init__(
        self,
        model: str,
        *,
        socket: Path | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        seed: int = 0,
        max_tokens: int = TOKENS,
        timeout: float = 100.0,
    ) -> None:
        self.model, self.socket, self.base_url, self.api_key = model, socket, base_url, api_key
        self.seed, self.max_tokens, self.timeout = seed % (1 << _SEED_BITS), max_tokens, timeout
        self._client: AsyncOpenAI | None = None

    def _connected(self) -> AsyncOpenAI:
        if self._client is None:
            import httpx2
            import openai

            if self.socket is not None:
                transport = httpx2.AsyncHTTPTransport(uds=str(self.socket), trust_env=False)
                http = httpx2.AsyncClient(transport=transport, trust_env=False, timeout=self.timeout)
            else:
                times = httpx2.Timeout(self.timeout, connect=min(self.timeout, CONNECT_SECONDS))
                http = httpx2.AsyncClient(timeout=times)
            self._client = openai.AsyncOpenAI(
                api_key=self.api_key or "none",
                base_url="http://gateway/v1" if self.socket is not None else self.base_url,
                timeout=self.timeout,
                max_retries=3,
                http_client=http,
            )
        return self._client

    async def ask(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The model's reply, raw. Raises :class:`Silent`."""
        import asyncio

        import openai

        parameters = {"temperature": 0, "max_tokens": self.max_tokens, "seed": self.seed}
        create: Any = self._connected().chat.completions.with_raw_response.create
        try:
            async with asyncio.timeout(self.timeout):
                raw = await create(model=self.model, messages=list(messages), extra_body=parameters)
            content = json.loads(raw.http_response.content)["choices"][0]["message"].get("content")
        except (TimeoutError, openai.APITimeoutError):
            raise Silent(f"no reply within {self.timeout:g} s") from None
        except openai.APIStatusError as error:
            code = error.body.get("code") if isinstance(error.body, dict) else None
            # The gateway also refuses for reasons of its own.
            theirs = self.socket is None or code == "upstream_refused"
            if theirs and error.status_code in (400, 413, 422):
                raise Refused(f"the endpoint refuses the prompt (status {error.status_code})") from None
            why = f"status {error.status_code}" + (f" ({schemas.show(code)})" if code else "")
            raise Silent(why) from None
        except openai.OpenAIError as error:
            raise Silent(f"it cannot be reached ({type(error).__name__})") from None
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise Silent("its answer is no chat completion") from None
        return content if isinstance(content, str) else ""


class ModelSpeaker:
    """A user that lets a model find the words."""

    def __init__(
        self, model: Model, arguments: Arguments, prompts: Mapping[str, Prompt], seed: int = 0
    ) -> None:
        self.model, self.arguments, self.prompts, self.seed = model, arguments, prompts, seed

    async def say(self, dialogue: Dialogue) -> Utterance:
        """The next utterance. Raises :class:`Silent`."""
        import asyncio

        if not dialogue.said:
            claim = dialogue.claim or self.arguments.claim(self.seed)
            return Utterance(await self._opening(claim.strip(), dialogue.description.strip()))
        target = dialogue.target(self.seed)
        if target is None:
            return Utterance(await self._opening(dialogue.said[0]), None, [])
        answer, about = dialogue.answers[target - 1], dialogue.said[0].removeprefix(OPENING)
        retrieved = await asyncio.to_thread(self.arguments.against, answer, about)
        useful = [clean(hit["text"]) for hit in unsaid(retrieved, dialogue)]
        values = {
            "claim": dialogue.said[0],
            "dialogue": _transcript(dialogue),
            "answer": _shown(answer),
            "arguments": "\n".join(f"- {text}" for text in useful) or "(none was found)",
        }
        try:
            text = await self._words(self.prompts["follow-up.md"].messages(values))
        except Refused:
            text = ""
        # The prompt holds the software's words. If they could silence the user, and with it end the run as a failure of
        # ours, a software could get rid of any run that goes badly.
        text = text or fit(NOTHING_FOUND.format(quote=quoted(answer)), WORD_LIMIT)
        return Utterance(text, target, retrieved)

    async def _opening(self, claim: str, description: str = "") -> str:
        """The claim in the model's words; nothing of the software's is in the prompt. Raises :class:`Silent`."""
        values = {"claim": claim, "description": description}
        text = await self._words(self.prompts["opening.md"].messages(values))
        if not text:
            raise Silent("it said nothing, twice")
        return text

    async def _words(self, messages: list[dict[str, str]]) -> str:
        """What the model says, in at most 60 words: it is asked once more when it said nothing or too much.

        Empty when it says nothing again.
        """
        reply = await self.model.ask(messages)
        text = utterance(reply)
        if text and count(text) <= WORD_LIMIT:
            return text
        why = f"it has {count(text)} words" if text else "it says nothing"
        again = [
            {"role": "assistant", "content": reply.strip()[:8000] or "…"},
            {"role": "user", "content": AGAIN.format(why=why)},
        ]
        better = utterance(await self.model.ask([*messages, *again]))
        return fit(better or text, WORD_LIMIT)


def utterance(reply: str) -> str:
    """What is said in a model's reply: without code fences, JSON around it, names before it, quotation marks."""
    fenced = _FENCE.search(reply)
    text = (fenced[1] if fenced and fenced[1].strip() else reply).strip()
    start, end = text.find("{"), text.rfind("}")
    if 0 <= start < end:
        doc = schemas.load_json(text[start : end + 1].encode("utf-8", "replace"))
        if isinstance(doc.data, dict) and not doc.problems:
            said = doc.data.get("utterance")
            text = said if isinstance(said, str) else ""
    text = _SPEAKER.sub("", clean(text)).strip()
    while len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and text[-1] not in text[1:-1]:
        text = text[1:-1].strip()
    return text


def _shown(text: str) -> str:
    return fit(clean(text), SHOWN_WORDS)


def _transcript(dialogue: Dialogue) -> str:
    lines = []
    for said, answer in zip(dialogue.said, dialogue.answers, strict=True):
        lines += [f"You: {_shown(said)}", f"Other side: {_shown(answer) or '(nothing)'}"]
    return "\n".join(lines)
