"""The four criteria of a debate's answers (Quantity, Quality, Relation, Manner) from people's labels, judges and models.

Every source gives the same thing: for some answers, by criterion, a value from 0 (no) to 1 (yes). A criterion's measure is
the share of yes over the answers that were judged and the turns without an answer, which are no.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from evaluator.errors import EvaluatorError
from evaluator.findings import plain
from evaluator.formats.files import Unreadable, read_all
from evaluator.formats.labels import Label, Score
from evaluator.judges.unread import unread_replies
from evaluator.measures.agreement import with_people
from evaluator.measures.examination import Answer, Place
from schemas.debates import CRITERIA
from schemas.details import Detail, noted

if TYPE_CHECKING:
    from evaluator.judges.chat import Chat

THRESHOLD = 0.5  # of a judge's score
MOST_REFUSED = 0.5  # of all questions: beyond, the endpoint or its parameters are wrong, not a few texts
MAX_PROMPT = 64 << 10
ANSWER_CHARACTERS = 4000  # of an answer, what a model is shown
TEXT_CHARACTERS = 2000  # of every other text
BEFORE = 20  # turns of the dialogue, the last ones
ARGUMENTS = 20
PARAMETERS: Mapping[str, Any] = {"max_tokens": 16}
_PROMPTS = Path(__file__).parent / "prompts"
_WORDS = re.compile(r"\b(yes|no)\b", re.IGNORECASE)


class Judgments(NamedTuple):
    """What a source says: ``values`` by place and criterion; ``looked`` are the places it has seen.

    ``pending`` is why it has said nothing yet (by criterion); ``missing`` are places where it was asked and gave no
    verdict, ``refused`` those where its endpoint did not take the question, of ``asked`` in all; ``facts`` describe it
    for ``result.json``.
    """

    values: Mapping[Place, Mapping[str, float]]
    looked: frozenset[Place]
    facts: dict[str, Any]
    pending: Mapping[str, str] = {}
    missing: tuple[tuple[Place, str], ...] = ()
    refused: tuple[tuple[Place, str], ...] = ()
    asked: int = 0


def majority(said: Iterable[int | None]) -> float | None:
    """1 if more say yes (1) than no (0), 0 if fewer, 0.5 for a tie; None if nobody says either."""
    votes = [v for v in said if v is not None]
    if not votes:
        return None
    yes = sum(votes)
    return 0.5 if 2 * yes == len(votes) else float(2 * yes > len(votes))


def _joined(votes: Mapping[Place, Mapping[str, Mapping[str, int | None]]]) -> dict[Place, dict[str, float]]:
    """Votes by place, voter and criterion, as values by place and criterion."""
    return {
        place: {
            c: value
            for c in CRITERIA
            if (value := majority(values.get(c) for values in by_voter.values())) is not None
        }
        for place, by_voter in votes.items()
    }


def human(
    labels: Iterable[Label],
    digest: str,
    places: Mapping[int, int],
    transcripts: Mapping[str, Sequence[int]],
) -> Judgments:
    """People's labels about this run. Where several judged an answer the majority counts, and a tie is one half.

    ``digest`` is the transcript digest of the run, ``places`` the claim of each debate of the file (from 1), and
    ``transcripts`` the claims by the digests of single debates.
    """
    votes: dict[Place, dict[str, Mapping[str, int | None]]] = {}
    for label in labels:
        if label.run == digest and label.debate in places:
            meant: Sequence[int] = (places[label.debate],)
        else:
            meant = transcripts.get(label.transcript, ()) if label.transcript else ()
        for claim in meant:
            votes.setdefault((claim, label.turn), {})[label.annotator] = label.values
    people = {name for one in votes.values() for name in one}
    facts = {"name": "people", **noted(Detail("majority", annotators=len(people)))}
    return Judgments(_joined(votes), frozenset(votes), facts)


def software(scores: Iterable[Score], transcripts: Mapping[str, Sequence[int]], name: str = "") -> Judgments:
    """What softwares of the task of judging said (all, or the one called ``name``): yes from 0.5 on, then the majority."""
    votes: dict[Place, dict[str, Mapping[str, int | None]]] = {}
    for score in scores:
        if name and score.judge != name:
            continue
        values = {c: int(v >= THRESHOLD) for c, v in score.values.items()}
        for claim in transcripts.get(score.transcript, ()):
            votes.setdefault((claim, score.turn), {})[score.judge] = values
    judges = sorted({judge for one in votes.values() for judge in one})
    shown = ", ".join(plain(j, 40) for j in judges[:5]) + (" and others" if len(judges) > 5 else "")
    return Judgments(_joined(votes), frozenset(votes), {"name": "software", "note": shown or None})


class Prompts(NamedTuple):
    """The prompts of a judge: the system's, one by criterion, and the SHA-256 of all."""

    system: str
    questions: Mapping[str, str]
    digest: str


def read_prompts(folder: Path | None = None) -> Prompts:
    """Our prompts, each replaced by the file of its name in ``folder`` if there is one.

    Raises :class:`EvaluatorError` for a folder without prompts, and for files that are no text.
    """
    found: dict[str, str] = {}
    own = 0
    for name in ("system", *CRITERIA):
        path = _PROMPTS / f"{name}.md"
        if folder is not None and (folder / f"{name}.md").is_file():
            path = folder / f"{name}.md"
            own += 1
        try:
            found[name] = read_all(path, MAX_PROMPT, follow=True).decode("utf-8").strip()
        except (Unreadable, UnicodeDecodeError):
            raise EvaluatorError(
                f"the prompt {name}.md cannot be read", fix="write it as UTF-8 text"
            ) from None
    if folder is not None and not own:
        raise EvaluatorError(
            f"the folder {plain(folder.name)} holds no prompts",
            fix="name a folder of the truths with system.md, quantity.md, quality.md, relation.md or manner.md",
        )
    text = json.dumps(found, sort_keys=True, ensure_ascii=False).encode()
    return Prompts(found["system"], {c: found[c] for c in CRITERIA}, hashlib.sha256(text).hexdigest())


def messages(prompts: Prompts, criterion: str, answer: Answer) -> list[dict[str, str]]:
    """What a model is asked about one answer.

    The evidence is one line of JSON, so that nothing in it can look like a line of ours, and the mark on the lines
    around it is made from it, so that nobody who writes it can know the mark.
    """
    evidence = json.dumps(
        {
            "before": [
                {"user": _cut(user, TEXT_CHARACTERS), "debater": _cut(system, TEXT_CHARACTERS)}
                for user, system in answer.before[-BEFORE:]
            ],
            "user": _cut(answer.user, TEXT_CHARACTERS),
            "answer": _cut(answer.text, ANSWER_CHARACTERS),
            "arguments": [_cut(text, TEXT_CHARACTERS) for text in answer.arguments],
        },
        ensure_ascii=False,
    )
    mark = hashlib.sha256(evidence.encode()).hexdigest()[:16]
    question = (
        f"{prompts.questions[criterion]}\n\nBEGIN {mark}\n{evidence}\nEND {mark}\n\nReply with YES or NO."
    )
    return [{"role": "system", "content": prompts.system}, {"role": "user", "content": question}]


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + " [cut]"


def verdict(reply: str) -> bool | None:
    """Whether a reply says yes: the one of the words yes and no that occurs in it; None if it is neither or both."""
    said = {word.lower() for word in _WORDS.findall(reply[:10_000])}
    return said == {"yes"} if len(said) == 1 else None


async def _ask(chat: Chat, prompts: Prompts, criterion: str, answer: Answer) -> bool | str:
    """Return the verdict, or the last reply if neither it nor the one before could be read."""
    asked = messages(prompts, criterion, answer)
    reply = await chat.ask(asked)
    found = verdict(reply.text)
    if found is None:
        again = {
            "role": "user",
            "content": "That was neither YES nor NO. Reply with one of these words only.",
        }
        said = {"role": "assistant", "content": reply.text[:200] or "-"}
        reply = await chat.ask([*asked, said, again])
        found = verdict(reply.text)
    return reply.text if found is None else found


def llm(chat: Chat, prompts: Prompts, answers: Sequence[Answer], criteria: Sequence[str]) -> Judgments:
    """What a model says about every answer, one question by answer and criterion.

    A reply that says neither yes nor no, twice, is a no (``missing`` lists it): an answer must not gain by confusing
    the judge. So is a question that the endpoint refuses (``refused``), as a filter of contents may. Nothing counts if
    most are refused, or most replies unreadable. If a single question could not be asked for another reason, nothing has been judged yet.
    """
    from evaluator.judges.chat import JudgeError

    async def everything() -> list[bool | str | BaseException]:
        async with chat:
            return await asyncio.gather(
                *(_ask(chat, prompts, c, a) for a in answers for c in criteria), return_exceptions=True
            )

    replies = asyncio.run(everything())
    facts = {"name": "llm", "model": plain(chat.model, 100), "prompts": f"sha256:{prompts.digest}"}
    failed = [r for r in replies if isinstance(r, BaseException)]
    for error in failed:
        if not isinstance(error, JudgeError):
            raise error
    broken = [error for error in failed if not getattr(error, "refused", False)]
    if not broken and len(failed) > MOST_REFUSED * len(replies):
        broken = failed
    if broken:
        reason = (
            f"the judge could not be asked about {len(broken):,} of {len(replies):,} questions: "
            f"{plain(str(broken[0]), 150)}"
        )
        return Judgments({}, frozenset(), facts, dict.fromkeys(criteria, reason))
    unread = [reply for reply in replies if isinstance(reply, str)]
    if len(unread) > MOST_REFUSED * (len(replies) - len(failed)):
        reason = unread_replies(len(unread), len(replies) - len(failed), unread)
        return Judgments({}, frozenset(), facts, dict.fromkeys(criteria, reason))
    values: dict[Place, dict[str, float]] = {}
    missing: list[tuple[Place, str]] = []
    refused: list[tuple[Place, str]] = []
    for (answer, criterion), found in zip(product(answers, criteria), replies, strict=True):
        if not isinstance(found, bool):
            (missing if isinstance(found, str) else refused).append((answer.place, criterion))
        values.setdefault(answer.place, {})[criterion] = float(found is True)
    looked = frozenset(values)
    return Judgments(values, looked, facts, {}, tuple(missing), tuple(refused), len(replies))


def reliability(judge: Judgments, people: Judgments) -> dict[str, float]:
    """How far a judge agrees with people about the answers that both judged, all criteria together; {} without any.

    ``agreement`` is the share of equal verdicts, ``kappa`` Cohen's, ``compared`` how many verdicts were compared. Ties
    are left out.
    """
    pairs = [
        (mine[c], theirs[c])
        for place, theirs in people.values.items()
        if (mine := judge.values.get(place))
        for c in CRITERIA
        if c in mine and c in theirs and mine[c] != 0.5 and theirs[c] != 0.5
    ]
    return with_people(pairs, "verdicts")
