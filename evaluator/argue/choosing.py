"""What the options of ``evaluator argue`` name: who judges, what is asked, and about which reports."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluator.errors import EvaluatorError
from evaluator.findings import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evaluator.argue.formats.report import Report
    from evaluator.argue.judging import Flow
    from evaluator.argue.models import Bank
    from evaluator.argue.work import JudgeChoice, Wanted


def topics(args: argparse.Namespace) -> list[str]:
    """The topics that ``--topics`` names, between blanks or commas."""
    return [t for word in args.topics for t in word.split(",") if t]


def choice_of(args: argparse.Namespace) -> JudgeChoice:
    """Who judges, as the options say."""
    from evaluator.argue.work import JudgeChoice
    from evaluator.judges import providers

    name = args.model_provider or providers.DEFAULT
    if name not in ("lexical", "human"):
        name = providers.provider(name).name
    replies = None if args.disable_cache else Path(f"{args.prefix}.replies.jsonl")
    parameters = dict(args.parameter)
    return JudgeChoice(
        name, args.model_name, args.prompt_config, args.max_tokens, replies, args.human, parameters
    )


def flow_of(args: argparse.Namespace) -> Flow:
    """What is asked, as the options say."""
    from evaluator.argue.judging import Flow

    return Flow(
        args.always_check_all_nuggets,
        getattr(args, "strict", False),
        getattr(args, "negative_assertions", False),
    )


def wanted_of(args: argparse.Namespace, banks: Mapping[str, Bank]) -> list[Wanted] | None:
    """The reports to judge with their nuggets and documents; None if they are invalid, which has been said."""
    from evaluator.argue import work
    from evaluator.argue.formats.requests import limit_of, read_requests, truncate
    from evaluator.findings import Log

    log = Log(args.input)
    reports = work.load(Path(args.input), log, topics(args))
    _tell_findings(log)
    if log.invalid:
        return None
    if args.do_nugget_alignment_check:
        work.aligned(reports, banks)
    if args.truncate_reports:
        requests = read_requests(args.requests) if args.requests else {}
        limits = (
            limit_of(requests.get(r.topic_id)) or (args.max_report_length, "characters") for r in reports
        )
        whole, reports = reports, [truncate(r, *limit) for r, limit in zip(reports, limits, strict=True)]
        cut = sum(len(a.sentences) != len(b.sentences) for a, b in zip(whole, reports, strict=True))
        if cut:
            say(f"{count(cut, 'report')} cut at the limit; what comes after it is not judged")
    elif args.requests is not None:
        say("--requests says nothing without --truncate-reports: reports are judged in full")
    lookup = work.documents(args.collection_dir, args.collection)
    if lookup is None and not args.report_documents and any(r.cited for r in reports):
        raise EvaluatorError(
            "the reports cite documents, and there is no collection",
            f"neither -C nor {work.LOOKUP_VARIABLE} names one",
            "give -C DIR, set DOC_LOOKUP, or use the documents in the reports: --report-documents",
            usage=True,
        )
    if lookup is not None and lookup.missing:
        say(f"not in the look-up folder: {', '.join(plain(m, 60) for m in lookup.missing)}")
    found = work.paired(reports, banks, lookup, carried=args.report_documents)
    if len(found) < len(reports):
        say(
            f"{len(reports) - len(found):,} of {count(len(reports), 'report')} left out: there are no nuggets for the topic"
        )
    if not found:
        raise EvaluatorError(
            "no report is on a topic that has nuggets", fix="check that topic ids are the same"
        )
    _tell_unknown([r for r, _, _ in found], {id(r): text for r, _, text in found})
    return found


def _tell_unknown(reports: Sequence[Report], texts: Mapping[int, Any]) -> None:
    unknown = dict.fromkeys(d for r in reports for d in r.cited if texts[id(r)](d) is None)
    if unknown:
        names = ", ".join(plain(d, 60) for d in list(unknown)[:5])
        more = f" and {len(unknown) - 5:,} more" if len(unknown) > 5 else ""
        say(f"{count(len(unknown), 'cited document')} in no collection, which support nothing: {names}{more}")


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def say(text: str) -> None:
    """One line to stderr."""
    print(text, file=sys.stderr)


def _tell_findings(log: Any) -> None:
    if log.counts:
        lines = [str(f) for f in log.sorted()[:50]]
        print("\n".join([*lines, f"{log.file}: {log.summary()}"]), file=sys.stderr)
