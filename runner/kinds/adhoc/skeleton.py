"""The files of a first retrieval task: on synthetic documents, or on a collection that exists."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from runner.kinds import Say
from runner.kinds.adhoc.collection import Made, from_files, write
from runner.kinds.adhoc.formats import Report, column_name
from runner.kinds.adhoc.irds import PREFIX, from_irds
from runner.kinds.skeletons import jsonl, pages, task_yaml
from runner.model.errors import Problem, no_such

_THEMES = {
    "tides": "moon tide coast ebb harbour level gauge",
    "bread": "flour yeast dough oven crust loaf knead",
    "bees": "hive queen pollen swarm honey comb drone",
    "glass": "sand furnace melt blow lens kiln pane",
    "trams": "rail line stop wire depot fare track",
    "maps": "scale contour legend north survey grid sheet",
    "clocks": "spring gear dial hour pendulum wheel chime",
    "paper": "pulp fibre mill press sheet rag watermark",
}

_DATASET = """\
    inputs: datasets/{id}/inputs
    truths: datasets/{id}/truths
    topics: queries.jsonl
    corpus: documents.jsonl.gz
"""
_MIDDLE = """\
measures:
  - {id: ndcg_10, measure: nDCG@10, truths: qrels.txt}
  - {id: ap, measure: AP, truths: qrels.txt}
"""
_DATA = (
    "Put your inputs into `datasets/<dataset>/inputs` and your judgments into `datasets/<dataset>/truths`."
)

_OF_A_COLLECTION = """\
# What every key means: docs/reference/task.md. Check this file with: runner task check {id}
schema_version: 1
id: "{id}"
title: "{id}"
description: Rank {documents:,} documents for {topics:,} topics.
kind: adhoc

datasets:
{open}  - id: {blinded}
    visibility: blinded
    description: For the ranking. Its topics and truths lie outside this tree.
    topics: queries.jsonl
    corpus: documents.jsonl.gz

measures:
  - {{id: ndcg_10, measure: nDCG@10, truths: qrels.txt}}
  - {{id: ap, measure: AP, truths: qrels.txt}}
  - {{id: judged_10, measure: Judged@10, truths: qrels.txt}}

# Software that proves the task: write `baseline: team/software` into the table.
tables:
  - id: main
    cells: [{{dataset: {blinded}}}]
    rank_by: ndcg_10

limits: {{memory: 2GiB, cpus: 1, wall_clock: 30min}}
quota: {{submissions: 20}}
# Before it opens, too: licence, terms, contact, opens, closes, and other rules: docs/how-to/rules.md
"""

_OPEN = """\
  - id: {name}
    visibility: public
    description: {count:,} topics with their judgments, to {use} on.
    topics: queries.jsonl
    corpus: documents.jsonl.gz
"""

_README_OF_A_COLLECTION = """\
# {id}

{documents:,} documents and {topics:,} topics.

<!-- State here what the task is, where its data come from and under which licence: the web shows this file. -->
Documents are in `documents.jsonl.gz` (`docno`,
`text`, `original_document`), topics in `queries.jsonl` (`qid`, `query`, `original_query`).
"""


def files(task_id: str) -> Mapping[str, str]:
    """The files of a toy retrieval task; the same for the same name, on every machine."""
    draw = random.Random(f"skeleton of {task_id}")  # noqa: S311
    documents, themes = [], {}
    vocabulary = " ".join(_THEMES.values()).split()
    for number in range(1, 49):
        theme = sorted(_THEMES)[number % len(_THEMES)]
        words = draw.choices(_THEMES[theme].split(), k=12) + draw.choices(vocabulary, k=12)
        draw.shuffle(words)
        name = f"d{number:03d}"
        documents.append({"docno": name, "text": " ".join(words), "original_document": {"synthetic": True}})
        themes[name] = theme
    made = {
        "task.yaml": task_yaml(
            task_id,
            "adhoc",
            says="A new task on synthetic data.",
            workflow="",
            dataset=_DATASET,
            middle=_MIDDLE,
            rank_by="ndcg_10",
        ),
        **pages(task_id, things="documents, topics and judgments", data=_DATA, baseline="dirichlet"),
    }
    for dataset, offset in (("dev", 0), ("test", 1)):
        queries, qrels = [], []
        for number, theme in enumerate(sorted(_THEMES)[offset::2], 1):
            topic = f"{number * 2 - 1 + offset}"
            text = " ".join(draw.sample(_THEMES[theme].split(), 3))
            queries.append({"qid": topic, "query": text, "original_query": {"synthetic": True}})
            qrels += [
                f"{topic} 0 {doc} {int(of == theme)}\n"
                for doc, of in themes.items()
                if of == theme or draw.random() < 0.1
            ]
        folder = f"datasets/{dataset}"
        made[f"{folder}/inputs/documents.jsonl.gz"] = jsonl(documents)
        made[f"{folder}/inputs/queries.jsonl"] = jsonl(queries)
        metadata = {"ir_datasets_id": f"{task_id}-{dataset}", "synthetic": True}
        made[f"{folder}/inputs/metadata.json"] = jsonl([metadata])
        made[f"{folder}/truths/qrels.txt"] = "".join(qrels)
    return made


def from_collection(
    task_id: str,
    source: str,
    folder: Path,
    hidden: Path,
    say: Say,
    text_fields: Sequence[str] = (),
) -> list[Problem]:
    """Write the files of a task on the collection ``source``; see :class:`runner.model.kinds.Collector`."""
    report = Report()
    names = [column_name(one) for one in text_fields]
    with tempfile.TemporaryDirectory(prefix="collection-") as scratch:
        if source.startswith(PREFIX):
            found = from_irds(source.removeprefix(PREFIX), report, say, names)
        elif (path := Path(source)).exists():
            found = from_files(path, Path(scratch), report, say, names)
        else:
            raise no_such("folder or file", source, fix=f"name the collection, or {PREFIX}ID", limit=1000)
        made = write(found, task_id, folder, hidden, report, say) if found else None
    if report.count or made is None:
        return report.all()
    say(_in_words(made))
    uses = {"train": "train", "dev": "develop"}
    open_ones = "".join(
        _OPEN.format(name=name, count=count, use=uses[name]) for name, count in made.public.items()
    )
    facts = {"id": task_id, "documents": made.documents, "topics": made.topics, "blinded": made.blinded}
    (folder / "task.yaml").write_text(_OF_A_COLLECTION.format(open=open_ones, **facts), "utf-8")
    (folder / "README.md").write_text(_README_OF_A_COLLECTION.format(**facts), "utf-8")
    return []


def _in_words(made: Made) -> str:
    blinded = f"{made.documents:,} documents; {made.topics - sum(made.public.values()):,} topics are blinded"
    if made.public:
        counts = ", ".join(f"{count:,} of the split {name}" for name, count in made.public.items())
        return f"{blinded} (the split {made.blinded}), public with their judgments: {counts}"
    return f"{blinded}, none is public\n(judgments in files called after dev and test make a public part)"
