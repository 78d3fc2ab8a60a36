"""The page of two runs: figures, topics with their text, documents of both, what is inside; for its audience, and escaped."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.kinds.records import presenter as recording
from runner.kinds.report import presenter as reporting
from runner.model.errors import RunnerError
from runner.model.task import Task
from runner.records.store import run_detail
from runner.views.audience import ORGANISER, Audience
from runner.views.comparison.page import Within, page, within
from runner.views.comparison.topics import compare, resamples_of
from runner.views.redact import redact_run
from tests.runner.views.test_show_page import Read
from tests.worlds import records
from tests.worlds.commands import Answer
from tests.worlds.records import World
from tests.worlds.shown import HOSTILE, judged_line, reported, wrong_lines

FIRST, SECOND = {"1": 0.9, "2": 0.5, "3": 0.2}, {"1": 0.1, "2": 0.5, "3": 0.4}
ALPHA = Audience("team", "alpha")


def task(root: Path) -> Task:
    """The toy task with topics that have a text."""
    made = records.task()
    folder = root / "inputs"
    folder.mkdir(exist_ok=True)
    lines = [f'{{"id": "{n}", "query": "question {n} <b>"}}\n' for n in (1, 2, 3)]
    (folder / "topics.jsonl").write_text("".join(lines))
    datasets = {
        name: replace(one, inputs=folder, topics="topics.jsonl") for name, one in made.datasets.items()
    }
    return replace(made, datasets=datasets)


def run(
    world: World, team: str, scores: dict[str, float], documents: str, dataset: str, software: str = "x"
) -> str:
    submission = world.register(team, software)
    lines = [f"{topic} Q0 {one} {n} {-n} t\n" for topic in scores for n, one in enumerate(documents)]
    attempt = world.attempt(submission, dataset=dataset, output={"run.txt": "".join(lines)})
    world.evaluation(attempt, {"ndcg": scores, "rr": scores})
    return f"{submission}.{dataset}"


def text_of(
    tmp_path: Path, audience: Audience = ORGANISER, dataset: str = "dev", teams: str = "alpha beta"
) -> str:
    world, of = World.make(tmp_path), task(tmp_path)
    first, second = teams.split()
    runs = [run(world, first, FIRST, "abc", dataset)]
    runs.append(run(world, second, SECOND, "bcx", dataset, "y" if second == first else "x"))
    found = [run_detail.detail(world.store, one, [of]) for one in runs]
    views = [redact_run(one, audience, of.datasets[dataset]) for one in found]
    made = compare(views[0], views[1], of)
    beside = within([(one, of.datasets[dataset]) for one in found], of, audience)
    return page(made, of, audience, beside)


def test_figures_topics_with_their_texts_and_documents(
    tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    text = text_of(tmp_path)
    read = Read(text)
    words = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())
    assert "script" not in read.tags and "question 1 <b>" in words
    assert re.search(r"1 question 1 <b> 0.9000 0.1000 \+0.8000", words), "the first is better"
    assert words.index("question 1") < words.index("question 2") < words.index("question 3")
    assert "nDCG@10 0.5333 0.3333 +0.2000 [" in words and "1 / 1 / 1" in words
    golden("comparison-page.txt", "\n".join(read.phrases))


def test_every_place_on_the_page_is_there_once_and_links_lead_to_them(tmp_path: Path) -> None:
    kinds = {"report": (reporting, [judged_line()]), "records": (recording, wrong_lines(HOSTILE))}
    for name, (presenter, details) in kinds.items():
        text = beside_each_other(tmp_path / name, presenter, details)
        read = Read(text)
        ids = Counter(value for key, value in read.attributes if key == "id")
        assert ids and max(ids.values()) == 1
        links = [value[1:] for key, value in read.attributes if key == "href" and value and value[0] == "#"]
        assert {*links} <= ids.keys()
        named = [
            v for key, value in read.attributes if key == "aria-labelledby" and value for v in value.split()
        ]
        assert {*named} <= ids.keys()
        assert "script" not in read.tags and not [key for key, _ in read.attributes if key.startswith("on")]


def beside_each_other(tmp_path: Path, presenter: Any, details: list[Any]) -> str:
    """The page of two runs of which the evaluator says these details."""
    world, of = World.make(tmp_path), records.task()
    found = [reported(world, details, team=team) for team in ("alpha", "beta")]
    shown = [presenter.read(one, None, ORGANISER, of.datasets["dev"]) for one in found]
    views = [redact_run(one, ORGANISER, of.datasets["dev"]) for one in found]
    return page(compare(views[0], views[1], of), of, ORGANISER, Within(inside=(shown[0], shown[1])))


def test_sentences_and_confusions_stand_next_to_each_other(tmp_path: Path) -> None:
    assert beside_each_other(tmp_path / "1", reporting, [judged_line()]).count("Bees fly.") >= 2
    text = beside_each_other(tmp_path / "2", recording, wrong_lines("a cow"))
    captions = Counter(re.findall("<caption>(.*?)</caption>", text))
    assert sorted(captions.values()) == [1, 1, 2, 2, 2, 2, 2], "of both runs, and of their tables"


def test_a_team_sees_topics_of_public_data_and_the_organiser_those_of_blinded_data(tmp_path: Path) -> None:
    words = Read(text_of(tmp_path / "dev", ALPHA, teams="alpha alpha")).text
    assert "question 1" in words and "team:alpha" in words
    with pytest.raises(RunnerError) as refused:
        text_of(tmp_path / "test", ALPHA, "test", "alpha alpha")
    assert refused.value.code == "E103"
    assert "question 1" in Read(text_of(tmp_path / "organiser", ORGANISER, "test")).text


def test_a_figure_over_all_records_has_its_test(tmp_path: Path) -> None:
    world, of = World.make(tmp_path), records.task()
    found = []
    for team, shift in (("alpha", 0.3), ("beta", 0.0)):
        drawn = {"drawn": "d" * 64, "values": [0.5 + shift + (n % 7) / 1000 for n in range(400)]}
        one = {"value": 0.5 + shift, "topics": 90, "covered": 90, "interval": [0.4, 0.9], "resamples": drawn}
        submission = world.register(team, "x")
        world.evaluation(world.attempt(submission), more={"measures": {"ndcg": one, "rr": one}})
        found.append(run_detail.detail(world.store, f"{submission}.test", [of]))
    views = [redact_run(one, ORGANISER, of.datasets["test"]) for one in found]
    made = compare(
        views[0],
        views[1],
        of,
        resampled=(resamples_of(found[0], ORGANISER), resamples_of(found[1], ORGANISER)),
    )
    one = made.measures[0]
    assert one.p == pytest.approx(1 / 401) and one.interval == pytest.approx((0.3, 0.3))
    rounded = replace(found[0], decimals={"ndcg": 2})
    assert resamples_of(rounded, ORGANISER).keys() == {"ndcg", "rr"}
    assert resamples_of(rounded, ALPHA).keys() == {"rr"}
    words = Read(page(made, of, ORGANISER, Within())).text
    assert one.test in words and "randomisation" not in words
    with pytest.raises(RunnerError) as refused:
        compare(views[0], views[1], of)
    assert refused.value.code == "E101"


def test_the_command_writes_the_page(tmp_path: Path, world: World, cli: Callable[..., Answer]) -> None:
    first, second = world.scored("alpha", "x"), world.scored("beta", "y")
    target = tmp_path / "both.html"
    assert cli(first, second, "--html", str(target)).exit_code == 0
    assert f"{first}.test" in Read(target.read_text()).text and target.stat().st_mode & 0o777 == 0o600
    assert cli(first, second, "--html", str(tmp_path / "no" / "b.html")).error.code == "E101"
