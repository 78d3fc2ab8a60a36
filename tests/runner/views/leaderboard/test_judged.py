"""Measures that have no value yet, and who judged: stored, ranked and shown in every format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import schemas
from runner.exchange.look import BOARD
from runner.execution.plan import plan
from runner.execution.workspace import Workspace
from runner.model.run import Run, Selection, run_id
from runner.model.task import Ranking
from runner.records.store.connect import open_store
from runner.records.store.results import pending_measures
from runner.records.store.run_detail import detail
from runner.submissions.bundle import Bundle
from runner.views.audience import ORGANISER, PUBLIC, Audience
from runner.views.leaderboard.export import FORMATS, as_dict, export, from_dict, text
from runner.views.leaderboard.rows import LeaderboardTable, Value
from runner.views.leaderboard.table import build, filtered
from runner.views.pages import asset
from runner.views.redact import redact_run
from tests.worlds import records
from tests.worlds.records import World

LLM = {
    "name": "llm",
    "model": "small-1",
    "prompts": "0123456789abcdef" * 4,
    "reliability": {"accuracy": 0.8125, "kappa": 0.5},
    "note": "Measured on 200 pairs.",
}
HEURISTIC = {"name": "heuristic", "model": None, "prompts": None}
REASON = "no labels for 40 of 100 answers"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.make(tmp_path)


def run(
    world: World,
    team: str,
    *,
    ndcg: float | None = 0.5,
    rr: float | None = 0.5,
    judge: Mapping[str, Any] | None = None,
    notes: list[str] | None = None,
    ours: bool = True,
) -> str:
    """A scored submission; None is a measure without a value yet."""
    submission = world.register(team, "one")
    values = {"ndcg": ndcg, "rr": rr}
    scores = {m: {str(n): v for n in range(3)} for m, v in values.items() if v is not None}
    pending = {m: REASON for m, v in values.items() if v is None}
    more = {"pending": pending} if pending else {}
    more |= {"judge": dict(judge)} if judge else {}
    more |= {"notes": notes} if notes else {}
    evaluation = world.evaluation(world.attempt(submission), scores, more=more, default=ours)
    assert not schemas.validate(evaluation.result(), "result")
    return submission


def table(world: World, audience: Audience = ORGANISER, **task: Any) -> LeaderboardTable:
    return build(world.store, records.task(baseline=None, **task), None, audience)


# --- pending -----------------------------------------------------------------------------------------------


def test_a_measure_without_a_value_is_a_dash(world: World) -> None:
    run(world, "alpha", rr=None)
    run(world, "beta")
    made = table(world)
    assert [(r.rank, r.team, sorted(r.values)) for r in made.rows] == [
        (1, "alpha", ["ndcg"]),
        (1, "beta", ["ndcg", "rr"]),
    ]
    assert not made.unranked
    shown = text(made)
    assert "–" in next(line for line in shown.splitlines() if "alpha" in line)
    assert "–: no value, or none yet." in shown
    for name in FORMATS:
        out = export(made, name).replace(asset(BOARD), "")  # the script of pages
        assert "nan" not in out.lower() and "None" not in out
    line = next(r for r in csv.DictReader(io.StringIO(export(made, "csv"))) if r["team"] == "alpha")
    assert (line["rr"], float(line["ndcg"])) == ("", 0.5)


def test_who_lacks_the_ranking_measure_is_listed_below_with_the_reason(world: World) -> None:
    run(world, "alpha", ndcg=None)
    run(world, "beta")
    for audience in (ORGANISER, PUBLIC):
        made = table(world, audience)
        assert [r.team for r in made.rows] == ["beta"]
        (below,) = made.unranked
        assert (below.team, below.outcome, below.blame) == ("alpha", "unjudged", "none")
        # How many answers there are is the software's choice: everybody else hears no count.
        assert below.reason == f"No value on ndcg: {REASON if audience == ORGANISER else 'not judged yet'}."
        assert (made.counts["ranked"], made.counts["unranked"]) == (1, 1)
        for name in FORMATS:
            assert "unjudged" in export(made, name)


RULES = (Ranking(("ndcg",)), Ranking(("ndcg", "rr"), "mean_rank"), Ranking(("ndcg", "rr"), "median_rank"))


@pytest.mark.parametrize("direction", ["higher", "lower"])
@pytest.mark.parametrize("rank_by", RULES, ids=lambda rule: rule.rule)
def test_who_has_no_value_has_no_rank_and_takes_none_from_others(
    world: World, rank_by: Ranking, direction: str
) -> None:
    """A missing value is neither the best nor the worst, whichever end is good and however ranks are made."""
    task = records.task(baseline="beta/one", direction=direction)
    rr = replace(task.measures["rr"], direction=direction)
    task = replace(
        task,
        measures={**task.measures, "rr": rr},
        tables={"main": replace(task.tables["main"], rank_by=rank_by)},
    )
    world.by = task
    run(world, "beta", ndcg=0.5, rr=0.5)
    run(world, "gamma", ndcg=0.2, rr=0.2)
    before = build(world.store, task, None, ORGANISER)
    run(world, "alpha", ndcg=None)
    if rank_by.rule != "value":  # who lacks one of several measures neither
        run(world, "delta", rr=None)
    made = build(world.store, task, None, ORGANISER)
    order = ["beta", "gamma"] if direction == "higher" else ["gamma", "beta"]
    assert [(row.rank, row.team) for row in made.rows] == [(1, order[0]), (2, order[1])]
    assert made.rows == before.rows  # tests, intervals and component ranks as well
    without = ["alpha"] if rank_by.rule == "value" else ["alpha", "delta"]
    assert [(u.team, u.outcome, u.blame) for u in made.unranked] == [
        (team, "unjudged", "none") for team in without
    ]
    assert made.unranked[0].reason == f"No value on ndcg: {REASON}."
    assert [u.reason for u in made.unranked[1:]] == [f"No value on rr: {REASON}."] * (len(without) - 1)
    for name in {*FORMATS} - {"csv", "tsv", "json"}:
        assert "has no rank, and takes none from others" in " ".join(export(made, name).split())
    for line in csv.DictReader(io.StringIO(export(made, "csv"))):
        assert (line["rank"] == "") == (line["team"] in without)
    assert "rank" not in json.loads(export(made, "json"))["unranked"][0]


@pytest.mark.parametrize("direction", ["higher", "lower"])
def test_a_submission_without_a_value_is_not_the_best_and_the_board_says_so(
    world: World, direction: str
) -> None:
    world.scored("a", "x", version=1, scores={"1": 0.4, "2": 0.6})
    newer = world.register("a", "x", version=2)
    world.evaluation(world.attempt(newer), {"rr": {"1": 0.9}}, more={"pending": {"ndcg": REASON}})
    task = records.task(baseline=None, direction=direction)
    made = build(world.store, task, None, ORGANISER, pick="best")
    assert [row.values["ndcg"].mean for row in made.rows] == [0.5]
    note = f"Without a value of nDCG@10, and so not counted as the best of a row: {newer}."
    assert note in made.notes
    alone = build(world.store, task, None, ORGANISER)  # the latest counts, and waits
    assert (alone.rows, [u.outcome for u in alone.unranked]) == ((), ["unjudged"])
    assert note not in alone.notes


def test_pending_is_no_reason_to_evaluate_again_but_a_new_measure_is(world: World) -> None:
    submission = run(world, "alpha", ndcg=None)
    task = records.task()
    found = detail(world.store, run_id(submission, "test"), [task])
    assert pending_measures(world.store, found.run) == {"ndcg": REASON} == dict(found.pending)

    bundle = Bundle(Path("nowhere"), {"inputs": {}, "runs": []}, "")

    class SameWork(Workspace):
        def job(self, run: Run) -> Any:
            return SimpleNamespace(lock_digest=run.lock_digest)

    for one, stale in ((task, False), (replace(task, measures=dict([*task.measures.items()][:1])), True)):
        desk = SameWork(world.store, {one.id: one}, {submission: bundle})
        (skipped,) = plan(desk, Selection(dataset="test")).skipped
        assert skipped.stale is stale, skipped.why


def test_the_store_is_the_same_after_a_replay(world: World) -> None:
    run(world, "alpha", ndcg=None, judge=LLM, notes=["A note."])
    run(world, "beta", judge=HEURISTIC)
    before = as_dict(table(world))
    world.store.replay()
    assert as_dict(table(world)) == before
    world.store.close()
    with open_store(world.config) as again:
        assert as_dict(build(again, records.task(baseline=None), None, ORGANISER)) == before


def test_a_figure_without_values_by_topic_is_not_tested(world: World) -> None:
    """A p-value of 1 over no topics would say that nothing differs."""
    for team, value in (("baselines", 0.5), ("alpha", 0.9)):
        submission = world.register(team, "bm25")
        evaluation = {"value": value, "topics": 3, "covered": 3, "interval": None}
        more = {"measures": {"ndcg": evaluation, "rr": evaluation}}
        world.evaluation(world.attempt(submission), more=more)
    made = build(world.store, records.task(), None, ORGANISER)
    assert [(r.team, r.comparison) for r in made.rows] == [("alpha", None), ("baselines", None)]
    assert made.test is None and "No significance test: ndcg has no values by topic." in made.notes


def test_a_row_that_shares_no_topic_with_the_baseline_is_not_tested(world: World) -> None:
    scores = {"ndcg": {"1": 0.5, "2": 0.4}, "rr": {"1": 0.5, "2": 0.4}}
    for team, more in (("baselines", None), ("alpha", None), ("beta", 0.9)):
        submission = world.register(team, "bm25")
        mean = {"value": more, "topics": 3, "covered": 3, "interval": None}
        measures = {"measures": {"ndcg": mean, "rr": mean}} if more else None
        world.evaluation(world.attempt(submission), None if more else scores, more=measures)
    made = build(world.store, records.task(), None, ORGANISER)
    assert [(r.team, r.comparison is None) for r in made.rows] == [
        ("beta", True), ("alpha", False), ("baselines", True),
    ]  # fmt: skip
    assert "No significance test of beta/bm25: it shares no topic with the baseline." in made.notes


# --- judges ------------------------------------------------------------------------------------------------


def test_a_judge_stands_beside_every_row_and_below_the_table(world: World) -> None:
    run(world, "alpha", judge=LLM, notes=["Labels of 2 annotators."])
    run(world, "beta", ndcg=0.4, judge=LLM, notes=["Labels of 2 annotators."])
    made = table(world)
    assert [r.judge for r in made.rows] == ["llm (small-1)"] * 2
    line = (
        "Judged by llm (small-1): model small-1, prompts 0123456789ab, accuracy 0.8125, kappa 0.5. "
        "Measured on 200 pairs."
    )
    assert text(made).count(line) == 1 and text(made).count("Labels of 2 annotators.") == 1
    for name in FORMATS:
        out = export(made, name)
        assert "small-1" in out and "0.8125" in out
    row = next(csv.DictReader(io.StringIO(export(made, "csv"))))
    assert (row["judge"], row["judge_model"], row["judge_prompts"]) == ("llm", "small-1", LLM["prompts"])
    assert row["judge_reliability"] == "accuracy=0.8125; kappa=0.5"


def test_the_hash_of_the_prompts_is_shown_not_its_name(world: World) -> None:
    """Two judges that differ in their prompts alone have to look different."""
    for n, team in enumerate(("alpha", "beta")):
        run(world, team, ndcg=0.5 - n / 10, judge={**LLM, "prompts": f"sha256:{n}" + "f" * 63})
    made = table(world)
    assert [r.judge for r in made.rows] == ["llm (small-1)", "llm (small-1) 1fffffff"]
    assert "prompts 0fffffffffff," in text(made) and "prompts 1fffffffffff," in text(made)


def test_a_table_without_judges_is_what_it_was(world: World) -> None:
    run(world, "alpha")
    made = table(world)
    assert "  judge" not in text(made) and "judge" not in export(made, "csv")
    assert made.judges == () and "Judged by" not in export(made, "html")


@pytest.mark.parametrize(
    ("judged", "named"), [(["rr", "other"], ["llm (small-1)"]), (["other"], []), ([], [])]
)
def test_a_judge_stands_only_beside_what_it_judged(world: World, judged: list[str], named: list[str]) -> None:
    run(world, "one", judge={**LLM, "measures": judged})
    made = table(world)
    assert [judge.label for judge in made.judges] == named
    assert [row.judge for row in made.rows] == ["".join(named)]


def test_different_judges_are_told_apart_and_said_to_be(world: World) -> None:
    run(world, "alpha", judge=LLM)
    run(world, "beta", ndcg=0.4, judge={**LLM, "prompts": "f" * 64})
    run(world, "gamma", ndcg=0.3, judge={**LLM, "prompts": "f" * 64, "note": "other"})
    run(world, "delta", ndcg=0.2, judge=HEURISTIC)
    made = table(world)
    assert [r.judge for r in made.rows] == [
        "llm (small-1)",
        "llm (small-1) ffffffff",
        "llm (small-1) ffffffff",  # a note does not make another judge
        "heuristic",
    ]
    assert "beta/one: Measured on 200 pairs." in made.notes and "gamma/one: other" in made.notes
    assert "Rows were judged by different judges: their scores are not comparable." in made.notes
    only = filtered(made, method="automatic")
    assert only.judges == made.judges


def test_judges_survive_json_and_old_records_are_still_read(world: World) -> None:
    run(world, "alpha", judge=LLM, rr=None)
    run(world, "beta", ndcg=None)
    made = table(world)
    data = json.loads(export(made, "json"))
    assert not schemas.validate(data, "leaderboard")
    assert from_dict(data, "organiser") == made
    for row in data["rows"]:
        del row["judge"]
    del data["judges"]
    assert not schemas.validate(data, "leaderboard")
    assert from_dict(data, "organiser").judges == ()


def agreeing(agreement: float, compared: int, **more: float) -> dict[str, Any]:
    figures = {"agreement with people": agreement, "verdicts compared": compared, **more}
    return {**HEURISTIC, "note": "counts words only: a weak judge, for orientation", "reliability": figures}


def test_a_judge_whose_agreement_differs_by_run_is_one_judge(world: World) -> None:
    run(world, "alpha", judge=agreeing(0.75, 40, kappa=0.5))
    run(world, "beta", ndcg=0.4, judge=agreeing(0.5, 40))
    run(world, "gamma", ndcg=0.3, judge={**agreeing(0, 0), "reliability": {}})
    made = table(world)
    (judge,) = made.judges
    assert {r.judge for r in made.rows} == {"heuristic"}
    assert not any("different judges" in note for note in made.notes)
    assert judge.reliability == {
        "agreement with people": (0.5, 0.75), "kappa": 0.5, "verdicts compared": 40,
    }  # fmt: skip
    assert (judge.runs, judge.measured) == (3, 2)
    figures = "agreement with people 0.5 to 0.75, kappa 0.5, verdicts compared 40"
    assert judge.line().startswith(
        f"Judged by heuristic: {figures} (by run; 2 of 3 runs measured). counts words"
    )
    data = json.loads(export(made, "json"))
    assert not schemas.validate(data, "leaderboard") and from_dict(data, "organiser") == made
    assert data["judges"][0]["reliability"]["agreement with people"] == [0.5, 0.75]
    for line in csv.DictReader(io.StringIO(export(made, "csv"))):
        assert "agreement with people=0.5 to 0.75" in line["judge_reliability"]


def test_a_judge_with_many_figures_is_one_readable_line(world: World) -> None:
    figures = {f"accuracy {what}": 0.6 + n / 100 for n, what in enumerate(("attested", "citation", "answer"))}
    judge = {
        "name": "lexical (offline)",
        "model": "all-MiniLM-L6-v2 (int8)",
        "prompts": "sha256:" + "3d8e" * 16,
        "reliability": {**figures, "labelled pairs": 178},
        "note": "Counts words and compares embeddings. The figures are its accuracy on labelled pairs.",
    }
    run(world, "alpha", judge=judge)
    made = table(world)
    (line,) = (x for x in text(made).splitlines() if x.startswith("Judged by"))
    assert line == (
        "Judged by lexical (offline) (all-MiniLM-L6-v2 (int8)): accuracy 0.6 to 0.62 (3 figures), "
        "labelled pairs 178, prompts 3d8e3d8e3d8e. More in JSON."
    )
    assert made.judges[0].line() in export(made, "html") and line in export(made, "html")
    assert json.loads(export(made, "json"))["judges"][0]["reliability"] == judge["reliability"]


@pytest.mark.parametrize("size", [1, 30, 100])
def test_no_judge_makes_a_longer_line(world: World, size: int) -> None:
    figures = {f"{'f' * size} {n}"[:80]: n / 7 for n in range(20)} | {f"g{n}" * 20: 1e300 for n in range(3)}
    wild = {"name": "n" * size, "model": "m" * 2 * size, "prompts": "p" * 200, "note": "x" * 3 * size}
    run(world, "alpha", judge={**wild, "reliability": dict([*figures.items()][-20:])})
    (judge,) = table(world).judges
    assert len(judge.brief()) <= 160 and judge.brief().startswith(f"Judged by {'n' * min(size, 60)}")


def test_notes_say_whose_run_they_mean(world: World) -> None:
    for n, team in enumerate(("alpha", "beta", "gamma")):
        told = ["Measures as defined.", f"People have judged {n % 2} of 3 answers"]
        run(world, team, ndcg=0.5 - n / 10, notes=told)
    assert list(table(world).notes) == [
        "Measures as defined.",
        "alpha/one, gamma/one: People have judged 0 of 3 answers",
        "beta/one: People have judged 1 of 3 answers",
    ]


def test_a_note_of_the_only_run_needs_no_name_and_one_beside_unranked_runs_does(world: World) -> None:
    run(world, "alpha", notes=["2 of 3 turns have no answer"])
    assert list(table(world).notes) == ["2 of 3 turns have no answer"]
    run(world, "beta", ndcg=None)
    assert list(table(world).notes) == ["alpha/one: 2 of 3 turns have no answer"]


def test_a_foreign_evaluators_words_about_hidden_data_stay_with_the_organiser(world: World) -> None:
    """It may repeat what it saw of the truths, or what a software carried out; ours writes fixed words and counts."""
    judge = {**LLM, "note": "secret words"}
    run(world, "alpha", judge=judge, notes=["secret topic 17"], ours=False)
    run(world, "beta", ndcg=None, ours=False)
    task = records.task(baseline=None)
    assert task.datasets["test"].visibility == "blinded"
    for audience in (PUBLIC, Audience("team", "alpha")):
        made = table(world, audience)
        assert made.notes == () and [j.note for j in made.judges] == [""]
        assert [j.model for j in made.judges] == ["small-1"]
        assert [b.reason for b in made.unranked] == ["No value on ndcg: not judged yet."]
        assert "secret" not in "".join(export(made, name) for name in FORMATS)
    found = detail(world.store, made.rows[0].runs[0])
    view = redact_run(found, Audience("team", "alpha"), task.datasets["test"])
    assert "secret" not in json.dumps(dict(view))
    everything = table(world)
    assert everything.notes == ("alpha/one: secret topic 17",) and everything.judges[0].note == "secret words"
    assert REASON in everything.unranked[0].reason


def test_many_notes_are_counted(world: World) -> None:
    for n in range(14):
        run(world, f"team-{n:02}", notes=["of all", f"note {n}", "of many" if n < 9 else "of others"])
    notes = table(world).notes
    assert (len(notes), notes[0], notes[-1]) == (10, "of all", "8 more notes on single runs are not shown.")
    assert "team-00/one, team-01/one, team-02/one and 6 more: of many" in notes


def test_a_count_is_shown_as_one(world: World) -> None:
    task = records.task(baseline=None)
    count = {"ndcg": replace(task.measures["ndcg"], measure="sentences"), "rr": task.measures["rr"]}
    task = replace(task, measures=count)
    world.by = replace(task, kind="report")
    run(world, "alpha", ndcg=78.0, rr=1.0)
    made = build(world.store, replace(task, kind="report"), None, ORGANISER)
    assert [c.whole for c in made.columns] == [True, False]
    row = next(line for line in text(made).splitlines() if "alpha" in line)
    assert " 78 " in row and "1.0000" in row and "78.0" not in row
    for name in ("html", "markdown", "latex"):
        assert "78.0000" not in export(made, name)
    assert next(csv.DictReader(io.StringIO(export(made, "csv"))))["ndcg"] == "78.0"
    data = json.loads(export(made, "json"))
    assert data["rows"][0]["scores"]["ndcg"]["mean"] == 78.0
    assert from_dict(data, "organiser") == made
    half = replace(made.rows[0], values={**made.rows[0].values, "ndcg": Value(77.5)})
    assert " 77.5 " in text(replace(made, rows=(half,)))
    assert "78.0000" in text(
        build(world.store, task, None, ORGANISER)
    )  # of another kind: not known to be a count


def test_what_a_judge_says_is_defused(world: World) -> None:
    wild = {
        "name": "=cmd|'/c'!A1, </td><script>\x1b[2J",
        "model": "\u202e@x, #y",
        "note": "<script>alert(1)</script>\n| a | \\input{x}",
        "reliability": {"accuracy": 1e308},
    }
    run(world, "alpha", judge=wild, notes=["<b>\x1b[0m"])
    made = table(world)
    assert ", " not in made.rows[0].judge
    for name in FORMATS:
        out = export(made, name).replace(f"<script>{asset(BOARD)}</script>", "")  # that of pages
        assert "\x1b" not in out and "\u202e" not in out
        if name == "html":
            assert "<script>" not in out and "<b>" not in out
    row = next(csv.DictReader(io.StringIO(export(made, "csv"))))
    assert row["judge"].startswith("'=")
    assert "\\input{" not in export(made, "latex")


# --- one run -----------------------------------------------------------------------------------------------


def test_a_run_shows_its_judge_to_whom_it_shows_its_scores(world: World) -> None:
    submission = run(world, "alpha", ndcg=None, judge=LLM, notes=["A note."])
    task = records.task(scores="organiser")
    found = detail(world.store, run_id(submission, "test"), [task])
    hidden = task.datasets["test"]
    seen = redact_run(found, ORGANISER, hidden)
    assert seen["judge"]["model"] == "small-1" and dict(seen["pending"]) == {"ndcg": REASON}
    assert list(seen["notes"]) == ["A note."]
    team = redact_run(found, Audience("team", "alpha"), hidden)
    assert (team["judge"], dict(team["pending"]), list(team["notes"])) == (None, {}, [])
