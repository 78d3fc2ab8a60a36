"""``evaluator argue``: the command line of Auto-ARGUE, and what it lacks (see :mod:`evaluator.argue.trust`).

``evaluator argue INPUT NUGGETS OUT_PREFIX`` takes the options of Auto-ARGUE in both spellings (``--prompt-config`` and
``--prompt_config``). A first word ``annotate``, ``score``, ``agreement``, ``correlation``, ``consistency`` or ``canaries`` is a command
of its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluator.argue.arguments import score_parser, whole_parser
from evaluator.argue.choosing import choice_of, count, flow_of, say, topics, wanted_of
from evaluator.argue.models import COMPAT
from evaluator.errors import EvaluatorError
from evaluator.findings import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evaluator.argue.asking import Judge
    from evaluator.argue.judging import Tally
    from evaluator.argue.models import Bank, JudgedReport
    from evaluator.argue.scoring.runs import RunScores

COMMANDS = ("annotate", "score", "agreement", "correlation", "consistency", "canaries")
SHOWN = ("nugget_coverage", "nugget_coverage_weighted", "sentence_support", "f1", "f1_weighted")


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
    if name in ("agreement", "correlation", "consistency", "canaries"):
        from evaluator.argue import trust

        code: int = trust.call(name, words[1:])
        return code
    parser = score_parser() if name == "score" else whole_parser(name)
    args = parser.parse_args(words[1:] if name else words)
    if name == "score":
        if len(args.places) not in (2, 3):
            parser.error("give [INPUT] NUGGETS OUT_PREFIX")
        *rest, nuggets, prefix = args.places
        args.input, args.nuggets, args.prefix = (rest[0] if rest else None), nuggets, prefix
        args.actions = ["score"]
        for key, value in vars(whole_parser("").parse_args(["-", "-", "-"])).items():
            if not hasattr(args, key):
                setattr(args, key, value)
    elif name:
        args.actions = [name]
    return run(args)


def run(args: argparse.Namespace) -> int:
    """Annotate, score, or both. Returns 1 if the reports are invalid."""
    from evaluator.argue.formats.nugget_formats import load_nuggets
    from evaluator.argue.scoring.output import FORMATS

    for form in args.leaderboard:
        if form not in FORMATS:
            raise EvaluatorError(
                f"there is no leaderboard format {plain(form, 40)!r}",
                f"there are {', '.join(FORMATS)}",
                usage=True,
            )
    banks = load_nuggets(Path(args.nuggets))
    chosen = topics(args)
    banks = {t: b for t, b in banks.items() if not chosen or t in chosen}
    if not banks:
        raise EvaluatorError(
            "there are no nuggets for the topics", f"--topics names {', '.join(chosen[:5])}", usage=True
        )
    out = Path(f"{args.prefix}.judgments.jsonl")
    if not getattr(args, "dry_run", False):
        out.parent.mkdir(parents=True, exist_ok=True)
    if "annotate" in args.actions:
        code = annotate(args, banks, out)
        if code or args.dry_run:
            return code
    if "score" in args.actions:
        score(args, banks, getattr(args, "judgments", None) or out)
    return 0


def annotate(args: argparse.Namespace, banks: Mapping[str, Bank], out: Path) -> int:
    """Judge what has to be judged, and write the judgments. Returns 1 if the reports are invalid."""
    from evaluator.argue import work
    from evaluator.argue.formats.judgments import load_judgments, write_judgments
    from evaluator.judges import providers

    wanted = wanted_of(args, banks)
    if wanted is None:
        return 1
    flow, choice = flow_of(args), choice_of(args)
    with work.OpenJudge(choice) as judge:
        if choice.provider in ("lexical", "human") and (args.prompt_config or args.model_name):
            say(f"-m and -P say nothing to -p {choice.provider}: it asks no model")
        if args.verbose:
            say(f"judge: {', '.join(f'{k} {v}' for k, v in judge.facts().items() if isinstance(v, str))}")
        kept: Mapping[tuple[str, str], JudgedReport] = {}
        chosen = topics(args)
        stored = load_judgments(out) if out.is_file() and (chosen or not args.rerun) else []
        if stored and not args.rerun:
            reused = work.reusable(stored, wanted, judge, flow)
            kept = reused.kept
            say(
                f"{len(kept):,} of {count(len(wanted), 'report')} judged already in {out.name} (--rerun judges again)"
            )
            if reused.foreign:
                say(
                    f"{count(reused.foreign, 'report')} of them taken as they are: they do not say what they were made from"
                )
            if reused.stale:
                say(
                    f"{count(reused.stale, 'report')} judged again: they were judged by another judge, or with other prompts, "
                    "nuggets or documents"
                )
        todo = [w for w in wanted if (w[0].run_id, w[0].topic_id) not in kept]
        made: dict[tuple[str, str], JudgedReport] = {}
        tally = None
        if todo:
            price = (
                tuple(args.price) if args.price else providers.PRICES.get(str(judge.identity().get("model")))
            )
            expected = work.estimate(todo, judge, flow, price)  # type: ignore[arg-type]
            say(f"{judge.name}: {expected}")
            if args.max_calls is not None and expected.calls > args.max_calls:
                raise EvaluatorError(
                    f"judging may take {expected.calls:,} calls",
                    f"--max-calls allows {args.max_calls:,}",
                    usage=True,
                )
            if args.dry_run:
                return 0
            lacks = getattr(judge, "lacks", None)
            if lacks is not None and expected.calls:
                raise lacks
            judged, tally = work.annotate(todo, judge, flow, expected.questions)
            made = {(j.run_id, j.request_id): j for j in judged}
        elif args.dry_run:
            say("nothing has to be judged")
            return 0
        _tell_judging(judge, tally)
    everything = {**kept, **made}
    # Of the topics that --topics leaves out, judgments stay as they are.
    others = [j for j in stored if chosen and j.request_id not in chosen]
    there = {(w[0].run_id, w[0].topic_id) for w in wanted} | {(j.run_id, j.request_id) for j in others}
    if gone := sum((j.run_id, j.request_id) not in there for j in stored):
        # People's judgments cannot be made again, so nothing is thrown away without a copy.
        old = out.with_name(f"{out.name}.old")
        old.write_bytes(out.read_bytes())
        say(
            f"{count(gone, 'judged report')} not in INPUT: the judgments as they were are in {plain(old.name, 200)}"
        )
    write_judgments([*(everything[w[0].run_id, w[0].topic_id] for w in wanted), *others], out)
    say(f"wrote {plain(str(out), 300)}")
    return 0


def _tell_judging(judge: Judge, tally: Tally | None) -> None:
    if tally is not None:
        usage = getattr(getattr(judge, "chat", None), "usage", None)
        asked = f"; {usage.asked:,} asked, {usage.cached:,} known before" if usage is not None else ""
        tokens = (
            f"; {usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens" if usage is not None else ""
        )
        say(f"{count(tally.total, 'question')} answered{asked}{tokens}")
        for kind, unread in sorted(tally.defaults.items()):
            say(
                f"{unread:,} of {tally.asked[kind]:,} replies about {kind} could not be read: the default was taken. "
                "Models that think aloud need more --max-tokens"
            )
        if refused := tally.refused.total():
            say(
                f"{refused:,} of {count(tally.total, 'question')} refused by the endpoint: the default was taken"
            )
    if judge.name == "lexical":
        from evaluator.argue.judges.lexical import reliability

        figures = ", ".join(f"{name} {value:.2f}" for name, value in reliability().items() if value <= 1)
        say(f"the offline judge is weak. Measured on labelled pairs: {figures}")


def score(args: argparse.Namespace, banks: Mapping[str, Bank], source: Path) -> None:
    """Score judgments, write the scores, print the main ones."""
    from evaluator.argue.formats.judgments import load_judgments
    from evaluator.argue.formats.validating import validate_judgments
    from evaluator.argue.scoring.output import leaderboard, write_leaderboard, write_scores
    from evaluator.argue.scoring.runs import score_runs
    from evaluator.argue.scoring.topic import Options, lacking

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
    problems = [
        str(p)
        for j in judged
        if j.request_id in banks
        for p in validate_judgments(j, banks[j.request_id], name=source.name)
    ]
    if args.validate_judgments and problems:
        from evaluator.argue.formats.requests import refused

        raise refused(
            f"the judgments {source.name} are not valid",
            problems,
            "judge again (--rerun), or leave --validate-judgments out",
        )
    if problems:
        say(
            f"{count(len(problems), 'judgment')} missing or not fitting; defaults count. The first: {problems[0]}"
        )
    options = Options(
        credit=args.credit,
        missing="penalize" if args.penalize_missing_topics else "ignore",
        incomplete="refuse" if args.validate_judgments else "default",
        strict=args.strict,
        negation=args.negative_assertions,
    )
    if absent := [
        f"topic {plain(j.request_id, 60)}: {what}"
        for j in judged
        if j.request_id in banks
        for what in lacking(j, banks[j.request_id], options)
    ]:
        from evaluator.argue.formats.requests import refused

        raise refused(
            f"the judgments {source.name} do not have what --strict or --negative-assertions need",
            absent,
            "annotate with these options, or leave them out",
        )
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
    _print(runs, args)


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


def _print(runs: Sequence[RunScores], args: argparse.Namespace) -> None:
    lines = []
    for one in runs:
        if args.explain:
            from evaluator.argue.scoring.explaining import explain

            lines += [explain(t) for t in one.topics.values()]
        lines.append(
            f"{plain(one.run, 100)}: {count(len(one.topics), 'topic')} ({COMPAT}, credit {one.options.credit})"
        )
        if args.verbose:
            lines += [
                f"  topic {plain(t, 60)}: " + ", ".join(f"{name} {s.values[name]:.4f}" for name in SHOWN)
                for t, s in one.topics.items()
            ]
        names = (
            *SHOWN,
            *(("f1_strict",) if args.strict else ()),
            *(("f1_negation",) if args.negative_assertions else ()),
        )
        lines += [
            f"  {name:<26} {one.overall[f'{name}_macro']:.4f} (micro {one.overall[f'{name}_micro']:.4f})"
            for name in names
        ]
        if one.missing:
            counted = "counting 0" if args.penalize_missing_topics else "left out"
            lines.append(f"  {count(len(one.missing), 'topic')} without a report, {counted}")
    print("\n".join(lines))
