"""The Python interface, under the names of Auto-ARGUE: ``await evaluate_report(...)``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

from evaluator.argue.asking import Judge
from evaluator.argue.formats.lookup import Lookup
from evaluator.argue.formats.report import Report
from evaluator.argue.judging import Flow, Judging
from evaluator.argue.models import Bank, JudgedReport, Judgment, JudgmentType, Match, Segment
from evaluator.argue.work import JudgeChoice, documents, open_judge
from evaluator.errors import EvaluatorError
from evaluator.findings import show

__all__ = [
    "JudgedReport",
    "Judgment",
    "JudgmentType",
    "Match",
    "ModelProvider",
    "Segment",
    "evaluate_report",
]


class ModelProvider(StrEnum):
    """Who judges. ``LEXICAL`` is the offline judge, which needs no key."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    TOGETHER = "together"
    HUGGINGFACE = "huggingface"
    HUGGINGFACE_LOCAL = "huggingface_local"
    FROM_ENV = "from_env"
    LEXICAL = "lexical"


async def evaluate_report(
    report: Report | Mapping[str, Any],
    nuggets: Path | str | Bank,
    collection_ids: Sequence[str] | None = None,
    collection_dir: Path | str | None = None,
    provider: ModelProvider | str = ModelProvider.TOGETHER,
    model_name: str | None = None,
    *,
    prompt_config: Path | str | None = None,
    always_check_all_nuggets: bool = False,
    max_tokens: int = 10,
    cache: Path | str | None = None,
    strict: bool = False,
    negative_assertions: bool = False,
) -> JudgedReport:
    """Judge one report. Calls that run at the same time share the limit of open questions (ARGUE_MAX_CONCURRENCY).

    Args:
        report: a report, or its JSON data in any accepted form.
        nuggets: a file or folder of nuggets, or a bank.
        collection_ids: the collections that are looked at, in this order; the default ones without.
        collection_dir: the folder with the documents; without one that of DOC_LOOKUP, else the documents in the report.
        provider: who judges.
        model_name: the provider's name of the model; its default without.
        prompt_config: a file of prompts in the place of ours.
        always_check_all_nuggets: the judge decides relevance, and is asked about all nuggets for every citation.
        max_tokens: of a reply.
        cache: a file that keeps replies.
        strict: ask what the measures of kept-out answers need (ours).
        negative_assertions: ask what the measures of statements of ignorance need (ours).

    Returns:
        The report with its judgments; its ``model_dump()`` is a line of a judgments file.

    Raises:
        EvaluatorError: the judge, nuggets or documents cannot be used, or a question could not be asked.
        ValueError: the report is broken.
    """
    given = report if isinstance(report, Report) else Report.model_validate(report)
    bank = nuggets if isinstance(nuggets, Bank) else _bank(Path(nuggets), given.topic_id)
    lookup = _lookup(None if collection_dir is None else str(collection_dir), tuple(collection_ids or ()))
    prompts, replies = (None if p is None else Path(p) for p in (prompt_config, cache))
    choice = JudgeChoice(str(provider), model_name, prompts, max_tokens, replies)
    texts = (lookup or Lookup([])).within(given).text if lookup is None else lookup.text
    async with _shared(choice) as judge:
        flow = Flow(always_check_all_nuggets, strict, negative_assertions)
        return await Judging(judge, flow).report(given, bank, texts)


def _bank(path: Path, topic: str) -> Bank:
    banks = _banks(path.resolve(), tuple(_stamps(path)))
    if topic not in banks:
        raise EvaluatorError(
            f"there are no nuggets for topic {show(topic)}",
            f"{path.name} has those of {', '.join(map(show, list(banks)[:5]))}",
        )
    return banks[topic]


def _stamps(path: Path) -> Iterable[tuple[str, int]]:
    for one in sorted(path.iterdir()) if path.is_dir() else [path]:
        yield one.name, one.stat().st_mtime_ns if one.exists() else 0


@lru_cache(maxsize=8)
def _banks(path: Path, stamps: tuple[tuple[str, int], ...]) -> dict[str, Bank]:
    from evaluator.argue.formats.nugget_formats import load_nuggets

    return load_nuggets(path)


@lru_cache(maxsize=4)
def _lookup(place: str | None, collections: tuple[str, ...]) -> Lookup | None:
    return documents(place, collections)


@dataclass
class _Shared:
    """A judge that several calls in one event loop use, and what closes it."""

    judge: Judge
    opened: AbstractContextManager[Judge]
    users: int = 0


_open: dict[tuple[int, str], _Shared] = {}


@asynccontextmanager
async def _shared(choice: JudgeChoice) -> AsyncIterator[Judge]:
    """The judge of a choice; the last of those who use it at the same time closes it."""
    key = id(asyncio.get_running_loop()), repr(choice)
    if key not in _open:
        opened = open_judge(choice)
        _open[key] = _Shared(opened.__enter__(), opened)
    shared = _open[key]
    shared.users += 1
    try:
        yield shared.judge
    finally:
        shared.users -= 1
        if not shared.users:
            del _open[key]
            try:
                await shared.judge.close()
            finally:
                shared.opened.__exit__(None, None, None)
