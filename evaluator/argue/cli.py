"""``evaluator argue``: the command line of Auto-ARGUE, and what it lacks (see :mod:`evaluator.argue.trust`).

``evaluator argue INPUT NUGGETS OUT_PREFIX`` takes the options of Auto-ARGUE in both spellings (``--prompt-config`` and
``--prompt_config``). A first word ``annotate``, ``score``, ``agreement``, ``correlation``, ``consistency``, ``canaries`` or ``fit`` is
a command of its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluator.argue.arguments import score_parser, topics, whole_parser
from evaluator.argue.models import COMPAT
from evaluator.argue.terminal import count, say
from evaluator.errors import EvaluatorError
from evaluator.findings import plain
from evaluator.judges.providers import KEYLESS

if TYPE_CHECKING:
    from evaluator.argue.asking import Judge
    from evaluator.argue.judging import Counts, Flow
    from evaluator.argue.models import Bank, JudgedReport
    from evaluator.argue.scoring.measures import Options
    from evaluator.argue.scoring.runs import RunScores
    from evaluator.argue.work import Work

TRUST = ("agreement", "correlation", "consistency", "canaries")
COMMANDS = ("annotate", "score", "fit", *TRUST)
SHOWN = ("nugget_coverage", "nugget_coverage_weighted", "sentence_support", "f1", "f1_weighted")
Judged = dict[tuple[str, str], "JudgedReport"]  # by run and topic


def add_command(commands: Any) -> None:
    """Add ``argue`` to argparse's ``commands``, for the list of commands; its arguments are parsed by :func:`call`."""
    parser = commands.add_parser(
        "argue", help="judge and score cited reports, as Auto-ARGUE does", add_help=False
    )
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    parser.set_defaults(call=lambda args: call(args.rest))


def call(words: Sequence[str]) -> int:
    """Do what the words after ``evaluator argue`` say. Returns the exit code. Raises :class:`EvaluatorError`."""
    name = words[0] if words and words[0] in COMMANDS else ""
    if name in TRUST:
        from evaluator.argue import trust

        return trust.call(name, words[1:])
    if name == "fit":
        from evaluator.argue.judges.nli import fit_command

        return fit_command(words[1:])
    parser = score_parser() if name == "score" else whole_parser(name)
    args = parser.parse_args(words[1:] if name else words)
    if name == "score":
        if len(args.places) not in (2, 3):
            parser.error("give [INPUT] NUGGETS OUT_PREFIX")
        *rest, nuggets, prefix = args.places
        usual = vars(whole_parser("").parse_args([rest[0] if rest else "-", nuggets, prefix]))
        args = argparse.Namespace(**usual | vars(args))
    if name:
        args.actions = [name]
    return run(args)


def run(args: argparse.Namespace) -> int:
    """Annotate, score, or both. Returns 1 if the reports are invalid."""
    from evaluator.argue.formats.nugget_formats import load_nuggets
    from evaluator.formats.leaderboards import FORMATS

    for form in args.leaderboard:
        if form not in FORMATS:
            raise EvaluatorError(
                f"there is no leaderboard format {plain(form, 40)!r}",
                f"there are {', '.join(FORMATS)}",
                usage=True,
            )
    chosen = topics(args)
    banks = {t: b for t, b in load_nuggets(Path(args.nuggets)).items() if not chosen or t in chosen}
    if not banks:
        raise EvaluatorError(
            "there are no nuggets for the topics", f"--topics names {', '.join(chosen[:5])}", usage=True
        )
    out = Path(f"{args.prefix}.judgments.jsonl")
    if not args.dry_run:
        out.parent.mkdir(parents=True, exist_ok=True)
    if "annotate" in args.actions:
        code = annotate(args, banks, out)
        if code or args.dry_run:
            return code
    if "score" in args.actions:
        score(args, banks, getattr(args, "judgments", None) or out)
    return 0


# --- annotate --------------------------------------------------------------------------------------------------


def annotate(args: argparse.Namespace, banks: Mapping[str, Bank], out: Path) -> int:
    """Judge what has to be judged, and write the judgments. Returns 1 if the reports are invalid."""
    from evaluator.argue.formats.judgments import load_judgments, write_judgments
    from evaluator.argue.work import choice_of, flow_of, open_judge, work_of

    work = work_of(args, banks)
    if work is None:
        return 1
    choice, flow, chosen = choice_of(args), flow_of(args), topics(args)
    with open_judge(choice) as judge:
        ignored = args.prompt_config or (args.model_name and choice.provider in ("lexical", "human"))
        if choice.provider in KEYLESS and ignored:
            say(f"-m and -P say nothing to -p {choice.provider}: it asks no model")
        if args.verbose:
            say(f"judge: {', '.join(f'{k} {v}' for k, v in judge.facts().items() if isinstance(v, str))}")
        stored = load_judgments(out) if out.is_file() and (chosen or not args.rerun) else []
        judged = _reused(stored, work, judge, flow, out) if stored and not args.rerun else {}
        added = _judge(args, [item for item in work if item.key not in judged], judge, flow)
        if added is None:
            return 0
    judged |= added
    # Of the topics that --topics leaves out, judgments stay as they are.
    others = [j for j in stored if chosen and j.request_id not in chosen]
    written = {item.key for item in work} | {(j.run_id, j.request_id) for j in others}
    if gone := sum((j.run_id, j.request_id) not in written for j in stored):
        # People's judgments cannot be made again, so nothing is thrown away without a copy.
        old = out.with_name(f"{out.name}.old")
        old.write_bytes(out.read_bytes())
        say(
            f"{count(gone, 'judged report')} not in INPUT: the judgments as they were are in {plain(old.name, 200)}"
        )
    write_judgments([*(judged[item.key] for item in work), *others], out)
    say(f"wrote {plain(str(out), 300)}")
    return 0


def _reused(
    stored: Sequence[JudgedReport], work: Sequence[Work], judge: Judge, flow: Flow, out: Path
) -> Judged:
    """The stored judgments that need not be made again, having said how many there are."""
    from evaluator.argue.work import reusable

    found = reusable(stored, work, judge, flow)
    say(
        f"{len(found.kept):,} of {count(len(work), 'report')} judged already in {out.name} (--rerun judges again)"
    )
    if found.foreign:
        say(
            f"{count(found.foreign, 'report')} of them taken as they are: they do not say what they were made from"
        )
    if found.stale:
        say(
            f"{count(found.stale, 'report')} judged again: they were judged by another judge, or with other prompts, "
            "nuggets or documents"
        )
    return dict(found.kept)


def _judge(args: argparse.Namespace, work: Sequence[Work], judge: Judge, flow: Flow) -> Judged | None:
    """The judgments that are made now; None if only their cost was wanted."""
    from evaluator.argue.work import allowed, annotate, estimated

    if not work:
        if args.dry_run:
            say("nothing has to be judged")
            return None
        _say_weakness(judge)
        return {}
    expected = allowed(args, judge, estimated(work, judge, flow), what="judging")
    if expected is None:
        return None
    judged, counts = annotate(work, judge, flow, expected.questions)
    _say_counts(judge, counts)
    _say_weakness(judge)
    return {(j.run_id, j.request_id): j for j in judged}


def _say_counts(judge: Judge, counts: Counts) -> None:
    usage = getattr(getattr(judge, "chat", None), "usage", None)
    more = ""
    if usage is not None:
        more = f"; {usage.asked:,} asked, {usage.cached:,} known before"
        more += f"; {usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens"
    say(f"{count(counts.total, 'question')} answered{more}")
    for kind, unread in sorted(counts.defaults.items()):
        say(
            f"{unread:,} of {counts.asked[kind]:,} replies about {kind} could not be read: the default was taken. "
            "Models that think aloud need more --max-tokens"
        )
    if refused := counts.refused.total():
        say(
            f"{refused:,} of {count(counts.total, 'question')} refused by the endpoint: the default was taken"
        )


def _say_weakness(judge: Judge) -> None:
    measured = judge.facts().get("reliability", {}) if judge.name in KEYLESS else {}
    if measured:
        figures = ", ".join(f"{name} {value:.2f}" for name, value in measured.items() if value <= 1)
        say(f"the offline judge is weak. Measured on labelled pairs: {figures}")


# --- score -----------------------------------------------------------------------------------------------------


def score(args: argparse.Namespace, banks: Mapping[str, Bank], source: Path) -> None:
    """Score judgments, write the scores, print the main ones."""
    from evaluator.argue.scoring.measures import Options
    from evaluator.argue.scoring.output import leaderboard, write_leaderboard, write_scores
    from evaluator.argue.scoring.runs import score_runs

    options = Options(
        credit=args.credit,
        missing="penalize" if args.penalize_missing_topics else "ignore",
        incomplete="refuse" if args.validate_judgments else "default",
        strict=args.strict,
        negation=args.negative_assertions,
    )
    judged = _judged(args, banks, source)
    _check(args, judged, banks, source, options)
    runs = list(score_runs(judged, banks, options).values())
    if "trec_eval" in args.leaderboard:
        leaderboard(runs, "trec_eval")  # of several runs it is refused: before anything is written
    judge = _facts(judged)
    path = Path(f"{args.prefix}.scores.tsv")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_scores(runs, path, judge=judge)
    for form in args.leaderboard:
        write_leaderboard(runs, Path(f"{args.prefix}.{form}.txt"), form, judge=judge)
    say(f"wrote {plain(str(path), 300)}")
    print("\n".join(line for run in runs for line in _lines(run, args)))


def _judged(args: argparse.Namespace, banks: Mapping[str, Bank], source: Path) -> list[JudgedReport]:
    """The judgments of a file on the chosen topics. Raises :class:`EvaluatorError` if none is on a topic with nuggets."""
    from evaluator.argue.formats.judgments import load_judgments

    if not source.is_file():
        raise EvaluatorError(
            f"there are no judgments {plain(str(source), 200)}",
            fix="annotate first, or name a file with --judgments",
            usage=True,
        )
    chosen = topics(args)
    judged = [j for j in load_judgments(source) if not chosen or j.request_id in chosen]
    skipped = sum(j.request_id not in banks or not banks[j.request_id].nuggets for j in judged)
    if skipped == len(judged):
        raise EvaluatorError(
            f"{plain(source.name, 200)} has no judgments on a topic that has nuggets",
            fix="check --topics, and that topic ids are the same",
            usage=True,
        )
    if skipped:
        say(
            f"{skipped:,} of {count(len(judged), 'judged report')} left out: there are no nuggets for the topic"
        )
    return judged


def _check(
    args: argparse.Namespace,
    judged: Sequence[JudgedReport],
    banks: Mapping[str, Bank],
    source: Path,
    options: Options,
) -> None:
    """Raises :class:`EvaluatorError` for judgments that are not valid, or that lack what the options need."""
    from evaluator.argue.formats.judgments import validate_judgments
    from evaluator.argue.formats.lines import refused
    from evaluator.argue.scoring.topic import lacking

    scored = [(j, banks[j.request_id]) for j in judged if j.request_id in banks]
    problems = [p for j, bank in scored for p in validate_judgments(j, bank, name=source.name)]
    if args.validate_judgments and problems:
        raise refused(
            f"the judgments {source.name} are not valid",
            problems,
            "judge again (--rerun), or leave --validate-judgments out",
        )
    if problems:
        say(
            f"{count(len(problems), 'judgment')} missing or not fitting; defaults count. The first: {problems[0]}"
        )
    if absent := [
        f"topic {plain(j.request_id, 60)}: {what}" for j, bank in scored for what in lacking(j, bank, options)
    ]:
        raise refused(
            f"the judgments {source.name} do not have what --strict or --negative-assertions need",
            absent,
            "annotate with these options, or leave them out",
        )


def _facts(judged: Sequence[JudgedReport]) -> dict[str, Any] | None:
    """Who judged: what all reports have in common, and how reliable it is where that was measured."""
    described = [dict(j.judge) for j in judged if j.judge]
    if not described:
        return None
    common = {
        k: v for k, v in described[0].items() if k != "fingerprint" and all(d.get(k) == v for d in described)
    }
    if common.get("name") == "lexical":
        from evaluator.argue.judges.lexical import reliability

        common["reliability"] = reliability()
    return common


def _lines(run: RunScores, args: argparse.Namespace) -> list[str]:
    """What is printed about a run."""
    from evaluator.argue.scoring.explaining import explain

    lines = [explain(t) for t in run.topics.values()] if args.explain else []
    lines.append(
        f"{plain(run.run, 100)}: {count(len(run.topics), 'topic')} ({COMPAT}, credit {run.options.credit})"
    )
    if args.verbose:
        lines += [
            f"  topic {plain(t, 60)}: " + ", ".join(f"{name} {s.values[name]:.4f}" for name in SHOWN)
            for t, s in run.topics.items()
        ]
    ours = {"f1_strict": args.strict, "f1_negation": args.negative_assertions}
    lines += [
        f"  {name:<26} {run.overall[f'{name}_macro']:.4f} (micro {run.overall[f'{name}_micro']:.4f})"
        for name in (*SHOWN, *(name for name, wanted in ours.items() if wanted))
    ]
    if run.missing:
        counted = "counting 0" if args.penalize_missing_topics else "left out"
        lines.append(f"  {count(len(run.missing), 'topic')} without a report, {counted}")
    return lines
