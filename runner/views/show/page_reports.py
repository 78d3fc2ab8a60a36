"""Reports on a page: sentence by sentence with citations, nuggets, rewards and penalties, linked both ways."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from runner.views.show import text
from runner.views.show.markup import Chip, Markup, chips, figures, h, link, table
from runner.views.show.reports import Judgment, Nugget, Report, Reports, Sentence
from runner.views.show.texts import plural

MAX_LISTED = 1000
# What comes first of a report's figures; the rest can be opened.
MAIN = ("f1", "nugget_coverage", "sentence_support", "citation_support", "citation_relevance")
EFFECTS = {"reward": ("good", "+ reward"), "penalty": ("bad", "− penalty"), "none": ("about", "no effect")}


def sections(found: Reports, wanted: Collection[int] | None, room: int) -> Iterator[str]:
    """The reports that are ``wanted`` by number (None: all) as far as ``room`` characters reach, and what is missing."""
    yield "<h2>Reports</h2>"
    if found.reports is None:
        yield f"<p>Sentences and nuggets of a blinded dataset are not shown to {h(found.audience)}.</p>"
        return
    for note in found.notes:
        yield f"<p>Note: {h(note)}</p>"
    chosen = [one for one in found.reports if wanted is None or one.number in wanted]
    bodies: list[str] = []
    for one in chosen:
        body = "\n".join(_report(one))
        if bodies and len(body) > room:
            break
        room -= len(body)
        bodies.append(body)
    if len(chosen) < len(found.reports):
        yield f"<p>Note: {len(chosen):,} of the {len(found.reports):,} reports were chosen for this page.</p>"
    if len(bodies) < len(chosen):
        yield (
            f"<p>Note: this page is full. It has the first {len(bodies):,} of {len(chosen):,} reports; "
            "<code>runner show RUN --topic ID --html FILE</code> writes another one.</p>"
        )
    yield '<nav aria-label="Reports"><ul>'
    for k, one in enumerate(chosen[:MAX_LISTED]):
        name = f"{one.topic} – {one.title}" if one.title else one.topic
        words = link(f"r{one.number}", name) if k < len(bodies) else h(name)
        yield f'<li><bdi dir="auto">{words}</bdi>: {h(text.summary_of(one))}</li>'
    yield "</ul></nav>"
    yield from bodies


def _report(one: Report) -> Iterator[str]:
    title = f": {one.title}" if one.title else ""
    yield f'<section class="one" id="r{one.number}" aria-labelledby="t{one.number}">'
    yield f'<h3 id="t{one.number}"><bdi dir="auto">Topic {h(one.topic + title)}</bdi></h3>'
    if one.request:
        yield f'<p class="claim" dir="auto">{h(one.request)}</p>'
    yield f"<p>{h(text.summary_of(one))}</p>"
    main = {name: one.measures[name] for name in MAIN if name in one.measures}
    yield from chips((Chip(f"{name} {value:.4g}") for name, value in main.items()), "Main figures")
    rest = {name: value for name, value in one.measures.items() if name not in main}
    if rest:
        yield f'<details><summary>{plural(len(rest), "more figure")}</summary><p class="about">{h(figures(rest))}</p></details>'
    places = {nugget.question: k for k, nugget in reversed(list(enumerate(one.nuggets, 1)))}
    # Numbers come from the evaluator's file and may repeat: the first of each has the place on the page.
    numbered = {sentence.number: sentence for sentence in reversed(one.sentences) if sentence.number >= 0}
    if one.sentences:
        yield '<ol class="sentences">'
        for sentence in one.sentences:
            place = (
                f' id="r{one.number}s{sentence.number}"' if numbered.get(sentence.number) is sentence else ""
            )
            yield from _sentence(one, sentence, place, places)
        yield "</ol>"
    if one.nuggets:
        yield from _nuggets(one, numbered.keys())
    yield "</section>"


def _sentence(report: Report, one: Sentence, place: str, places: Mapping[str, int]) -> Iterator[str]:
    kinds = {e.kind for e in one.effects}
    css = "penalty" if "penalty" in kinds else "reward" if "reward" in kinds else "none"
    yield f'<li value="{one.number}"{place} class="{css}"><span class="words" dir="auto">{h(one.text)}</span>'
    yield from chips(_citations(one), "Cites")
    yield from chips(
        (
            Chip(f"nugget {k}", True, f"r{report.number}n{k}")
            for question in one.nuggets
            if (k := places.get(question)) is not None
        ),
        "Earns",
    )
    if one.effects:
        yield '<ul class="plain">'
        for effect in one.effects:
            mark, said = EFFECTS[effect.kind]
            yield f'<li><span class="{mark}">{said}</span>: <span dir="auto">{h(effect.text or effect.code)}</span></li>'
        yield "</ul>"
    if one.judgments:
        yield f"<details><summary>{plural(len(one.judgments), 'judgment')}</summary><ul>"
        yield from map(_judgment, one.judgments)
        yield "</ul></details>"
    yield "</li>"


def _citations(one: Sentence) -> Iterator[Chip]:
    for document in one.citations:
        supports = one.judged(document, "SENTENCE_ATTESTED")
        relevant = one.judged(document, "CITED_DOCUMENT_RELEVANCE")
        words = [f"cites {document}"]
        words += [] if supports is None else ["supports it" if supports else "does not support it"]
        words += [] if relevant is None else ["relevant" if relevant else "not relevant"]
        yield Chip(", ".join(words), supports)


def _judgment(one: Judgment) -> str:
    of = f" of {one.doc_id}" if one.doc_id else ""
    by = f" ({one.evaluator})" if one.evaluator not in ("", "null") else ""
    return f'<li dir="auto">{h(one.type.lower().replace("_", " ") + of)}: {h(one.said + by)}</li>'


def _nuggets(one: Report, there: Collection[int]) -> Iterator[str]:
    rows = []
    for k, nugget in enumerate(one.nuggets, 1):
        kind = ", ".join(part for part in (nugget.aggregator, nugget.importance) if part)
        at = ", ".join(link(f"r{one.number}s{n}", str(n)) if n in there else h(n) for n in nugget.sentences)
        counted = Markup(
            '<span class="good">✓ yes</span>' if nugget.correct else '<span class="bad">✗ no</span>'
        )
        rows.append((str(k), counted, nugget.question, kind, _answers(nugget), Markup(at)))
    heads = ("nugget", "counted", "question", "kind", "answers", "sentences")
    ids = [f"r{one.number}n{k}" for k in range(1, len(rows) + 1)]
    yield from table(
        f"Nuggets of {one.topic}: {one.correct} of {len(one.nuggets)} counted", heads, rows, ids=ids
    )


def _answers(nugget: Nugget) -> Markup:
    items = "".join(
        f'<li class="{"good" if given else "about"}">{"✓" if given else "✗"} <bdi dir="auto">{h(answer)}</bdi>'
        f" ({'given' if given else 'not given'})</li>"
        for answer, given in nugget.answers
    )
    return Markup(f'<ul class="given">{items}</ul>')
