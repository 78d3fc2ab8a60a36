"""Uploaded run files on their whole way: tried, packed, registered, scored, and told apart from executed runs."""

from __future__ import annotations

import gzip
import hashlib
import os
import time
from collections.abc import Sequence
from typing import Any

import pytest

from tests.worlds.mini import DOCUMENTS, Project, call, cli


def run_text(dataset: str, tag: str, best: int = 0) -> str:
    documents = DOCUMENTS[best:] + DOCUMENTS[:best]
    return "".join(
        f"{dataset}-{t} Q0 {d} {r} {20 - r} {tag}\n"
        for t in (1, 2, 3)
        for r, d in enumerate(documents[:10], 1)
    )


@pytest.mark.slow
@pytest.mark.smoke
def test_uploads_are_scored_as_software_is_and_told_apart(live: Project) -> None:
    """One software and its own output, handed in as a file: the same score, in the cells that were handed in."""
    live.write_task(uploads=True, tables=[
        {"id": "main", "cells": [{"dataset": "test"}], "rank_by": "ndcg_10"},
        {"id": "dev", "cells": [{"dataset": "dev"}], "rank_by": "ndcg_10"},
    ])  # fmt: skip
    live.software("good")
    packed = gzip.compress(run_text("test", "one").encode(), mtime=0)
    folder = live.run_files(
        {"one.txt": run_text("dev", "one"), "one-test.txt.gz": packed, "two.txt": run_text("dev", "two", 6)},
        {"file": "one.txt", "dataset": "dev", "name": "one"},
        {"file": "one-test.txt.gz", "dataset": "test", "name": "one"},
        {"file": "two.txt", "dataset": "dev"},
    )

    tried = cli(live, "try", "--team", "alpha", "--software", "handed-in", "--json")
    assert [[u["how"] for u in t["uploads"]] for t in tried.json] == [["scored", "checked"], ["scored"]]

    said = cli(live, "submit", "--team", "alpha", "--json")
    ids = {r["software"]: r["submission"] for r in said.json}
    assert set(ids) == {"good", "one", "handed-in"}
    cli(live, "evaluate", "--all")
    runs = {r["run"]: r for r in cli(live, "runs", "--json").json}
    assert set(runs) == {
        *(f"{ids['good']}.{d}" for d in ("dev", "test")),
        *(f"{ids['one']}.{d}" for d in ("dev", "test")),
        f"{ids['handed-in']}.dev",
    }
    assert {r["outcome"]["name"] for r in runs.values()} == {"scored"}

    def score(run: str) -> Any:
        return cli(live, "show", run, "--json").json["scores"]

    for dataset in ("dev", "test"):
        assert score(f"{ids['good']}.{dataset}") == score(f"{ids['one']}.{dataset}")
    assert score(f"{ids['handed-in']}.dev") != score(f"{ids['one']}.dev")
    again = cli(live, "submit", "--team", "alpha", "--no-check", "--json")
    assert [r["new"] for r in again.json] == [False, False, False]

    (folder / "two.txt").write_text("dev-1 Q0 nobody 1 x\n")
    bad = cli(live, "submit", "--team", "alpha", "--software", "handed-in", "--json", expect=1)
    assert [r["submission"] is None for r in bad.json] == [False, True]
    _once(live, [run_text("dev", "one").encode(), packed])
    cli(live, "store", "rebuild")
    assert {r["run"] for r in cli(live, "runs", "--json").json} == set(runs)


def _once(project: Project, files: Sequence[bytes]) -> None:
    """What was handed in is in the data directory once; what is damaged of it, or needed by nothing, is found."""
    digests = [hashlib.sha256(content).hexdigest() for content in files]
    contents = project.home / "archive" / ".contents"
    everything = [path for path in project.home.rglob("*") if path.is_file()]
    held = {path: path.read_bytes() for path in everything}
    places = [[p for p, data in held.items() if _plain(data) == _plain(content)] for content in files]
    assert [len(found) for found in places] == [1, 1]
    assert {p.name[:64] for found in places for p in found} >= set(digests)
    assert all(p.is_relative_to(contents) and not p.stat().st_mode & 0o222 for found in places for p in found)
    assert not list((project.home / "submissions").glob("*/bundle/runs/*"))

    stray, old = contents / "ab" / ("ab" * 32), time.time() - 200_000
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"of a process that was killed")
    os.utime(stray, (old, old))
    assert cli(project, "gc", "--dry-run", "--json").json["contents"] == [stray.name]
    assert f"contents: {stray.name}" in cli(project, "gc", "--dry-run").out and stray.is_file()
    cli(project, "gc")
    assert not stray.exists() and all(p.is_file() for found in places for p in found)

    path = places[0][0]
    data = path.read_bytes()
    path.unlink()
    said = cli(project, "store", "verify", expect=3)
    assert "E307" in said.err and path.name[:64] in said.err and "(output/run.txt)" in said.err
    assert "(runs/dev.default)" in said.err or "(runs/one.txt)" in said.err
    path.write_bytes(data)
    cli(project, "store", "verify")


def _plain(data: bytes) -> bytes:
    while data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    return data


def test_a_software_may_keep_to_some_datasets(live: Project) -> None:
    live.write_task(
        tables=[{"id": "main", "cells": [{"dataset": "test"}, {"dataset": "dev"}], "rank_by": "ndcg_10"}]
    )
    live.software("narrow", datasets=["dev"])
    cli(live, "submit", "--team", "alpha", "--no-check")
    assert [r["dataset"] for r in cli(live, "runs", "--json").json] == ["dev"]
    live.write_task()
    live.software("never", datasets=["dev"])
    refused = cli(live, "submit", "--team", "alpha", "--software", "never", "--no-check", expect=2)
    assert "E207" in refused.err


@pytest.mark.slow
def test_nothing_runs_on_a_dataset_that_was_not_fetched(live: Project) -> None:
    """The rest of the task goes on; the runs wait, and the command that helps is said."""
    files = {"topics": "queries.jsonl", "corpus": "documents.jsonl.gz"}
    sources = [{"path": "inputs/big", "url": "https://x.example/"}]
    live.write_task(
        datasets=[
            {"id": "dev", "visibility": "public", **files},
            {"id": "test", "visibility": "blinded", **files, "sources": sources},
        ],
        tables=[{"id": "main", "cells": [{"dataset": "test"}, {"dataset": "dev"}], "rank_by": "ndcg_10"}],
    )
    live.software("good")
    cli(live, "submit", "--team", "alpha", "--no-check")
    said = cli(live, "evaluate", "--all", expect=None)
    assert "E402" in said.all and "data pull mini --dataset test" in said.all
    outcomes = {r["dataset"]: r["outcome"]["name"] for r in cli(live, "runs", "--json").json}
    assert outcomes == {"dev": "scored", "test": "pending"}
    cli(live, "gc", "--dry-run")
    (live.private / "mini/test/inputs/big").write_text("x")
    cli(live, "evaluate", "--all")
    assert {r["outcome"]["name"] for r in cli(live, "runs", "--json").json} == {"scored"}


@pytest.mark.slow
def test_run_files_are_scored_without_optional_files_and_it_is_said(live: Project) -> None:
    """Without the corpus ids are not checked, without truths a measure waits; software waits for all of it."""
    names = ("inputs/ids.txt", "inputs/big.json", "truths/quality.txt")
    files = {"topics": "queries.jsonl", "corpus": "ids.txt"}
    later = [{"path": name, "optional": True} for name in names]
    live.write_task(
        uploads=True,
        datasets=[{"id": "dev", "visibility": "public", **files, "sources": later}],
        measures=[
            {"id": "ndcg_10", "measure": "nDCG@10", "truths": "qrels.txt"},
            {"id": "quality", "measure": "nDCG@10", "truths": "quality.txt"},
        ],
        tables=[{"id": "main", "cells": [{"dataset": "dev"}], "rank_by": "ndcg_10"}],
    )
    live.software("good")
    text = run_text("dev", "one").replace(f" {DOCUMENTS[0]} ", " nobody-knows ")
    folder = live.run_files({"one.txt": text}, {"file": "one.txt", "dataset": "dev"})

    said = call(live, "check", str(folder / "one.txt"), "--task", "mini")  # a process of its own prints
    assert "note: " in said.out and "ids.txt" in said.out and "F019" not in said.all
    refused = cli(live, "try", "--team", "alpha", "--software", "good", expect=4)
    assert "inputs/big.json" in refused.all
    tried = cli(live, "try", "--team", "alpha", "--software", "handed-in")
    assert "ids.txt" in tried.all and "quality.txt" in tried.all
    refused = cli(live, "submit", "--team", "alpha", "--software", "good", "--no-check", expect=4)
    assert "E402" in refused.all and "inputs/ids.txt" in refused.all
    cli(live, "submit", "--team", "alpha", "--software", "handed-in", "--no-check")
    cli(live, "evaluate", "--all")
    (run,) = cli(live, "runs", "--json").json
    assert run["outcome"]["name"] == "scored"
    shown = cli(live, "show", run["run"]).out
    assert "ids.txt" in shown and "quality.txt" in shown
    cli(live, "gc", "--dry-run")

    # They arrive: what was scored before is done again when that is wanted, and checked now.
    inputs, truths = (live.root / "tasks/mini/datasets/dev" / side for side in ("inputs", "truths"))
    (inputs / "ids.txt").write_text("".join(f"{name}\n" for name in DOCUMENTS))
    (inputs / "big.json").write_text("{}")
    (truths / "quality.txt").write_bytes((truths / "qrels.txt").read_bytes())
    cli(live, "evaluate", "--all", "--changed", "again")
    (run,) = cli(live, "runs", "--json").json
    assert run["outcome"]["name"] == "invalid"
    shown = cli(live, "show", run["run"]).out
    assert "F019" in shown and '"nobody-knows"' in shown
