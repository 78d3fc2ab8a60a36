"""A run is executed once more, apart from what counts, and compared with what was archived."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count as count_up
from pathlib import Path
from typing import Any

import pytest

from runner.engines.fake import Mounts
from runner.execution.machine import Machine
from runner.execution.trials import verify as at_verify
from runner.execution.trials.verify import verify
from runner.model.container import Exit
from runner.model.errors import PlatformError, RunnerError
from runner.records.split import is_public
from runner.records.store.connect import open_store, rebuild
from runner.records.store.queries import find_run
from runner.records.store.run_detail import detail
from runner.views.audience import ORGANISER, PUBLIC, Audience
from runner.views.leaderboard.table import build
from tests.runner.execution.test_pool import EVALUATOR, RESULT, World
from tests.worlds.mini import TASK, Project, Said, call_here


def scoring(mounts: Mounts, out: Path) -> None:
    """An evaluator whose value for a topic is the score of its one document."""
    lines = (mounts["/in"] / "run/run.txt").read_text().splitlines()
    values = {line.split()[0]: float(line.split()[4]) for line in lines}
    mean = sum(values.values()) / len(values)
    measure = {"value": mean, "topics": len(values), "covered": len(values), "interval": None}
    out.joinpath("result.json").write_text(
        json.dumps({**RESULT, "measures": {"ndcg_10": measure, "p_10": measure}})
    )
    scores = [{"measure": m, "topic": t, "value": v} for m in ("ndcg_10", "p_10") for t, v in values.items()]
    out.joinpath("scores.jsonl").write_text("".join(json.dumps(score) + "\n" for score in scores))
    out.joinpath("findings.jsonl").touch()


def steady(mounts: Mounts, out: Path) -> None:
    out.joinpath("run.txt").write_text("".join(f"{topic} Q0 d 1 0.5 tag\n" for topic in ("a", "b")))


def lucky() -> Any:
    """A software that answers the topic b otherwise every time."""
    times = count_up(1)

    def script(mounts: Mounts, out: Path) -> None:
        out.joinpath("run.txt").write_text(f"a Q0 d 1 0.5 tag\nb Q0 d 1 {1 / next(times)} tag\n")

    return script


@pytest.fixture
def world(project: Project) -> Iterator[World]:
    made = World(project)
    made.engine.script[EVALUATOR] = scoring
    yield made
    made.close()


def verified(world: World, run: str, audience: Audience = ORGANISER, sample: int | None = None) -> Any:
    machine = Machine(world.project.config, engine=world.engine, images={"evaluator": EVALUATOR})
    found = detail(world.store, run, world.tasks.values())
    return verify(machine, world.store, world.tasks, found, audience, sample=sample)


def last_event(world: World) -> Any:
    return list(world.store.log)[-1]


def test_a_software_that_gives_the_same_again_is_verified_and_costs_nothing(world: World) -> None:
    run = world.hand_in("alpha", script=steady)
    world.work()
    before = world.outcome(run), sorted(p.name for p in world.project.home.iterdir())
    found = verified(world, run)
    assert (found.same, found.identical, found.files, found.topics) == (True, True, (), {})
    assert found.values["ndcg_10"] == (0.5, 0.5)
    event = last_event(world)
    assert (event.type, event.actor) == ("run-verified", "organiser")
    assert (event.data["run"], event.data["attempt"]) == (run, 1)
    assert event.data["same"] is event.data["identical"] is True and event.data["topics"] == 0
    assert (world.outcome(run), sorted(p.name for p in world.project.home.iterdir())) == before
    assert len(world.store.archive.attempts("mini", run)) == 1


def test_a_team_with_limits_of_its_own_is_executed_with_them_again(world: World) -> None:
    run = world.hand_in("alpha", script=steady)
    given = {"task": "mini", "team": "alpha", "memory": 48 * 2**20, "reason": "a slow machine"}
    world.store.commit("limits-extended", given, actor="organiser")
    world.work()
    before = len(world.engine.started)
    assert verified(world, run).same
    again = [spec for spec in world.engine.started[before:] if spec.role == "software"]
    assert [spec.limits.memory for spec in again] == [48 * 2**20]


def test_luck_has_its_topics_and_how_far_the_scores_moved(world: World) -> None:
    run = world.hand_in("alpha", script=lucky())
    world.work()
    found = verified(world, run)
    assert not found.same and not found.identical and found.files == ("run.txt",)
    assert found.values["ndcg_10"] == (0.75, 0.5)
    assert found.topics == {"b": {"ndcg_10": -0.5, "p_10": -0.5}}
    data = last_event(world).data
    assert (
        data["same"] is False and data["topics"] == 1 and data["moved"] == {"ndcg_10": -0.25, "p_10": -0.25}
    )
    assert world.outcome(run).name == "scored" and len(world.store.archive.attempts("mini", run)) == 1


def test_files_that_are_compared_without_times_are_named_to_nobody_who_may_not_see_files(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of an interactive run on hidden data."""
    run = world.hand_in("alpha", script=lucky())
    world.work()
    ready, digests = at_verify.ready, map(str, count_up())

    def served(*given: Any, **options: Any) -> Any:
        bundle, task, job, *rest = ready(*given, **options)
        return (bundle, task, replace(job, workflow="interactive"), *rest)

    monkeypatch.setattr(at_verify, "ready", served)
    monkeypatch.setattr(at_verify, "untimed", lambda _: {"run.jsonl": next(digests)})
    assert "run.jsonl" in verified(world, run).files
    found = verified(world, run, Audience.parse("team:alpha"))
    assert found.identical is None and found.files == ()


def test_other_audiences_are_told_what_they_may_see_of_a_hidden_dataset(world: World) -> None:
    run = world.hand_in("alpha", script=lucky())
    world.work()
    found = verified(world, run, Audience.parse("team:alpha"))
    assert found.same is False and found.identical is None
    assert (found.files, found.topics, found.values) == ((), {}, {}) and found.hidden
    for stranger in (PUBLIC, Audience.parse("team:beta")):
        started = len(world.engine.started)
        with pytest.raises(RunnerError) as refused:
            verified(world, run, stranger)
        assert refused.value.code == "E103" and len(world.engine.started) == started


def test_a_team_is_told_how_far_the_public_part_of_its_scores_moved(world: World) -> None:
    datasets = [
        {**one, "scores": "team", "public_topics": "50%"} if one["id"] == "test" else one
        for one in TASK["datasets"]
    ]
    world.project.write_task_only(datasets=datasets, precision=2)
    key = next(
        f"{n:064x}"
        for n in range(100)
        if is_public(f"{n:064x}", "test", "b", 0.5) and not is_public(f"{n:064x}", "test", "a", 0.5)
    )
    world.store.commit("key-drawn", {"task": "mini", "key": key}, actor="runner")
    run = world.hand_in("alpha", script=lucky())
    world.work()
    found = verified(world, run, Audience.parse("team:alpha"))
    assert found.values["ndcg_10"] == (1.0, 0.5) and not found.topics  # b alone, which is 1 and then 1/2


def test_another_output_with_the_same_scores_is_the_same_and_not_identical(world: World) -> None:
    times = count_up()

    def script(mounts: Mounts, out: Path) -> None:
        out.joinpath("run.txt").write_text(f"a Q0 d{next(times)} 1 0.5 tag\n")

    run = world.hand_in("alpha", script=script)
    world.work()
    found = verified(world, run)
    assert found.same and found.identical is False and found.files == ("run.txt",)


def test_a_software_that_fails_the_second_time_is_not_the_same(world: World) -> None:
    times = count_up()

    def script(mounts: Mounts, out: Path) -> int:
        steady(mounts, out)
        return next(times)

    run = world.hand_in("alpha", script=script)
    world.work()
    found = verified(world, run)
    assert not found.same and found.ended == ("scored (ok)", "failed (run-error)")


def test_a_row_is_final_once_the_same_came_again_where_the_task_asks_for_it(
    world: World, project: Project
) -> None:
    good, luck = world.hand_in("alpha", script=steady), world.hand_in("beta", script=lucky())
    world.work()

    def not_final() -> list[str]:
        notes = build(world.store, world.tasks["mini"], None, ORGANISER).notes
        return [note for note in notes if note.startswith("Not final")]

    assert not_final() == []
    project.write_task_only(verify={"before": "final"})
    assert "beta/one, alpha/one" in not_final()[0]
    for run in (good, luck):
        verified(world, run)
    assert "beta/one." in not_final()[0] and "alpha" not in not_final()[0]
    world.store.commit("run-verified", {**last_event(world).data, "same": True}, actor="organiser")
    assert not_final() == []
    world.store.commit("run-verified", {**last_event(world).data, "same": False}, actor="organiser")
    assert len(not_final()) == 1
    before = build(world.store, world.tasks["mini"], None, ORGANISER)
    rebuild(project.config)
    with open_store(project.config) as store:
        assert build(store, world.tasks["mini"], None, ORGANISER) == before


def test_what_is_not_the_work_that_was_scored_is_refused(world: World, project: Project) -> None:
    run = world.hand_in("alpha", script=steady)
    with pytest.raises(RunnerError) as refused:
        verified(world, run)
    assert refused.value.code == "E102" and "runner evaluate" in refused.value.fix
    world.work()
    (project.truths / "mini/test/qrels.txt").write_text("test-1 0 doc-02 1\n")
    with pytest.raises(RunnerError) as refused:
        verified(world, run)
    assert refused.value.code == "E402" and "reevaluate" in refused.value.fix
    project.write_task_only(limits={"memory": "128MiB"})
    with pytest.raises(RunnerError) as refused:
        verified(world, run)
    assert refused.value.code == "E402" and "limits.memory" in refused.value.why
    assert last_event(world).type == "evaluation-committed"


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("gone", ["dataset", "task"])
def test_a_run_whose_dataset_or_task_is_gone_is_refused(
    world: World, project: Project, capsys: pytest.CaptureFixture[str], gone: str
) -> None:
    run = world.hand_in("alpha", script=steady)
    world.work()
    if gone == "task":
        (project.config.tasks / "mini").rename(project.config.root / "elsewhere")
    else:
        datasets = [one for one in TASK["datasets"] if one["id"] != "test"]
        project.write_task_only(datasets=datasets, tables=[])
    for words in ([], ["--dry-run"], ["--sample", "1"], ["--as", "team:alpha"]):
        said = call_here(project, ["verify", run, *words], capsys)
        assert said.code == 4 and "E402" in said.err, said


def test_a_failure_of_ours_says_nothing_of_the_run(world: World) -> None:
    run = world.hand_in("alpha", script=steady)
    world.work()
    faults = [PlatformError("the keeper did not start", why="fault-17")]
    failing = type(world.engine)(world.engine.script, faults={"session": faults})
    machine = Machine(world.project.config, engine=failing, images={"evaluator": EVALUATOR})
    found = detail(world.store, run, world.tasks.values())
    with pytest.raises(PlatformError) as ours:
        verify(machine, world.store, world.tasks, found, ORGANISER)
    assert "fault-17" in ours.value.why and last_event(world).type == "evaluation-committed"
    failing.close()


@pytest.mark.usefixtures("machine")
def test_the_command_says_what_moved_and_ends_with_one_where_anything_did(
    world: World, project: Project, capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]
) -> None:
    def call(*words: str) -> Said:
        return call_here(project, ["verify", *words], capsys)

    fine, moved = world.hand_in("alpha", script=steady), world.hand_in("beta", script=lucky())
    world.work()
    events = project.config.events.read_bytes()
    said = call(fine[:8], "--dry-run", "--json").json
    assert said["run"] == fine and said["takes"] >= 0
    assert call(fine[:8], "--dry-run").code == 0 and project.config.events.read_bytes() == events
    as_team = call(fine, "--dry-run", "--json", "--as", "team:alpha").json
    assert as_team == {"run": fine, "takes": None}, "the duration is a fact of hidden data"
    refused = call(fine, "--dry-run", "--sample", "99")
    assert refused.code == 2 and "E101" in refused.err and "99" in refused.err
    same = call(fine[:8], "--json")
    assert same.code == 0 and same.json["identical"] is True and fine in same.err
    printed = call(moved)
    assert printed.code == 1 and all(len(line) <= 80 for line in printed.out.splitlines())
    golden("verify-run.txt", printed.out.replace(moved, "RUN"))
    beta = call(moved, "--json", "--as", "team:beta")
    assert beta.code == 1 and beta.json["same"] is False and beta.json["topics"] == {}
    assert call(f"{moved}#7").code == 2


# --- a sample of the topics -----------------------------------------------------------------------------------------


class Answers:
    """A software that answers the topics that it is shown; ``value`` is asked for each, with the number of the execution."""

    def __init__(self, value: Any = lambda topic, time: 0.5) -> None:
        self.value, self.times, self.shown = value, 0, list[list[str]]()

    def __call__(self, mounts: Mounts, out: Path) -> None:
        self.times += 1
        (inputs,) = (path for path in mounts.values() if (path / "queries.jsonl").is_file())
        topics = [json.loads(line)["qid"] for line in (inputs / "queries.jsonl").read_text().splitlines()]
        self.shown.append(topics)
        lines = (f"{topic} Q0 d 1 {self.value(topic, self.times)} tag\n" for topic in topics)
        out.joinpath("run.txt").write_text("".join(lines))


def test_a_sample_is_executed_alone_and_says_nothing_of_the_others(world: World) -> None:
    """Its topics are the same ones every time; a row is not final because they are."""
    world.project.write_task(verify={"before": "final"})
    software = Answers()
    run = world.hand_in("alpha", script=software)
    world.work()
    found = verified(world, run, sample=2)
    assert verified(world, run, sample=2) == found
    assert [len(topics) for topics in software.shown] == [3, 2, 2] and software.shown[1] == software.shown[2]
    assert (found.same, found.sample, found.identical, found.files, found.topics) == (True, 2, None, (), {})
    assert found.values == {"ndcg_10": (0.5, 0.5), "p_10": (0.5, 0.5)}
    assert last_event(world).data["sample"] == 2 and last_event(world).data["same"] is True
    assert find_run(world.store, run, world.tasks.values()).verified is False
    assert verified(world, run).same
    assert find_run(world.store, run, world.tasks.values()).verified is True
    rebuild(world.project.config)
    with open_store(world.project.config) as again:
        assert find_run(again, run, world.tasks.values()).verified is True


def test_the_topics_of_a_sample_that_differ_are_named_with_how_far_they_moved(world: World) -> None:
    probe = Answers()
    world.hand_in("beta", script=probe)
    world.work()
    verified(world, next(iter(world.done)), sample=2)
    chosen = probe.shown[-1]
    (other,) = set(probe.shown[0]) - set(chosen)
    software = Answers(lambda topic, time: 0.5 + 0.25 * (time - 1) * (topic in (chosen[0], other)))
    run = world.hand_in("alpha", script=software)
    world.work()
    facts = {"task": "mini", "run": run, "attempt": 1, "same": True, "identical": True}
    world.store.commit("run-verified", facts | {"ended": "", "topics": 0, "moved": {}}, actor="organiser")
    found = verified(world, run, sample=2)
    assert not found.same and found.topics == {chosen[0]: {"ndcg_10": 0.25, "p_10": 0.25}}
    assert found.values["ndcg_10"] == (0.5, 0.625) and found.moved["p_10"] == 0.125
    assert last_event(world).data["topics"] == 1
    assert find_run(world.store, run, world.tasks.values()).verified is False
    for_team = verified(world, run, Audience.parse("team:alpha"), 2)
    assert (for_team.same, for_team.values, for_team.topics) == (False, {}, {}) and for_team.hidden


def test_what_a_sample_cannot_tell_is_not_compared(world: World) -> None:
    def of_one_measure(mounts: Mounts, out: Path) -> None:
        scoring(mounts, out)
        lines = out.joinpath("scores.jsonl").read_text().splitlines()
        out.joinpath("scores.jsonl").write_text("".join(f"{x}\n" for x in lines if "p_10" not in x))

    world.engine.script[EVALUATOR] = of_one_measure
    run = world.hand_in("alpha", script=Answers())
    world.work()
    found = verified(world, run, sample=1)
    assert list(found.values) == ["ndcg_10"] and found.uncompared == ("p_10",)
    with pytest.raises(RunnerError) as caught:
        verified(world, run, sample=3)
    assert caught.value.code == "E101" and "3" in caught.value.what


def test_a_run_without_scores_by_topic_has_no_sample(world: World) -> None:
    foreign = world.hand_in("alpha", script=steady)  # answers topics that the dataset does not list
    failed = world.hand_in("beta", script=Exit(code=3))
    world.work()
    started = len(world.engine.started)
    for run in (foreign, failed):
        with pytest.raises(RunnerError) as caught:
            verified(world, run, sample=1)
        assert caught.value.code == "E102" and run in caught.value.what
    assert len(world.engine.started) == started, "nothing is executed for it"


@pytest.mark.parametrize("count", [None, 2])
def test_a_measure_of_time_is_shown_and_decides_nothing(world: World, count: int | None) -> None:
    """No software answers twice in the same time; a board whose rows are to be verified would never be final."""
    measures = [
        {"id": "p_10", "measure": "answered", "truths": "qrels.txt"},
        {"id": "ndcg_10", "measure": "latency@p95", "truths": "qrels.txt"},
    ]
    world.project.write_task(kind="debate", measures=measures)
    timed = count_up(1)

    def scored(mounts: Mounts, out: Path) -> None:
        scoring(mounts, out)
        took = next(timed)
        rows = [json.loads(line) for line in out.joinpath("scores.jsonl").read_text().splitlines()]
        rows = [row | {"value": took} if row["measure"] == "ndcg_10" else row for row in rows]
        out.joinpath("scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        result = json.loads(out.joinpath("result.json").read_text())
        result["measures"]["ndcg_10"]["value"] = took
        out.joinpath("result.json").write_text(json.dumps(result))

    world.engine.script[EVALUATOR] = scored
    run = world.hand_in("alpha", script=Answers())
    world.work()
    found = verified(world, run, sample=count)
    assert found.same and found.topics == {} and found.times == ("ndcg_10",)
    assert found.values["ndcg_10"] == (1.0, 2.0)
