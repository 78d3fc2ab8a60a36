"""Rankings whose order is known, made from the judgments: relevant documents first, relevant and others mixed, none relevant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import islice
from pathlib import Path

from evaluator.formats.qrels import Qrels, read_qrels
from evaluator.kinds.base import Order
from evaluator.kinds.options import checked_options
from evaluator.measures.ir import Measure
from evaluator.request import Request

# Of these a ranking with all relevant documents first has the best value there is, for every topic that has some.
FULL = ("nDCG", "AP", "RR", "Rprec")


def proof(inputs: Path, truths: Path, request: Request) -> list[Order]:
    """Return outputs for each file of judgments. Raises EvaluatorError for wrong truths.

    Measures of ir_measures are left out, because their best ranking may be another one (as that of measures of subtopics), and
    counts, which are not better for being higher.
    """
    most: int = checked_options("adhoc", request.options)["max_documents"]
    orders = []
    for name in dict.fromkeys(m.truths for m in request.measures):
        measures = {m.id: Measure(m.measure) for m in request.measures if m.truths == name}
        own = {i: m for i, m in measures.items() if m.own and not m.total}
        if not own:
            continue
        qrels = read_qrels(truths / name, name)
        everything = list(dict.fromkeys(doc for docs in qrels.grades.values() for doc in docs))
        outputs: dict[str, list[bytes]] = {"perfect": [], "shuffled": [], "empty": []}
        for topic, docs in qrels.grades.items():
            others = list(islice((d for d in everything if d not in docs), len(docs)))
            mixed = sorted([*docs, *others], key=lambda d: sha256(topic + d).digest())
            none = others[:1] or [d for d, grade in docs.items() if grade <= 0][:1]
            outputs["perfect"].append(_lines(topic, sorted(docs, key=lambda d: -docs[d])[:most]))
            outputs["shuffled"].append(_lines(topic, mixed[:most]))
            # A file without a line is no run: for each topic one document that is not relevant is as empty as a run can be.
            outputs["empty"].append(_lines(topic, none))
        orders.append(
            Order(
                list(own), {name: b"".join(lines) for name, lines in outputs.items()}, _best(own, qrels, most)
            )
        )
    return orders


def _lines(topic: bytes, docs: Iterable[bytes]) -> bytes:
    listed = list(docs)
    return b"".join(
        b"%s Q0 %s %d %d proof\n" % (topic, doc, rank, len(listed) - rank)
        for rank, doc in enumerate(listed, 1)
    )


def _best(measures: Mapping[str, Measure], qrels: Qrels, most: int) -> dict[str, float]:
    """The best values that are known: the share of topics with a relevant document, unless lists are cut before the last."""
    counts = [sum(grade > 0 for grade in docs.values()) for docs in qrels.grades.values()]
    if not counts or max(counts) > most:
        return {}
    share = sum(n > 0 for n in counts) / len(counts)
    known = {*FULL, *(f"{name}@" for name in ("nDCG", "RR"))}
    return {i: share for i, m in measures.items() if m.text.strip().rstrip("0123456789") in known}
