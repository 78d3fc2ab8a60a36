"""The Python interface, under the names of Auto-ARGUE: ``await evaluate_report(...)``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
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
from evaluator.argue.work import JudgeChoice, OpenJudge, documents
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
    """Judge one report.

    ``nuggets`` is a file or folder, or a bank. Without ``collection_dir`` the folder of DOC_LOOKUP counts, else the documents
    that the report carries. ``cache`` is a file that keeps replies. Calls that run at the same time share the limit of open
    questions (ARGUE_MAX_CONCURRENCY). Raises :class:`evaluator.errors.EvaluatorError`, a ValueError for a broken report.
    """
    given = report if isinstance(report, Report) else Report.model_validate(report)
    bank = nuggets if isinstance(nuggets, Bank) else _bank(Path(nuggets), given.topic_id)
    lookup = _lookup(None if collection_dir is None else str(collection_dir), tuple(collection_ids or ()))
    choice = JudgeChoice(
        str(provider),
        model_name,
        None if prompt_config is None else Path(prompt_config),
        max_tokens,
        None if cache is None else Path(cache),
    )
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
    """A judge that several calls in one event loop use."""

    judge: Judge
    opened: OpenJudge
    users: int = 0


_open: dict[tuple[int, str], _Shared] = {}


@asynccontextmanager
async def _shared(choice: JudgeChoice) -> AsyncIterator[Judge]:
    """The judge of a choice; the last of those who use it at the same time closes it."""
    key = id(asyncio.get_running_loop()), repr(choice)
    if key not in _open:
        opened = OpenJudge(choice)
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
                shared.opened.__exit__()
