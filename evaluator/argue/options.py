"""The options of the kind ``report``, checked by hand; ``schemas/kinds/report.schema.json`` says the same in full."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evaluator.argue.formats.requests import Unit
from evaluator.argue.judging import MAX_QUESTIONS
from evaluator.argue.scoring.topic import Credit
from evaluator.errors import EvaluatorError

JUDGES = ("lexical", "openai", "human")
CREDITS = ("citation", "sentence", "none")
UNITS = ("characters", "words")
LABELS = "judgments"

Check = tuple[Callable[[Any], bool], str]


def _path(value: Any) -> bool:
    return (
        isinstance(value, str)
        and bool(value)
        and not value.startswith("/")
        and "\0" not in value
        and ".." not in value.split("/")
    )


def _paths(value: Any) -> bool:
    return _path(value) or (isinstance(value, list) and bool(value) and all(map(_path, value)))


def _positive(value: Any) -> bool:
    return type(value) is int and value >= 1


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _boolean(value: Any) -> bool:
    return isinstance(value, bool)


_JUDGE: Mapping[str, Check] = {
    "type": (lambda v: v in JUDGES, f"one of {', '.join(JUDGES)}"),
    "model": (_text, "the name of a model"),
    "prompts": (_path, "a file in the truths"),
    "parameters": (lambda v: isinstance(v, dict), "an object"),
    "max_tokens": (_positive, "a positive integer"),
    "labels": (_path, "a file or folder in the truths"),
    "reliability": (_path, "a file in the truths"),
}
_OPTIONS: Mapping[str, Check] = {
    "judge": (lambda v: isinstance(v, dict), "an object with type"),
    "requests": (_path, "a file of the inputs"),
    "collection": (_paths, "a file of the inputs, or a list of them"),
    "nuggets": (_path, "a file or folder in the truths"),
    "credit": (lambda v: v in CREDITS, f"one of {', '.join(CREDITS)}"),
    "penalize_missing_topics": (_boolean, "true or false"),
    "always_check_all_nuggets": (_boolean, "true or false"),
    "strict": (_boolean, "true or false"),
    "negative_assertions": (_boolean, "true or false"),
    "limit": (_positive, "a positive integer"),
    "length": (lambda v: v in UNITS, f"one of {', '.join(UNITS)}"),
    "truncate": (_boolean, "true or false"),
    "track": (lambda v: v is None or _text(v), "the name of a track, or none"),
    "documents_in_reports": (_boolean, "true or false"),
    "max_questions": (_positive, "a positive integer"),
    "interval": (_boolean, "true or false"),
}


class ReportOptions:
    """The kind's options. Raises :class:`EvaluatorError` that lists everything wrong with them."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        judge = options.get("judge", {"type": "lexical"})
        wrong = _wrong(options, _OPTIONS, "")
        if isinstance(judge, dict):
            wrong += _wrong(judge, _JUDGE, "judge.")
            if judge.get("type", "lexical") == "openai" and "model" not in judge:
                wrong.append("judge.model is missing: judge.type openai asks a model")
        if wrong:
            raise EvaluatorError(
                "the options of the kind report are wrong",
                "; ".join(wrong),
                f"it has {', '.join(_OPTIONS)}; see docs/reference/task.md",
            )
        self.judge: str = judge.get("type", "lexical")
        self.model: str | None = judge.get("model")
        self.prompts: str | None = judge.get("prompts")
        self.labels: str = judge.get("labels", LABELS)
        self.reliability: str | None = judge.get("reliability")
        self.parameters: dict[str, Any] = dict(judge.get("parameters", {}))
        if "max_tokens" in judge:
            self.parameters["max_tokens"] = judge["max_tokens"]
        self.requests: str | None = options.get("requests")
        collection = options.get("collection", [])
        self.collection: tuple[str, ...] = (collection,) if isinstance(collection, str) else tuple(collection)
        self.nuggets: str | None = options.get("nuggets")
        self.credit: Credit = options.get("credit", "citation")
        self.penalize: bool = options.get("penalize_missing_topics", True)
        self.everything: bool = options.get("always_check_all_nuggets", False)
        self.strict: bool = options.get("strict", False)
        self.negation: bool = options.get("negative_assertions", False)
        unit: Unit = options.get("length", "characters")
        self.limit: tuple[int, Unit] | None = (options["limit"], unit) if "limit" in options else None
        self.truncate: bool = options.get("truncate", True)
        named = options.get("track")
        self.track: str | None = None if named in (None, "none") else named
        self.carried: bool = options.get("documents_in_reports", False)
        self.max_questions: int = options.get("max_questions", MAX_QUESTIONS)
        self.interval: bool = options.get("interval", True)


def _wrong(given: Mapping[str, Any], known: Mapping[str, Check], prefix: str) -> list[str]:
    found = []
    for key, value in given.items():
        if key not in known:
            found.append(f"there is no option {prefix}{str(key)[:40]}")
        elif not known[key][0](value):
            found.append(f"{prefix}{key} has to be {known[key][1]}")
    return found
