"""Prompts: those that come with the evaluator, and a configuration that replaces some of them.

Variables stand in braces in a user prompt and are filled in once, literally: what a participant wrote is never a template. Our
own prompts get every text as a JSON string, so that nothing in it can pretend to be a line of the prompt; the prompts of a
configuration get texts as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import schemas
from evaluator.argue.asking import Question
from evaluator.argue.formats.lines import Collector, refused
from evaluator.argue.models import DEFAULTS, JudgmentType
from schemas import Problem, render_pointer

T = JudgmentType
FOLDER = Path(__file__).with_name("prompts")
MAX_BYTES = 1 << 20
SENTENCE_CHARACTERS = 10_000  # what is shown of a sentence
PREVIOUS_CHARACTERS = 40_000  # of the sentences before it, the last ones
_FIELDS: Mapping[str, str] = {
    "sentence": "sentence",
    "document": "document",
    "previous_sentences": "previous",
    "nugget_question": "nugget_question",
    "nugget_answer": "nugget_answer",
}
_VARIABLE = re.compile(r"\{(" + "|".join(_FIELDS) + r")\}")
_WORD = re.compile(r"(?<![a-z])(yes|no)(?![a-z])", re.IGNORECASE)
# Up to its last end, whose beginning some servers leave out; and one that was cut off before its end.
_THOUGHT = re.compile(r"^.*</think(?:ing)?>|<think(?:ing)?>.*$", re.IGNORECASE | re.DOTALL)

_DEFAULTS = {"YES": True, "NO": False}

# key -> the variables that its user prompt has to hold; the first six are those that can be configured
VARIABLES: Mapping[str, tuple[str, ...]] = {
    "negative_assertion": ("sentence",),
    "requires_citation": ("sentence",),
    "first_instance": ("sentence", "previous_sentences"),
    "cited_document_relevance": ("sentence", "document"),
    "sentence_attested": ("sentence", "document"),
    "sentence_answers_question": ("sentence", "nugget_question", "nugget_answer"),
    "negative_assertion_confirmed": ("sentence", "nugget_question"),
}
CONFIGURABLE = tuple(VARIABLES)[:6]
# A wrong answer is recognised as a right one is.
KEY_OF: Mapping[JudgmentType, str] = {
    **{T(key.upper()): key for key in VARIABLES},
    T.SENTENCE_GIVES_WRONG_ANSWER: "sentence_answers_question",
}


@dataclass(frozen=True)
class Prompt:
    """The prompt of one judgment type. ``default`` counts where a reply cannot be read; ``quoted``: see the module."""

    system: str
    user: str
    default: bool
    quoted: bool = True

    def messages(self, question: Question) -> list[dict[str, str]]:
        """What a model is asked."""

        def fill(found: re.Match[str]) -> str:
            text = _cut(found[1], getattr(question, _FIELDS[found[1]]))
            return json.dumps(text, ensure_ascii=False) if self.quoted else text

        user = {"role": "user", "content": _VARIABLE.sub(fill, self.user)}
        return [{"role": "system", "content": self.system}, user] if self.system else [user]


def _cut(name: str, text: str) -> str:
    """Texts of participants are bounded; documents and nuggets are the organiser's, and shown in full."""
    if name == "sentence" and len(text) > SENTENCE_CHARACTERS:
        return text[:SENTENCE_CHARACTERS] + " [cut]"
    if name == "previous_sentences" and len(text) > PREVIOUS_CHARACTERS:
        return "[cut] " + text[-PREVIOUS_CHARACTERS:]
    return text


@dataclass(frozen=True)
class Prompts:
    """The prompts of all types by their key; ``changed`` are those that a configuration has replaced."""

    by_key: Mapping[str, Prompt]
    changed: tuple[str, ...] = ()

    def of(self, kind: JudgmentType) -> Prompt:
        """The prompt of a judgment type."""
        return self.by_key[KEY_OF[kind]]

    def digest(self) -> str:
        """The SHA-256 (hex) of all prompts and defaults."""
        return schemas.digest(
            {key: [p.system, p.user, p.default, p.quoted] for key, p in sorted(self.by_key.items())}
        )


@cache
def own_prompts() -> Prompts:
    """The prompts that come with the evaluator."""
    return Prompts(
        {
            key: Prompt(
                f"{_read(f'{key}.system')}\n\n{_read('rules')}",
                _read(f"{key}.user"),
                DEFAULTS[T(key.upper())],
            )
            for key in VARIABLES
        }
    )


@cache
def _read(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text("utf-8").strip()


def read_prompts(path: Path | None = None) -> Prompts:
    """Our prompts, with those of a configuration file in the place of ours.

    Raises :class:`evaluator.errors.EvaluatorError` that lists everything wrong with the file.
    """
    if path is None:
        return own_prompts()
    prompts, problems = configured(path)
    if problems:
        raise refused(
            f"the prompt configuration {path.name} cannot be used",
            problems,
            f"write an object with some of {', '.join(CONFIGURABLE)}, each with user_prompt and system_prompt",
        )
    return prompts


def configured(source: Path | Mapping[str, Any]) -> tuple[Prompts, list[Problem]]:
    """The prompts under a configuration (a file or its data), and every problem with its JSON pointer."""
    if isinstance(source, Path):
        doc = schemas.load_json(source, source.name, max_bytes=MAX_BYTES)
    else:
        doc = schemas.load_json(schemas.canonical(source), "prompts", max_bytes=MAX_BYTES)
    problems = list(doc.problems) or schemas.validate(doc, "argue-prompts")
    if not isinstance(doc.data, dict):
        return own_prompts(), problems
    given = {k: v for k, v in doc.data.items() if k in CONFIGURABLE and isinstance(v, dict)}
    collector = Collector(doc.name)
    for key, value in given.items():
        _check_variables(key, value, collector)
    problems += collector.problems
    if problems:
        return own_prompts(), problems
    ours = own_prompts().by_key
    configured = {
        key: Prompt(
            value["system_prompt"],
            value["user_prompt"],
            _DEFAULTS.get(str(value.get("default_response")), ours[key].default),
            quoted=False,
        )
        for key, value in given.items()
    }
    return Prompts({**ours, **configured}, tuple(configured)), []


def _check_variables(key: str, value: Mapping[str, Any], collector: Collector) -> None:
    """What the schema cannot see: a user prompt has all variables of its type and no others, a system prompt none."""
    user, system = (value.get(name) for name in ("user_prompt", "system_prompt"))
    if isinstance(user, str):
        found, wanted, at = set(_VARIABLE.findall(user)), VARIABLES[key], render_pointer((key, "user_prompt"))
        for name in wanted:
            if name not in found:
                collector.add(
                    f"lacks the variable {{{name}}}", f"write {{{name}}} where the text belongs", at
                )
        for name in sorted(found - set(wanted)):
            what = f"has the variable {{{name}}}, which {key} does not have"
            collector.add(what, "leave it out", at)
    for name in sorted(set(_VARIABLE.findall(system))) if isinstance(system, str) else ():
        what = f"has the variable {{{name}}}; variables are for user_prompt"
        collector.add(what, "move it there", render_pointer((key, "system_prompt")))


def reading(reply: str) -> bool | None:
    """What a reply says: the one of YES and NO that stands in it as a word, in any case; None if neither or both do.

    What a model thought aloud before (``<think>``) is left out.
    """
    said = {word.lower() for word in _WORD.findall(_THOUGHT.sub(" ", reply[:100_000]))}
    return said == {"yes"} if len(said) == 1 else None
