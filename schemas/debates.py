"""Debates as files have them: every form of a line in circulation, read into one.

Forms: GenIRSim's ``{"simulation": {"configuration": …, "userTurns": […]}}`` (also of its evaluations, also without
``configuration``, as its converter writes it), the bare ``{"userTurns": […]}``, the training data's ``{"id", "claim",
"description", "debate": […]}`` and the annotation files' ``simulated_debate``. ``{}`` is a debate that failed. What was said in them has an identity (:func:`transcript_digest`).

Nothing raises for what a line holds: what is wrong with it comes back as :class:`Fault`.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from schemas import canonical
from schemas.jsonl import kind_of
from schemas.words import blank

CRITERIA = ("quantity", "quality", "relation", "manner")  # Grice's, by which answers are judged
MAX_TURNS = 1000  # of one debate; more are not looked at
MAX_ARGUMENTS = 20_000  # of one answer; more are counted, not kept
MAX_TEXT = 1 << 20  # characters of one text; what is beyond is cut

_SURROGATE = re.compile("[\ud800-\udfff]")

Kind = Literal["form", "argument", "text", "differs", "size"]


class Argument(NamedTuple):
    """One argument of an answer, as the system gave it. ``id`` is "" if it has none; ``text`` None if it has none."""

    id: str
    text: str | None


class Turn(NamedTuple):
    """One user utterance and the system's answer, which is "" if there is none (the turn failed).

    ``cited`` is how many entries the list of arguments has, ``arguments`` are the first of them; an entry that is no
    object has neither id nor text. ``milliseconds`` is what the file says, or None.
    """

    user: str
    answer: str
    arguments: tuple[Argument, ...] = ()
    cited: int = 0
    milliseconds: float | None = None

    @property
    def failed(self) -> bool:
        """Whether the system gave no answer."""
        return blank(self.answer)


class Debate(NamedTuple):
    """One debate. ``id`` and ``claim`` are "" where the line does not say them; ``planned`` is its ``maxTurns``."""

    id: str
    claim: str
    turns: tuple[Turn, ...]
    planned: int | None = None

    @property
    def failed(self) -> bool:
        """Whether nothing is left of it (a line ``{}``)."""
        return not self.turns


class Fault(NamedTuple):
    """One thing wrong in a debate: its kind, the turn it is in (from 1, None: the debate as a whole), and what it is."""

    kind: Kind
    turn: int | None
    what: str


FAILED = Debate("", "", ())


def clean(text: str) -> str:
    """``text`` with U+FFFD instead of lone surrogates, which JSON can hold and UTF-8 cannot (as the driver does)."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def parse(data: Any, most: int = MAX_ARGUMENTS) -> tuple[Debate | None, list[Fault]]:
    """One line's debate, and what is wrong with it; None (with a fault of kind ``form``) if it is none at all.

    ``most`` arguments of an answer are looked at; more are counted.
    """
    faults: list[Fault] = []
    if not isinstance(data, Mapping):
        return None, [Fault("form", None, f"there is {kind_of(data)} instead of an object")]
    if not data:
        return FAILED, faults
    for key in ("debate", "simulated_debate"):
        if key in data and "simulation" not in data:
            return _messages(data, key, faults, most), faults
    simulation = data.get("simulation", data)
    if not isinstance(simulation, Mapping):
        return None, [Fault("form", None, f"simulation is {kind_of(simulation)} instead of an object")]
    if "userTurns" not in simulation:
        where = "simulation" if "simulation" in data else "the object"
        return None, [Fault("form", None, f"{where} has no userTurns (nor debate or simulated_debate)")]
    return _simulation(data, simulation, faults, most), faults


def _simulation(
    line: Mapping[str, Any], simulation: Mapping[str, Any], faults: list[Fault], most: int
) -> Debate | None:
    turns = simulation["userTurns"]
    if not isinstance(turns, list):
        faults.append(Fault("form", None, f"userTurns is {kind_of(turns)} instead of a list"))
        return None
    configuration = simulation.get("configuration")
    configuration = configuration if isinstance(configuration, Mapping) else {}
    topic = configuration.get("topic")
    topic = topic if isinstance(topic, Mapping) else {}
    planned = configuration.get("maxTurns")
    return Debate(
        _text(topic.get("id")) or _text(line.get("id")),
        _text(topic.get("description")) or _text(line.get("claim")),
        tuple(_user_turn(n, one, faults, most) for n, one in enumerate(_first(turns, faults), 1)),
        planned if type(planned) is int and 0 < planned <= MAX_TURNS else None,
    )


def _first(turns: Sequence[Any], faults: list[Fault]) -> Sequence[Any]:
    if len(turns) > MAX_TURNS:
        faults.append(Fault("size", None, f"it has {len(turns):,} turns; only {MAX_TURNS:,} are read"))
    return turns[:MAX_TURNS]


def _user_turn(number: int, data: Any, faults: list[Fault], most: int) -> Turn:
    if not isinstance(data, Mapping):
        faults.append(Fault("form", number, f"the turn is {kind_of(data)} instead of an object"))
        return Turn("", "")
    user = data.get("utterance")
    if user == "" and _never_held(data):
        return Turn("", "")
    if not isinstance(user, str) or not user.strip():
        there = "empty" if isinstance(user, str) else kind_of(user) if "utterance" in data else "missing"
        faults.append(Fault("form", number, f"the user's utterance is {there}"))
    answer = data.get("systemResponse")
    if not isinstance(answer, Mapping):
        return Turn(_text(user), "")
    response = answer.get("response")
    response = response if isinstance(response, Mapping) else {}
    said, content = answer.get("utterance"), response.get("content")
    if not isinstance(said, str):
        said = content
    elif isinstance(content, str) and content != said:
        faults.append(Fault("differs", number, "utterance and response.content are not the same"))
    # GenIRSim's own retrieval system leaves its hits in results, and their texts elsewhere.
    listed = response.get("arguments", answer.get("arguments", answer.get("results")))
    kept, cited = _arguments(number, listed, faults, most)
    return Turn(_text(user), _text(said, faults, number), kept, cited, _number(answer.get("milliseconds")))


def _never_held(turn: Mapping[str, Any]) -> bool:
    """Whether nobody said anything: so the driver notes a turn that a debate did not reach."""
    answer = turn.get("systemResponse")
    return isinstance(answer, Mapping) and answer.get("utterance") == ""


def _messages(data: Mapping[str, Any], key: str, faults: list[Fault], most: int) -> Debate | None:
    """The training and annotation files: one message after the other, ``user`` being the simulated user."""
    messages = data[key]
    if not isinstance(messages, list):
        faults.append(Fault("form", None, f"{key} is {kind_of(messages)} instead of a list"))
        return None
    turns: list[Turn] = []
    waiting: str | None = None  # a user's utterance without an answer
    for place, one in enumerate(_first(messages, faults), 1):
        role = one.get("role") if isinstance(one, Mapping) else None
        content = one.get("content") if isinstance(one, Mapping) else None
        if role not in ("user", "assistant", "system") or not isinstance(content, str):
            faults.append(
                Fault("form", len(turns) + 1, f"message {place} has no role and content to be read")
            )
            continue
        if role == "user":
            if waiting is not None:
                turns.append(Turn(waiting, ""))
            waiting = _text(content, faults, len(turns) + 1)
            continue
        number = len(turns) + 1
        if waiting is None:
            faults.append(Fault("form", number, f"message {place} answers nobody"))
        kept, cited = _arguments(number, one.get("arguments"), faults, most)
        turns.append(Turn(waiting or "", _text(content, faults, number), kept, cited))
        waiting = None
    if waiting is not None:
        turns.append(Turn(waiting, ""))
    return Debate(_text(data.get("id")), _text(data.get("claim")), tuple(turns))


def _arguments(number: int, listed: Any, faults: list[Fault], most: int) -> tuple[tuple[Argument, ...], int]:
    if listed is None:
        return (), 0
    if not isinstance(listed, list):
        faults.append(Fault("argument", number, f"arguments is {kind_of(listed)} instead of a list"))
        return (), 0
    kept: list[Argument] = []
    for place, one in enumerate(listed[:most], 1):
        if not isinstance(one, Mapping):
            faults.append(
                Fault("argument", number, f"argument {place} is {kind_of(one)} instead of an object")
            )
            kept.append(Argument("", None))
            continue
        name, text = one.get("id"), one.get("text")
        if not isinstance(name, str) or not name:
            there = kind_of(name) if name is not None and name != "" else "missing"
            faults.append(Fault("argument", number, f"the id of argument {place} is {there}"))
        if not isinstance(text, str):
            faults.append(Fault("text", number, f"argument {place} has no text"))
        kept.append(Argument(_text(name), _text(text) if isinstance(text, str) else None))
    if len(listed) > most:
        faults.append(Fault("size", number, f"it has {len(listed):,} arguments; only {most:,} are read"))
    return tuple(kept), len(listed)


def _text(value: Any, faults: list[Fault] | None = None, turn: int | None = None) -> str:
    if not isinstance(value, str):
        return ""
    if len(value) > MAX_TEXT:
        if faults is not None:
            faults.append(Fault("size", turn, f"a text has {len(value):,} characters and was cut"))
        value = value[:MAX_TEXT]
    return clean(value)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) and found >= 0 else None


def transcript(debate: Debate) -> list[list[Any]]:
    """What was said in a debate, without times: ``[user, system, [[argument id, text], …]]`` for each turn.

    An answer that is not there is ""; the id or text that an argument does not have is None.
    """
    return [[t.user, t.answer, [[a.id or None, a.text] for a in t.arguments]] for t in debate.turns]


def transcript_digest(debates: Iterable[Debate]) -> str:
    """SHA-256 (hex) of the canonical JSON of the list of all debates' :func:`transcript`, in their order.

    The same words give the same digest, however long they took and whatever form the file has: it is how labels and
    judgments say which debates they are about, and how two executions are compared. A single debate's digest is that
    of the list with it alone. Debates are taken one at a time.
    """
    whole = hashlib.sha256(b"[")
    for number, debate in enumerate(debates):
        whole.update((b"," if number else b"") + canonical(transcript(debate)))
    whole.update(b"]")
    return whole.hexdigest()


def digest_of_lines(lines: Iterable[Any]) -> str:
    """:func:`transcript_digest` of a file's lines, as JSON has them; a line that holds no debate is left out."""
    return transcript_digest(found for line in lines if (found := parse(line)[0]) is not None)
