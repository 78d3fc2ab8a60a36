"""Loading tasks: what is read, what is refused with file and line, and the checks of the data files."""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schemas
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.model.limits import GIB, MIB, Exceptions, Limits, parse_duration, parse_size
from runner.model.task import Cell, Quota, Ranking, Scenario
from runner.tasks import load as tasks
from runner.tasks.check_data import check_task, task_problems
from runner.tasks.data_files import files_digest
from runner.tasks.files import inputs_digest, model_digest, truths_digest, view_files, work_digest
from runner.tasks.tables import doubts
from runner.views.overview.facts import overview
from runner.views.overview.screen import printed
from tests.worlds.definitions import definition, project, told, write_task


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return project(tmp_path / "root")


def refused(config: Config, code: str, name: str = "toy") -> str:
    with pytest.raises(RunnerError) as caught:
        tasks.load_task(config, name)
    assert caught.value.code == code, told(caught.value)
    return told(caught.value)


def test_a_task_with_defaults(config: Config) -> None:
    folder = write_task(config)
    task = tasks.load_task(config, "toy")
    assert task.limits == Limits()
    assert task.evaluator_limits == tasks.EVALUATOR_LIMITS
    assert task.datasets["dev"].inputs == folder / "datasets/dev/inputs"
    assert task.datasets["dev"].scores == "public"
    assert task.tables["main"].measures == ("ap", "ndcg_10")
    assert task.tables["main"].cells == (Cell("test", "default"),)
    assert list(task.scenarios) == ["default"]
    assert task.digest == schemas.digest(task.definition)
    assert task.public_dataset() is task.datasets["dev"]
    assert task_problems(task, config) == []


def test_everything_given_is_read(config: Config) -> None:
    write_task(
        config, workflow="upload", output="out.txt", score_precision="double",
        limits={"memory": "1.5GiB", "wall_clock": "2min", "log": 4096, "cpus": 2, "gpus": 1, "tmp_exec": True,
                "loopback": False},
        evaluator={"image": "org/eval@sha256:" + "0" * 64, "limits": {"memory": "1GB"}},
        quota={"submissions": 3, "attempts": 4, "teams": {"alpha": 9}},
        severities={"F012": "defect"},
        exceptions={"alpha/one": {"writable": ["/root/.cache"], "writable_bytes": "8MiB", "root": True}},
        models=[{"path": "models/m", "target": "/models/m", "digest": "sha256:" + "1" * 64}],
        scenarios=[{"id": "default"}, {"id": "queries", "files": ["queries.*"]}],
    )  # fmt: skip
    task = tasks.load_task(config, "toy")
    assert task.limits == Limits(
        memory=1536 * MIB, wall_clock=120.0, log=4096, cpus=2.0, gpus=1, tmp_exec=True, loopback=False
    )
    assert task.evaluator_limits.memory == 10**9
    assert task.quota == Quota(3, 4, {"alpha": 9})
    assert task.exceptions == {"alpha/one": Exceptions(("/root/.cache",), 8 * MIB, True)}
    assert task.models[0].path == task.folder / "models/m"
    assert task.scenarios["queries"].files == ("queries.*",)
    assert (task.workflow, task.output, task.score_precision) == ("upload", "out.txt", "double")


PUBLIC = [{"id": name, "visibility": "public"} for name in ("dev", "test")]


@pytest.mark.parametrize(
    ("changes", "loopback"),
    [
        ({}, False),
        ({"datasets": PUBLIC}, True),
        ({"datasets": PUBLIC, "limits": {"loopback": False}}, False),
        ({"limits": {"loopback": True}}, True),
        ({"limits": {"memory": "1GiB"}}, False),
    ],
)
def test_batch_systems_have_no_loopback_in_a_task_with_hidden_data(
    config: Config, changes: dict[str, Any], loopback: bool
) -> None:
    write_task(config, **changes)
    task = tasks.load_task(config, "toy")
    assert task.limits.loopback is loopback
    assert task.evaluator_limits.loopback is False
    explicit = changes.get("limits", {}).get("loopback") is True
    assert [doubt for doubt in doubts(task) if "limits.loopback" in doubt] == (
        doubts(task) if explicit else []
    )


TABLE = {"id": "m", "cells": [{"dataset": "test"}]}
DEV = {"id": "dev", "visibility": "public"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"id": "other"}, '"other"'),
        ({"datasets": [{"id": "dev", "visibility": "public"}, {"id": "test", "visibility": "public"}, {"id": "dev", "visibility": "public"}]}, '"dev"'),
        ({"measures": [{"id": "ap", "measure": "AP", "truths": "q"}] * 2}, '"ap"'),
        ({"rounds": [{"id": "r", "at": "2026-05-17 23:59 UTC", "datasets": ["tset"]}]}, '"tset"'),
        ({"rounds": [{"id": "r", "at": "2026-05-17 23:59 UTC"}] * 2}, '"r"'),
        ({"tables": [{"id": "m", "cells": [{"dataset": "test"}], "rank_by": "app"}]}, '"ap"'),
        ({"tables": [TABLE | {"rank_by": {"median_rank": ["ap", "app"]}}]}, '"ap"'),
        ({"tables": [TABLE | {"rank_by": {}}]}, '"rank_by"'),
        ({"tables": [TABLE | {"id": "plots", "rank_by": "ap"}]}, '"plots"'),
        ({"tables": [TABLE | {"rank_by": "ap", "pick": {"best": "tset"}}]}, '"tset"'),
        ({"tables": [TABLE | {"rank_by": "ap", "pick": {"best": "test"}}]}, '"test"'),
        ({"tables": [TABLE | {"rank_by": "ap", "pick": {"latest": "dev"}}]}, '"latest"'),
        ({"tables": [TABLE | {"rank_by": "ap", "pick": {}}]}, '"best"'),
        ({"tables": [TABLE | {"rank_by": {"mean_rank": []}}]}, '"mean_rank"'),
        ({"tables": [TABLE | {"rank_by": {"mean": ["ap"]}}]}, '"mean"'),
        ({"tables": [TABLE | {"rank_by": {"mean_rank": ["ap"], "median_rank": ["ap"]}}]}, '"rank_by"'),
        ({"tables": [TABLE | {"rank_by": ["ap"]}]}, '"rank_by"'),
        ({"tables": [{"id": "m", "cells": [{"dataset": "text"}], "rank_by": "ap"}]}, '"test"'),
        ({"tables": [{"id": "m", "cells": [{"dataset": "test", "scenario": "s"}], "rank_by": "ap"}]}, '"s"'),
        ({"tables": [{"id": "m", "cells": [{"dataset": "test"}], "rank_by": "ap", "measures": ["x"]}]}, '"x"'),
        ({"scenarios": [{"id": "a"}]}, '"default"'),
        ({"datasets": [{"id": "test", "visibility": "public", "inputs": "../../submissions"}]}, "../../submissions"),
        ({"datasets": [{"id": "test", "visibility": "public", "inputs": "/etc"}]}, "/etc"),
        ({"datasets": [{"id": "test", "visibility": "public", "topics": "../truths/qrels.txt"}]}, "../truths/qrels.txt"),
        ({"measures": [{"id": "ap", "measure": "AP", "truths": "../../q"}]}, "../../q"),
        ({"limits": {"memory": "0MiB"}}, '"0MiB"'),
        ({"limits": {"wall_clock": "0.0 s"}}, '"0.0 s"'),
        ({"limits": {"wall_clock": "12:30"}}, "12:30"),
        ({"limits": {"memroy": "1GiB"}}, '"memory"'),
        ({"kind": "adhok"}, '"adhok"'),
        ({"output": "../run.txt"}, "../run.txt"),
        ({"severities": {"F1": "error"}}, "F1"),
        ({"severities": {"F001": "fatal"}}, "error, defect, warning, ignore"),
        ({"exceptions": {"alpha/one": {"writable": ["/truths/x"]}}}, "/truths/x"),
        ({"exceptions": {"alpha/one": {"writable": ["/cache/../proc"]}}}, "/cache/../proc"),
        ({"exceptions": {"alpha": {}}}, "alpha"),
        ({"models": [{"path": "../m", "target": "/m", "digest": "sha256:" + "0" * 64}]}, "../m"),
        ({"quota": {"teams": {"Not a name": 3}}}, "Not a name"),
        ({"datasets": [DEV | {"requires": "tset"}]}, '"tset"'),
        ({"datasets": [DEV | {"requires": "dev"}]}, '"dev"'),
        ({"datasets": [DEV | {"requires": "b"}, DEV | {"id": "b", "requires": "dev"}]}, '"dev"'),
        ({"datasets": [{"id": "test", "visibility": "public", "smoke": 2}]}, "topics"),
        ({"datasets": [DEV | {"smoke": 0}]}, '"smoke"'),
        ({"title": None}, '"title"'),
        ({"schema_version": 2}, '"schema_version"'),
    ],
)  # fmt: skip
def test_wrong_definitions_are_refused(config: Config, changes: dict[str, Any], expected: str) -> None:
    write_task(config, text=schemas.canonical(definition(**changes)).decode())
    found = refused(config, "E401")
    assert expected in found
    assert "tasks/toy/task.yaml:1: " in found


def test_ranks_on_several_measures_are_combined_and_these_stand_first(config: Config) -> None:
    names = {"p": "P@5", "ap": "AP", "rr": "RR"}
    measures = [{"id": key, "measure": name, "truths": "q"} for key, name in names.items()]
    table_row = TABLE | {"rank_by": {"median_rank": ["rr", "ap"]}, "pick": {"best": "dev"}}
    write_task(config, measures=measures, tables=[table_row])
    table = tasks.load_task(config, "toy").tables["m"]
    assert (table.rank_by, table.measures) == (Ranking(("rr", "ap"), "median_rank"), ("rr", "ap", "p"))
    assert (table.pick, table.best_on) == ("best", "dev")
    text = " ".join(" ".join(printed(overview(tasks.load_task(config, "toy")))).split())
    assert "median rank" in text and "RR and AP" in text and "on dev" in text


def test_all_problems_come_at_once_with_their_lines(config: Config) -> None:
    write_task(config, text=(
        "schema_version: 1\nid: toy\ntitle: 3\nkind: adhoc\ndemo: yes\n"
        "datasets:\n  - {id: dev, visibility: hidden}\n"
        "measures:\n  - {id: ap, measure: AP, truths: q}\n"
        "tables:\n  - id: main\n    cells: [{dataset: tset}]\n    rank_by: app\n"
    ))  # fmt: skip
    found = refused(config, "E401")
    places = [line.split(": ")[0] for line in found.splitlines() if line.startswith("tasks/toy/")]
    assert places == [f"tasks/toy/task.yaml:{n}" for n in (3, 5, 7, 12, 13)]


def places(data: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a definition."""
    yield at
    for key, value in (
        data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    ):
        yield from places(value, (*at, key))


REAL = [
    schemas.load_yaml(path).data
    for path in sorted((Path(tasks.__file__).parents[2] / "tasks").glob("*/task.yaml"))
]
ODD = st.sampled_from(
    [None, True, 0, -1, 2.5, "", "x", "../x", "\n", [], [None], ["x"], [[]], {}, {"id": 3}, {"x": {}}]
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_odd_values_are_refused(tmp_path_factory: pytest.TempPathFactory, draw: st.DataObject) -> None:
    """Rules beyond the schema read what the schema has refused as if it were not there."""
    data = deepcopy(draw.draw(st.sampled_from(REAL)))
    for place in draw.draw(st.lists(st.sampled_from(list(places(data))[1:]), min_size=1, max_size=3)):
        with suppress(LookupError, TypeError):  # the place went with another one
            parent = functools.reduce(operator.getitem, place[:-1], data)
            if isinstance(parent, dict) == isinstance(place[-1], str):  # else another kind took its place
                parent[place[-1]] = deepcopy(draw.draw(ODD))
    config = project(tmp_path_factory.mktemp("odd") / "root")
    write_task(config, text=schemas.canonical({**data, "id": "toy"}).decode(), data=False)
    with suppress(RunnerError):
        tasks.load_task(config, "toy")


def test_what_is_no_yaml_has_its_own_code(config: Config) -> None:
    write_task(config, text="a: b: c\n")
    assert "tasks/toy/task.yaml:1: " in refused(config, "E405")


def test_an_unknown_task_is_named_with_a_near_one(config: Config) -> None:
    write_task(config)
    assert '"toy"' in refused(config, "E102", "tyo")
    assert "\x1b" not in refused(config, "E102", "\x1b[2J/../../etc")


def test_one_bad_task_never_stops_the_others(config: Config) -> None:
    write_task(config)
    write_task(config, "bad", text="- x\n")
    write_task(config, "worse", text="\x00")
    (config.tasks / ".hidden").mkdir()
    (config.tasks / "no-task").mkdir()
    found, errors = tasks.load_tasks(config)
    assert list(found) == ["toy"]
    assert [e.code for e in errors] == ["E401", "E405"]


def hidden(**changes: Any) -> dict[str, Any]:
    rows = [{"id": "dev", "visibility": "public"}, {"id": "test", "visibility": "blinded", **changes}]
    return {"demo": None, "datasets": rows}


def test_truths_of_a_blinded_dataset_lie_outside(tmp_path: Path) -> None:
    config = project(tmp_path / "root", truths=tmp_path / "truths")
    write_task(config, **hidden())
    task = tasks.load_task(config, "toy")
    assert task.datasets["test"].truths == tmp_path / "truths/toy/test"
    assert task.datasets["test"].scores == "organiser"
    problems = task_problems(task, config, ["test"])
    assert len(problems) == 1 and "$RUNNER_PRIVATE/toy/test/truths" in str(problems[0])
    assert task_problems(task, config, ["dev"]) == []
    (tmp_path / "truths/toy/test").mkdir(parents=True)
    (tmp_path / "truths/toy/test/qrels.txt").write_text("t1 0 d1 1\n")
    assert task_problems(task, config, ["test"]) == []


@pytest.mark.parametrize(
    ("demo", "truths"),
    [
        (None, "datasets/test/truths"),
        (True, "datasets/test/inputs"),
        (True, "datasets/test/inputs/t"),
        (True, "datasets/dev/inputs"),
        (True, "datasets/test"),
        (True, "alias"),
    ],
)
def test_truths_of_a_blinded_dataset_in_the_tree_are_refused(
    config: Config, demo: bool | None, truths: str
) -> None:
    folder = write_task(config, **{**hidden(truths=truths), "demo": demo})
    (folder / "alias").symlink_to("datasets/test/inputs")
    refused(config, "E403")


def test_a_folder_that_leaves_by_a_link_is_refused(config: Config, tmp_path: Path) -> None:
    folder = write_task(config, datasets=[{"id": "test", "visibility": "public", "inputs": "link"}])
    for target in (tmp_path, Path("link")):
        (folder / "link").symlink_to(target)
        assert "link" in refused(config, "E401")
        (folder / "link").unlink()


def test_truths_within_the_project_are_refused(tmp_path: Path) -> None:
    config = project(tmp_path / "root", truths=tmp_path / "root" / "truths")
    write_task(config, **hidden())
    assert "RUNNER_PRIVATE" in refused(config, "E403")
    unset = project(tmp_path / "other")
    write_task(unset, **hidden())
    task = tasks.load_task(unset, "toy")
    truths = task.datasets["test"].truths
    truths.mkdir(parents=True)
    (truths / "qrels.txt").write_text("x\n")
    with pytest.raises(RunnerError, check=lambda error: error.code == "E403"):
        check_task(task, unset)


def test_deep_problems_are_listed_at_once(config: Config) -> None:
    folder = write_task(
        config, scenarios=[{"id": "default", "files": ["*.xml"]}],
        measures=[{"id": "ap", "measure": "AP", "truths": "qrel.txt"}],
        models=[{"path": "m", "target": "/m", "digest": "sha256:" + "0" * 64}, {"path": "n", "target": "/n", "digest": "sha256:" + "0" * 64}],
        tables=[{"id": "main", "cells": [{"dataset": "test"}], "rank_by": "ap", "baseline": "baselines/none"}],
        datasets=[{"id": "dev", "visibility": "public", "topics": "topics.xml"}, {"id": "test", "visibility": "blinded"}],
    )  # fmt: skip
    (folder / "m").mkdir()
    (folder / "m" / "weights").write_text("x")
    (folder / "datasets/test/inputs/link").symlink_to("queries.jsonl")
    task = tasks.load_task(config, "toy")
    text = "\n".join(str(p) for p in task_problems(task, config))
    for expected in (
        '"topics.xml"',
        '"qrels.txt"',
        "*.xml",
        "link ",
        model_digest(task.models[0]),
        " n ",
        '"baselines/none"',
    ):
        assert expected in text, (expected, text)
    with pytest.raises(RunnerError, check=lambda error: error.code == "E402"):
        check_task(task, config)


def test_views_hold_what_the_patterns_say(config: Config) -> None:
    folder = write_task(config)
    inputs = folder / "datasets/dev/inputs"
    (inputs / "deep/er").mkdir(parents=True)
    (inputs / "deep/er/a.txt").write_text("x")
    (inputs / "deep/b.txt").write_text("x")
    dataset = tasks.load_task(config, "toy").datasets["dev"]

    def names(*patterns: str) -> list[str]:
        return [str(name) for name, _ in view_files(dataset, Scenario("s", patterns))]

    assert names("*.jsonl") == ["documents.jsonl", "queries.jsonl"]
    assert names("*") == ["documents.jsonl", "queries.jsonl"]
    assert names("deep/*") == ["deep/b.txt"]
    assert names("deep/**") == names("**/*.txt") == ["deep/b.txt", "deep/er/a.txt"]
    assert len(view_files(dataset)) == len(names("**")) == 4
    assert view_files(dataset)[0] == (PurePosixPath("deep/b.txt"), inputs / "deep/b.txt")


def test_digests_follow_names_and_contents_only(config: Config) -> None:
    folder = write_task(config)
    dataset = tasks.load_task(config, "toy").datasets["dev"]
    first, truths = inputs_digest(dataset), truths_digest(dataset)
    file = folder / "datasets/dev/inputs/documents.jsonl"
    os.utime(file, (1, 1))
    assert inputs_digest(dataset) == first
    text = file.read_text()
    file.write_text(text.replace("d1", "d2"))
    assert inputs_digest(dataset) != first
    file.write_text(text)
    assert inputs_digest(dataset) == first
    file.rename(file.with_name("other.jsonl"))
    assert inputs_digest(dataset) != first
    assert truths_digest(dataset) == truths
    view = Scenario("s", ("queries.jsonl",))
    assert inputs_digest(dataset, view) == files_digest(view_files(dataset, view)) != first


def test_missing_data_are_an_error_only_where_they_are_needed(config: Config) -> None:
    write_task(config, data=False)
    task = tasks.load_task(config, "toy")
    with pytest.raises(RunnerError, check=lambda error: error.code == "E402"):
        inputs_digest(task.datasets["dev"])


def test_titles_and_tables_do_not_change_the_work(config: Config) -> None:
    folder = write_task(config)
    before = tasks.load_task(config, "toy")
    (folder / "task.yaml").write_text(schemas.canonical(definition(title="Other")).decode())
    after = tasks.load_task(config, "toy")
    assert before.digest != after.digest
    assert work_digest(before) == work_digest(after)


DURATIONS = {"90s": 90, "10min": 600, "1.5h": 5400, "2 d": 172800, 3: 3, 0.5: 0.5}


@pytest.mark.parametrize(
    ("parse", "text", "amount"),
    [
        (parse_size, "64MiB", 64 * MIB),
        (parse_size, "2GB", 2 * 10**9),
        (parse_size, "1.5 GiB", 3 * GIB // 2),
        (parse_size, "10kB", 10000),
        (parse_size, "7B", 7),
        (parse_size, "0.1B", 1),
        (parse_size, 9, 9),
        *((parse_duration, text, seconds) for text, seconds in DURATIONS.items()),
    ],
)
def test_sizes_and_durations(parse: Callable[[Any], float], text: float | str, amount: float) -> None:
    assert parse(text) == amount


@given(st.text(max_size=12))
def test_other_amounts_are_value_errors(text: str) -> None:
    for parse in (parse_size, parse_duration):
        with suppress(ValueError):
            assert parse(text) > 0


def test_definitions_name_teams_as_they_are_called(config: Config) -> None:
    write_task(
        config,
        quota={"submissions": 2, "teams": {"TeamA_v2.1": 5}},
        extensions={"TeamA_v2.1": "2026-05-18 23:59 AoE"},
        exceptions={"TeamA_v2.1/webis_run-1.0": {"writable": ["/data"]}},
        closes="2026-05-11 23:59 AoE",
    )
    loaded = tasks.load_task(config, "toy")
    assert loaded.quota.teams == {"TeamA_v2.1": 5} and "TeamA_v2.1/webis_run-1.0" in loaded.exceptions
    write_task(config, "other", quota={"teams": {"TeamA..1": 5}})
    with pytest.raises(RunnerError) as caught:
        tasks.load_task(config, "other")
    assert any("TeamA..1" in problem.what for problem in caught.value.problems)


@pytest.mark.parametrize("name", ["documents.jsonl.index", "documents.jsonl.gz.index"])
def test_what_a_check_at_home_keeps_beside_a_corpus_is_no_input(config: Config, name: str) -> None:
    """Else every run would be on other inputs than those that are there now."""
    folder = write_task(config)
    dataset = tasks.load_task(config, "toy").datasets["dev"]
    before = inputs_digest(dataset)
    (folder / "datasets/dev/inputs" / name).write_bytes(b"SQLite format 3")
    assert inputs_digest(dataset) == before
    (folder / "datasets/dev/inputs/other.index").write_text("x")
    assert inputs_digest(dataset) != before
