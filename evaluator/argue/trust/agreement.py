"""``evaluator argue agreement``: a judge's judgments against people's, judgment by judgment.

People are the truth. Judgments meet by what was judged (:mod:`evaluator.argue.judges.human`): the same sentence of the same topic, with the
same citation. Which nuggets a sentence gives becomes one yes or no for each pair of question and answer: all pairs that the document
attests if the nuggets are named, else all that anybody found for that document, and then kappa and accuracy are too low.
Look-ups are nobody's judgment and are left out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluator.argue.arguments import Parser, add_topics, topics
from evaluator.argue.asking import Question
from evaluator.argue.judges.human import HumanJudge, questions_of, read_reports
from evaluator.argue.models import BY_DOCUMENT, MATCHING, Bank, JudgedReport, JudgmentType, Segment
from evaluator.argue.trust import figures
from evaluator.measures import judging
from evaluator.measures.agreement import alpha, kappa
from evaluator.printing import number

T = JudgmentType
Pairs = dict[tuple[JudgmentType, str, str], dict[tuple[str, str], None]]


def run(words: Sequence[str]) -> int:
    """Do what the words after ``evaluator argue agreement`` say. Raises :class:`EvaluatorError`."""
    from evaluator.argue.formats.nugget_formats import load_nuggets

    parser = Parser(
        prog="evaluator argue agreement",
        description="How far a judge agrees with people, by judgment type. People are the truth.",
    )
    parser.option("--human", type=Path, required=True, metavar="PLACE",
        help="judgments of people: a file, or a folder with one file per annotator (the majority counts)",
    )  # fmt: skip
    parser.option("--judge", type=Path, required=True, metavar="FILE", help="judgments of the judge")
    parser.option(
        "--nuggets", type=Path, metavar="NUGGETS", help="nuggets, so that what nobody found counts, too"
    )
    add_topics(parser)
    figures.add_output(parser)
    args = parser.parse_args(words)
    chosen = set(topics(args))
    people = {name: _on(rows, chosen) for name, rows in read_reports(args.human).items()}
    judged = _on(next(iter(read_reports(args.judge).values())), chosen)
    result = agreement(people, judged, load_nuggets(args.nuggets) if args.nuggets else {})
    figures.publish(args, result, reliability(result), lines(result))
    return 0


def _on(reports: Sequence[JudgedReport], chosen: set[str]) -> list[JudgedReport]:
    return [r for r in reports if not chosen or r.request_id in chosen]


def agreement(
    people: Mapping[str, Sequence[JudgedReport]],
    judged: Sequence[JudgedReport],
    banks: Mapping[str, Bank] | None = None,
) -> dict[str, Any]:
    """Everything about a judge and people, as data for ``--json``; ``people`` are annotators and what they have judged.

    ``types``: for each type and for ``all`` how many judgments both made, its shares, and how many only one side made.
    ``people``: Krippendorff's alpha among annotators where two or more judged the same.
    """
    people = {name: _decided(reports) for name, reports in people.items()}
    judged = _decided(judged)
    pairs = _candidates([*(r for rs in people.values() for r in rs), *judged], banks or {})
    truth = HumanJudge(people)
    judge = HumanJudge({"judge": judged})
    asked: dict[Question, None] = {}
    for report in [*(r for rs in people.values() for r in rs), *judged]:
        asked.update(dict.fromkeys(questions_of(report, lambda *key: pairs.get(key, {}))))
    rows: dict[str, list[tuple[bool | None, bool | None]]] = {}
    for question in asked:
        rows.setdefault(question.type.value, []).append((truth.says(question), judge.says(question)))
    by_type = {kind.value: _figures(rows[kind.value]) for kind in T if kind.value in rows}
    return {
        "judge": _common(judged),
        "annotators": list(people),
        "nuggets": bool(banks),
        "types": {**by_type, "all": _figures([pair for each in rows.values() for pair in each])},
        "people": _among(people, list(asked)) if len(people) > 1 else {},
    }


def _decided(reports: Sequence[JudgedReport]) -> list[JudgedReport]:
    """Without look-ups, unless a file names no judge at all."""
    named = any(j.evaluator != "null" for r in reports for s in r.segments for j in s.judgments)

    def without(segment: Segment) -> Segment:
        return replace(segment, judgments=tuple(j for j in segment.judgments if j.evaluator != "null"))

    return [replace(r, segments=tuple(map(without, r.segments))) for r in reports] if named else list(reports)


def _candidates(reports: Iterable[JudgedReport], banks: Mapping[str, Bank]) -> Pairs:
    """The pairs of question and answer that count for a type, topic and document."""
    found: Pairs = {}
    for report in reports:
        bank = banks.get(report.request_id)
        for segment in report.segments:
            for judgment in segment.judgments:
                if judgment.type not in MATCHING:
                    continue
                doc_id = (judgment.doc_id or "") if judgment.type in BY_DOCUMENT else ""
                key = judgment.type, report.request_id, doc_id
                if key not in found:
                    found[key] = dict.fromkeys(_of_bank(bank, judgment.type, doc_id) if bank else ())
                for match in judgment.matches:
                    found[key].update(dict.fromkeys((match.question, a) for a in match.answers or ("",)))
    return found


def _of_bank(bank: Bank, kind: JudgmentType, doc_id: str) -> Iterable[tuple[str, str]]:
    if kind is T.SENTENCE_ANSWERS_QUESTION:
        return ((n.question, a.text) for n, a in bank.candidates(doc_id))
    if kind is T.SENTENCE_GIVES_WRONG_ANSWER:
        return ((n.question, a.text) for n, a in bank.wrong_answers())
    return ((n.question, "") for n in bank.unanswerable)


def _figures(pairs: Sequence[tuple[bool | None, bool | None]]) -> dict[str, Any]:
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    counts = judging.count([int(a) for a, _ in both], [float(b) for _, b in both])
    measures = ("accuracy", "precision", "recall", "f1")
    return {
        "judgments": len(both),
        "people_yes": counts.tp + counts.fn,
        "judge_yes": counts.tp + counts.fp,
        **{name: getattr(judging, name)(counts) if both else None for name in measures},
        "kappa": kappa([a for a, _ in both], [b for _, b in both]).value,
        "only_people": sum(b is None and a is not None for a, b in pairs),
        "only_judge": sum(a is None and b is not None for a, b in pairs),
    }


def _among(people: Mapping[str, Sequence[JudgedReport]], asked: Sequence[Question]) -> dict[str, Any]:
    """Alpha of the annotators by type; a type that nobody shares is left out."""
    each = [HumanJudge({name: reports}) for name, reports in people.items()]
    items: dict[str, list[list[Hashable | None]]] = {}
    for question in asked:
        items.setdefault(question.type.value, []).append([one.says(question) for one in each])
    found = {kind: alpha(rows) for kind, rows in items.items()}
    return {kind: {"alpha": a.value, "judgments": a.items} for kind, a in found.items() if a.items}


def _common(judged: Sequence[JudgedReport]) -> dict[str, Any]:
    """Who judged, if all reports say the same; empty for judgments that do not say."""
    described = [{k: v for k, v in r.judge.items() if k != "fingerprint"} for r in judged]
    return described[0] if described and all(d == described[0] for d in described) else {}


def reliability(result: Mapping[str, Any]) -> dict[str, float]:
    """The figures that stand next to scores: accuracy over everything, kappa by type, and how many judgments."""
    out = {"judgments compared": float(result["types"]["all"]["judgments"])}
    for kind, row in result["types"].items():
        if row["judgments"] and kind == "all":
            out["agreement with people"] = row["accuracy"]
        elif row["kappa"] is not None:
            out[f"kappa {figures.titled(kind)}"] = row["kappa"]
    return out


def lines(result: Mapping[str, Any]) -> list[str]:
    """The result for people."""
    columns = {
        "n": "judgments", "people yes": "people_yes", "judge yes": "judge_yes", "accuracy": "accuracy",
        "precision": "precision", "recall": "recall", "F1": "f1", "kappa": "kappa", "only people": "only_people",
        "only judge": "only_judge",
    }  # fmt: skip
    out = figures.by_type(result, columns)
    matching = [k for k in result["types"] if k in {t.value for t in MATCHING}]
    if matching and not result["nuggets"]:
        out.append("without --nuggets, answers that nobody found are not counted: those figures are too low")
    for kind, row in result["people"].items():
        judged = f"{row['judgments']:,} judgments"
        out.append(
            f"people among themselves, {figures.titled(kind)}: alpha {number(row['alpha'])} ({judged})"
        )
    if not result["types"]["all"]["judgments"]:
        out.append("nothing was judged by both: check that topics, sentences and document ids are the same")
    return out
