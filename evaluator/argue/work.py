"""Judging files of reports: who judges, which reports, what it will take, and what need not be judged again.

The command line and the Python interface both work with this. :class:`Work` is what a judging is about: reports with their
nuggets and the texts of their documents.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.argue.arguments import topics
from evaluator.argue.asking import Judge
from evaluator.argue.formats.lines import refused
from evaluator.argue.formats.lookup import Lookup, open_lookup
from evaluator.argue.formats.report import Report, read_reports
from evaluator.argue.judges.model import MAX_TOKENS, Estimate, Estimating, ModelJudge
from evaluator.argue.judging import Counts, Flow, Judging, fingerprint
from evaluator.argue.models import Bank, JudgedReport
from evaluator.argue.prompting import read_prompts
from evaluator.argue.terminal import Progress, count, say, say_findings
from evaluator.errors import EvaluatorError
from evaluator.findings import Log, plain, show
from evaluator.judges import providers

LOOKUP_VARIABLE = "DOC_LOOKUP"
SMALL = 16 << 20  # bytes of a collection whose index is not worth a file next to it


class Work(NamedTuple):
    """A report to judge, the nuggets of its topic, and the text of a document by its id (None for an unknown one)."""

    report: Report
    bank: Bank
    text: Callable[[str], str | None]

    @property
    def key(self) -> tuple[str, str]:
        """Run and topic."""
        return self.report.run_id, self.report.topic_id


# --- who judges ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JudgeChoice:
    """Who judges: a provider's name or one of :data:`providers.KEYLESS`, and what belongs to it.

    ``model`` is the provider's name of it, or the folder of an entailment model.
    """

    provider: str = providers.DEFAULT
    model: str | None = None
    prompts: Path | None = None
    max_tokens: int = MAX_TOKENS
    replies: Path | None = None  # where replies are kept
    human: Path | None = None  # judgments of people
    parameters: Mapping[str, Any] = field(default_factory=dict)


def choice_of(args: argparse.Namespace) -> JudgeChoice:
    """Who judges, as the options say."""
    name = args.model_provider or providers.DEFAULT
    if name not in providers.KEYLESS:
        name = providers.provider(name).name
    replies = None if args.disable_cache else Path(f"{args.prefix}.replies.jsonl")
    parameters = dict(args.parameter)
    return JudgeChoice(
        name, args.model_name, args.prompt_config, args.max_tokens, replies, args.human, parameters
    )


def flow_of(args: argparse.Namespace) -> Flow:
    """What is asked, as the options say."""
    strict, negation = (getattr(args, name, False) for name in ("strict", "negative_assertions"))
    return Flow(args.always_check_all_nuggets, strict, negation)


@contextmanager
def open_judge(choice: JudgeChoice, env: Mapping[str, str] | None = None) -> Iterator[Judge]:
    """The judge of a choice; what has to be ended after it (a local server, the file of replies) is.

    Args:
        choice: who judges.
        env: the environment variables with keys and addresses; None is this process's, with a file ``.env``.

    Raises:
        EvaluatorError: the choice names nobody who can judge, or its files cannot be read.
    """
    with ExitStack() as stack:
        prompts = read_prompts(choice.prompts)  # also says what is wrong with them where no model is asked
        if choice.provider in providers.KEYLESS:
            yield _without_a_key(choice)
        else:
            from evaluator.judges.chat import Chat
            from evaluator.judges.replies import Replies

            found = providers.endpoint(choice.provider, model=choice.model, env=env)
            model, lacks, begin = found.model, found.lacks, None
            replies = stack.enter_context(Replies(choice.replies))
            if found.provider == "huggingface_local" and found.base_url is None:
                from evaluator.judges.local_server import LocalServer, lacking, served_name

                # A server takes minutes to load a model: not before there is a question that was never answered.
                model, lacks = served_name(found.model), lacking(found.model)

                def begin() -> str:
                    return stack.enter_context(LocalServer(found.model)).base_url

            chat = Chat(
                model=model,
                base_url=found.base_url,
                api_key=found.key or ("none" if found.base_url else None),
                concurrency=found.concurrency,
                replies=replies,
                parameters={"max_tokens": choice.max_tokens, **choice.parameters},
            )
            yield ModelJudge(
                chat, prompts, name=found.provider, width=found.concurrency, lacks=lacks, begin=begin
            )


def _without_a_key(choice: JudgeChoice) -> Judge:
    """One of :data:`providers.KEYLESS`. Raises :class:`EvaluatorError`."""
    if choice.provider == "lexical":
        from evaluator.argue.judges.lexical import LexicalJudge

        return LexicalJudge()
    if choice.provider == "human":
        from evaluator.argue.judges.human import read_annotators

        if choice.human is not None:
            return read_annotators(choice.human)
        what = "people judge, but their judgments are not named"
        raise EvaluatorError(what, fix="name the file or folder with --human", usage=True)
    from evaluator.argue.judges.nli import NliJudge

    if choice.model is None:
        what = f"-p {choice.provider} needs the folder of an entailment model"
        raise EvaluatorError(what, fix="name it with -m", usage=True)
    return NliJudge(choice.provider, Path(choice.model))


# --- what is judged --------------------------------------------------------------------------------------------


def documents(
    place: str | Path | None, collections: Sequence[str] | None, env: Mapping[str, str] | None = None
) -> Lookup | None:
    """The look-up of ``-C`` and ``-c``, or of DOC_LOOKUP; None if neither names one.

    Raises :class:`EvaluatorError` for a place that is not there or has none of the collections.
    """
    env = providers.environment() if env is None else env
    named = str(place) if place is not None else env.get(LOOKUP_VARIABLE, "").strip()
    if not named:
        return None
    path = Path(named)
    if not path.exists():
        origin = "-C" if place is not None else LOOKUP_VARIABLE
        raise EvaluatorError(f"there is no folder {plain(named, 200)}", f"{origin} names it", usage=True)
    cache = env.get("CACHE_DIR", "").strip()
    return open_lookup(path, collections or None, cache=Path(cache) if cache else None, small=SMALL)


def _load(path: Path, log: Log, chosen: Sequence[str]) -> list[Report]:
    """The reports of a file, those on the topics ``chosen`` only if some are; [] if they are invalid.

    A file may hold several runs; a run has one report a topic. Raises :class:`EvaluatorError` if no report is left.
    """
    reports: list[Report] = []
    seen: dict[tuple[str, str], int | None] = {}
    for report in read_reports(path, log, follow=True):
        key = report.run_id, report.topic_id
        if key in seen:
            what = f"the topic {show(report.topic_id)} was answered by this run already, in line {seen[key]}"
            log.add("F310", report.line, what, report.topic_id.encode())
            continue
        seen[key] = report.line
        if not chosen or report.topic_id in chosen:
            reports.append(report)
    if not reports and not log.invalid:
        raise EvaluatorError(
            f"{path.name} has no report on {', '.join(map(show, chosen[:5]))}",
            fix="check --topics",
            usage=True,
        )
    return [] if log.invalid else reports


def _refuse_other_topics(reports: Sequence[Report], banks: Mapping[str, Bank]) -> None:
    """Raises :class:`EvaluatorError` unless every report has nuggets and every topic with nuggets a report of every run."""
    topics_with_nuggets = [t for t, b in banks.items() if b.nuggets]
    answered: dict[str, set[str]] = {}
    for r in reports:
        answered.setdefault(r.run_id, set()).add(r.topic_id)
    problems = [
        f"{show(r.topic_id)} of run {show(r.run_id)} has no nuggets"
        for r in reports
        if r.topic_id not in topics_with_nuggets
    ]
    problems += [
        f"run {show(run)} has no report on {show(t)}"
        for run, those in answered.items()
        for t in topics_with_nuggets
        if t not in those
    ]
    if problems:
        raise refused(
            "reports and nuggets are not of the same topics",
            problems,
            "leave --do-nugget-alignment-check out, or complete them",
        )


def _cut(args: argparse.Namespace, reports: Sequence[Report]) -> list[Report]:
    """The reports, cut at their limits if that is wanted."""
    from evaluator.argue.formats.requests import limit_of, read_requests, truncate

    if not args.truncate_reports:
        if args.requests is not None:
            say("--requests says nothing without --truncate-reports: reports are judged in full")
        return list(reports)
    requests = read_requests(args.requests) if args.requests else {}
    usual = args.max_report_length, "characters"
    short = [truncate(r, *(limit_of(requests.get(r.topic_id)) or usual)) for r in reports]
    if cut := sum(len(a.sentences) != len(b.sentences) for a, b in zip(reports, short, strict=True)):
        say(f"{count(cut, 'report')} cut at the limit; what comes after it is not judged")
    return short


def work_of(args: argparse.Namespace, banks: Mapping[str, Bank]) -> list[Work] | None:
    """The reports to judge with their nuggets and documents; None if they are invalid, which has been said.

    Raises :class:`EvaluatorError` if there is nothing to judge, or no documents to judge with.
    """
    log = Log(args.input)
    reports = _load(Path(args.input), log, topics(args))
    say_findings(log)
    if log.invalid:
        return None
    if args.do_nugget_alignment_check:
        _refuse_other_topics(reports, banks)
    reports = _cut(args, reports)
    lookup = documents(args.collection_dir, args.collection)
    if lookup is None and not args.report_documents and any(r.cited for r in reports):
        raise EvaluatorError(
            "the reports cite documents, and there is no collection",
            f"neither -C nor {LOOKUP_VARIABLE} names one",
            "give -C DIR, set DOC_LOOKUP, or use the documents in the reports: --report-documents",
            usage=True,
        )
    if lookup is not None and lookup.missing:
        say(f"not in the look-up folder: {', '.join(plain(m, 60) for m in lookup.missing)}")
    whole = lookup or Lookup([])
    found = [
        Work(r, banks[r.topic_id], (whole.within(r) if args.report_documents else whole).text)
        for r in reports
        if r.topic_id in banks and banks[r.topic_id].nuggets
    ]
    if left := len(reports) - len(found):
        say(f"{left:,} of {count(len(reports), 'report')} left out: there are no nuggets for the topic")
    if not found:
        raise EvaluatorError(
            "no report is on a topic that has nuggets", fix="check that topic ids are the same"
        )
    unknown = list(dict.fromkeys(d for w in found for d in w.report.cited if w.text(d) is None))
    if unknown:
        names = ", ".join(plain(d, 60) for d in unknown[:5])
        more = f" and {len(unknown) - 5:,} more" if len(unknown) > 5 else ""
        say(f"{count(len(unknown), 'cited document')} in no collection, which support nothing: {names}{more}")
    return found


# --- judging ---------------------------------------------------------------------------------------------------


def estimated(work: Sequence[Work], judge: Judge, flow: Flow) -> Estimating:
    """What judging would take at most, counted."""
    counting = Estimating(judge if isinstance(judge, ModelJudge) else None)
    asyncio.run(Judging(counting, flow).reports(work))
    return counting


def allowed(
    args: argparse.Namespace, judge: Judge, counted: Estimating, *, what: str, times: int = 1
) -> Estimate | None:
    """Say what asking will take at most; None if only that was wanted (``--dry-run``).

    Args:
        args: ``--price``, ``--max-calls`` and ``--dry-run``.
        judge: who will be asked.
        counted: the questions.
        what: the asking, as the subject of a message.
        times: how often everything is asked.

    Raises:
        EvaluatorError: it is more than ``--max-calls`` allows, or the judge cannot be asked.
    """
    price = tuple(args.price) if args.price else providers.PRICES.get(str(judge.identity().get("model")))
    expected = counted.estimate(price)  # type: ignore[arg-type]  # two values, says argparse
    calls = expected.calls * times
    say(f"{judge.name}: {expected}{'' if times == 1 else f', {times:,} times'}")
    if args.max_calls is not None and calls > args.max_calls:
        raise EvaluatorError(
            f"{what} may take {calls:,} calls", f"--max-calls allows {args.max_calls:,}", usage=True
        )
    if args.dry_run:
        return None
    lacks = getattr(judge, "lacks", None)
    if lacks is not None and calls:
        raise lacks
    return expected


@dataclass(frozen=True)
class Reused:
    """Stored judgments that are taken: ``kept`` by (run, topic); how many are ``stale``, and judged again.

    ``foreign``: how many of those kept do not say what they were made from.
    """

    kept: Mapping[tuple[str, str], JudgedReport]
    stale: int
    foreign: int


def reusable(stored: Sequence[JudgedReport], work: Sequence[Work], judge: Judge, flow: Flow) -> Reused:
    """Those stored judgments that need not be made again.

    Ours say what they were made from; those of Auto-ARGUE do not, and count as long as the sentences are the same.
    """
    by_key = {(j.run_id, j.request_id): j for j in stored}
    kept: dict[tuple[str, str], JudgedReport] = {}
    stale = foreign = 0
    for item in work:
        judged = by_key.get(item.key)
        if judged is None:
            continue
        origin = judged.judge.get("fingerprint")
        # Auto-ARGUE holds citations as a set, so its files have them in any order.
        if origin is None and [(s.text, set(s.doc_ids)) for s in judged.segments] == [
            (s.text, set(s.citations)) for s in item.report.sentences
        ]:
            kept[item.key], foreign = judged, foreign + 1
        elif origin is not None and origin == fingerprint(*item, judge, flow):
            kept[item.key] = judged
        else:
            stale += 1
    return Reused(kept, stale, foreign)


def annotate(work: Sequence[Work], judge: Judge, flow: Flow, total: int) -> tuple[list[JudgedReport], Counts]:
    """The judged reports, and what was asked for them; ``total`` questions are the most, for the progress bar.

    Raises :class:`EvaluatorError` if one could not be judged; replies so far are kept.
    """

    async def everything(progress: Progress) -> tuple[list[JudgedReport | EvaluatorError], Counts]:
        judging = Judging(judge, flow, on_answer=progress.tick)
        try:
            return await judging.reports(work), judging.counts
        finally:
            await judge.close()

    with Progress(total, "judging") as progress:
        results, counts = asyncio.run(everything(progress))
    judged = [r for r in results if isinstance(r, JudgedReport)]
    if failed := [r for r in results if not isinstance(r, JudgedReport)]:
        raise EvaluatorError(
            f"{len(failed):,} of {len(results):,} reports could not be judged",
            "; ".join(p for p in (failed[0].what, failed[0].why) if p),
            failed[0].fix or "run it again: what was answered is kept",
            usage=failed[0].usage,
        )
    if (why := counts.failure) is not None:
        raise EvaluatorError("these would be no judgments", why, "try another model, prompts or --max-tokens")
    return judged, counts
