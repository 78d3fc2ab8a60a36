"""Who may see what: the one place that decides (design.md, principle 7). :mod:`runner.views.redact` acts on it.

On a blinded dataset the software has read the hidden inputs, so whatever it chose itself (file names, the run tag, log
lines, error texts) could carry them out, and so could whatever is measured of it. A team gets none of that back: only the
outcome, and a few steps in place of figures (:mod:`runner.views.coarse`), until the organiser releases the run. Mean scores
go their own way: the dataset's ``scores`` and ``runner publish`` decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

import schemas
from runner.model.errors import RunnerError, no_such
from runner.model.names import IDENTIFIER
from schemas.details import Detail, notes_of_kinds

if TYPE_CHECKING:
    from runner.model.run import Review, Run
    from runner.model.task import Dataset, Task
    from runner.records.store.decisions import Comment, Given
    from runner.records.store.run_detail import RunDetail


@dataclass(frozen=True)
class Audience:
    """Who looks: the ``organiser``, one ``team``, or the ``public``."""

    kind: Literal["organiser", "team", "public"]
    team: str | None = None

    def __str__(self) -> str:
        return f"team:{self.team}" if self.kind == "team" else self.kind

    @property
    def words(self) -> str:
        """Who looks, for a sentence."""
        return {"organiser": "the organiser", "team": f"team {self.team}", "public": "everybody"}[self.kind]

    @classmethod
    def parse(cls, text: str) -> Audience:
        """The audience named by ``organiser``, ``public`` or ``team:NAME``. Raises E101."""
        if text in ("organiser", "public"):
            return cls("organiser" if text == "organiser" else "public")
        kind, _, team = text.partition(":")
        if kind == "team" and IDENTIFIER.fullmatch(team):
            return cls("team", team)
        why, fix = "What is shown depends on who looks.", "use organiser, team:NAME or public"
        raise no_such("audience", text, why=why, fix=fix, code="E101")


ORGANISER = Audience("organiser")
PUBLIC = Audience("public")


@dataclass(frozen=True)
class Permissions:
    """What one audience may see of one run.

    ``run``: that it exists, its outcome, verdict, blame, and steps. ``free_text``: text and names that the software or
    the evaluator wrote (logs, findings, file names, run tag), and exact figures, times and exit codes. ``scores``:
    aggregates. ``topics``: per-topic scores, and the run's files. ``platform``: facts about the platform (host, engine,
    evaluator's logs).
    """

    run: bool
    free_text: bool
    scores: bool
    topics: bool
    platform: bool

    @property
    def content(self) -> bool:
        """Whether it may see what a run is made of: transcripts, sentences, what each of them was judged."""
        return self.free_text and self.topics

    def hidden(self) -> list[str]:
        """The sections of a run that are left out for it, as people call them."""
        texts = ("logs", "finding texts", "file names", "exact figures")
        shown = {
            **dict.fromkeys(texts, self.free_text),
            "scores": self.scores,
            "per-topic scores": self.topics,
        }
        return [name for name, seen in shown.items() if not seen]


def permissions_for(
    audience: Audience, team: str, dataset: Dataset, published: bool, released: bool = False
) -> Permissions:
    """What an audience may see of a run.

    Args:
        audience: Who looks.
        team: Whose run it is.
        dataset: What the run was made on.
        published: Whether the organiser has published the scores on that dataset.
        released: Whether the organiser has opened this attempt to its team.
    """
    if audience.kind == "organiser":
        return Permissions(True, True, True, True, True)
    scores = scores_open(dataset, published)
    if not (audience.kind == "team" and audience.team == team):
        return Permissions(False, False, scores, False, False)
    open_ = dataset.visibility == "public"
    return Permissions(True, open_ or released, scores or dataset.scores == "team", open_, False)


def permissions_of(found: RunDetail, audience: Audience, dataset: Dataset) -> Permissions:
    """What ``audience`` may see of a run that was looked up."""
    return permissions_for(audience, found.run.submission.team, dataset, found.published, found.released)


def scores_open(dataset: Dataset, published: bool) -> bool:
    """Whether everybody may see mean scores on this dataset."""
    return dataset.visibility == "public" or dataset.scores == "public" or published


def assistant_may_open(dataset: Dataset, published: bool, released: bool) -> bool:
    """Whether an assistant may see a run as its team does: not what was opened to the team alone. That it exists, and how
    it ended, assistants see of all runs."""
    return scores_open(dataset, published) and (dataset.visibility == "public" or not released)


def on_boards(run: Run, task: Task, *, organiser: bool) -> bool:
    """Whether a run that ranks stands on boards: for the organiser always, for everybody else, where the task requires a review,
    once it is approved. Whatever does not stand there is for them as if it had not been handed in."""
    approved = run.review is not None and run.review.state == "approved"
    return organiser or approved or task.review != "required" or not run.outcome.ranked


def review_of(run: Run, audience: Audience) -> Review | None:
    """The review of a run as far as ``audience``, which may know of the run, may see it: a flag is told to whom it is meant for."""
    told = run.review is not None and (run.review.state == "approved" or run.review.to == "team")
    return run.review if told or audience.kind == "organiser" else None


def comments_for(found: RunDetail, audience: Audience) -> list[Comment]:
    """The comments on a run that ``audience``, which may know of the run, may read."""
    return [one for one in found.comments if audience.kind == "organiser" or one.to == "team"]


def excerpts_for(found: RunDetail, audience: Audience) -> tuple[Given, ...]:
    """What was given of the logs of an attempt, for its team and organisers."""
    own = audience.kind == "team" and audience.team == found.run.submission.team
    return found.excerpts if own or audience.kind == "organiser" else ()


MEDIAN_TEAMS = 5


def medians_open(audience: Audience, dataset: Dataset, teams: Sequence[str]) -> bool:
    """Whether ``audience`` may see the median of runs topic by topic; ``teams`` has the team of each of these runs.

    For everybody but the organiser only on public data, over so many teams that no single one can be read out of it.
    """
    if audience.kind == "organiser":
        return True
    most = max(Counter(teams).values(), default=0)
    return dataset.visibility == "public" and len(set(teams)) >= MEDIAN_TEAMS and 2 * most < len(teams)


def bests_open(audience: Audience) -> bool:
    """Whether ``audience`` may see the best value of each topic: the organiser alone. It is the own value of one run, and of the
    same run everywhere when all others score nothing."""
    return audience.kind == "organiser"


# --- details ------------------------------------------------------------------------------------------------------

# What those see of a detail who may not see free text: the words of these kinds with these of their fields, "…" in place of
# the others. Of every kind that is not here they see nothing. A field may stand here when neither a software nor a judge
# chooses it: it comes from the task's definition or data. For the notes of a kind of task its schema says so (``open``).
OPEN_FIELDS: Mapping[str, frozenset[str]] = {
    "nothing-judged": frozenset({"message"}),  # fixed words, and the name of a file of the truths
    "documents-unchecked": frozenset({"corpus"}),
    **dict.fromkeys(("word-counts", "embeddings", "entailment", "majority", "strict-majority"), frozenset()),
}


@cache
def open_fields() -> Mapping[str, frozenset[str]]:
    """:data:`OPEN_FIELDS`, and what the kinds of tasks open of their own notes."""
    of_kinds = {name: note.open for name, note in notes_of_kinds().items() if note.open is not None}
    return {**of_kinds, **OPEN_FIELDS}


def visible(details: Iterable[Detail], *, free_text: bool) -> tuple[Detail, ...]:
    """What may be seen of ``details``: all of it with ``free_text``, else what :func:`open_fields` says."""
    if free_text:
        return tuple(details)
    return tuple(one.only(open_fields()[one.kind]) for one in details if one.kind in open_fields())


# --- whole things -------------------------------------------------------------------------------------------------


def sees_inside(audience: Audience, team: str, dataset: Dataset, published: bool) -> bool:
    """Whether ``audience`` may see what a run is made of: transcripts, sentences, what each of them was judged."""
    return permissions_for(audience, team, dataset, published).content


def topics_open(run: Run, audience: Audience, dataset: Dataset, published: bool = False) -> bool:
    """Whether ``audience`` may see the scores of a run topic by topic."""
    may = permissions_for(audience, run.submission.team, dataset, published, run.released)
    return may.run and may.topics


def log_open(run: Run, audience: Audience, dataset: Dataset, published: bool = False) -> bool:
    """Whether ``audience`` may read what the software of a run wrote: what :func:`check_log` lets through."""
    may = permissions_for(audience, run.submission.team, dataset, published, run.released)
    return may.run and may.free_text


def check_log(
    found: RunDetail,
    audience: Audience,
    dataset: Dataset,
    *,
    evaluator: bool = False,
    sidecar: str | None = None,
) -> None:
    """Raise E103 when ``audience`` may not read this log of a run, whether there is one or not."""
    may = permissions_of(found, audience, dataset)
    if not (may.platform if evaluator or sidecar is not None else may.free_text):
        what = "the evaluator's log" if evaluator else "the log of a run on a blinded dataset"
        raise not_for(audience, what if sidecar is None else "the logs of the containers beside a software")


def may_export(found: RunDetail, audience: Audience, dataset: Dataset) -> None:
    """Raise E103 unless ``audience`` may have the run's files as they are.

    Also of a released run: an evaluation goes with them, with scores by topic.
    """
    may = permissions_of(found, audience, dataset)
    if not (may.run and may.content):
        raise not_for(audience, "the files of a run on a blinded dataset")


_EXACT = ("result.json", "scores.jsonl", "details.jsonl")
OF_THE_SOFTWARE = ("stdout.log", "stderr.log")  # the other logs of an attempt are of containers of ours


def may_take(audience: Audience, name: str, *, rounded: bool = False) -> bool:
    """Whether an export for ``audience`` holds the file ``name`` of an attempt or (below ``evaluation/``) an evaluation.

    Logs of our containers and what was asked of models tell about the platform: they stay with the organiser. So do scores with
    all their decimals where they are ``rounded`` for everybody else.
    """
    if audience.kind == "organiser":
        return True
    folder, _, file = name.rpartition("/")
    if rounded and folder == "evaluation" and file in _EXACT:
        return False
    if file in ("calls.jsonl", "replies.jsonl") and folder in ("", "evaluation"):
        return False
    if folder in ("logs", "evaluation/logs"):
        return folder == "logs" and file in OF_THE_SOFTWARE
    return True


def not_for(audience: Audience, what: str, fix: str = "ask the organiser") -> RunnerError:
    """The error for something that this audience may not see."""
    return RunnerError(
        "E103",
        f"not open to {audience}: {escape(what, 200)}",
        why="Hidden data could be read back from it."
        if audience.kind == "team"
        else "Only leaderboards with published scores are public.",
        fix=fix,
    )


def escape(text: object, limit: int = 500) -> str:
    """``text`` without anything that moves a terminal's cursor, reverses text or breaks a line, and not longer
    than ``limit`` characters. Characters that do not print become ``\\x1b``-like sequences."""
    return schemas.show(text, limit)
