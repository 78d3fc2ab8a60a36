"""A run beside its judgements: which documents are wanted of it, and what is said where they do not fit or ties decide.

``evaluator trec`` needs these and nothing else of the kind; it starts fast.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from evaluator.findings import Log, show
from evaluator.formats.qrels import Qrels
from evaluator.formats.ranked import Scan
from evaluator.measures.ir import Measure, Values, aggregate, judged_topic


def report_unmatched(read: Scan, truths: Collection[Qrels], log: Log) -> None:
    """Report a run of which the judgements know no topic (an error) or no document (a warning): its 0 says nothing."""
    if log.invalid or not (read.topics or read.strange):
        return
    if not any(topic in read.topics for one in truths for topic in one.grades):
        log.add("F028", None, "no topic of the run is judged")
        return
    for one in truths:
        answered = (
            read.topics[topic].ranks.keys() & one.grades[topic]
            for topic in one.grades
            if topic in read.topics
        )
        if not any(answered):
            where = f" in {show(one.name)}" if len(truths) > 1 else ""
            log.add("F029", None, f"no document of the run is judged{where}")


def report_ties(
    read: Scan,
    measures: Iterable[Measure],
    qrels: Qrels,
    values: Mapping[str, Values],
    log: Log,
    *,
    public: bool,
) -> None:
    """Report, in one finding a run, that means would differ if ties were in the order of the rank column.

    Seen are differences in four decimals, of the measures that are computed here. The other values are said on ``public`` data only.
    """
    codes = ("F023", "F024")
    code = next((c for c in codes if c in read.ties and log.once(c)), "")
    if not code or any(c in log.counts for c in codes):
        return
    untied = {
        topic: judged_topic(found._replace(ranks={**found.ranks, **found.untied}), qrels.grades[topic])
        for topic, found in read.topics.items()
        if found.untied and topic in qrels.grades
    }
    found = []
    for m in measures:
        if not untied or not m.own or m.first:
            continue
        others = {topic: m.value(one) for topic, one in untied.items()}
        here, there = aggregate(m, values[m.text]), aggregate(m, {**values[m.text], **others})
        if (ours := f"{here:.4f}") != (theirs := f"{there:.4f}"):
            found.append(f"{m.text} would be {theirs}, not {ours}" if public else "scores would differ")
    if found:
        line, message = read.ties[code]
        more = f" (and {len(found) - 1} more would differ)" if public and len(found) > 1 else ""
        log.add(code, line, f"{message}; in the order of the ranks {found[0]}{more}")


def wanted(truths: Iterable[Qrels]) -> dict[bytes, Collection[bytes]]:
    """All judged documents of several truths, by topic."""
    out: dict[bytes, Collection[bytes]] = {}
    for one in truths:
        for topic, docs in one.grades.items():
            out[topic] = {*out[topic], *docs} if topic in out else docs
    return out
