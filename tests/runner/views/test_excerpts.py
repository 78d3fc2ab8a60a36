"""Lines of the log of a blinded run that its team is given: masked, bounded, exactly these, and seen by nobody else."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest

from runner.api import open_home
from runner.model.errors import PlatformError
from runner.model.task import Dataset
from runner.records.store import connect
from runner.views.excerpts import MASK, masked_text
from tests.worlds import records
from tests.worlds.commands import At

ERROR, LAST = "KeyError: 'title' in load_topics", "nothing else canary-last"
LOG = f"""start canary-first
reading topic q17: Malaria prophylaxis in children
{ERROR}
\x1b[31mthe strange  BANANA\tsubmarine\x1b[0m sails
{LAST}
""".encode()
MASKED = f"\\x1b[31mthe {MASK}\\x1b[0m sails"
OTHERS = ("team:beta", "public")


@pytest.fixture
def at(tmp_path: Path) -> At:
    return _at(tmp_path, LOG)


def _at(tmp_path: Path, log: bytes) -> At:
    records.write_project(tmp_path)
    folder = tmp_path / "tasks/toy/datasets"
    hidden, shown = folder / "test", folder / "dev"
    (hidden / "inputs/topics.jsonl").write_text(
        '{"qid": "q17", "title": "malaria prophylaxis in children"}\n'
    )
    (shown / "inputs/topics.jsonl").write_text('{"qid": "q1", "title": "reading children\'s books"}\n')
    with gzip.open(hidden / "truths/nuggets.txt.gz", "wt") as stream:
        stream.write("A strange banana submarine was seen.\n")
    world = records.World.make(tmp_path)
    submission = world.register("alpha", "x")
    world.attempt(submission, verdict="run-error", log=log)
    world.scored("beta", "y")
    return At(tmp_path, world)


LEFT = "([0-9]+) of 60 "  # bytes


def give(at: At, lines: str, *more: str) -> str:
    answer = at.run(
        "--actor", "anna", "release-log", at.run_of("alpha"), "--lines", lines, "--stream", "stdout", *more
    )
    assert answer.failed is None, answer.text
    return answer.text


def seen(at: At, audience: str) -> str:
    run, page = at.run_of("alpha"), at.root / "page.html"
    page.unlink(missing_ok=True)
    words = [["logs", run], ["show", run], ["show", run, "--json"], ["show", run, "--html", str(page)], ["runs", "--json"],
             ["logs", run, "--follow"], ["export", run, str(at.root / "out" / audience)], ["leaderboard", "toy", "--json"]]  # fmt: skip
    texts = [at.run(*one, "--as", audience).text for one in words]
    home = open_home(at.world.config.home, audience, root=at.root)
    texts += [home.runs().to_csv(), home.findings().to_csv()]
    return "\n".join(texts + ([page.read_text()] if page.exists() else []))


@pytest.mark.slow
def test_the_team_sees_exactly_what_it_was_given_and_nobody_else_anything(at: At) -> None:
    before = {audience: seen(at, audience) for audience in OTHERS}
    assert at.run("logs", at.run_of("alpha"), "--as", "team:alpha").error.code == "E103"
    assert "canary-last" not in seen(at, "team:alpha")
    give(at, "3-5")
    answer = at.run("logs", at.run_of("alpha"), "--as", "team:alpha")
    assert answer.out.splitlines() == [ERROR, MASKED, LAST] and answer.err == ""
    shown = at.run("show", at.run_of("alpha"), "--as", "team:alpha").out
    (head,) = re.findall(rf"(.*):\n  \| {ERROR}\n", shown)
    assert re.findall("[0-9]+|stdout", head) == ["3", "5", "stdout"]
    everything = seen(at, "team:alpha")
    assert "canary-last" in everything and "canary-first" not in everything
    assert not any(word in everything for word in ("Malaria", "prophylaxis", "BANANA", "q17", "\x1b"))
    assert {audience: seen(at, audience) for audience in OTHERS} == before


def test_a_dry_run_shows_what_is_masked_and_gives_nothing(at: At) -> None:
    """Texts of hidden files are masked, those of public files are not."""
    log = at.world.config.events.read_bytes()
    said = give(at, "2", "--dry-run")
    assert f"     2  reading topic {MASK}\n" in said and "(1 masked)" in said
    said = give(at, "3-5", "--dry-run")
    assert f"     3  {ERROR}\n     4  {MASKED}\n     5  {LAST}\n" in said
    assert at.world.config.events.read_bytes() == log and "canary-last" not in seen(at, "team:alpha")


def test_what_hidden_files_hold_is_masked_across_the_border_of_two_excerpts(tmp_path: Path) -> None:
    """Words that are harmless each are a hidden text in their row: half of it in one excerpt, half in the next."""
    at = _at(tmp_path, b"before it\nwe saw malaria\nprophylaxis in\nchildren of old\n")
    for line in ("1", "2", "3", "4"):
        give(at, line)
    shown = at.run("logs", at.run_of("alpha"), "--as", "team:alpha").out
    assert shown.splitlines() == ["before it", f"we saw {MASK}", MASK, f"{MASK} of old"]


def test_an_excerpt_is_an_event_with_digest_bytes_and_the_person(at: At) -> None:
    said = give(at, "5")
    assert {"24", "(0", "alpha:", "192"} <= {*said.split()}, "bytes, masked places, team, bits"
    assert give(at, "5").splitlines()[-1] == said.splitlines()[-1], "the same lines again cost nothing"
    (event,) = json.loads(at.run("events", "--kind", "log-excerpt-released", "--json").out)
    data = event["data"]
    assert (data["text"], data["bytes"]) == (LAST, len(LAST))
    assert data["sha256"] == hashlib.sha256(LAST.encode()).hexdigest()
    assert event["who"] == "anna" and event["team"] == "alpha" and "stdout" in event["says"]


def test_excerpts_of_a_team_are_bounded_on_all_its_runs_of_a_dataset(at: At) -> None:
    path = at.root / "tasks/toy/task.yaml"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"log_excerpts": 60}))
    assert re.findall(LEFT, give(at, "5")) == ["36"]
    at.world.store.catch_up()
    at.world.attempt(at.world.register("alpha", "z"), log=b"z" * 30 + b"\n" + b"y" * 7 + b"\n")
    assert re.findall(LEFT, give(at, "1")) == ["6"]
    refused = at.run("release-log", at.run_of("alpha"), "--lines", "2", "--stream", "stdout").error
    assert refused.code == "E103" and re.findall(LEFT, refused.why) == ["6"]
    assert re.findall(LEFT, give(at, "1")) == ["6"]  # what was given costs nothing more
    assert json.loads(at.run("task", "show", "toy", "--json").out)["log_excerpts"] == 60


def test_it_is_of_the_attempt_that_counts(at: At) -> None:
    give(at, "5")
    at.world.store.catch_up()
    at.world.attempt(at.submission("alpha"), log=b"another\n", verdict="run-error")
    said = seen(at, "team:alpha")
    assert "canary-last" not in said and "another" not in said


def test_what_cannot_be_given_is_refused(at: At) -> None:
    run = at.run_of("alpha")
    at.world.attempt(at.submission("beta"), dataset="dev")
    at.world.register("gamma", "z")
    for words, code in (
        ((run, "--lines", "0"), "E101"),
        ((run, "--lines", "5-3"), "E101"),
        ((run, "--lines", "x"), "E101"),
        ((run, "--lines", "1", "--stream", "both"), "E101"),
        ((run, "--lines", "4-6", "--stream", "stdout"), "E102"),
        ((run, "--lines", "1"), "E102"),  # of stderr
        ((f"{at.submission('beta')}.dev", "--lines", "1", "--stream", "stdout"), "E101"),
        (("gamma", "--lines", "1"), "E102"),
    ):
        assert at.run("release-log", *words).error.code == code, words
    truths = at.root / "tasks/toy/datasets/test/truths"
    truths.rename(truths.with_name("elsewhere"))
    assert at.run("release-log", run, "--lines", "5", "--stream", "stdout").failed is not None
    assert at.run("events", "--kind", "log-excerpt-released").out == ""


def test_of_a_task_that_is_gone_nothing_is_given(at: At) -> None:
    run = at.run_of("alpha")
    (at.root / "tasks/toy").rename(at.root / "elsewhere")
    error = at.run("release-log", run, "--lines", "5", "--stream", "stdout").error
    assert error.code == "E102" and run in error.what and "tasks/toy" in error.fix


@pytest.mark.slow
def test_a_rebuilt_store_gives_the_same_and_a_forged_text_is_noticed(at: At) -> None:
    give(at, "3-5")
    before = seen(at, "team:alpha")
    at.world.store.close()
    connect.rebuild(at.world.config)
    assert seen(at, "team:alpha") == before
    (event,) = json.loads(at.run("events", "--kind", "log-excerpt-released", "--json").out)
    with connect.open_store(at.world.config) as store, pytest.raises(PlatformError) as caught:
        forged = {**event["data"], "text": "canary-forged"}
        store.commit("log-excerpt-released", forged, actor="organiser")
    assert caught.value.code == "E307"


def dataset(folder: Path, name: str, **files: str) -> Dataset:
    for part in ("inputs", "truths"):
        (folder / name / part).mkdir(parents=True)
    for file, text in files.items():
        side, _, rest = file.partition("_")
        (folder / name / side / f"{rest}.txt").write_text(text)
    return Dataset(name, "blinded", folder / name / "inputs", folder / name / "truths", corpus="corpus.txt")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("an aardvark, an emu", f"an {MASK}, an emu"),  # emu has fewer letters
        ("AARDVARK_ardent=1", f"{MASK}_ardent=1"),
        ("caf\u00e9 12", f"{MASK}"),  # JSON has it as an escape; neighbours are one place
        ("one\naardvark\naardvark\nfour", f"one\n{MASK}\n{MASK}\nfour"),
        ("blue whales sing at night", f"{MASK} at night"),  # three words in a row of the corpus
        ("blue whales", "blue whales"),
        ("blue\nwhales, sing", f"{MASK}\n{MASK}"),  # over lines, too
        ("title", "title"),  # public
        ("ox of us", MASK),  # public in the corpus, but a topic
        ("in a ox cart", "in a ox cart"),  # of a corpus that is public, too
        (r"caf\u00e9", MASK),  # as json.dumps writes it
        (r"b'caf\xc3\xa9'", f"b'{MASK}'"),  # as Python shows bytes
        (r"'\naardvark\temu'", f"'\\n{MASK}\\temu'"),  # as Python shows a text
        (r"C:\aardvark x\U0001f600 \UFFFFFFFF", f"C:\\{MASK} x\\U0001f600 \\UFFFFFFFF"),  # a path
        (r"blue\nwhales\x1b[0m sing", MASK),
        (r"\x1b[1;31maardvark", rf"\x1b[1;31m{MASK}"),  # in colour
        ("", ""),
    ],
)
def test_words_and_rows_of_words_are_masked(tmp_path: Path, line: str, shown: str) -> None:
    hidden = dataset(
        tmp_path, "test", inputs_topics='{"title": "Aardvark emu"}\n"ox of us"', truths_t='["caf\\u00e9", "12"]',
        inputs_corpus="Blue whales sing.\nIn a ox cart.\n",
    )  # fmt: skip
    public = dataset(
        tmp_path, "dev", inputs_topics='{"title": "x"}', inputs_corpus="ox of us\nin a ox cart\n"
    )
    assert masked_text(line, hidden, public)[0] == shown
