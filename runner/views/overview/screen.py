"""An overview of a task as lines of at most 80 characters: for a terminal, or as parts of a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from runner.model.limits import amounts, in_units, inner_amounts
from runner.model.quota import FIRST_CASES
from runner.model.task import ASKS
from runner.views.overview.facts import STATED, Figure, Overview
from runner.views.overview.part import LABEL, Part, part, section
from runner.views.text import amount_of_time, listed, plural, plural_of
from schemas.measures import base

if TYPE_CHECKING:
    from runner.model.dates import ZonedTime
    from runner.model.sidecars import Interaction
    from runner.model.task import Dataset, Quota, Table, Task

_MOST_FIELDS = 12
EXAMPLE_LINES = 2
# What a server is asked and answers, by mode.
_TALK = {
    "debate": (
        "POST / with the whole dialogue; it answers with what it says",
        '{"messages": [{"role": "user", "content": "Cities should ban cars."}]}',
        '{"content": "Buses stop at night.", "arguments": [{"id": "1.2", "text": "…"}]}',
    ),
    "judge": (
        "POST /quantity, /quality, /relation and /manner with a debate; it answers with a score from 0 to 1",
        '{"simulation": {"userTurns": […]}, "userTurnIndex": 0}',
        '{"score": 0.8}',
    ),
}


def printed(of: Overview) -> list[str]:
    """Return the lines that ``runner task show`` prints: name, title, description and an empty line above the overview."""
    head = [part(f"{of.task.id}: {of.task.title}"), part(of.task.description)]
    return [line for one in head for line in one.lines()] + ["", *lines(of)]


def lines(of: Overview) -> Iterator[str]:
    """The overview as lines of a terminal: see :func:`parts`."""
    for one in parts(of):
        yield from one.lines()


def parts(of: Overview) -> Iterator[Part]:
    """The overview, one section after the other, what belongs to one indented."""
    task = of.task
    yield from section("takes", _takes(task))
    if dict(task.asks) != ASKS:
        yield from section("asks for", [_asks(task)])
    yield from section("limits", [_limits(of), *_frame(of.task)])
    yield from section("quota", _quotas(of))
    yield from section("dates", _dates(of))
    if registration := of.dates.registration:
        yield from section("register", registration.says())
    if until := task.anonymous_until:
        yield from section("names", [f"boards have made-up names of other teams until {until}"])
    if task.verify_before == "final":
        again = "a row is final once its software was executed again with the same scores"
        yield from section("verify", [again])
    if "log_excerpts" in task.definition:
        given = f"up to {task.log_excerpts:,} bytes of its logs on a blinded dataset can be given to a team"
        yield from section("logs", [given])
    if task.review == "required":
        yield from section("review", ["others see a row once the organiser has approved its run"])
    yield from _datasets(of)
    for name in STATED:
        yield from section(name, _stated(task.stated(name)))
    cited = {one.id: one.citation for one in task.datasets.values() if one.stage is None}
    yield from section("cite", _stated(cited))
    yield from section("downloads", [_offered(one) for one in task.datasets.values() if one.downloads])
    if len(task.scenarios) > 1:
        yield from section("scenarios", [", ".join(task.scenarios)])
    yield from _inputs(of)
    yield from section("output", _output(of))
    if task.interaction is not None:
        yield from section("server", _server(task.interaction))
    lower = any(one.direction == "lower" for one in of.measures)
    order = "↓: lower is better" if lower else "higher is better"
    yield from section("measures", [f"{order}{_decimals(task)}"])
    yield from _measures(of.measures)
    yield from section("tables", _tables(task))


def _datasets(of: Overview) -> Iterator[Part]:
    """Who sees each dataset and its scores, and its description."""
    head, indent = f"{'datasets':<{LABEL}}", " " * LABEL
    for one in of.task.datasets.values():
        yield part(f"{one.id} ({_seen(of, one)}): {one.description}".rstrip(": "), head, indent)
        head = indent


def _stated(by_dataset: Mapping[str, str]) -> list[str]:
    """What holds for the datasets, once where it is the same for all."""
    said = {name: text for name, text in by_dataset.items() if text}
    if len(said) == len(by_dataset) and len(set(said.values())) == 1:
        return list(said.values())[:1]
    return [f"{name}: {text}" for name, text in said.items()]


def _offered(of: Dataset) -> str:
    """Which side of a dataset is downloaded on the task's page of a server, and by whom."""
    return f"{of.id}: " + ", ".join(f"{side} by {to}" for side, to in sorted(of.downloads.items()))


def _takes(task: Task) -> list[str]:
    found = []
    if "batch" in task.workflows:
        found.append("software that reads $inputDataset and writes to $outputDir")
    if task.interaction is not None:
        found.append("software that is a server")
    if task.takes_uploads:
        found.append("run files (run: FILE in submission.yaml)")
    return ["; ".join(found)]


def _asks(task: Task) -> str:
    """What a submission has to say of itself, may say, and must not."""
    by_rule = {
        rule: [key for key, of in task.asks.items() if of == rule] for rule in ("required", "optional", "off")
    }
    words = {"required": "{}", "optional": "{} (optional)", "off": "no {}"}
    return (
        "; ".join(words[rule].format(", ".join(keys)) for rule, keys in by_rule.items() if keys)
        + " (in submission.yaml)"
    )


def _limits(of: Overview) -> str:
    task, standing = of.task, of.standing
    limits = (standing and standing.limits) or task.limits
    parts = [
        amount_of_time(limits.wall_clock),
        *([f"{amount_of_time(limits.cpu_time)} of processor time"] if limits.cpu_time else []),
        f"{in_units(limits.memory)} of memory",
        plural_of(limits.cpus, "processor") + (" of its own" if limits.pinned else ""),
        *([plural_of(limits.gpus, "GPU")] if limits.gpus else []),
        *([f"machines labelled {', '.join(limits.labels)}"] if limits.labels else []),
        f"{in_units(limits.output)} of output",
        *([f"{in_units(task.image_limit)} of image"] if "image" in task.definition.get("limits", {}) else []),
        *inner_amounts(limits),
    ]
    return ", ".join(parts) + (
        f" (given to {standing.team})" if standing is not None and limits != task.limits else ""
    )


def _frame(task: Task) -> list[str]:
    """What a submission may ask for beyond the limits of all."""
    return (
        [f"a submission may ask for up to {amounts(task.frame)} (limits: in submission.yaml)"]
        if task.frame
        else []
    )


def _quotas(of: Overview) -> Iterator[str]:
    """The quota of the task, then those of datasets; of a team what is left, and when the next submission may come."""
    task, standing = of.task, of.standing
    rules = {"": task.quota} | {one.id: one.quota for one in task.datasets.values() if one.quota is not None}
    for name, quota in rules.items():
        where = f"{name}: " if name else ""
        if standing is None:
            runs = [] if name else [f"{plural(quota.attempts, 'attempt')} a run"]
            bounds = [f"{plural(quota.submissions, 'submission')} a team", *_bounds(quota), *runs]
            yield where + ", ".join(bounds)
            continue
        use = standing.quotas[name]
        soon = f"; the next may come {use.next_free}" if use.next_free else ""
        left = f"{use.left_in_all:,} of {plural(use.limit, 'submission')} left"
        yield f"{where}{left} for {standing.team} ({use.says}){soon}"
    yield from _first_cases(task)


def _first_cases(task: Task) -> Iterator[str]:
    """How many topics are run before the others, and what a failure on them costs; datasets with as many together."""
    found: dict[int, list[str]] = {}
    for one in task.datasets.values():
        if one.smoke:
            found.setdefault(one.smoke, []).append(one.id)
    for count, names in found.items():
        yield (
            f"{', '.join(names)}: {plural(count, 'topic')} run first, the others only where that ends well; "
            f"{FIRST_CASES} submissions that fail on them count as one failure"
        )


def _bounds(quota: Quota) -> list[str]:
    return [
        *([f"{quota.per_day:,} a day (UTC)"] if quota.per_day is not None else []),
        *([f"{quota.at_once:,} waiting or running at a time"] if quota.at_once is not None else []),
        *([f"{plural(quota.failures, 'failure')} of its own for nothing"] if quota.failures else []),
    ]


def _seen(of: Overview, dataset: Dataset) -> str:
    """Who sees a dataset, and its scores where not everybody does."""
    if dataset.visibility == "public" or (dataset.scores == "public" and dataset.public_topics is None):
        return dataset.visibility
    if dataset.id in of.published:
        return f"{dataset.visibility}; scores: published"
    date = of.dates.publish.get(dataset.id)
    until = "the organiser publishes them" if date is None else _date(date)
    own = "each team sees those of its own runs" if dataset.scores == "team" else ""
    if dataset.public_topics is not None:
        over = f"over about {dataset.public_topics:.0%} of the topics (nobody knows which) until {until}"
        return f"{dataset.visibility}; scores: {f'{own} ' * bool(own)}{over}, then everybody those over the others"
    return f"{dataset.visibility}; scores: {f'{own}, ' * bool(own)}closed until {until}"


def _dates(of: Overview) -> list[str]:
    dates, standing = of.dates, of.standing
    texts = [
        f"{name} {_date(moment)}"
        for name, moment in (("opens", dates.opens), ("closes", dates.closes))
        if moment
    ]
    if "announced" in of.task.definition:
        texts.append(f"on the web from {_date(dates.announced)}" if dates.announced else "never on the web")
    own = standing.deadline if standing is not None else None
    if standing is not None and own is not None and own != dates.closes:
        texts.append(f"closes {_date(own)} for {standing.team}")
    texts += [_phase(of, name) for name in dates.phases]
    for name, moment in standing.closes.items() if standing is not None else ():
        if standing is not None and name not in dates.phases and moment is not None and moment != own:
            texts.append(f"{name}: closes {_date(moment)} for {standing.team}")
    for one in of.task.datasets.values():
        if one.requires is not None:
            texts.append(
                f"{one.id}: takes what was scored on {one.requires} (the same image; both count in the quota)"
            )
    for name, why in standing.paused.items() if standing is not None else ():
        texts.append(f"{name or 'everything'} is paused: {why}".removesuffix(": "))
    texts += [f"round {one.id}: {_date(one.at)}, {', '.join(one.datasets)}" for one in dates.rounds.values()]
    if texts and of.task.demo:
        texts.append("a demonstration: its dates keep nobody out")
    return texts or ["none: it is always open"]


def _phase(of: Overview, dataset: str) -> str:
    """When a dataset with dates of its own takes submissions: of everybody, and of the team that looks."""
    dates, standing = of.dates, of.standing
    opens, closes, grace = dates.opening(dataset), dates.closing(dataset, ""), dates.grace(dataset)
    late = f" (late ones for {amount_of_time(grace)} more)" if grace else ""
    texts = [f"opens {_date(opens)}"] if opens else []
    texts += [f"closes {_date(closes)}{late}"] if closes else []
    own = standing.closes.get(dataset) if standing is not None else None
    if standing is not None and own is not None and own != closes:
        texts.append(f"closes {_date(own)} for {standing.team}")
    return f"{dataset}: {', '.join(texts)}"


def _date(moment: ZonedTime) -> str:
    return moment.own if moment.own == moment.utc else f"{moment.own} ({moment.utc})"


def _inputs(of: Overview) -> Iterator[Part]:
    task = of.task
    if set(task.workflows) == {"interactive"}:
        yield from section("inputs", ["no files: the server is asked"])
        return
    if not of.inputs:
        yield from section("inputs", [_not_shown(task)])
        return
    yield from section("inputs", [f"in $inputDataset; the examples are from {of.like}"])
    for one in of.inputs:
        text = f"{one.name}: {listed(one.fields, _MOST_FIELDS)}" if one.fields else one.name
        only = [f"only in {', '.join(one.scenarios)}"] if one.scenarios else []
        only += [f"{key} only in {', '.join(whose)}" for key, whose in one.fields_of.items()]
        yield part(f"{text} ({'; '.join(only)})" if only else text, "  ")
        yield part(one.example, "    ", most=EXAMPLE_LINES)


def _not_shown(task: Task) -> str:
    """What is said of the inputs where no public ones are here: how to get them, else the files that task.yaml names."""
    if task.public_dataset() is not None:
        return f"not here: runner data pull {task.id}"
    kinds = ("topics", "corpus")
    named = [
        f"{name} ({kind})" for one in task.datasets.values() for kind in kinds if (name := getattr(one, kind))
    ]
    files = f"in $inputDataset: {', '.join(dict.fromkeys(named))}; " if named else ""
    return f"{files}there is no public data to show examples of"


def _output(of: Overview) -> Iterator[str]:
    if set(of.task.workflows) == {"interactive"}:
        yield f"none: the platform writes {of.outputs[0].file}"
        return
    for one in of.outputs:
        where = f"$outputDir/{one.file} (or {one.file}.gz)"
        yield f"{where}: {one.says}" if one.says else where
        yield from one.example.splitlines()


def _server(interaction: Interaction) -> list[str]:
    asked, question, answer = _TALK[interaction.mode]
    rules = f"{amount_of_time(interaction.answer_time)} and {in_units(interaction.answer_bytes)} an answer"
    if interaction.mode == "debate":
        rules = f"{interaction.turns} turns, at most {interaction.word_limit} words, {rules}"
    ready = f"it listens on $PORT ({interaction.port}) within {amount_of_time(interaction.ready)}"
    return [f"{asked}; {rules}; {ready}", f"asked     {question}", f"answers   {answer}"]


def _decimals(task: Task) -> str:
    """With how many decimals scores are shown and ranked, where the task says it."""
    by: dict[int, list[str]] = {}
    for name, one in task.measures.items():
        if one.precision is not None:
            by.setdefault(one.precision, []).append(name)
    texts = [
        plural(places, "decimal") + f" ({', '.join(ids)})" * (len(ids) < len(task.measures))
        for places, ids in by.items()
    ]
    return f"; shown and ranked with {', '.join(texts)}" if texts else ""


def _measures(figures: Iterable[Figure]) -> Iterator[Part]:
    """One entry a meaning: what differs in cut-off, source or truths only stands together."""
    groups: dict[tuple[str, str, str], list[Figure]] = {}
    for one in figures:
        groups.setdefault((base(one.measure), one.unit, one.says), []).append(one)
    for (name, unit, says), group in groups.items():
        heads = dict.fromkeys(one.measure for one in group)
        names = [text if n == 0 else text.removeprefix(name) for n, text in enumerate(heads)]
        truths = dict.fromkeys(one.truths for one in group)
        of = f" by {', '.join(truths)}" if len(heads) < len(group) else ""
        lower = " ↓" if group[0].direction == "lower" else ""
        meaning = f" ({unit}): {says}" if says else ""
        yield part(f"{', '.join(names)}{lower}{of}{meaning}", "  ", "      ")


_COUNTS = {
    "best": "; your best valid submission counts",
    "chosen": "; the submission that you name counts (runner choose), else the latest",
}


def _counts(table: Table) -> str:
    if table.best_on:
        return f"; your valid submission that is best on {table.best_on} counts"
    return _COUNTS.get(table.pick, "")


def _tables(task: Task) -> list[str]:
    texts, names = [], {id: one.measure for id, one in task.measures.items()}
    shown = [table for table in task.tables.values() if table.part_of is None]
    by_team = {table.unit == "team" for table in shown}
    for table in shown:
        datasets = ", ".join(dict.fromkeys(cell.dataset for cell in table.cells))
        ranked = f"ranked by {table.rank_by.says(names)}"
        row = "; a row is a team" if table.unit == "team" and len(by_team) > 1 else ""
        texts.append(f"{table.id}: {datasets}, {ranked}{row}{_counts(table)}")
    return ["in all of them a row is a team"] * (by_team == {True}) + texts
