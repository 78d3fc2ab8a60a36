"""``runner task new --from tira:…`` and ``codabench:…``: what their files say becomes a task that passes the check, the rest is named.

The folders and bundles are written here by the platforms' own documentation of their forms.
"""

from __future__ import annotations

import csv
import io
import json
import random
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from runner.engines.docker.engine import DockerEngine
from runner.execution.machine import Machine
from runner.execution.trials.prove import prove, prove_order
from runner.kinds.records.codabench import from_bundle
from runner.kinds.records.truth_files import read_records
from runner.kinds.release import Wrong
from runner.model.config import Config
from runner.model.container import ImageRef
from runner.model.errors import RunnerError
from runner.model.kinds import kind_of_source
from runner.tasks import compose
from runner.tasks.check_contents import read_contents
from runner.tasks.check_data import task_problems
from runner.tasks.load import load_task
from runner.tasks.scaffold import new_task_from
from tests.runner.kinds.test_collections import collection as folder
from tests.runner.kinds.test_collections import config, rows
from tests.worlds.definitions import told
from tests.worlds.mini import Project, call_here

__all__ = ["config"]

TEXTS = {f"t{n}": ("a kind word", "a rude word")[n % 2] for n in range(1, 31)}
LABELS = {name: ("kind", "rude")[n % 2] for n, name in enumerate(TEXTS, 1)}
INPUTS = "".join(json.dumps({"id": one, "text": text}) + "\n" for one, text in TEXTS.items())
TRUTHS = "".join(json.dumps({"id": one, "label": label}) + "\n" for one, label in LABELS.items())
TABLE = "id,label\n" + "".join(f"{one},{label}\n" for one, label in LABELS.items())

README = """\
---
configs:
- config_name: inputs
  data_files:
  - split: train
    path: ["train.jsonl"]
  - split: test
    path: "test/inputs.jsonl"
- config_name: truths
  data_files:
  - split: train
    path: ["train-truth.jsonl"]
  - split: test
    path: "test/tr*.jsonl"

tira_configs:
  resolve_inputs_to: "."
  resolve_truths_to: "."
  default_upload_name: "answers.jsonl"
  baseline:
    link: https://git.example.org/baselines/naive
    command: /predict.py --input $inputDataset --output $outputDir
    format:
      name: ["*.jsonl"]
      config: {id_field: id, value_field: label, required_fields: [id, label], minimum_lines: 3}
  input_format:
    name: "*.jsonl"
    config: {max_size_mb: 150}
  truth_format:
    name: "*.jsonl"
    config: {id_field: id, value_field: label, required_fields: ["id", "label"]}
  evaluator:
    measures: ["accuracy", "f1"]
---

# Kind or rude

Say of every text whether it is kind.
"""
TIRA = {
    "README.md": README,
    "train.jsonl": INPUTS,
    "train-truth.jsonl": TRUTHS,
    "test/inputs.jsonl": INPUTS.replace('"t', '"u'),
    "test/truths.jsonl": TRUTHS.replace('"t', '"u'),
    "notes.txt": "ours\n",
}

TITLE = "Kind or rude"
UNTAKEN = "not taken over: "  # the beginning of a message about a part that has no counterpart
TEST_TRUTHS = '  - split: test\n    path: "test/tr*.jsonl"\n'

SECOND = """\
version: 2
title: Kind or rude
image: logo.png
terms: pages/terms.md
description: Say of every text whether it is kind.
docker_image: codalab/codalab-legacy:py39
contact_email: chair@example.org
reward: $1000 prize pool
pages:
  - {title: Welcome, file: pages/welcome.md}
  - {title: Data, file: pages/data.html}
phases:
  - index: 0
    name: Development
    start: 2024-12-12 13:30:00
    end: 2025-02-01 00:00:00
    execution_time_limit: 1200
    max_submissions: 100
    max_submissions_per_day: 5
    starting_kit: starting_kit
    tasks: [0]
  - index: 1
    name: Final
    start: 2025-02-02T00:00:00+01:00
    auto_migrate_to_this_phase: True
    execution_time_limit: 600
    tasks: [1]
tasks:
  - index: 0
    name: Development data
    input_data: dev/input_data/
    reference_data: dev/reference_data
    scoring_program: scoring_program.zip
  - index: 1
    name: Final data
    description: What counts.
    input_data: final_input.zip
    reference_data: final_reference.zip
    ingestion_program: ingestion_program.zip
    scoring_program: scoring_program.zip
solutions:
  - {index: 0, path: solution.zip, tasks: [0]}
leaderboards:
  - title: Results
    key: main
    submission_rule: Force_Last
    columns:
      - {title: Accuracy, key: accuracy, index: 0, sorting: desc, precision: 3}
      - {title: Macro F1, key: f1_macro, index: 1, sorting: desc}
      - {title: Duration, key: duration, index: 2, sorting: asc}
"""


def packed(files: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def second(**changes: str | bytes) -> dict[str, str | bytes]:
    """The files of a bundle of version 2; names have ``__`` for a slash, and ``_`` at the end for the dot of the ending."""
    return {
        "competition.yaml": SECOND,
        "logo.png": b"\x89PNG",
        "pages/terms.md": "Be fair.\n",
        "pages/welcome.md": "Welcome to the *task*.\n",
        "pages/data.html": "<p>Data</p>",
        "starting_kit/readme.txt": "hello\n",
        "dev/input_data/texts.jsonl": INPUTS,
        "dev/reference_data/truth.csv": TABLE,
        "final_input.zip": packed({"texts.jsonl": INPUTS.replace('"t', '"u')}),
        "final_reference.zip": packed({"truth.csv": TABLE.replace("\nt", "\nu")}),
        "scoring_program.zip": packed({"score.py": "print(1)", "metadata": "command: python score.py"}),
        "ingestion_program.zip": packed({"ingest.py": "print(1)"}),
        "solution.zip": packed({"answer.csv": TABLE}),
    } | changes


def bundle(place: Path, files: Mapping[str, str | bytes]) -> Path:
    place.write_bytes(packed(files))
    return place


def make(config: Config, source: str) -> list[str]:
    """Make the task ``mine``, see that nothing is wrong with it, and return what was said."""
    said: list[str] = []
    new_task_from(config, "mine", source, kind=kind_of_source(source), say=said.append)
    task = load_task(config, "mine")
    contents = read_contents(task, config, lambda _: None)
    assert not any(one.unchecked for one in contents)
    found = [*task_problems(task, config), *(p for one in contents for p in [*one.problems, *one.warnings])]
    assert [str(p) for p in found] == [] and compose.outdated({"mine": task}) == []
    todo = (config.tasks / "mine/TODO.md").read_text()
    untaken = [one.removeprefix(UNTAKEN) for one in said if one.startswith(UNTAKEN)]
    assert all(f"- {one}\n" in todo for one in untaken)
    return said


def take_tira(config: Config, tmp_path: Path, readme: str = README) -> str:
    """Make the task from a folder of TIRA with this README; return the messages."""
    return "\n".join(make(config, f"tira:{folder(tmp_path / 'kind', {**TIRA, 'README.md': readme})}"))


def take_second(config: Config, tmp_path: Path, **changes: str | bytes) -> str:
    """Make the task from a bundle of version 2 with these files; return the messages."""
    return "\n".join(make(config, f"codabench:{bundle(tmp_path / 'b.zip', second(**changes))}"))


def refused(config: Config, source: str) -> str:
    """What the error says of a source that no task is made of; nothing is left of it."""
    with pytest.raises(RunnerError) as caught:
        new_task_from(config, "mine", source, kind=kind_of_source(source), say=lambda _: None)
    assert list(config.tasks.iterdir()) == []
    assert config.private is not None and not (config.private.exists() and list(config.private.iterdir()))
    return told(caught.value)


def definition(config: Config) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((config.tasks / "mine/task.yaml").read_text())
    return found


def score(config: Config, tmp_path: Path, dataset: str, name: str, text: str) -> dict[str, float]:
    """The scores of an output on a dataset, by the evaluator itself."""
    task = load_task(config, "mine")
    (tmp_path / name).write_text(text)
    truths = task.datasets[dataset].truths / "truths.jsonl"
    command = [sys.executable, "-m", "evaluator", "records", str(tmp_path / name), "--json"]
    command += ["--schema", str(task.folder / "answer.schema.json"), "--truths", str(truths)]
    for one in task.measures.values():
        command += ["-m", one.measure]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {text: one["value"] for text, one in json.loads(done.stdout)["measures"].items()}


def test_a_folder_of_tira_becomes_a_task(config: Config, tmp_path: Path) -> None:
    messages = take_tira(config, tmp_path)
    data = definition(config)
    assert (data["title"], data["output"]) == (TITLE, "answers.jsonl")
    assert [(one["id"], one["visibility"], one["topics"]) for one in data["datasets"]] == [
        ("train", "public", "train.jsonl"),
        ("test", "blinded", "test/inputs.jsonl"),
    ]
    assert data["measures"] == [{"id": "accuracy", "measure": "Accuracy(label)", "truths": "truths.jsonl"}]
    schema = json.loads((config.tasks / "mine/answer.schema.json").read_text())
    assert schema["required"] == ["id", "label"] and schema["properties"]["label"] == {"type": "string"}
    assert config.private is not None
    hidden = config.private / "mine/test"
    assert (hidden / "inputs/test/inputs.jsonl").is_file() and len(rows(hidden / "truths/truths.jsonl")) == 30
    assert not (config.tasks / "mine/datasets/test").exists()
    for word in (
        "30",
        "baseline/link",
        "baseline/command",
        "minimum_lines",
        "max_size_mb",
        "f1",
        "notes.txt",
    ):
        assert word in messages
    right = (hidden / "truths/truths.jsonl").read_text()
    assert score(config, tmp_path, "test", "answers.jsonl", right) == {"Accuracy(label)": 1.0}


def test_odd_splits(config: Config, tmp_path: Path) -> None:
    """A name that is a number, and a split whose truths are kept elsewhere."""
    text = README.replace("split: train", "split: 2024")
    messages = take_tira(config, tmp_path, text.replace(TEST_TRUTHS, ""))
    assert [one["id"] for one in definition(config)["datasets"]] == ["2024"]
    assert any(line.startswith(UNTAKEN) and "test" in line for line in messages.splitlines())


def test_an_archive_of_the_folder_is_the_same(config: Config, tmp_path: Path) -> None:
    path = tmp_path / "kind.tgz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder(tmp_path / "kind", TIRA), "kind")
    make(config, f"tira:{path}")
    assert [one["id"] for one in definition(config)["datasets"]] == ["train", "test"]


def test_unknown_formats_and_evaluators_are_named(config: Config, tmp_path: Path) -> None:
    text = README.replace('name: ["*.jsonl"]\n', 'name: "own-solutions"\n').replace(
        'measures: ["accuracy", "f1"]',
        "image: registry.example.org/evaluator:1\n    command: /evaluate $inputRun",
    )
    messages = take_tira(config, tmp_path, text)
    assert all(word in messages for word in ("own-solutions", "evaluator/image", "Accuracy(label)"))


def test_outputs_and_truths_may_have_different_fields(config: Config, tmp_path: Path) -> None:
    fields = "value_field: {0}, required_fields: [id, {0}]"
    take_tira(config, tmp_path, README.replace(fields.format("label"), fields.format("said")))
    assert definition(config)["measures"][0]["measure"] == "Accuracy(said, truth=label)"
    answers = "".join(json.dumps({"id": one, "said": label}) + "\n" for one, label in LABELS.items())
    assert set(score(config, tmp_path, "train", "answers.jsonl", answers).values()) == {1.0}


def test_rankings_of_tira_are_for_the_kind_that_has_them(config: Config, tmp_path: Path) -> None:
    text = README.replace(
        '["*.jsonl"]\n      config: {id_field: id, value_field: label, required_fields: [id, label], minimum_lines: 3}',
        '["run.txt"]',
    )
    files = {
        "README.md": text,
        "corpus.jsonl": '{"docno": "d1", "text": "a kind word"}\n',
        "queries.jsonl": '{"qid": "1", "query": "kind"}\n',
        "qrels.txt": "1 0 d1 1\n",
    }
    place = folder(tmp_path / "ranking", files)
    assert "--kind adhoc" in refused(config, f"tira:{place}")
    new_task_from(config, "mine", str(place), kind="adhoc", say=lambda _: None)  # the proposed fix


@pytest.mark.parametrize("zipped", [True, False])
def test_a_bundle_of_codabench_becomes_a_task(
    config: Config, tmp_path: Path, zipped: bool, golden: Callable[[str, str], None]
) -> None:
    source = bundle(tmp_path / "b.zip", second()) if zipped else folder(tmp_path / "b", second())
    messages = make(config, f"codabench:{source}")
    golden("codabench.txt", "\n".join(messages) + "\n")
    data = definition(config)
    assert (data["title"], data["contact"], data["terms"]) == (TITLE, "chair@example.org", "Be fair.")
    dev, final = data["datasets"]
    assert dev | {"visibility": "blinded"} == {
        "id": "development-data",
        "visibility": "blinded",
        "topics": "texts.jsonl",
        "opens": "2024-12-12 13:30:00 UTC",
        "closes": "2025-02-01 00:00:00 UTC",
        "quota": {"submissions": 100, "per_day": 5},
    }
    assert (final["opens"], final["description"]) == ("2025-02-01 23:00:00 UTC", "What counts.")
    assert [(one["measure"], one.get("precision")) for one in data["measures"]] == [
        ("Accuracy(label)", 3),
        ("F1(label, average=macro)", None),
    ]
    assert data["limits"]["wall_clock"] == "1200s" and data["output"] == "predictions.csv"
    assert "*task*" in (config.tasks / "mine/README.md").read_text()
    assert config.private is not None
    assert not list((config.tasks / "mine").rglob("*truth*.jsonl")), "all truths are out of reach"
    out = io.StringIO()
    csv.writer(out).writerows([("id", "label"), *((one.replace("t", "u"), "kind") for one in LABELS)])
    assert score(config, tmp_path, "final-data", "predictions.csv", out.getvalue())["Accuracy(label)"] == 0.5


@pytest.mark.parametrize(
    ("values", "names", "measures"),
    [
        (["a", "b"], "accuracy f1_macro f1_micro recall_weighted mcc cohen_kappa", 6),
        (["0.5", "1.25"], "mae rmse pearson spearmanr kendall_tau", 5),
        (["a text", "two texts"], "exact_match bleu chrF ROUGE-L rouge2", 5),
    ],
)
def test_figures_become_measures_that_the_evaluator_has(
    config: Config, tmp_path: Path, values: list[str], names: str, measures: int
) -> None:
    table = "id,value\n" + "".join(f"{one},{values[n % 2]}\n" for n, one in enumerate(TEXTS))
    columns = "".join(f"      - {{title: x, key: {name}, index: 0}}\n" for name in names.split())
    text = SECOND.partition("    columns:\n")[0] + "    columns:\n" + columns
    changes = {
        "competition.yaml": text,
        "dev/reference_data/truth.csv": table,
        "final_reference.zip": packed({"truth.csv": table.replace("\nt", "\nu")}),
    }
    take_second(config, tmp_path, **changes)
    found = definition(config)["measures"]
    assert len(found) == measures == len({one["id"] for one in found})
    assert all(one.get("direction") == "lower" for one in found if one["measure"].startswith(("MAE", "RMSE")))


def test_nothing_of_a_definition_is_lost_in_silence(config: Config, tmp_path: Path) -> None:
    """Every key of a bundle is either in the task, or named."""
    text = SECOND.replace("reward:", "brand_new_key: 1\nreward:").replace(
        "    tasks: [0]\n  - index: 1", "    tasks: [0, 7]\n    other_new_key: [1, 2]\n  - index: 1"
    )
    messages = take_second(config, tmp_path, **{"competition.yaml": text})
    for words in ("brand_new_key: ", "phases/1/other_new_key: ", "the task 7 "):
        assert UNTAKEN + words in messages


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("1,0\n2,1\n", [{"id": "1", "value": 0}, {"id": "2", "value": 1}]),
        ("1\t0.5\tx\n2\t1\ty\n", [{"id": "1", "value-1": 0.5, "value-2": "x"}, {"id": "2", "value-1": 1.0, "value-2": "y"}]),
        ("0 1 0\n0 0 1\n", [{"id": "1", "value-1": 0, "value-2": 1, "value-3": 0}, {"id": "2", "value-1": 0, "value-2": 0, "value-3": 1}]),
        ("7,1\n7,0\n", [{"id": "1", "value-1": 7, "value-2": 1}, {"id": "2", "value-1": 7, "value-2": 0}]),
        ("0.234 1.5\n0.5 2.5\n", [{"id": "1", "value-1": 0.234, "value-2": 1.5}, {"id": "2", "value-1": 0.5, "value-2": 2.5}]),
        ("007,1\n008,0\n", [{"id": "007", "value": 1}, {"id": "008", "value": 0}]),
    ],
)  # fmt: skip
def test_columns_of_numbers_without_a_header_are_named(tmp_path: Path, text: str, rows: list[Any]) -> None:
    (tmp_path / "solution.txt").write_text(text)
    found = read_records(tmp_path / "solution.txt", "solution.txt")
    assert found.headless and (found.id, found.rows) == ("id", rows)


@pytest.mark.parametrize("header", ["id,2020,2021", "name,2020,2021", "x,2020,y", ",2020,2021"])
def test_a_header_with_numbers_is_not_a_record(tmp_path: Path, header: str) -> None:
    (tmp_path / "solution.csv").write_text(f"{header}\na,1,2\nb,3,4\n")
    with pytest.raises(Wrong):
        read_records(tmp_path / "solution.csv", "solution.csv")


def test_a_web_page_as_terms_is_named(config: Config, tmp_path: Path) -> None:
    pages = {
        "pages/terms.md": "<html><body>Be fair.</body></html>",
        "pages/welcome.md": "<!DOCTYPE html>\n<p>x",
    }
    messages = take_second(config, tmp_path, **pages).splitlines()
    assert "terms" not in definition(config)
    for name in pages:
        assert any(line.startswith(UNTAKEN) and name in line for line in messages), name


def test_solutions_without_a_header_and_registration_without_approval(config: Config, tmp_path: Path) -> None:
    numbers = "".join(f"{n},{n % 2}\n" for n in range(1, 31))
    changes: dict[str, str | bytes] = {
        "competition.yaml": "registration_auto_approve: true\n" + SECOND,
        "dev/reference_data/truth.csv": numbers,
        "final_reference.zip": packed({"truth.csv": numbers}),
    }
    messages = take_second(config, tmp_path, **changes)
    assert "id, value" in messages
    (line,) = [one for one in messages.splitlines() if "registration_auto_approve" in one]
    assert "approve: at-once" in line


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (second(**{"final_reference.zip": b"PK\x03\x04broken"}), "final_reference.zip"),
        (second(**{"final_reference.zip": packed({"../../evil.csv": TABLE})}), "evil.csv"),
        (second(**{"final_reference.zip": packed({"/etc/evil.csv": TABLE})}), "evil.csv"),
        (second(**{"dev/reference_data/truth.csv": "id,label\na,x\na,y\n"}), "record 2"),
        (second(**{"dev/reference_data/truth.csv": b"\xff\xfe"}), "UTF-16"),
        (second(**{"dev/reference_data/truth.csv": b"id,label\na,\xff\n"}), "UTF-8"),
        (second(**{"dev/reference_data/truth.csv": "version https://git-lfs.github.com/spec/v1\n"}), "Git LFS"),
        (second(**{"dev/reference_data/truth.csv": "\n \n"}), "truth.csv"),
        (second(**{"dev/reference_data/truth.csv": "1,2\n3,4,5\n"}), "truth.csv"),
        (second(**{"dev/reference_data/truth.csv": "x,y\na,1\na,1\n"}), "truth.csv"),
        (second(**{"dev/reference_data/truth.csv": "x,y\na,1\na,2\nb,1\n"}), "x and y"),
        (second(**{"dev/reference_data/again.csv": TABLE}), "again.csv"),
        (second(**{"dev/input_data/truth.csv": TABLE}), "truth.csv"),
        (second(**{"competition.yaml": SECOND.replace("final_reference", "nowhere")}), "nowhere.zip"),
        (second(**{"competition.yaml": "title: [\n"}), "competition.yaml:"),
        (second(**{"competition.yaml": "tasks: 7\ntitle: x\n"}), "b.zip"),
        ({"readme.md": "x"}, "competition.yaml"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_and_nothing_is_written(
    config: Config, tmp_path: Path, files: dict[str, str | bytes], said: str
) -> None:
    assert said in refused(config, f"codabench:{bundle(tmp_path / 'b.zip', files)}")


def test_bombs_and_links_are_refused(config: Config, tmp_path: Path) -> None:
    """Aliases that grow, an archive in an archive that has more than all may have, links that lead out of a folder."""
    laughs = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
    )
    source = bundle(tmp_path / "b.zip", second(**{"competition.yaml": laughs + SECOND}))
    assert "aliases" in refused(config, f"codabench:{source}")
    bomb = second(**{"final_reference.zip": packed({"truth.csv": bytes(2 << 20)})})
    source = bundle(tmp_path / "b.zip", bomb)
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with pytest.raises(Wrong):
        from_bundle(source, tmp_path / "one", 1 << 20)
    assert len(from_bundle(source, tmp_path / "two", 3 << 20).parts) == 2, "the limit is that of all archives"
    (tmp_path / "secret.jsonl").write_text(TRUTHS)
    place = folder(tmp_path / "kind", TIRA)
    (place / "train-truth.jsonl").unlink()
    (place / "train-truth.jsonl").symlink_to(tmp_path / "secret.jsonl")
    assert "train-truth.jsonl" in refused(config, f"tira:{place}")
    place = folder(tmp_path / "bundle", second())
    (place / "dev/reference_data/truth.csv").rename(
        tmp_path / "outside.csv"
    )  # a task, if the link is followed
    (place / "dev/reference_data/truth.csv").symlink_to(tmp_path / "outside.csv")
    assert "truth.csv" in refused(config, f"codabench:{place}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Kind\n", "README.md"),
        ("---\ntitle: x\n---\n", "tira_configs"),
        (README.replace("config_name", "name"), "README.md"),
        (README.replace('"train-truth.jsonl"', '"nowhere.jsonl"'), "nowhere.jsonl"),
        (README.replace("tira_configs:", "tira_configs: !!python/object:os.system"), "README.md:"),
        (README.replace("value_field: label", "value_field: colour"), "colour"),
    ],
)
def test_wrong_folders_of_tira(config: Config, tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(config, f"tira:{folder(tmp_path / 'kind', {**TIRA, 'README.md': text})}")


ODD: tuple[Any, ...] = (
    None, False, -1, 10**17, 1.5, "", "x", "../x", "/etc/passwd", ".", "**", "{{x}}", "0001-01-01", "\u00e9", "x" * 5000, "1", [], {},
    ["a"], [[]], [{}], {"a": {"b": [1]}},
)  # fmt: skip


def places(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all values below ``data``."""
    rows = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in rows:
        yield (*at, key)
        yield from places(value, (*at, key))


@pytest.mark.parametrize("seed", range(30))
def test_odd_definitions_make_a_task_or_are_refused(config: Config, tmp_path: Path, seed: int) -> None:
    """A value somewhere is another one: never a traceback, nor a task.yaml that is wrong in itself."""
    draw = random.Random(seed)
    front = README.split("---")[1]
    data = json.loads(json.dumps(yaml.safe_load((SECOND, front)[seed % 2]), default=str))
    for _ in range(2):
        *way, last = draw.choice(list(places(data)))
        holder = data
        for key in way:
            holder = holder[key]
        holder[last] = draw.choice(ODD)
    text = json.dumps(data)
    if seed % 2:
        source = f"tira:{folder(tmp_path / 'k', {**TIRA, 'README.md': f'---{chr(10)}{text}{chr(10)}---{chr(10)}'})}"
    else:
        files = {**second(), "competition.yaml": text}
        source = f"codabench:{bundle(tmp_path / 'b.zip', files)}"
    try:
        new_task_from(config, "mine", source, kind=kind_of_source(source), say=lambda _: None)
    except RunnerError as error:
        assert error.code in ("E101", "E402"), told(error)
    else:
        load_task(config, "mine")


def test_texts_of_others_stay_texts(config: Config, tmp_path: Path) -> None:
    """Titles, descriptions and names of fields cannot add keys to task.yaml, nor say anything to a terminal."""
    title = r"x\" \n demo: true # \u001b[31m {{ 7 }} {% raw %}"
    files = second(**{
        "competition.yaml": SECOND.replace("title: Kind or rude", f'title: "{title}"').replace("chair@example.org", "nobody"),
        "dev/reference_data/truth.csv": TABLE.replace("label", "a: [b} *c"),
        "final_reference.zip": packed({"truth.csv": TABLE.replace("\nt", "\nu").replace("label", "a: [b} *c")}),
    })  # fmt: skip
    text = refused(config, f"codabench:{bundle(tmp_path / 'b.zip', files)}")
    assert "u001b" in text or "\\x1b" in text
    files["competition.yaml"] = str(files["competition.yaml"]).replace(r"\u001b", "")
    messages = make(config, f"codabench:{bundle(tmp_path / 'b.zip', files)}")
    data = definition(config)
    assert data["title"].startswith('x" demo: true #') and "demo" not in data and "contact" not in data
    assert data["measures"][0]["measure"] == "Accuracy('a: [b} *c')"
    assert any("contact nobody" in message for message in messages)


def test_the_text_of_topics_is_for_collections(config: Config, tmp_path: Path) -> None:
    assert refused(config, "codabench:nowhere.zip")
    for source, fields in ((f"tira:{folder(tmp_path / 'k', TIRA)}", ["x"]), (str(tmp_path), [])):
        with pytest.raises(RunnerError, check=lambda error: error.code == "E101"):
            new_task_from(config, "mine", source, kind="records", text_fields=fields, say=lambda _: None)


BASELINE = """\
import json, os, pathlib
given = sorted(pathlib.Path(os.environ["inputDataset"]).rglob("*.jsonl"))
ids = [json.loads(line)["id"] for line in given[0].open()]
out = pathlib.Path(os.environ["outputDir"])
if TABLE:
    (out / "predictions.csv").write_text("id,label\\n" + "".join(f"{one},kind\\n" for one in ids))
else:
    (out / "answers.jsonl").write_text("".join(json.dumps({"id": one, "label": "kind"}) + "\\n" for one in ids))
"""


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize("platform", ["tira", "codabench"])
def test_what_was_taken_over_is_proven_with_a_software(
    platform: str, config: Config, tmp_path: Path, engine: DockerEngine, evaluator_image: ImageRef
) -> None:
    place = folder(tmp_path / "kind", TIRA) if platform == "tira" else bundle(tmp_path / "b.zip", second())
    make(config, f"{platform}:{place}")
    text = (config.tasks / "mine/task.yaml").read_text()
    text = text.replace("    rank_by:", "    baseline: baselines/kind\n    rank_by:")
    (config.tasks / "mine/task.yaml").write_text(text)
    folder(
        config.submissions / "baselines/kind",
        {
            "main.py": BASELINE.replace("TABLE", str(platform == "codabench")),
            "Dockerfile": "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nCOPY main.py /\n",
            "submission.yaml": 'task: mine\nbuild: {context: .}\ncommand: ["python3", "/main.py"]\n',
        },
    )
    machine = Machine(config, engine=engine, images={"evaluator": evaluator_image.id})
    task = load_task(config, "mine")
    rows = prove(machine, task, lambda _: None)
    assert {row["dataset"] for row in rows} == task.datasets.keys() and all(row["good"] for row in rows), rows
    assert {row["scores"]["accuracy"] for row in rows} == {0.5}
    ordered = prove_order(machine, task, lambda _: None)
    assert ordered and not [one for one in ordered if one.wrong or one.why]


def test_the_source_has_a_kind(project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A task without blinded data gets no message about hidden data."""
    text = README.replace('  - split: test\n    path: "test/inputs.jsonl"\n', "").replace(TEST_TRUTHS, "")
    source = folder(tmp_path / "kind", {**TIRA, "README.md": text})
    said = call_here(project, ["task", "new", "mine", "--from", f"tira:{source}"], capsys)
    assert said.code == 0 and "blinded" not in said.err
    assert "notes.txt, test/inputs.jsonl, test/truths.jsonl" in said.err
    assert "kind: records" in (project.root / "tasks/mine/task.yaml").read_text()
    shown = call_here(project, ["task", "show", "mine"], capsys).out
    assert "label (text)" in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= 80
