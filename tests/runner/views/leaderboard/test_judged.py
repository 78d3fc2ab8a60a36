"""Measures that have no value yet, and who judged: stored, ranked and shown in every format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
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
    found = [(r.rank, r.team, sorted(r.values)) for r in made.rows]
    assert found == [(1, "alpha", ["ndcg"]), (1, "beta", ["ndcg", "rr"])]
    assert not made.unranked
    assert "–" in next(line for line in text(made).splitlines() if "alpha" in line)
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
        assert "ndcg" in below.reason and (REASON in below.reason) is (audience == ORGANISER)
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
    found = [(u.team, u.outcome, u.blame) for u in made.unranked]
    assert found == [(team, "unjudged", "none") for team in without]
    for below, measure in zip(made.unranked, ("ndcg", "rr"), strict=False):
        assert f" {measure}:" in below.reason and REASON in below.reason
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
    assert any(newer in note for note in made.notes)
    alone = build(world.store, task, None, ORGANISER)  # the latest counts, and waits
    assert (alone.rows, [u.outcome for u in alone.unranked]) == ((), ["unjudged"])
    assert not any(newer in note for note in alone.notes)


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
    assert made.test is None and any("ndcg" in note for note in made.notes)


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
    assert any("beta/bm25" in note for note in made.notes)


# --- judges ------------------------------------------------------------------------------------------------


def test_a_judge_is_named_in_every_row_and_below_the_table(world: World) -> None:
    for team, value in (("alpha", 0.5), ("beta", 0.4)):
        run(world, team, ndcg=value, judge=LLM, notes=["Labels of 2 annotators."])
    made = table(world)
    assert [r.judge for r in made.rows] == ["llm (small-1)"] * 2
    assert made.notes == ("Labels of 2 annotators.",) and text(made).count(made.judges[0].line()) == 1
    for name in FORMATS:
        out = export(made, name)
        assert "small-1" in out and "0.8125" in out
    row = next(csv.DictReader(io.StringIO(export(made, "csv"))))
    assert (row["judge"], row["judge_model"], row["judge_prompts"]) == ("llm", "small-1", LLM["prompts"])
    assert row["judge_reliability"] == "accuracy=0.8125; kappa=0.5"


def agreeing(agreement: float, compared: int, **more: float) -> dict[str, Any]:
    figures = {"agreement with people": agreement, "verdicts compared": compared, **more}
    return {**HEURISTIC, "note": "counts words only: a weak judge, for orientation", "reliability": figures}


MANY = {
    "name": "lexical (offline)",
    "model": "all-MiniLM-L6-v2 (int8)",
    "prompts": "sha256:" + "3d8e" * 16,
    "reliability": {
        "accuracy attested": 0.6,
        "accuracy citation": 0.61,
        "accuracy answer": 0.62,
        "labelled pairs": 178,
    },
    "note": "Counts words and compares embeddings. The figures are its accuracy on labelled pairs.",
}


def test_texts_of_boards_with_judges(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    """The wording of judges, notes and missing values, for one judge and several."""
    other = {**LLM, "prompts": "f" * 64, "note": "other"}
    judged = {"judge": LLM, "notes": ["Of all."]}
    boards: list[list[dict[str, Any]]] = [
        [judged, judged | {"notes": ["Of all.", "Of one."]}, {"rr": None}, {"ndcg": None}],
        [{"judge": LLM}, {"judge": other}, {"judge": HEURISTIC}],
        [{"judge": agreeing(0.75, 40, kappa=0.5)}, {"judge": agreeing(0.5, 40)}],
        [{"judge": MANY}],
        [{"notes": [f"note {n}"]} for n in range(14)],
    ]
    texts = []
    for n, rows in enumerate(boards):
        world = World.make(tmp_path / str(n))
        for k, row in enumerate(rows):
            run(world, f"team-{k}", **{"ndcg": 0.9 - k / 100, **row})
        texts.append(text(table(world)))
    golden("board-judged.txt", "\n".join(texts))


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


def test_different_judges_are_told_apart(world: World) -> None:
    run(world, "alpha", judge={**LLM, "prompts": "sha256:0" + "f" * 63})
    run(world, "beta", ndcg=0.4, judge={**LLM, "prompts": "f" * 64})
    run(world, "gamma", ndcg=0.3, judge={**LLM, "prompts": "f" * 64, "note": "other"})
    run(world, "delta", ndcg=0.2, judge=HEURISTIC)
    made = table(world)
    same = "llm (small-1) ffffffff"  # another note does not make another judge
    assert [r.judge for r in made.rows] == ["llm (small-1)", same, same, "heuristic"]
    assert "0fffffffffff," in text(made) and "ffffffffffff," in text(made)
    assert [note.partition(":")[0] for note in made.notes if "/one:" in note] == ["beta/one", "gamma/one"]
    assert len(made.notes) == 3, "and that scores of several judges cannot be compared"
    assert filtered(made, method="automatic").judges == made.judges


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


def test_a_judge_whose_agreement_differs_by_run_is_one_judge(world: World) -> None:
    run(world, "alpha", judge=agreeing(0.75, 40, kappa=0.5))
    run(world, "beta", ndcg=0.4, judge=agreeing(0.5, 40))
    run(world, "gamma", ndcg=0.3, judge={**agreeing(0, 0), "reliability": {}})
    made = table(world)
    (judge,) = made.judges
    assert {r.judge for r in made.rows} == {"heuristic"}
    assert made.notes == ()
    assert list(judge.reliability.values()) == [(0.5, 0.75), 0.5, 40]
    assert (judge.runs, judge.measured) == (3, 2)
    data = json.loads(export(made, "json"))
    assert not schemas.validate(data, "leaderboard") and from_dict(data, "organiser") == made
    assert [0.5, 0.75] in data["judges"][0]["reliability"].values()
    for line in csv.DictReader(io.StringIO(export(made, "csv"))):
        assert "=0.5 to 0.75" in line["judge_reliability"]


@pytest.mark.parametrize("size", [1, 30, 100])
def test_no_judge_makes_a_longer_line(world: World, size: int) -> None:
    figures = {f"{'f' * size} {n}"[:80]: n / 7 for n in range(20)} | {f"g{n}" * 20: 1e300 for n in range(3)}
    wild = {"name": "n" * size, "model": "m" * 2 * size, "prompts": "p" * 200, "note": "x" * 3 * size}
    run(world, "alpha", judge={**wild, "reliability": dict([*figures.items()][-20:])})
    (judge,) = table(world).judges
    assert len(judge.brief()) <= 160 and judge.brief().startswith(f"Judged by {'n' * min(size, 60)}")


def test_notes_name_their_runs_unless_all_have_them(world: World) -> None:
    told = ["Measured.", "0 of 3", "1 of 3"]
    run(world, "alpha", notes=told[:2])
    assert list(table(world).notes) == told[:2], "the only run"
    run(world, "waits", ndcg=None)
    assert list(table(world).notes) == [f"alpha/one: {note}" for note in told[:2]]
    run(world, "beta", ndcg=0.4, notes=[told[0], told[2]])
    run(world, "gamma", ndcg=0.3, notes=told[:2])
    assert list(table(world).notes)[-2:] == [f"alpha/one, gamma/one: {told[1]}", f"beta/one: {told[2]}"]


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
        assert [REASON in b.reason for b in made.unranked] == [False]
        assert "secret" not in "".join(export(made, name) for name in FORMATS)
    found = detail(world.store, made.rows[0].runs[0])
    view = redact_run(found, Audience("team", "alpha"), task.datasets["test"])
    assert "secret" not in json.dumps(dict(view))
    everything = table(world)
    assert (
        len(everything.notes) == 1
        and "secret" in everything.notes[0]
        and everything.judges[0].note == "secret words"
    )
    assert REASON in everything.unranked[0].reason


def test_many_notes_are_counted(world: World) -> None:
    for n in range(14):
        run(world, f"team-{n:02}", notes=["of all", f"note {n}", "of many" if n < 9 else "of others"])
    notes = table(world).notes
    assert (len(notes), notes[0], notes[-1].split()[0]) == (10, "of all", "8")
    of_many = next(note for note in notes if note.endswith("of many"))
    assert of_many.startswith("team-00/one, team-01/one, team-02/one") and " 6 " in of_many


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
